/* Finds the cache lines that several threads write, under qemu-user: a plugin for its interface
 * (version 1), of which it declares what it uses. `getcwd(2)` begins a count, `chdir(2)` ends it:
 * programs seldom call these. At the end it writes, for each line of 64 bytes that at least two
 * threads have written, how often all but the busiest of them did:
 *
 *   WRITES FILE OFFSET      of memory mapped from a file, or right behind it: the distance from the
 *                           file's first mapping
 *   WRITES - ADDRESS        of other memory
 *   .                               the end of a count
 *
 *   qemu-x86_64 -plugin writes.so,out=FILE PROGRAM
 */
#include <elf.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef uint64_t plugin_id;
struct block;
struct instruction;
struct info;

extern void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id,
    void (*)(plugin_id, struct block *));
extern void qemu_plugin_register_vcpu_mem_cb(struct instruction *,
    void (*)(unsigned, uint32_t, uint64_t, void *), int, int, void *);
extern void qemu_plugin_register_vcpu_syscall_cb(plugin_id,
    void (*)(plugin_id, unsigned, int64_t, uint64_t, uint64_t, uint64_t, uint64_t,
        uint64_t, uint64_t, uint64_t, uint64_t));
extern _Bool qemu_plugin_mem_is_store(uint32_t);
extern size_t qemu_plugin_tb_n_insns(const struct block *);
extern struct instruction *qemu_plugin_tb_get_insn(const struct block *, size_t);

EXPORT int qemu_plugin_version = 1;

enum { WRITES = 2, NO_REGISTERS = 0, LINE_SHIFT = 6, GETCWD = 79, CHDIR = 80 };
enum { ENTRIES = 1 << 20, THREADS = 4 };

/* A line, and the threads that wrote it first, each with its number of writes. */
struct line {
    uint64_t address;
    uint32_t thread[THREADS], writes[THREADS];
};

static struct line *table;
static FILE *out;
static int counts;

