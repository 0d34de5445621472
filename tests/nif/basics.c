/*
 * A native library that asks the interface for nearly everything that doesn't take a thread or a descriptor. The program
 * `nif_basics` calls it on stock and on Purlin, which must agree.
 */
#include <erl_nif.h>
#include <string.h>

typedef struct {
    int number;
    ErlNifPid owner;
} thing;

static ErlNifResourceType *things;
static ERL_NIF_TERM am_ok, am_error, am_gone;

static void thing_dtor(ErlNifEnv *env, void *obj)
{
    thing *t = obj;
    ErlNifEnv *own = enif_alloc_env();
    ERL_NIF_TERM msg = enif_make_tuple2(own, enif_make_atom(own, "gone"), enif_make_int(own, t->number));
    enif_send(env, &t->owner, own, msg);
    enif_free_env(own);
}

static void thing_down(ErlNifEnv *env, void *obj, ErlNifPid *pid, ErlNifMonitor *mon)
{
    thing *t = obj;
    ErlNifEnv *own = enif_alloc_env();
    ERL_NIF_TERM msg = enif_make_tuple3(own, enif_make_atom(own, "down"), enif_make_int(own, t->number),
                                        enif_make_copy(own, pid->pid));
    enif_send(env, &t->owner, own, msg);
    enif_free_env(own);
}

/* For another library that knows the type by its name: terms in its environment. */
static void thing_call(ErlNifEnv *env, void *obj, void *data)
{
    ERL_NIF_TERM *to = data;
    int i;
    *to = enif_make_list(env, 0);
    for (i = 0; i < 300; i++)
        *to = enif_make_list_cell(env, enif_make_tuple2(env, enif_make_int(env, i), enif_make_int(env, ((thing *)obj)->number)), *to);
}

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    ErlNifResourceTypeInit init = {thing_dtor, NULL, thing_down, 4, thing_call};
    int *count = enif_alloc(sizeof(int));
    *count = 0;
    *priv = count;
    am_ok = enif_make_atom(env, "ok");
    am_error = enif_make_atom(env, "error");
    am_gone = enif_make_atom(env, "gone");
    things = enif_init_resource_type(env, "thing", &init, ERL_NIF_RT_CREATE, NULL);
    return things ? 0 : 1;
}

static void unload(ErlNifEnv *env, void *priv)
{
    enif_free(priv);
}

#define NIF(Name) static ERL_NIF_TERM Name(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])

/* All that can be told of a term. */
NIF(tell)
{
    ERL_NIF_TERM t = argv[0], got[16];
    int i, n = 0;
    unsigned u;
    long l;
    unsigned long ul;
    double d;
    size_t size;
    ErlNifBinary bin;
    const ERL_NIF_TERM *elements;
    char text[300];

#define GOT(Name, Value) got[n++] = enif_make_tuple2(env, enif_make_atom(env, Name), Value)
    GOT("type", enif_make_int(env, enif_term_type(env, t)));
    if (enif_get_int(env, t, &i))
        GOT("int", enif_make_int(env, i));
    if (enif_get_uint(env, t, &u))
        GOT("uint", enif_make_uint(env, u));
    if (enif_get_long(env, t, &l))
        GOT("long", enif_make_long(env, l));
    if (enif_get_ulong(env, t, &ul))
        GOT("ulong", enif_make_ulong(env, ul));
    if (enif_get_double(env, t, &d))
        GOT("double", enif_make_double(env, d));
    if (enif_get_atom_length(env, t, &u, ERL_NIF_LATIN1) && enif_get_atom(env, t, text, sizeof text, ERL_NIF_LATIN1))
        GOT("atom", enif_make_tuple2(env, enif_make_uint(env, u), enif_make_string(env, text, ERL_NIF_LATIN1)));
    i = enif_get_string(env, t, text, 6, ERL_NIF_LATIN1);
    if (i)
        GOT("string", enif_make_tuple2(env, enif_make_int(env, i), enif_make_string(env, text, ERL_NIF_LATIN1)));
    if (enif_get_list_length(env, t, &u))
        GOT("length", enif_make_uint(env, u));
    if (enif_get_tuple(env, t, &i, &elements))
        GOT("elements", enif_make_list_from_array(env, elements, i));
    if (enif_inspect_binary(env, t, &bin))
        GOT("binary", enif_make_tuple2(env, enif_make_ulong(env, bin.size), enif_make_binary(env, &bin)));
    if (enif_inspect_iolist_as_binary(env, t, &bin))
        GOT("iolist", enif_make_binary(env, &bin));
    if (enif_get_map_size(env, t, &size))
        GOT("pairs", enif_make_ulong(env, size));
    if (enif_is_number(env, t))
        GOT("number", am_ok);
    if (enif_is_fun(env, t))
        GOT("fun", am_ok);
    return enif_make_list_from_array(env, got, n);
}

