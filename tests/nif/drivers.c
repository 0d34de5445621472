/* A driver of which the program `drivers_in_c` asks what the interface of drivers has. What is written to a port is a letter and what
 * the letter's case takes. */
#include <erl_driver.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    ErlDrvPort port;
    ErlDrvTermData id;
    int ends[2];
    ErlDrvPDL lock;
    ErlDrvMonitor monitor;
    ErlDrvTid thread;
    int timeouts;
    int slow;
    int last;
    int outs;
} data;

static int shared[2] = {-1, -1};

static ErlDrvTermData atom(char *name)
{
    return driver_mk_atom(name);
}

static void told(data *d, char *what, long n)
{
    ErlDrvTermData spec[] = {ERL_DRV_ATOM, atom(what), ERL_DRV_PORT, d->id, ERL_DRV_INT, (ErlDrvTermData)n, ERL_DRV_TUPLE, 3};
    erl_drv_output_term(d->id, spec, sizeof spec / sizeof *spec);
}

static int init(void)
{
    return 0;
}

static ErlDrvData start(ErlDrvPort port, char *command)
{
    data *d;
    if (strstr(command, "general"))
        return ERL_DRV_ERROR_GENERAL;
    if (strstr(command, "badarg"))
        return ERL_DRV_ERROR_BADARG;
    if (strstr(command, "errno")) {
        errno = ENOTDIR;
        return ERL_DRV_ERROR_ERRNO;
    }
    d = driver_alloc(sizeof *d);
    memset(d, 0, sizeof *d);
    d->port = port;
    d->id = driver_mk_port(port);
    d->ends[0] = d->ends[1] = -1;
    if (strstr(command, "early"))
        driver_output(port, "early", 5);
    if (strstr(command, "binary"))
        set_port_control_flags(port, PORT_CONTROL_FLAG_BINARY);
    d->last = strstr(command, "last") != NULL;
    return (ErlDrvData)d;
}

static void stop(ErlDrvData h)
{
    data *d = (data *)h;
    told(d, "stopped", driver_sizeq(d->port));
    if (d->last) {
        driver_output(d->port, "last words", 10);
        driver_output2(d->port, "very", 4, "last words", 10);
    }
    if (d->ends[0] >= 0) {
        driver_select(d->port, (ErlDrvEvent)(long)d->ends[0], ERL_DRV_READ | ERL_DRV_USE, 0);
        close(d->ends[1]);
    }
    driver_free(d);
}

static void stop_select(ErlDrvEvent e, void *reserved)
{
    close((int)(long)e);
}

/* Terms of all kinds. */
static void terms(data *d)
{
    double f = 1.5;
    ErlDrvSInt64 low = -(1LL << 62);
    ErlDrvUInt64 high = ~0ULL;
    ErlDrvBinary *b = driver_alloc_binary(200);
    static unsigned char ext[] = {131, 104, 2, 100, 0, 3, 'e', 'x', 't', 97, 7};
    memset(b->orig_bytes, 'b', 200);
    ErlDrvTermData spec[] = {
        ERL_DRV_ATOM, atom("terms"),
        ERL_DRV_NIL,
        ERL_DRV_INT, (ErlDrvTermData)-12,
        ERL_DRV_UINT, (ErlDrvTermData)~0UL,
        ERL_DRV_INT64, (ErlDrvTermData)&low,
        ERL_DRV_UINT64, (ErlDrvTermData)&high,
        ERL_DRV_FLOAT, (ErlDrvTermData)&f,
        ERL_DRV_BINARY, (ErlDrvTermData)b, 5, 1,
        ERL_DRV_BINARY, (ErlDrvTermData)b, 150, 50,
        ERL_DRV_BUF2BINARY, (ErlDrvTermData)"copied", 6,
        ERL_DRV_STRING, (ErlDrvTermData)"string", 6,
        ERL_DRV_NIL, ERL_DRV_STRING_CONS, (ErlDrvTermData)"cons", 4,
        ERL_DRV_ATOM, atom("a"), ERL_DRV_ATOM, atom("b"), ERL_DRV_NIL, ERL_DRV_LIST, 3,
        ERL_DRV_EXT2TERM, (ErlDrvTermData)ext, sizeof ext,
        ERL_DRV_ATOM, atom("k"), ERL_DRV_INT, 1, ERL_DRV_ATOM, atom("l"), ERL_DRV_INT, 2, ERL_DRV_MAP, 2,
        ERL_DRV_PID, driver_caller(d->port),
        ERL_DRV_TUPLE, 16};
    ErlDrvTermData twice[] = {ERL_DRV_ATOM, atom("k"), ERL_DRV_INT, 1, ERL_DRV_ATOM, atom("k"), ERL_DRV_INT, 2, ERL_DRV_MAP, 2};
    ErlDrvTermData few[] = {ERL_DRV_INT, 1, ERL_DRV_TUPLE, 2};
    ErlDrvTermData many[] = {ERL_DRV_INT, 1, ERL_DRV_INT, 1};
    told(d, "sent", erl_drv_send_term(d->id, driver_caller(d->port), spec, sizeof spec / sizeof *spec));
    told(d, "twice", erl_drv_output_term(d->id, twice, sizeof twice / sizeof *twice));
    told(d, "few", erl_drv_output_term(d->id, few, sizeof few / sizeof *few));
    told(d, "many", erl_drv_output_term(d->id, many, sizeof many / sizeof *many));
    driver_free_binary(b);
}

