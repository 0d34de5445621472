/* Threads, locks, descriptors and queues: what takes more than one thread, or time. The program `nif_threads` calls it. */
#include <erl_nif.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    int fd;
} end;

static ErlNifResourceType *ends, *queues;
static ERL_NIF_TERM am_ok, am_error;
static ErlNifPid boss;

static void end_dtor(ErlNifEnv *env, void *obj)
{
    end *e = obj;
    if (e->fd >= 0)
        close(e->fd);
}

static void end_stop(ErlNifEnv *env, void *obj, ErlNifEvent fd, int direct)
{
    ErlNifEnv *own = enif_alloc_env();
    enif_send(env, &boss, own, enif_make_tuple2(own, enif_make_atom(own, "stopped"), enif_make_int(own, ((end *)obj)->fd == fd)));
    enif_free_env(own);
    close(fd);
    ((end *)obj)->fd = -1;
}

static void queue_dtor(ErlNifEnv *env, void *obj)
{
    enif_ioq_destroy(*(ErlNifIOQueue **)obj);
}

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    ErlNifResourceTypeInit init = {end_dtor, end_stop, NULL};
    ends = enif_open_resource_type_x(env, "end", &init, ERL_NIF_RT_CREATE, NULL);
    queues = enif_open_resource_type(env, NULL, "queue", queue_dtor, ERL_NIF_RT_CREATE, NULL);
    am_ok = enif_make_atom(env, "ok");
    am_error = enif_make_atom(env, "error");
    return !ends || !queues;
}

#define NIF(Name) static ERL_NIF_TERM Name(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])

typedef struct {
    int number;
    ErlNifPid to;
    ErlNifMutex *mutex;
    ErlNifRWLock *rw;
    ErlNifCond *cond;
    int *counter;
    ErlNifTSDKey key;
} work;

static void *run(void *arg)
{
    work *w = arg;
    ErlNifEnv *env = enif_alloc_env();
    int i;
    ERL_NIF_TERM list;
    enif_tsd_set(w->key, w);
    for (i = 0; i < 1000; i++) {
        enif_mutex_lock(w->mutex);
        ++*w->counter;
        enif_mutex_unlock(w->mutex);
        enif_rwlock_rlock(w->rw);
        enif_rwlock_runlock(w->rw);
    }
    list = enif_make_list(env, 0);
    for (i = 0; i < 500; i++)
        list = enif_make_list_cell(env, enif_make_tuple2(env, enif_make_int(env, i), enif_make_double(env, i)), list);
    enif_send(NULL, &w->to, env, enif_make_tuple4(env, enif_make_atom(env, "thread"), enif_make_int(env, w->number),
                                                  enif_make_int(env, enif_thread_type()), list));
    for (i = 0; i < 20; i++)
        enif_send(NULL, &w->to, env, enif_make_tuple2(env, enif_make_int(env, w->number), enif_make_int(env, i)));
    enif_free_env(env);
    enif_mutex_lock(w->mutex);
    enif_cond_signal(w->cond);
    enif_mutex_unlock(w->mutex);
    if (enif_tsd_get(w->key) != w)
        return NULL;
    if (w->number % 2)
        enif_thread_exit(w);
    return w;
}

#define MOST 16

