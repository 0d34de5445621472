/*
 * Functions that cannot be written in stable Rust: those with variable arguments, and the bottom
 * frame of threads that libraries start, through which `pthread_exit` unwinds.
 *
 * Each function fetches its arguments and passes them to a function in Rust.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

typedef unsigned long term;
typedef struct env env;

/* Defined in Rust. */
extern term enif_make_list_from_array(env *, const term *, unsigned);
/* Makes a tuple. The caller writes its elements to the returned address. */
extern term *purlin_nif_tuple(env *, unsigned, term *);
/* Makes a tuple of two elements, as most are. */
extern term purlin_nif_pair(env *, term, term);
extern int purlin_nif_set_option(env *, int, void *);
/* Returns the text of a term, in a block that the caller frees. The third argument receives its
   length, the fourth the number of characters that count as filling the width. */
extern char *purlin_nif_term_text(term, long, size_t *, size_t *);

#define FEW 32

static term make_list(env *e, unsigned n, va_list args)
{
    term few[FEW], *all = few, made;
    unsigned i;

    few[0] = 0;
    if (n > FEW) {
        all = malloc(n * sizeof(term));
        if (!all)
            abort();
    }
    for (i = 0; i < n; i++)
        all[i] = va_arg(args, term);
    made = enif_make_list_from_array(e, all, n);
    if (all != few)
        free(all);
    return made;
}

term enif_make_tuple(env *e, unsigned n, ...)
{
    va_list args;
    term made, *to;
    unsigned i;
    if (n == 2) {
        va_list two;
        term first, second;
        va_start(two, n);
        first = va_arg(two, term);
        second = va_arg(two, term);
        va_end(two);
        return purlin_nif_pair(e, first, second);
    }
    to = purlin_nif_tuple(e, n, &made);
    va_start(args, n);
    for (i = 0; i < n; i++)
        to[i] = va_arg(args, term);
    va_end(args);
    return made;
}

term enif_make_list(env *e, unsigned n, ...)
{
    va_list args;
    term made;
    va_start(args, n);
    made = make_list(e, n, args);
    va_end(args);
    return made;
}

/* ERL_NIF_OPT_DELAY_HALT takes no argument, the others take a function. */
int enif_set_option(env *e, int option, ...)
{
    va_list args;
    void *arg = NULL;
    int r;
    if (option != 1) {
        va_start(args, option);
        arg = va_arg(args, void *);
        va_end(args);
    }
    r = purlin_nif_set_option(e, option, arg);
    return r;
}

/* The destination of formatted text: a file, or a buffer, which takes as much as fits. */
struct sink {
    FILE *file;
    char *to;
    size_t room;
    size_t all;
};

static void put(struct sink *s, const char *text, size_t n)
{
    if (s->file)
        fwrite(text, 1, n, s->file);
    else if (s->room > s->all) {
        size_t left = s->room - s->all;
        memcpy(s->to + s->all, text, n < left ? n : left);
    }
    s->all += n;
}

static void pad(struct sink *s, long n)
{
    while (n-- > 0)
        put(s, " ", 1);
}

/* One conversion by the C library. `call` is a call of snprintf with `b` and `room`. */
#define CONVERT(...)                                            \
    do {                                                        \
        char few[128], *b = few;                                \
        int n = snprintf(few, sizeof few, spec, __VA_ARGS__);   \
        if (n >= (int)sizeof few && (b = malloc((size_t)n + 1))) \
            snprintf(b, (size_t)n + 1, spec, __VA_ARGS__);      \
        if (n > 0 && b)                                         \
            put(s, b, (size_t)n);                               \
        if (b != few)                                           \
            free(b);                                            \
    } while (0)

