/* What the benchmarks of `libraries.erl` call. */
#include <erl_nif.h>

static ErlNifResourceType *type;

static void dtor(ErlNifEnv *env, void *obj)
{
}

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    type = enif_open_resource_type(env, NULL, "bench", dtor, ERL_NIF_RT_CREATE, NULL);
    return type == NULL;
}

static ERL_NIF_TERM same(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    return argv[0];
}

static ERL_NIF_TERM resource(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    void *r = enif_alloc_resource(type, 32);
    ERL_NIF_TERM t = enif_make_resource(env, r);
    enif_release_resource(r);
    return t;
}

static ERL_NIF_TERM sum(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifBinary b;
    if (!enif_inspect_binary(env, argv[0], &b))
        return enif_make_badarg(env);
    return enif_make_int(env, b.data[0] + b.data[b.size - 1]);
}

static ERL_NIF_TERM list(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM l = enif_make_list(env, 0);
    int i;
    for (i = 0; i < 1000; i++)
        l = enif_make_list_cell(env, enif_make_tuple2(env, enif_make_int(env, i), argv[0]), l);
    return l;
}

static ErlNifFunc functions[] = {{"same", 1, same}, {"resource", 0, resource}, {"sum", 1, sum}, {"list", 1, list}};

ERL_NIF_INIT(libraries, functions, load, NULL, NULL, NULL)
