/*
 * Tracer modules, for the program `tracer_modules`: which one this is, is known by the name of the file that it was copied to. The state of
 * a tracer is `{Answers, To, Anything}`: a map from tags to what is answered, and who gets the events.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <erl_nif.h>
#include <string.h>

#define KINDS 9
static const char *const kinds[KINDS] = {"",      "send",  "receive", "call", "running_procs", "running_ports", "garbage_collection",
                                         "procs", "ports"};

/* Which functions were asked, and about what. */
#define MOST 4000
static struct {
    int kind;
    ERL_NIF_TERM tag;
    int about;
} log_[MOST];
static int logged;
static ErlNifMutex *lock;

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    if (!lock)
        lock = enif_mutex_create("tracers");
    return 0;
}

static int upgrade(ErlNifEnv *env, void **priv, void **old, ERL_NIF_TERM info)
{
    return load(env, priv, info);
}

static ERL_NIF_TERM answer(ErlNifEnv *env, int kind, const ERL_NIF_TERM argv[])
{
    int n;
    const ERL_NIF_TERM *state;
    ERL_NIF_TERM value;
    ErlNifPid self;
    enif_mutex_lock(lock);
    if (logged < MOST) {
        log_[logged].kind = kind;
        log_[logged].tag = argv[0];
        log_[logged].about = enif_is_pid(env, argv[2]) ? 1 : enif_is_port(env, argv[2]) ? 2 : enif_is_atom(env, argv[2]) ? 3 : 4;
        if (enif_self(env, &self))
            log_[logged].about += 10;
        logged++;
    }
    enif_mutex_unlock(lock);
    if (!enif_get_tuple(env, argv[1], &n, &state) || n != 3 || !enif_get_map_value(env, state[0], argv[0], &value))
        return enif_make_atom(env, enif_is_identical(argv[0], enif_make_atom(env, "trace_status")) ? "trace" : "discard");
    if (enif_is_identical(value, enif_make_atom(env, "exception")))
        return enif_raise_exception(env, enif_make_tuple1(env, value));
    if (enif_is_identical(value, enif_make_atom(env, "badarg")))
        return enif_make_badarg(env);
    return value;
}

static ERL_NIF_TERM tell(ErlNifEnv *env, int kind, const ERL_NIF_TERM argv[])
{
    int n;
    const ERL_NIF_TERM *state;
    ERL_NIF_TERM all[7];
    ErlNifPid to, self;
    if (!enif_get_tuple(env, argv[1], &n, &state) || n != 3 || !enif_get_local_pid(env, state[1], &to))
        return enif_make_badarg(env);
    all[0] = enif_make_atom(env, kind ? kinds[kind] : "trace");
    memcpy(all + 1, argv, 5 * sizeof *argv);
    all[2] = state[2];
    all[6] = enif_self(env, &self) ? enif_make_pid(env, &self) : enif_make_atom(env, "none");
    enif_send(env, &to, NULL, enif_make_tuple_from_array(env, all, 7));
    return enif_make_atom(env, "ok");
}

#define BOTH(k, name)                                                                    \
    static ERL_NIF_TERM e_##name(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) \
    {                                                                                    \
        return answer(env, k, argv);                                                     \
    }                                                                                    \
    static ERL_NIF_TERM t_##name(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) \
    {                                                                                    \
        return tell(env, k, argv);                                                       \
    }
BOTH(0, general)
BOTH(1, send)
BOTH(2, receive)
BOTH(3, call)
BOTH(4, running_procs)
BOTH(5, running_ports)
BOTH(6, garbage_collection)
BOTH(7, procs)
BOTH(8, ports)

static ERL_NIF_TERM asked(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    static const char *const about[] = {"", "pid", "port", "atom", "term"};
    ERL_NIF_TERM list = enif_make_list(env, 0);
    enif_mutex_lock(lock);
    while (logged > 0) {
        logged--;
        list = enif_make_list_cell(env,
                                   enif_make_tuple3(env, enif_make_atom(env, log_[logged].kind ? kinds[log_[logged].kind] : "enabled"),
                                                    log_[logged].tag, enif_make_atom(env, about[log_[logged].about % 10])),
                                   list);
    }
    enif_mutex_unlock(lock);
    return list;
}

static ErlNifFunc full[] = {
    {"enabled", 3, e_general},
    {"trace", 5, t_general},
    {"asked", 0, asked},
    {"enabled_send", 3, e_send},
    {"trace_send", 5, t_send},
    {"enabled_receive", 3, e_receive},
    {"trace_receive", 5, t_receive},
    {"enabled_call", 3, e_call},
    {"trace_call", 5, t_call},
    {"enabled_running_procs", 3, e_running_procs},
    {"trace_running_procs", 5, t_running_procs},
    {"enabled_running_ports", 3, e_running_ports},
    {"trace_running_ports", 5, t_running_ports},
    {"enabled_garbage_collection", 3, e_garbage_collection},
    {"trace_garbage_collection", 5, t_garbage_collection},
    {"enabled_procs", 3, e_procs},
    {"trace_procs", 5, t_procs},
    {"enabled_ports", 3, e_ports},
    {"trace_ports", 5, t_ports},
};
/* Has none of its own for calls. */
static ErlNifFunc plain[] = {{"enabled", 3, e_general}, {"trace", 5, t_general}, {"asked", 0, asked}};
static ErlNifFunc lacking[] = {{"asked", 0, asked}, {"enabled", 3, e_general}, {"trace", 4, t_general}};

#define ENTRY(name, functions)                                                                                                          \
    {ERL_NIF_MAJOR_VERSION, ERL_NIF_MINOR_VERSION, name,          sizeof functions / sizeof *functions, functions, load, NULL, upgrade, \
     NULL,                  ERL_NIF_VM_VARIANT,    1,             sizeof(ErlNifResourceTypeInit),       ERL_NIF_MIN_ERTS_VERSION}
static ErlNifEntry entries[] = {ENTRY("n_plain", plain), ENTRY("n_full", full), ENTRY("n_lacking", lacking)};

ErlNifEntry *nif_init(void)
{
    Dl_info info;
    if (!dladdr((void *)nif_init, &info))
        return NULL;
    return &entries[strstr(info.dli_fname, "n_full") ? 1 : strstr(info.dli_fname, "n_lacking") ? 2 : 0];
}