NIF(print)
{
    char text[400];
    int n = enif_snprintf(text, sizeof text, "<%T|%d|%5d|%-5d|%s|%.3f|%x|%c|%%|%ld>", argv[0], 17, 42, 42, "text", 1.5, 255,
                          'c', 1234567890123L);
    return enif_make_tuple2(env, enif_make_int(env, n), enif_make_string(env, text, ERL_NIF_LATIN1));
}

NIF(print_short)
{
    char text[8];
    int n = enif_snprintf(text, sizeof text, "%s and more", "0123456789");
    return enif_make_tuple2(env, enif_make_int(env, n), enif_make_string(env, text, ERL_NIF_LATIN1));
}

NIF(compare)
{
    return enif_make_tuple3(env, enif_make_int(env, enif_compare(argv[0], argv[1])),
                            enif_make_int(env, enif_is_identical(argv[0], argv[1])),
                            enif_make_int(env, enif_hash(ERL_NIF_PHASH2, argv[0], 0) == enif_hash(ERL_NIF_PHASH2, argv[1], 0)));
}

/* Many terms, more than a heap has room for. */
NIF(many)
{
    int n, i;
    ERL_NIF_TERM list;
    if (!enif_get_int(env, argv[0], &n))
        return enif_make_badarg(env);
    list = enif_make_list(env, 0);
    for (i = n; i > 0; i--) {
        ERL_NIF_TERM part;
        unsigned char *p = enif_make_new_binary(env, i % 100, &part);
        memset(p, i, i % 100);
        list = enif_make_list_cell(env, enif_make_tuple3(env, enif_make_int(env, i), part, enif_make_double(env, i / 2.0)), list);
    }
    return list;
}

NIF(reverse)
{
    ERL_NIF_TERM r;
    return enif_make_reverse_list(env, argv[0], &r) ? r : enif_make_badarg(env);
}

NIF(sub)
{
    unsigned at, n;
    if (!enif_get_uint(env, argv[1], &at) || !enif_get_uint(env, argv[2], &n))
        return enif_make_badarg(env);
    return enif_make_sub_binary(env, argv[0], at, n);
}

/* A binary that grows. */
NIF(grow)
{
    ErlNifBinary b, c;
    int i;
    enif_alloc_binary(0, &b);
    for (i = 1; i <= 200; i++) {
        enif_realloc_binary(&b, i);
        b.data[i - 1] = i;
    }
    if (enif_inspect_binary(env, argv[0], &c)) {
        size_t was = c.size;
        enif_realloc_binary(&c, was + 3);
        memcpy(c.data + was, "end", 3);
    } else
        enif_alloc_binary(0, &c);
    return enif_make_tuple2(env, enif_make_binary(env, &b), enif_make_binary(env, &c));
}

NIF(pairs)
{
    ErlNifMapIterator i;
    ERL_NIF_TERM k, v, forth = enif_make_list(env, 0), back = enif_make_list(env, 0);
    if (!enif_map_iterator_create(env, argv[0], &i, ERL_NIF_MAP_ITERATOR_FIRST))
        return enif_make_badarg(env);
    while (enif_map_iterator_get_pair(env, &i, &k, &v)) {
        forth = enif_make_list_cell(env, enif_make_tuple2(env, k, v), forth);
        enif_map_iterator_next(env, &i);
    }
    if (!enif_map_iterator_is_tail(env, &i))
        return am_error;
    enif_map_iterator_destroy(env, &i);
    enif_map_iterator_create(env, argv[0], &i, ERL_NIF_MAP_ITERATOR_LAST);
    while (enif_map_iterator_get_pair(env, &i, &k, &v)) {
        back = enif_make_list_cell(env, enif_make_tuple2(env, k, v), back);
        enif_map_iterator_prev(env, &i);
    }
    if (!enif_map_iterator_is_head(env, &i))
        return am_error;
    enif_map_iterator_destroy(env, &i);
    return enif_make_tuple2(env, forth, back);
}

NIF(map_of)
{
    ERL_NIF_TERM ks[100], vs[100], m, h, t = argv[0];
    unsigned n = 0;
    const ERL_NIF_TERM *e;
    int arity;
    while (n < 100 && enif_get_list_cell(env, t, &h, &t) && enif_get_tuple(env, h, &arity, &e) && arity == 2) {
        ks[n] = e[0];
        vs[n++] = e[1];
    }
    return enif_make_map_from_arrays(env, ks, vs, n, &m) ? m : am_error;
}