/* The queue as one text, or in order of its parts. */
static void show_queue(data *d)
{
    ErlIOVec v;
    int n, i;
    SysIOVec *p = driver_peekq(d->port, &n);
    ErlDrvSizeT all = driver_peekqv(d->port, &v), at = 0;
    char *text = driver_alloc(all);
    for (i = 0; i < n; i++) {
        memcpy(text + at, p[i].iov_base, p[i].iov_len);
        at += p[i].iov_len;
    }
    told(d, all == at && v.vsize == n && driver_sizeq(d->port) == all ? "queue" : "wrong_queue", (long)at);
    driver_output(d->port, text, at);
    driver_free(text);
}

static void outputv(ErlDrvData h, ErlIOVec *ev)
{
    data *d = (data *)h;
    char op, buf[32];
    ErlDrvBinary *b;
    int i;
    if (ev->size == 0)
        return;
    for (i = 0; ev->iov[i].iov_len == 0; i++)
        ;
    op = *(char *)ev->iov[i].iov_base;
    switch (op) {
    case 'e': /* The same again. */
        driver_outputv(d->port, "head", 4, ev, 1);
        break;
    case '2':
        driver_output2(d->port, "H2", 2, "rest", 4);
        break;
    case 'o':
        driver_output(d->port, "plain", 5);
        break;
    case 'b':
        b = driver_alloc_binary(10);
        memcpy(b->orig_bytes, "0123456789", 10);
        b = driver_realloc_binary(b, 300);
        memset(b->orig_bytes + 10, 'x', 290);
        driver_output_binary(d->port, NULL, 0, b, 5, 3);
        driver_output_binary(d->port, "h", 1, b, 5, 200);
        told(d, "size", b->orig_size);
        told(d, "count", driver_binary_get_refc(b) > 1);
        driver_free_binary(b);
        break;
    case 't':
        terms(d);
        break;
    case 'q':
        driver_enqv(d->port, ev, 1);
        show_queue(d);
        break;
    case 'Q':
        driver_pushq(d->port, "<", 1);
        driver_enq(d->port, ">", 1);
        driver_pushqv(d->port, ev, 1);
        b = driver_alloc_binary(3);
        memcpy(b->orig_bytes, "abc", 3);
        driver_enq_bin(d->port, b, 1, 2);
        driver_pushq_bin(d->port, b, 0, 2);
        driver_free_binary(b);
        show_queue(d);
        break;
    case 'd':
        told(d, "left", driver_deq(d->port, 2));
        told(d, "too_much", (long)driver_deq(d->port, 1000000));
        show_queue(d);
        break;
    case 'w':
        driver_vec_to_buf(ev, buf, 5);
        driver_output(d->port, buf, 5);
        break;
    }
}

static void nothing_left(ErlDrvData h)
{
    data *d = (data *)h;
    told(d, "flush", driver_sizeq(d->port));
    driver_set_timer(d->port, 10);
}