NIF(threads)
{
    ErlNifTid ids[MOST];
    work w[MOST];
    void *value;
    int n, i, counter = 0, joined = 0;
    ErlNifMutex *mutex = enif_mutex_create("a mutex");
    ErlNifRWLock *rw = enif_rwlock_create("a lock");
    ErlNifCond *cond = enif_cond_create("a condition");
    ErlNifTSDKey key;
    ERL_NIF_TERM names;
    if (!enif_get_int(env, argv[0], &n) || n > MOST || enif_tsd_key_create("a key", &key))
        return enif_make_badarg(env);
    names = enif_make_tuple3(env, enif_make_string(env, enif_mutex_name(mutex), ERL_NIF_LATIN1),
                             enif_make_string(env, enif_rwlock_name(rw), ERL_NIF_LATIN1),
                             enif_make_string(env, enif_cond_name(cond), ERL_NIF_LATIN1));
    enif_mutex_lock(mutex);
    for (i = 0; i < n; i++) {
        work here = {i, {0}, mutex, rw, cond, &counter, key};
        w[i] = here;
        enif_self(env, &w[i].to);
        if (enif_thread_create("a thread", &ids[i], run, &w[i], NULL))
            return am_error;
    }
    enif_cond_wait(cond, mutex);
    enif_mutex_unlock(mutex);
    for (i = 0; i < n; i++) {
        int same = !strcmp(enif_thread_name(ids[i]), "a thread") && !enif_equal_tids(ids[i], enif_thread_self());
        enif_thread_join(ids[i], &value);
        joined += same && value == &w[i];
    }
    enif_rwlock_rwlock(rw);
    i = enif_rwlock_tryrlock(rw) == EBUSY;
    enif_rwlock_rwunlock(rw);
    i += enif_mutex_trylock(mutex) == 0;
    enif_mutex_unlock(mutex);
    enif_tsd_key_destroy(key);
    enif_mutex_destroy(mutex);
    enif_rwlock_destroy(rw);
    enif_cond_destroy(cond);
    return enif_make_tuple4(env, enif_make_int(env, joined), enif_make_int(env, counter), enif_make_int(env, i), names);
}

static ERL_NIF_TERM make_end(ErlNifEnv *env, int fd)
{
    end *e = enif_alloc_resource(ends, sizeof *e);
    ERL_NIF_TERM t = enif_make_resource(env, e);
    e->fd = fd;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    enif_release_resource(e);
    return t;
}

NIF(make_pipe)
{
    int fds[2];
    enif_self(env, &boss);
    if (pipe(fds))
        return am_error;
    return enif_make_tuple2(env, make_end(env, fds[0]), make_end(env, fds[1]));
}

NIF(read_end)
{
    void *e;
    char text[100];
    ssize_t n;
    if (!enif_get_resource(env, argv[0], ends, &e))
        return enif_make_badarg(env);
    n = read(((end *)e)->fd, text, sizeof text);
    return n < 0 ? enif_make_atom(env, errno == EAGAIN ? "again" : "failed") : enif_make_string_len(env, text, n, ERL_NIF_LATIN1);
}

NIF(write_end)
{
    void *e;
    ErlNifBinary b;
    if (!enif_get_resource(env, argv[0], ends, &e) || !enif_inspect_iolist_as_binary(env, argv[1], &b))
        return enif_make_badarg(env);
    return enif_make_long(env, write(((end *)e)->fd, b.data, b.size));
}

/* select(End, Mode, Pid | self, Term) */
NIF(select_end)
{
    void *e;
    int mode;
    ErlNifPid pid;
    if (!enif_get_resource(env, argv[0], ends, &e) || !enif_get_int(env, argv[1], &mode))
        return enif_make_badarg(env);
    if (mode & ERL_NIF_SELECT_CUSTOM_MSG) {
        ErlNifEnv *own = enif_alloc_env();
        int r = enif_select_x(env, ((end *)e)->fd, mode, e, enif_get_local_pid(env, argv[2], &pid) ? &pid : NULL,
                              enif_make_copy(own, argv[3]), own);
        enif_free_env(own);
        return enif_make_int(env, r);
    }
    return enif_make_int(env, enif_select(env, ((end *)e)->fd, mode, e, enif_get_local_pid(env, argv[2], &pid) ? &pid : NULL, argv[3]));
}