NIF(change)
{
    ERL_NIF_TERM put, update, removed, value;
    if (!enif_make_map_put(env, argv[0], argv[1], argv[2], &put))
        return enif_make_badarg(env);
    if (!enif_make_map_update(env, argv[0], argv[1], argv[2], &update))
        update = am_error;
    if (!enif_make_map_remove(env, argv[0], argv[1], &removed))
        removed = am_error;
    if (!enif_get_map_value(env, argv[0], argv[1], &value))
        value = am_error;
    return enif_make_tuple4(env, put, update, removed, value);
}

NIF(raise)
{
    enif_raise_exception(env, argv[0]);
    return am_ok;
}

NIF(pending)
{
    ERL_NIF_TERM reason, r = enif_raise_exception(env, argv[0]);
    if (enif_is_exception(env, r) && enif_has_pending_exception(env, &reason) && enif_is_identical(reason, argv[0]))
        return r;
    return am_error;
}

NIF(atoms)
{
    ERL_NIF_TERM a, b;
    int known = enif_make_existing_atom(env, "certainly no atom of anybody", &a, ERL_NIF_LATIN1);
    int ok = enif_make_existing_atom_len(env, "ok but more", 2, &b, ERL_NIF_LATIN1);
    return enif_make_tuple4(env, enif_make_int(env, known), enif_make_int(env, ok), b,
                            enif_make_atom_len(env, "n\xe6me", 4));
}

NIF(external)
{
    ErlNifBinary bin;
    ERL_NIF_TERM back, all;
    size_t used;
    if (!enif_term_to_binary(env, argv[0], &bin))
        return am_error;
    used = enif_binary_to_term(env, bin.data, bin.size, &back, 0);
    all = enif_make_tuple3(env, enif_make_int(env, used == bin.size), back, enif_make_int(env, enif_is_identical(back, argv[0])));
    enif_release_binary(&bin);
    return all;
}

NIF(decode)
{
    ErlNifBinary bin;
    ERL_NIF_TERM t;
    if (!enif_inspect_binary(env, argv[0], &bin) || !enif_binary_to_term(env, bin.data, bin.size, &t, ERL_NIF_BIN2TERM_SAFE))
        return am_error;
    return enif_make_tuple2(env, am_ok, t);
}

/* Resources. */
NIF(make_thing)
{
    thing *t = enif_alloc_resource(things, sizeof *t);
    ERL_NIF_TERM r;
    if (!enif_get_int(env, argv[0], &t->number))
        t->number = -1;
    enif_self(env, &t->owner);
    r = enif_make_resource(env, t);
    enif_release_resource(t);
    ++*(int *)enif_priv_data(env);
    return r;
}

NIF(number)
{
    void *t;
    if (!enif_get_resource(env, argv[0], things, &t))
        return enif_make_badarg(env);
    return enif_make_tuple2(env, enif_make_int(env, ((thing *)t)->number), enif_make_ulong(env, enif_sizeof_resource(t)));
}

/* dynamic(Thing, Module, Type) */
NIF(dynamic)
{
    ERL_NIF_TERM made, more;
    int r = enif_dynamic_resource_call(env, argv[1], argv[2], argv[0], &made);
    more = enif_make_tuple2(env, am_ok, enif_make_double(env, 1.5));
    return enif_make_tuple3(env, enif_make_int(env, r), r ? am_error : made, more);
}

NIF(bytes_of)
{
    void *t;
    if (!enif_get_resource(env, argv[0], things, &t))
        return enif_make_badarg(env);
    return enif_make_resource_binary(env, t, &((thing *)t)->number, sizeof(int));
}

NIF(watch)
{
    void *t;
    ErlNifPid pid;
    ErlNifMonitor m;
    int r;
    if (!enif_get_resource(env, argv[0], things, &t) || !enif_get_local_pid(env, argv[1], &pid))
        return enif_make_badarg(env);
    r = enif_monitor_process(env, t, &pid, &m);
    if (r)
        return enif_make_int(env, r);
    if (enif_is_identical(argv[2], am_ok))
        return am_ok;
    // Compilers differ in which argument comes first.
    int first = enif_demonitor_process(env, t, &m), again = enif_demonitor_process(env, t, &m);
    return enif_make_tuple2(env, enif_make_int(env, first), enif_make_int(env, again));
}

NIF(count)
{
    return enif_make_int(env, *(int *)enif_priv_data(env));
}

/* Calls in the place of calls. */
static ERL_NIF_TERM step(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    int left;
    enif_get_int(env, argv[0], &left);
    enif_consume_timeslice(env, 30);
    if (left == 0)
        return enif_make_tuple2(env, enif_make_int(env, enif_thread_type()), argv[1]);
    {
        ERL_NIF_TERM next[2] = {enif_make_int(env, left - 1), enif_make_list_cell(env, argv[0], argv[1])};
        int flags = left % 3 == 0 ? 0 : left % 3 == 1 ? ERL_NIF_DIRTY_JOB_CPU_BOUND : ERL_NIF_DIRTY_JOB_IO_BOUND;
        return enif_schedule_nif(env, "step", flags, step, 2, next);
    }
}

