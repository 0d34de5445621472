/*
 * Resources that are made where the module of their library has gone already: by destructors of others, and as the library is
 * unloaded. The program `nif_destructors` loads it; what it tells goes to the process of that name.
 */
#include <erl_nif.h>

static ErlNifPid boss;
/* The destructor of the first makes one of the second, and that one's one of the third, whose one makes no more. */
static ErlNifResourceType *types[3];
/* Has no destructor. */
static ErlNifResourceType *plain;

typedef struct {
    int number;
} thing;

static void tell(const char *what, int a, int b)
{
    ErlNifEnv *own = enif_alloc_env();
    enif_send(NULL, &boss, own, enif_make_tuple3(own, enif_make_atom(own, what), enif_make_int(own, a), enif_make_int(own, b)));
    enif_free_env(own);
}

static thing *thing_of(ErlNifResourceType *type, int number)
{
    thing *t = enif_alloc_resource(type, sizeof *t);
    t->number = number;
    return t;
}

static void ended(thing *t, int kind)
{
    tell("ended", kind, t->number);
    if (kind < 2) {
        enif_release_resource(thing_of(types[kind + 1], t->number + 1));
        enif_release_resource(thing_of(plain, 0));
    }
}

static void first(ErlNifEnv *env, void *obj)
{
    ended(obj, 0);
}

static void second(ErlNifEnv *env, void *obj)
{
    ended(obj, 1);
}

static void third(ErlNifEnv *env, void *obj)
{
    ended(obj, 2);
}

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    if (!enif_whereis_pid(env, enif_make_atom(env, "nif_destructors"), &boss))
        return 1;
    types[0] = enif_open_resource_type(env, NULL, "first", first, ERL_NIF_RT_CREATE, NULL);
    types[1] = enif_open_resource_type(env, NULL, "second", second, ERL_NIF_RT_CREATE, NULL);
    types[2] = enif_open_resource_type(env, NULL, "third", third, ERL_NIF_RT_CREATE, NULL);
    plain = enif_open_resource_type(env, NULL, "plain", NULL, ERL_NIF_RT_CREATE, NULL);
    return !types[0] || !types[1] || !types[2] || !plain;
}

static void unload(ErlNifEnv *env, void *priv)
{
    tell("unload", 0, 0);
    /* Nothing of the library is called any more. */
    enif_release_resource(thing_of(types[2], 100));
    enif_release_resource(thing_of(plain, 0));
}

/* make(Kind, Number) */
static ERL_NIF_TERM make(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    int kind, number;
    thing *t;
    ERL_NIF_TERM r;
    if (!enif_get_int(env, argv[0], &kind) || kind < 0 || kind > 2 || !enif_get_int(env, argv[1], &number))
        return enif_make_badarg(env);
    t = thing_of(types[kind], number);
    r = enif_make_resource(env, t);
    enif_release_resource(t);
    return r;
}

static ErlNifFunc functions[] = {{"make", 2, make}};

ERL_NIF_INIT(n_ended, functions, load, NULL, NULL, unload)
