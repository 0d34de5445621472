/* A library that counts its versions: loaded, taken over, given up. The program `nif_upgrade_and_purge` loads it. */
#include <erl_nif.h>
#include <string.h>

typedef struct {
    int version;
    int uses;
} data;

static ErlNifResourceType *type;

static void tell(const char *what, int n)
{
    ErlNifEnv *env = enif_alloc_env();
    ErlNifPid pid;
    if (enif_whereis_pid(env, enif_make_atom(env, "nif_upgrade_and_purge"), &pid))
        enif_send(NULL, &pid, env, enif_make_tuple2(env, enif_make_atom(env, what), enif_make_int(env, n)));
    enif_free_env(env);
}

static void dtor(ErlNifEnv *env, void *obj)
{
    tell("dtor", *(int *)obj);
}

static int open_type(ErlNifEnv *env)
{
    ErlNifResourceFlags tried;
    type = enif_open_resource_type(env, NULL, "counted", dtor, ERL_NIF_RT_CREATE | ERL_NIF_RT_TAKEOVER, &tried);
    tell("type", tried);
    return type == NULL;
}

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    data *d;
    int code;
    if (enif_get_int(env, info, &code))
        return code;
    d = enif_alloc(sizeof *d);
    d->version = 1;
    d->uses = 0;
    *priv = d;
    tell("load", enif_priv_data(env) == d);
    return open_type(env);
}

static int upgrade(ErlNifEnv *env, void **priv, void **old, ERL_NIF_TERM info)
{
    data *d, *o = *old;
    int code;
    if (enif_get_int(env, info, &code))
        return code;
    d = enif_alloc(sizeof *d);
    d->version = o->version + 1;
    d->uses = o->uses;
    *priv = d;
    tell("upgrade", d->version);
    return open_type(env);
}

static void unload(ErlNifEnv *env, void *priv)
{
    data *d = priv;
    tell("unload", d->version);
    enif_free(d);
}

static ERL_NIF_TERM version(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    data *d = enif_priv_data(env);
    d->uses++;
    return enif_make_tuple2(env, enif_make_int(env, d->version), enif_make_int(env, d->uses));
}

static ERL_NIF_TERM make(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    int *n = enif_alloc_resource(type, sizeof(int));
    ERL_NIF_TERM t = enif_make_resource(env, n);
    if (!enif_get_int(env, argv[0], n))
        *n = 0;
    enif_release_resource(n);
    return t;
}

static ErlNifFunc functions[] = {{"version", 0, version}, {"make", 1, make}};

ERL_NIF_INIT(n_versions, functions, load, NULL, upgrade, unload)