/* A list of binaries goes through a queue, from which `step` bytes are taken at a time. */
NIF(through_queue)
{
    ErlNifIOQueue **q = enif_alloc_resource(queues, sizeof *q);
    ErlNifIOVec vec, *v = &vec;
    ErlNifBinary more;
    ERL_NIF_TERM tail, out = enif_make_list(env, 0), head;
    int step, n, skip;
    size_t left = 1, first;
    *q = enif_ioq_create(ERL_NIF_IOQ_NORMAL);
    if (!enif_get_int(env, argv[1], &step) || !enif_get_int(env, argv[2], &skip) || !enif_inspect_iovec(env, 64, argv[0], &tail, &v)
        || !enif_ioq_enqv(*q, v, skip)) {
        enif_release_resource(q);
        return enif_make_badarg(env);
    }
    enif_alloc_binary(5, &more);
    memcpy(more.data, "tail!", 5);
    enif_ioq_enq_binary(*q, &more, 1);
    if (enif_ioq_peek_head(env, *q, &first, &head))
        out = enif_make_list1(env, enif_make_tuple2(env, enif_make_ulong(env, first), head));
    while (enif_ioq_size(*q)) {
        SysIOVec *iov = enif_ioq_peek(*q, &n);
        int m, same = enif_ioq_peek(*q, &m) == iov && m == n;
        size_t take = enif_ioq_size(*q) < (size_t)step ? enif_ioq_size(*q) : (size_t)step, done = 0;
        ERL_NIF_TERM part;
        unsigned char *to = enif_make_new_binary(env, take, &part);
        int i;
        for (i = 0; same && i < n && done < take; i++) {
            size_t some = iov[i].iov_len < take - done ? iov[i].iov_len : take - done;
            memcpy(to + done, iov[i].iov_base, some);
            done += some;
        }
        out = enif_make_list_cell(env, part, out);
        if (!enif_ioq_deq(*q, take, &left))
            break;
    }
    n = enif_ioq_deq(*q, 1, NULL);
    enif_release_resource(q);
    return enif_make_tuple4(env, enif_make_int(env, n), enif_make_ulong(env, left), tail, out);
}

NIF(slice)
{
    return enif_make_tuple2(env, enif_make_int(env, enif_thread_type()), enif_make_int(env, enif_consume_timeslice(env, 100)));
}

/* A dirty function that lasts until its process is to end. */
static volatile int lasted;

NIF(last)
{
    int n = 0;
    while (n < 5000 && enif_is_current_process_alive(env)) {
        usleep(2000);
        n++;
    }
    lasted = n < 5000 ? 1 : 2;
    return enif_make_int(env, enif_send(env, &boss, NULL, am_ok));
}

/* A dirty function that goes on when its process has ended, with what it was given: it sums up the elements. */
static volatile int outlived_sum;

NIF(outlives)
{
    ErlNifPid self, again, to;
    const ERL_NIF_TERM *t;
    int i, v, arity, n = 0, sum = 0;
    if (!enif_self(env, &self) || !enif_get_tuple(env, argv[0], &arity, &t) || !enif_whereis_pid(env, enif_make_atom(env, "n_told"), &to))
        return enif_make_badarg(env);
    enif_send(env, &to, NULL, enif_make_tuple2(env, enif_make_atom(env, "runs"), enif_make_pid(env, &self)));
    while (n++ < 5000 && enif_is_process_alive(env, &self))
        usleep(2000);
    usleep(1500000);
    for (i = 0; i < arity; i++)
        if (enif_get_int(env, t[i], &v))
            sum += v;
    if (enif_is_process_alive(env, &self) || enif_is_current_process_alive(env) || !enif_self(env, &again)
            || enif_compare_pids(&self, &again) != 0 || enif_send(env, &to, NULL, am_ok))
        sum = -1;
    outlived_sum = sum;
    return enif_make_list1(env, argv[0]);
}

NIF(outlived)
{
    return enif_make_int(env, outlived_sum);
}

NIF(has_lasted)
{
    return enif_make_int(env, lasted);
}

static ErlNifFunc functions[] = {
    {"threads", 1, threads, ERL_NIF_DIRTY_JOB_IO_BOUND}, {"make_pipe", 0, make_pipe}, {"read", 1, read_end}, {"write", 2, write_end},
    {"select", 4, select_end}, {"through_queue", 3, through_queue}, {"has_lasted", 0, has_lasted}, {"slice", 0, slice, ERL_NIF_DIRTY_JOB_CPU_BOUND}, {"last", 0, last, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"outlives", 1, outlives, ERL_NIF_DIRTY_JOB_IO_BOUND}, {"outlived", 0, outlived},
};

ERL_NIF_INIT(nif_threads, functions, load, NULL, NULL, NULL)
