/*
 * A library that is taken over from again and again, by copies of its own file, while calls of it are under way. The program
 * `nif_upgrade_under_load` loads it. What it tells goes to the process of that name.
 */
#include <erl_nif.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Handed on from version to version. */
typedef struct {
    int version;
    int uses;
} shared;

/* Each copy of the file has its own. */
static int mine;
static ErlNifPid boss;
static ErlNifResourceType *taken, *own;

typedef struct {
    int number;
} thing;

static void tell(ErlNifEnv *env, const char *what, int a, int b)
{
    ErlNifEnv *own = enif_alloc_env();
    enif_send(env, &boss, own, enif_make_tuple3(own, enif_make_atom(own, what), enif_make_int(own, a), enif_make_int(own, b)));
    enif_free_env(own);
}

static void taken_dtor(ErlNifEnv *env, void *obj)
{
    tell(env, "taken", mine, ((thing *)obj)->number);
}

static void own_dtor(ErlNifEnv *env, void *obj)
{
    tell(env, "own", mine, ((thing *)obj)->number);
}

/* One type goes on with the next version, the other one is this version's. */
static int open_types(ErlNifEnv *env)
{
    char name[20];
    if (!enif_whereis_pid(env, enif_make_atom(env, "nif_upgrade_under_load"), &boss))
        return 1;
    taken = enif_open_resource_type(env, NULL, "taken", taken_dtor, ERL_NIF_RT_CREATE | ERL_NIF_RT_TAKEOVER, NULL);
    snprintf(name, sizeof name, "own%d", mine);
    own = enif_open_resource_type(env, NULL, name, own_dtor, ERL_NIF_RT_CREATE, NULL);
    return !taken || !own;
}

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    shared *s = enif_alloc(sizeof *s);
    s->version = mine = 1;
    s->uses = 0;
    *priv = s;
    return open_types(env);
}

static int upgrade(ErlNifEnv *env, void **priv, void **old, ERL_NIF_TERM info)
{
    shared *s = *old;
    if (enif_is_identical(info, enif_make_atom(env, "refuse"))) {
        mine = -1;
        open_types(env);
        return 7;
    }
    mine = __atomic_add_fetch(&s->version, 1, __ATOMIC_SEQ_CST);
    *priv = s;
    return open_types(env);
}

static void unload(ErlNifEnv *env, void *priv)
{
    tell(env, "unload", mine, 0);
}

#define NIF(Name) static ERL_NIF_TERM Name(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])

NIF(version)
{
    __atomic_add_fetch(&((shared *)enif_priv_data(env))->uses, 1, __ATOMIC_SEQ_CST);
    return enif_make_int(env, mine);
}

NIF(uses)
{
    return enif_make_int(env, ((shared *)enif_priv_data(env))->uses);
}

static ERL_NIF_TERM make(ErlNifEnv *env, ErlNifResourceType *type, int number)
{
    thing *t = enif_alloc_resource(type, sizeof *t);
    ERL_NIF_TERM r = enif_make_resource(env, t);
    t->number = number;
    enif_release_resource(t);
    return r;
}

NIF(make_taken)
{
    int n = 0;
    enif_get_int(env, argv[0], &n);
    return make(env, taken, n);
}

NIF(make_own)
{
    int n = 0;
    enif_get_int(env, argv[0], &n);
    return make(env, own, n);
}

/* number(Thing): of either type, as this version knows them. */
NIF(number)
{
    void *t;
    if (enif_get_resource(env, argv[0], taken, &t) || enif_get_resource(env, argv[0], own, &t))
        return enif_make_int(env, ((thing *)t)->number);
    return enif_make_atom(env, "unknown");
}

/* Lasts until there is a file of that name, and goes on for a while: its code has to be there still. */
NIF(slow)
{
    char name[100];
    int i, n = 0;
    ERL_NIF_TERM list = enif_make_list(env, 0), made;
    if (!enif_get_string(env, argv[0], name, sizeof name, ERL_NIF_LATIN1))
        return enif_make_badarg(env);
    tell(env, "started", mine, 0);
    while (access(name, F_OK) && n++ < 15000) {
        enif_is_current_process_alive(env);
        usleep(2000);
    }
    for (i = 0; i < 300; i++)
        list = enif_make_list_cell(env, enif_make_tuple2(env, enif_make_int(env, i), enif_make_double(env, i)), list);
    made = make(env, own, 100 + mine);
    tell(env, "ended", mine, n < 15000);
    return enif_make_tuple4(env, enif_make_int(env, mine), enif_make_int(env, enif_thread_type()), made, list);
}

NIF(slow_later)
{
    return enif_schedule_nif(env, "slow", ERL_NIF_DIRTY_JOB_IO_BOUND, slow, 1, argv);
}

static ErlNifFunc functions[] = {
    {"version", 0, version}, {"uses", 0, uses}, {"make_taken", 1, make_taken}, {"make_own", 1, make_own}, {"number", 1, number},
    {"slow", 1, slow, ERL_NIF_DIRTY_JOB_IO_BOUND}, {"slow_later", 1, slow_later},
};

ERL_NIF_INIT(n_renewed, functions, load, NULL, upgrade, unload)