static void *from_thread(void *arg)
{
    data *d = arg;
    told(d, "thread", 1);
    driver_pdl_lock(d->lock);
    driver_enq(d->port, "thread", 6);
    driver_pdl_unlock(d->lock);
    told(d, "thread", driver_pdl_dec_refc(d->lock));
    return NULL;
}

/* What runs while the driver is given up has its code and data still. */
static volatile int sum;

static void slow_work(void *of)
{
    int i;
    for (i = 0; i < 100; i++) {
        usleep(3000);
        *(int *)of += sum + i;
    }
}

static void slow_free(void *of)
{
    sum += *(int *)of;
    driver_free(of);
}

static void work(void *arg)
{
    *(int *)arg = *(int *)arg * 2;
}

static ErlDrvSSizeT control(ErlDrvData h, unsigned op, char *buf, ErlDrvSizeT n, char **to, ErlDrvSizeT room)
{
    data *d = (data *)h;
    unsigned long left;
    unsigned key = 7;
    int *number;
    switch (op) {
    case 1: /* In the room given. */
        memcpy(*to, buf, n < room ? n : room);
        return n < room ? n : room;
    case 2: /* In memory of its own. */
        *to = driver_alloc(1000);
        memset(*to, 'm', 1000);
        return 1000;
    case 3:
        return -1;
    case 4: {
        ErlDrvBinary *b = driver_alloc_binary(100);
        memset(b->orig_bytes, 'B', 100);
        *to = (char *)b;
        return 100;
    }
    case 5:
        *to = NULL;
        return 0;
    case 6: /* Timers. */
        driver_set_timer(d->port, 100000);
        driver_read_timer(d->port, &left);
        told(d, "left", left > 90000 && left <= 100000);
        driver_set_timer(d->port, 20);
        return 0;
    case 7:
        driver_set_timer(d->port, 30);
        driver_cancel_timer(d->port);
        return 0;
    case 8: /* Descriptors. */
        if (pipe(d->ends))
            return -1;
        fcntl(d->ends[0], F_SETFL, O_NONBLOCK);
        driver_select(d->port, (ErlDrvEvent)(long)d->ends[0], ERL_DRV_READ | ERL_DRV_USE, 1);
        return 0;
    case 9:
        return write(d->ends[1], buf, n) == (long)n ? 0 : -1;
    case 10: /* Deselected, but in use. */
        driver_select(d->port, (ErlDrvEvent)(long)d->ends[0], ERL_DRV_READ, 0);
        return 0;
    case 11:
        driver_select(d->port, (ErlDrvEvent)(long)d->ends[0], ERL_DRV_READ, 1);
        return 0;
    case 12: /* Other threads. */
        number = driver_alloc(sizeof *number);
        *number = 21;
        return driver_async(d->port, &key, work, number, driver_free) > 0 ? 0 : -1;
    case 13:
        d->lock = driver_pdl_create(d->port);
        told(d, "again", driver_pdl_create(d->port) == NULL);
        driver_pdl_inc_refc(d->lock);
        return erl_drv_thread_create("of_driver", &d->thread, from_thread, d, NULL);
    case 14:
        return erl_drv_thread_join(d->thread, NULL);
    case 15: /* Whom it watches: who calls. */
        return driver_monitor_process(d->port, driver_caller(d->port), &d->monitor);
    case 16:
        told(d, "watched", driver_get_monitored_process(d->port, &d->monitor) == driver_caller(d->port));
        told(d, "demonitor", driver_demonitor_process(d->port, &d->monitor));
        told(d, "demonitor", driver_demonitor_process(d->port, &d->monitor));
        return 0;
    case 17: /* Ends. */
        driver_failure_atom(d->port, "because");
        return 0;
    case 18:
        driver_failure_posix(d->port, ENOSPC);
        return 0;
    case 19:
        driver_failure(d->port, 17);
        return 0;
    case 20:
        driver_failure_eof(d->port);
        return 0;
    case 21:
        driver_exit(d->port, 0);
        return 0;
    case 22: /* Busy. */
        set_busy_port(d->port, 1);
        driver_set_timer(d->port, 100);
        return 0;
    case 23: { /* Another port. */
        data *e = driver_alloc(sizeof *e);
        memset(e, 0, sizeof *e);
        e->ends[0] = -1;
        e->port = driver_create_port(d->port, driver_connected(d->port), "drivers", (ErlDrvData)e);
        if (e->port == (ErlDrvPort)-1)
            return -1;
        e->id = driver_mk_port(e->port);
        told(e, "made", get_port_flags(e->port));
        return 0;
    }
    case 24:
        erl_drv_putenv("OF_DRIVERS", "a value");
        room = room - 1;
        left = room;
        return erl_drv_getenv("OF_DRIVERS", *to, &left) == 0 ? (ErlDrvSSizeT)left : -1;
    case 25:
        driver_lock_driver(d->port);
        return 0;
    case 27: /* Lasts longer than the port, and than the driver is wanted. */
        number = driver_alloc(sizeof *number);
        *number = 0;
        return driver_async(d->port, NULL, slow_work, number, slow_free) > 0 ? 0 : -1;
    case 29: /* Deselected in part. */
        driver_select(d->port, (ErlDrvEvent)(long)d->ends[1], ERL_DRV_READ | ERL_DRV_WRITE | ERL_DRV_USE, 1);
        return 0;
    case 30: /* A pipe that this port has used, for another one. */
        memcpy(shared, d->ends, sizeof shared);
        d->ends[0] = d->ends[1] = -1;
        return 0;
    case 31: /* It is closed by that one. The next pipe is likely to have its numbers. */
        driver_select(d->port, (ErlDrvEvent)(long)shared[0], ERL_DRV_READ | ERL_DRV_USE, 0);
        close(shared[1]);
        return 0;
    case 28: /* Takes its time for timeouts and input. */
        d->slow = 1;
        return 0;
    case 26: {
        ErlDrvSysInfo i;
        driver_system_info(&i, sizeof i);
        return snprintf(*to, room, "%d.%d %d", i.driver_major_version, i.driver_minor_version, i.smp_support);
    }
    }
    return -1;
}