static void format(struct sink *s, const char *f, va_list *args)
{
    while (*f) {
        char spec[64];
        size_t at = 0;
        long width = -1, precision = -1;
        int left = 0, longs = 0, size = 0, shorts = 0;
        const char *start = f;
        const char *percent = strchr(f, '%');

        if (!percent) {
            put(s, f, strlen(f));
            return;
        }
        put(s, f, (size_t)(percent - f));
        start = percent;
        f = percent + 1;
        spec[at++] = '%';
        while (*f && strchr("-+ #0'", *f)) {
            left |= *f == '-';
            if (at < 8)
                spec[at++] = *f;
            f++;
        }
        if (*f == '*') {
            width = va_arg(*args, int);
            if (width < 0) {
                left = 1;
                width = -width;
                spec[at++] = '-';
            }
            f++;
        } else if (*f >= '0' && *f <= '9') {
            width = strtol(f, (char **)&f, 10);
        }
        if (width >= 0)
            at += (size_t)sprintf(spec + at, "%d", (int)width);
        if (*f == '.') {
            f++;
            if (*f == '*') {
                precision = va_arg(*args, int);
                f++;
            } else {
                precision = strtol(f, (char **)&f, 10);
            }
            if (precision >= 0)
                at += (size_t)sprintf(spec + at, ".%d", (int)precision);
        }
        for (;; f++) {
            if (*f == 'l')
                longs++;
            else if (*f == 'h')
                shorts++;
            else if (*f == 'z' || *f == 'j' || *f == 't' || *f == 'b')
                size = *f;
            else
                break;
            /* `b` and `bp` are stock's own: a pointer-sized number. */
            if (*f == 'b' && f[1] == 'p')
                f++;
        }
        switch (*f) {
        case 'T': {
            size_t n = 0, counted = 0;
            char *text = purlin_nif_term_text(va_arg(*args, term), precision, &n, &counted);
            /* As in stock: padding before the text counts only numbers, padding behind it all. */
            if (!left && width > (long)counted)
                pad(s, width - (long)counted);
            if (text)
                put(s, text, n);
            if (left && width > (long)n)
                pad(s, width - (long)n);
            free(text);
            break;
        }
        case 'd': case 'i': case 'u': case 'x': case 'X': case 'o':
            if (size || longs) {
                long long v = longs >= 2 ? va_arg(*args, long long)
                                         : (long long)va_arg(*args, long);
                spec[at++] = 'l';
                spec[at++] = 'l';
                spec[at++] = *f;
                spec[at] = 0;
                CONVERT(v);
            } else {
                int v = va_arg(*args, int);
                if (shorts >= 2)
                    v = (*f == 'd' || *f == 'i') ? (signed char)v : (unsigned char)v;
                else if (shorts == 1)
                    v = (*f == 'd' || *f == 'i') ? (short)v : (unsigned short)v;
                spec[at++] = *f;
                spec[at] = 0;
                CONVERT(v);
            }
            break;
        case 'e': case 'E': case 'f': case 'F': case 'g': case 'G': case 'a': case 'A': {
            double v = va_arg(*args, double);
            spec[at++] = *f;
            spec[at] = 0;
            CONVERT(v);
            break;
        }
        case 'c': {
            int v = va_arg(*args, int);
            spec[at++] = 'c';
            spec[at] = 0;
            if (v)
                CONVERT(v);
            else
                put(s, "", 1);
            break;
        }
        case 's': {
            const char *v = va_arg(*args, const char *);
            spec[at++] = 's';
            spec[at] = 0;
            CONVERT(v ? v : "(null)");
            break;
        }
        case 'p': {
            void *v = va_arg(*args, void *);
            spec[at++] = 'p';
            spec[at] = 0;
            CONVERT(v);
            break;
        }
        case 'n':
            *va_arg(*args, int *) = (int)s->all;
            break;
        case '%':
            put(s, "%", 1);
            break;
        case 0:
            put(s, start, (size_t)(f - start));
            return;
        default:
            put(s, start, (size_t)(f - start) + 1);
            break;
        }
        f++;
    }
}

int enif_vfprintf(FILE *file, const char *f, va_list args)
{
    struct sink s = {file, NULL, 0, 0};
    va_list copy;
    va_copy(copy, args);
    format(&s, f, &copy);
    va_end(copy);
    return (int)s.all;
}

int enif_fprintf(FILE *file, const char *f, ...)
{
    va_list args;
    int n;
    va_start(args, f);
    n = enif_vfprintf(file, f, args);
    va_end(args);
    return n;
}

int enif_vsnprintf(char *to, size_t room, const char *f, va_list args)
{
    /* The last byte is for the terminating zero. */
    struct sink s = {NULL, to, room ? room - 1 : 0, 0};
    va_list copy;
    va_copy(copy, args);
    format(&s, f, &copy);
    va_end(copy);
    if (room)
        to[s.all < room ? s.all : room - 1] = 0;
    return (int)s.all;
}

int enif_snprintf(char *to, size_t room, const char *f, ...)
{
    va_list args;
    int n;
    va_start(args, f);
    n = enif_vsnprintf(to, room, f, args);
    va_end(args);
    return n;
}

/* A thread of a library: its data in Rust, and the function to run. */
struct thread {
    void *of_rust;
    void *(*run)(void *);
    void *arg;
};

extern void purlin_nif_thread_begins(void *);

static void *begin(void *arg)
{
    struct thread t = *(struct thread *)arg;
    free(arg);
    purlin_nif_thread_begins(t.of_rust);
    return t.run(t.arg);
}

/* Starts a thread with a stack of that many bytes (0: the system's default). Returns an error
 * number or 0. */
int purlin_nif_thread_start(pthread_t *id, void *of_rust, void *(*run)(void *), void *arg,
                            size_t stack)
{
    struct thread *t = malloc(sizeof *t);
    pthread_attr_t attr;
    int r;

    if (!t)
        return 12; /* ENOMEM */
    t->of_rust = of_rust;
    t->run = run;
    t->arg = arg;
    pthread_attr_init(&attr);
    if (stack)
        pthread_attr_setstacksize(&attr, stack);
    r = pthread_create(id, &attr, begin, t);
    pthread_attr_destroy(&attr);
    if (r)
        free(t);
    return r;
}

void enif_thread_exit(void *result)
{
    pthread_exit(result);
}

void erl_drv_thread_exit(void *result)
{
    pthread_exit(result);
}