static struct line *entry_of(uint64_t address)
{
    uint64_t i = (address * 0x9E3779B97F4A7C15u) >> 44;
    for (unsigned n = 0; n < ENTRIES; n++, i = (i + 1) % ENTRIES) {
        uint64_t is = __atomic_load_n(&table[i].address, __ATOMIC_RELAXED);
        if (!is && __atomic_compare_exchange_n(&table[i].address, &is, address, 0,
                __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return &table[i];
        if (is == address)
            return &table[i];
    }
    return NULL;
}

static void wrote(unsigned cpu, uint32_t kind, uint64_t address, void *data)
{
    struct line *l;
    (void)data;
    /* Some versions report reads, too. */
    if (!qemu_plugin_mem_is_store(kind))
        return;
    if (!__atomic_load_n(&counts, __ATOMIC_RELAXED) || !(l = entry_of(address >> LINE_SHIFT)))
        return;
    for (int i = 0; i < THREADS; i++) {
        uint32_t is = __atomic_load_n(&l->thread[i], __ATOMIC_RELAXED);
        if (!is)
            __atomic_compare_exchange_n(&l->thread[i], &is, cpu + 1, 0, __ATOMIC_RELAXED,
                __ATOMIC_RELAXED);
        if (__atomic_load_n(&l->thread[i], __ATOMIC_RELAXED) == cpu + 1) {
            __atomic_fetch_add(&l->writes[i], 1, __ATOMIC_RELAXED);
            return;
        }
    }
}

static void translated(plugin_id id, struct block *b)
{
    size_t n = qemu_plugin_tb_n_insns(b);
    (void)id;
    for (size_t i = 0; i < n; i++)
        qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(b, i), wrote, NO_REGISTERS,
            WRITES, NULL);
}

struct mapping {
    unsigned long start, end;
    char file[256];
};

/* The number of bytes from the first to the last address that the file of an executable or a
 * library takes when it is loaded, in whole pages; 0 if it is no such file. */
static unsigned long loaded_bytes(const char *name)
{
    Elf64_Ehdr head;
    Elf64_Phdr part;
    unsigned long end = 0;
    FILE *f = fopen(name, "r");
    if (!f)
        return 0;
    if (fread(&head, sizeof head, 1, f) == 1 && !memcmp(head.e_ident, ELFMAG, SELFMAG)
        && head.e_phentsize == sizeof part && !fseek(f, head.e_phoff, SEEK_SET))
        for (int i = 0; i < head.e_phnum && fread(&part, sizeof part, 1, f) == 1; i++)
            if (part.p_type == PT_LOAD && part.p_vaddr + part.p_memsz > end)
                end = part.p_vaddr + part.p_memsz;
    fclose(f);
    return (end + 4095) & ~4095ul;
}

static const struct mapping *first_of(const struct mapping *list, const char *file)
{
    while (strcmp(list->file, file))
        list++;
    return list;
}

/* The process's mappings. Memory right behind one of a file, and without a file, belongs to it as
 * far as the file says that it has variables there. */
static size_t mappings(struct mapping **list)
{
    size_t n = 0, room = 0;
    char line[1024];
    FILE *maps = fopen("/proc/self/maps", "r");
    *list = NULL;
    while (maps && fgets(line, sizeof line, maps)) {
        struct mapping m = { 0 };
        if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %255s", &m.start, &m.end, m.file) < 2)
            continue;
        if (!m.file[0] && n && (*list)[n - 1].file[0] == '/' && (*list)[n - 1].end == m.start) {
            unsigned long end = first_of(*list, (*list)[n - 1].file)->start
                + loaded_bytes((*list)[n - 1].file);
            if (end > m.start)
                (*list)[n - 1].end = end < m.end ? end : m.end;
            continue;
        }
        if (n == room) {
            room = room ? room * 2 : 1024;
            *list = realloc(*list, room * sizeof **list);
            if (!*list)
                abort();
        }
        (*list)[n++] = m;
    }
    if (maps)
        fclose(maps);
    return n;
}

static void report(void)
{
    struct mapping *list;
    size_t n = mappings(&list);
    for (size_t i = 0; i < ENTRIES; i++) {
        struct line *l = &table[i];
        uint64_t all = 0, most = 0, at = l->address << LINE_SHIFT;
        const char *file = "-";
        uint64_t offset = at;
        for (int k = 0; k < THREADS; k++) {
            all += l->writes[k];
            most = l->writes[k] > most ? l->writes[k] : most;
        }
        for (size_t k = 0; k < n && all > most; k++)
            if (at >= list[k].start && at < list[k].end && list[k].file[0] == '/') {
                file = list[k].file;
                offset = at - first_of(list, file)->start;
            }
        if (all > most)
            fprintf(out, "%llu %s %llx\n", (unsigned long long)(all - most), file,
                (unsigned long long)offset);
    }
    free(list);
    fprintf(out, ".\n");
    fflush(out);
}

static void system_call(plugin_id id, unsigned cpu, int64_t number, uint64_t a, uint64_t b,
    uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h)
{
    (void)id, (void)cpu, (void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)g, (void)h;
    if (number == CHDIR && counts) {
        __atomic_store_n(&counts, 0, __ATOMIC_SEQ_CST);
        report();
    } else if (number == GETCWD) {
        __atomic_store_n(&counts, 0, __ATOMIC_SEQ_CST);
        memset(table, 0, ENTRIES * sizeof *table);
        __atomic_store_n(&counts, 1, __ATOMIC_SEQ_CST);
    }
}

EXPORT int qemu_plugin_install(plugin_id id, const struct info *info, int argc, char **argv)
{
    (void)info;
    out = stderr;
    for (int i = 0; i < argc; i++)
        if (!strncmp(argv[i], "out=", 4) && !(out = fopen(argv[i] + 4, "w"))) {
            perror(argv[i] + 4);
            return 1;
        }
    table = calloc(ENTRIES, sizeof *table);
    if (!table)
        return 1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_vcpu_syscall_cb(id, system_call);
    return 0;
}
