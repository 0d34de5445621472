/* Counts the instructions that a program executes under qemu-user: a plugin for its interface
 * (version 1), of which it declares what it uses. The kernel's `getcwd(2)`, which programs seldom
 * call, is the mark: each call writes a line with the instructions executed so far, those of
 * machine code and those of everything.
 *
 *   qemu-aarch64 -plugin count.so,out=FILE,mark=NUMBER PROGRAM
 *
 * `mark` is the number of getcwd: 17 on aarch64, 79 on x86-64. Machine code is what lies in memory
 * without a file, or in Purlin's own file in memory. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef uint64_t plugin_id;
struct block;
struct info;

extern void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id,
    void (*)(plugin_id, struct block *));
extern void qemu_plugin_register_vcpu_tb_exec_cb(struct block *,
    void (*)(unsigned, void *), int, void *);
extern void qemu_plugin_register_vcpu_syscall_cb(plugin_id,
    void (*)(plugin_id, unsigned, int64_t, uint64_t, uint64_t, uint64_t, uint64_t,
        uint64_t, uint64_t, uint64_t, uint64_t));
extern size_t qemu_plugin_tb_n_insns(const struct block *);
extern uint64_t qemu_plugin_tb_vaddr(const struct block *);

EXPORT int qemu_plugin_version = 1;

/* A translated block: how long it is, how often it ran, and where it lies. */
enum place { UNKNOWN, COMPILED, OTHER };
struct counted {
    struct counted *next;
    uint64_t address, length, runs;
    enum place place;
};

static struct counted *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *out;
static int64_t mark = 17;

static void ran(unsigned cpu, void *data)
{
    struct counted *c = data;
    (void)cpu;
    __atomic_fetch_add(&c->runs, 1, __ATOMIC_RELAXED);
}

static void translated(plugin_id id, struct block *b)
{
    struct counted *c = calloc(1, sizeof *c);
    (void)id;
    if (!c)
        abort();
    c->address = qemu_plugin_tb_vaddr(b);
    c->length = qemu_plugin_tb_n_insns(b);
    pthread_mutex_lock(&lock);
    c->next = all;
    all = c;
    pthread_mutex_unlock(&lock);
    qemu_plugin_register_vcpu_tb_exec_cb(b, ran, 0, c);
}

/* Mappings of the process: the program's addresses are the emulator's own. */
struct mapping {
    uint64_t start, end;
    enum place place;
};

static size_t mappings(struct mapping **list)
{
    size_t n = 0, room = 0;
    char *line = NULL;
    size_t size = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    *list = NULL;
    while (maps && getline(&line, &size, maps) > 0) {
        unsigned long start, end;
        int name = 0;
        if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %n", &start, &end, &name) < 2 || !name)
            continue;
        if (n == room) {
            room = room ? room * 2 : 1024;
            *list = realloc(*list, room * sizeof **list);
            if (!*list)
                abort();
        }
        int own = line[name] == '\0' || line[name] == '\n' || strstr(line + name, "purlin-code");
        (*list)[n++] = (struct mapping){ start, end, own ? COMPILED : OTHER };
    }
    free(line);
    if (maps)
        fclose(maps);
    return n;
}

static enum place place_of(const struct mapping *list, size_t n, uint64_t address)
{
    for (size_t i = 0; i < n; i++)
        if (address >= list[i].start && address < list[i].end)
            return list[i].place;
    return OTHER;
}

static void system_call(plugin_id id, unsigned cpu, int64_t number, uint64_t a, uint64_t b,
    uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h)
{
    uint64_t code = 0, total = 0;
    struct mapping *list;
    size_t n;
    (void)id, (void)cpu, (void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)g, (void)h;
    if (number != mark)
        return;
    pthread_mutex_lock(&lock);
    n = mappings(&list);
    for (struct counted *t = all; t; t = t->next) {
        uint64_t runs = __atomic_load_n(&t->runs, __ATOMIC_RELAXED);
        if (!runs)
            continue;
        if (t->place == UNKNOWN)
            t->place = place_of(list, n, t->address);
        total += runs * t->length;
        if (t->place == COMPILED)
            code += runs * t->length;
    }
    free(list);
    fprintf(out, "%llu %llu\n", (unsigned long long)code, (unsigned long long)total);
    fflush(out);
    pthread_mutex_unlock(&lock);
}

EXPORT int qemu_plugin_install(plugin_id id, const struct info *info, int argc, char **argv)
{
    (void)info;
    out = stderr;
    for (int i = 0; i < argc; i++) {
        if (!strncmp(argv[i], "out=", 4) && !(out = fopen(argv[i] + 4, "w"))) {
            perror(argv[i] + 4);
            return 1;
        }
        if (!strncmp(argv[i], "mark=", 5))
            mark = atoll(argv[i] + 5);
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_vcpu_syscall_cb(id, system_call);
    return 0;
}