static void ready_input(ErlDrvData h, ErlDrvEvent e)
{
    data *d = (data *)h;
    char buf[100];
    int n = read((int)(long)e, buf, sizeof buf);
    if (d->slow)
        usleep(120000);
    if (n > 0)
        driver_output(d->port, buf, n);
}

static void ready_output(ErlDrvData h, ErlDrvEvent e)
{
    data *d = (data *)h;
    told(d, "out", ++d->outs);
    driver_select(d->port, e, (d->outs == 1 ? ERL_DRV_READ : ERL_DRV_WRITE) | ERL_DRV_USE_NO_CALLBACK, 0);
}

static void ready_async(ErlDrvData h, ErlDrvThreadData of)
{
    told((data *)h, "async", *(int *)of);
    driver_free(of);
}

static void timeout(ErlDrvData h)
{
    data *d = (data *)h;
    if (d->slow)
        usleep(120000);
    told(d, "timeout", ++d->timeouts);
    set_busy_port(d->port, 0);
    driver_deq(d->port, driver_sizeq(d->port));
}

static void process_exit(ErlDrvData h, ErlDrvMonitor *m)
{
    data *d = (data *)h;
    told(d, "process_exit", driver_compare_monitors(m, &d->monitor));
}

static ErlDrvSSizeT call(ErlDrvData h, unsigned op, char *buf, ErlDrvSizeT n, char **to, ErlDrvSizeT room, unsigned *flags)
{
    static unsigned char kept[] = {131, 100, 0, 4, 'k', 'e', 'p', 't'};
    switch (op) {
    case 1:
        if (n > room)
            *to = driver_alloc(n);
        memcpy(*to, buf, n);
        return n;
    case 2:
        *to = (char *)kept;
        *flags |= DRIVER_CALL_KEEP_BUFFER;
        return sizeof kept;
    case 3:
        **to = 1;
        return 1;
    }
    return -1;
}

static void finish(void)
{
}

static ErlDrvEntry entry = {
    init, start, stop, NULL, ready_input, ready_output, "drivers", finish, NULL, control, timeout, outputv, ready_async, nothing_left,
    call, NULL, ERL_DRV_EXTENDED_MARKER, ERL_DRV_EXTENDED_MAJOR_VERSION, ERL_DRV_EXTENDED_MINOR_VERSION, ERL_DRV_FLAG_USE_PORT_LOCKING,
    NULL, process_exit, stop_select, NULL};

DRIVER_INIT(drivers)
{
    return &entry;
}
