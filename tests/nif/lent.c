/* Functions that are long at work on dirty threads, and ask for all kinds of things meanwhile. */
#include <erl_nif.h>
#include <string.h>
#include <unistd.h>

static ErlNifResourceType *type;
static int ended;

static void end(ErlNifEnv *env, void *of)
{
    __atomic_add_fetch(&ended, 1, __ATOMIC_SEQ_CST);
}

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    type = enif_open_resource_type(env, NULL, "lent", end, ERL_NIF_RT_CREATE, NULL);
    return type == NULL;
}

static ERL_NIF_TERM piece(ErlNifEnv *env, int i, ERL_NIF_TERM before)
{
    unsigned char *bytes;
    ERL_NIF_TERM map = enif_make_new_map(env), bin, list, t;
    void *r = enif_alloc_resource(type, 8);
    ERL_NIF_TERM ref = enif_make_resource(env, r);
    enif_release_resource(r);
    bytes = enif_make_new_binary(env, 100, &bin);
    memset(bytes, i, 100);
    list = enif_make_list3(env, enif_make_int(env, i), enif_make_uint64(env, 1ull << 63), enif_make_double(env, i));
    enif_make_map_put(env, map, enif_make_int(env, i), ref, &map);
    t = enif_make_tuple4(env, bin, list, map, enif_make_copy(env, before));
    return enif_make_list_cell(env, t, enif_make_list(env, 0));
}

/* work(Pieces, Microseconds, To): asks for so many terms, with a pause after each. Each sends its number, or none where `To` is no
   pid. The result: how many are as they were made. */
static ERL_NIF_TERM work(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    int n, us, i, right = 0;
    ErlNifPid to, self;
    ERL_NIF_TERM all[500], first = argv[0];
    if (!enif_get_int(env, argv[0], &n) || !enif_get_int(env, argv[1], &us) || n > 500)
        return enif_make_badarg(env);
    for (i = 0; i < n; i++) {
        all[i] = piece(env, i, first);
        if (enif_get_local_pid(env, argv[2], &to) && enif_self(env, &self))
            enif_send(env, &to, NULL, enif_make_tuple2(env, enif_make_pid(env, &self), enif_make_int(env, i)));
        usleep(us);
    }
    for (i = 0; i < n; i++) {
        ERL_NIF_TERM head, tail, key = enif_make_int(env, i), ref;
        const ERL_NIF_TERM *parts;
        ErlNifBinary b;
        int arity, number;
        void *r;
        right += enif_get_list_cell(env, all[i], &head, &tail) && enif_is_empty_list(env, tail) && enif_get_tuple(env, head, &arity, &parts) &&
                 arity == 4 && enif_inspect_binary(env, parts[0], &b) && b.size == 100 && b.data[99] == (unsigned char)i &&
                 enif_get_list_cell(env, parts[1], &head, &tail) && enif_get_int(env, head, &number) && number == i &&
                 enif_get_map_value(env, parts[2], key, &ref) && enif_get_resource(env, ref, type, &r) && enif_is_identical(parts[3], first);
    }
    return enif_make_int(env, right);
}

/* idle(Milliseconds): asks for nothing. */
static ERL_NIF_TERM idle(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    int ms;
    if (!enif_get_int(env, argv[0], &ms))
        return enif_make_badarg(env);
    usleep(ms * 1000);
    return argv[1];
}

static ERL_NIF_TERM ends(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    return enif_make_int(env, __atomic_load_n(&ended, __ATOMIC_SEQ_CST));
}

static ErlNifFunc functions[] = {
    {"work", 3, work, ERL_NIF_DIRTY_JOB_CPU_BOUND},
    {"work_io", 3, work, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"idle", 2, idle, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"ends", 0, ends},
};

ERL_NIF_INIT(signals_during_dirty_nifs, functions, load, NULL, NULL, NULL)