static ERL_NIF_TERM fail(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    return enif_raise_exception(env, argv[0]);
}

NIF(fails_later)
{
    return enif_schedule_nif(env, "failing", ERL_NIF_DIRTY_JOB_CPU_BOUND, fail, 1, argv);
}

NIF(many_later)
{
    return enif_schedule_nif(env, "many", 0, many, 1, argv);
}

NIF(thread)
{
    return enif_make_int(env, enif_thread_type());
}

NIF(bad_flags)
{
    return enif_schedule_nif(env, "x", 4711, thread, 0, argv);
}

/* Terms of an environment of their own. */
NIF(through_env)
{
    ErlNifEnv *own = enif_alloc_env();
    ErlNifPid me;
    int i, sent;
    ERL_NIF_TERM there, list = enif_make_list(own, 0);
    enif_self(env, &me);
    for (i = 0; i < 300; i++)
        list = enif_make_list_cell(own, enif_make_tuple2(own, enif_make_int(own, i), enif_make_copy(own, argv[0])), list);
    there = enif_make_copy(env, list);
    sent = enif_send(env, &me, own, list);
    /* The environment is empty again. */
    list = enif_make_string(own, "again", ERL_NIF_LATIN1);
    sent += enif_send(env, &me, NULL, enif_make_tuple2(env, am_ok, argv[0]));
    sent += enif_send(env, &me, own, list);
    enif_free_env(own);
    return enif_make_tuple2(env, enif_make_int(env, sent), there);
}

NIF(times)
{
    ErlNifTime t = enif_monotonic_time(ERL_NIF_NSEC), s = enif_convert_time_unit(-1500, ERL_NIF_MSEC, ERL_NIF_SEC);
    return enif_make_tuple3(env, enif_make_long(env, s), enif_make_int(env, t <= enif_monotonic_time(ERL_NIF_NSEC)),
                            enif_make_int(env, enif_monotonic_time(17) == ERL_NIF_TIME_ERROR));
}

/* A library built with old headers has four words for a binary: what is behind them is its own. */
static ERL_NIF_TERM short_binaries(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    enum { WORDS = 4, ALL = 8, MARK = 0x5a };
    size_t words[ALL];
    ErlNifBinary *bin = (ErlNifBinary *)words;
    unsigned char *bytes = (unsigned char *)(words + WORDS);
    size_t i;
    int done = 0, same = 1;
    (void)argc;
    memset(words, MARK, sizeof words);
    if (enif_inspect_binary(env, argv[0], bin))
        done |= 1;
    if (enif_inspect_iolist_as_binary(env, argv[0], bin))
        done |= 2;
    if (enif_term_to_binary(env, argv[0], bin)) {
        done |= 4;
        enif_release_binary(bin);
    }
    if (enif_alloc_binary(100, bin)) {
        memset(bin->data, 1, 100);
        if (enif_realloc_binary(bin, 300))
            done |= 8;
        memset(bin->data, 2, 300);
        enif_make_binary(env, bin);
    }
    for (i = 0; i < (ALL - WORDS) * sizeof(size_t); i++)
        same = same && bytes[i] == MARK;
    return enif_make_tuple2(env, enif_make_int(env, done), enif_make_int(env, same));
}

static ErlNifFunc functions[] = {
    {"tell", 1, tell}, {"print", 1, print}, {"print_short", 0, print_short}, {"compare", 2, compare}, {"many", 1, many},
    {"reverse", 1, reverse}, {"sub", 3, sub}, {"grow", 1, grow}, {"pairs", 1, pairs}, {"map_of", 1, map_of},
    {"change", 3, change}, {"raise", 1, raise}, {"pending", 1, pending}, {"atoms", 0, atoms}, {"external", 1, external},
    {"decode", 1, decode}, {"make_thing", 1, make_thing}, {"number", 1, number}, {"dynamic", 3, dynamic}, {"bytes_of", 1, bytes_of},
    {"watch", 3, watch}, {"count", 0, count}, {"step", 2, step}, {"fails_later", 1, fails_later},
    {"many_later", 1, many_later}, {"thread", 0, thread},
    {"dirty_cpu", 0, thread, ERL_NIF_DIRTY_JOB_CPU_BOUND}, {"dirty_io", 0, thread, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"dirty_raise", 1, raise, ERL_NIF_DIRTY_JOB_IO_BOUND}, {"dirty_many", 1, many, ERL_NIF_DIRTY_JOB_CPU_BOUND},
    {"bad_flags", 0, bad_flags}, {"through_env", 1, through_env}, {"times", 0, times}, {"short_binaries", 1, short_binaries},
};

ERL_NIF_INIT(nif_basics, functions, load, NULL, NULL, unload)
