/*
 * symbols.c - finds places of kernels in the tables that the build made, one per kernel file
 * (table.h).
 *
 * Shared variables are thread-local (include/simt.h), at the same distance from one another in
 * every thread.
 */
#include "symbols.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A reference point among a thread's variables, from which the others are found. It has their
 * alignment, so that the distance does not depend on the thread. */
static _Thread_local char anchor[128] __attribute__((aligned(128)));

#define CONSTANTS_MAX 8 /* read-only segments of the program: three or four */

struct gm_symbols {
    size_t first; /* distance from the anchor to the first shared variable */
    size_t shared_count;
    struct gm_symbol_shared *shared;
    unsigned constant_count;
    struct {
        uintptr_t begin, end;
    } constant[CONSTANTS_MAX];
};

/* The tables are in a section of that name, whose beginning and end the linker defines. They are
 * weak, because a program without simulated kernels has no such section: both are then null. */
extern const struct gm_sim_table *const __start_gm_sim_tables[] __attribute__((weak));
extern const struct gm_sim_table *const __stop_gm_sim_tables[] __attribute__((weak));

static const struct gm_sim_table *find_table(uintptr_t at)
{
    for (const struct gm_sim_table *const *t = __start_gm_sim_tables; t < __stop_gm_sim_tables; t++)
        if (at >= (uintptr_t)(*t)->code && at < (uintptr_t)(*t)->code_end)
            return *t;
    return NULL;
}

/* The first call is for the program itself, the only one of interest. */
static int read_segments(struct dl_phdr_info *program, size_t size, void *cls)
{
    struct gm_symbols *s = cls;

    (void)size;
    for (int i = 0; i < program->dlpi_phnum && s->constant_count < CONSTANTS_MAX; i++) {
        const ElfW(Phdr) *segment = &program->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || segment->p_flags & PF_W)
            continue;
        s->constant[s->constant_count].begin = program->dlpi_addr + segment->p_vaddr;
        s->constant[s->constant_count++].end =
            program->dlpi_addr + segment->p_vaddr + segment->p_memsz;
    }
    return 1;
}

bool gm_symbols_constant(const struct gm_symbols *s, uintptr_t at, size_t bytes)
{
    for (unsigned i = 0; i < s->constant_count; i++)
        if (at >= s->constant[i].begin && at + bytes <= s->constant[i].end)
            return true;
    return false;
}

static int by_begin(const void *left, const void *right)
{
    const struct gm_symbol_shared *a = left, *b = right;

    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

/* Lists the shared variables of all tables, by this thread's copies. */
static bool read_shared(struct gm_symbols *s)
{
    size_t count = 0;

    for (const struct gm_sim_table *const *t = __start_gm_sim_tables; t < __stop_gm_sim_tables; t++)
        count += (*t)->shareds;
    s->shared = calloc(count + 1, sizeof(*s->shared));
    if (!s->shared)
        return false;
    for (const struct gm_sim_table *const *t = __start_gm_sim_tables; t < __stop_gm_sim_tables; t++)
        for (size_t i = 0; i < (*t)->shareds; i++) {
            const struct gm_sim_shared *from = &(*t)->shared[i];
            uintptr_t begin = (*t)->shared_here() + from->begin;
            s->shared[s->shared_count++] =
                (struct gm_symbol_shared){.begin = begin, .end = begin + from->bytes, .from = from};
        }
    return true;
}

enum gm_status gm_symbols_open(struct gm_symbols **ret, struct gm_error *err)
{
    struct gm_symbols *s = calloc(1, sizeof(*s));

    if (!s || !read_shared(s)) {
        free(s);
        return gm_fail(err, GM_MEMORY_FULL, "no memory for the simulator's shared variables");
    }
    dl_iterate_phdr(read_segments, s);
    qsort(s->shared, s->shared_count, sizeof(*s->shared), by_begin);
    size_t first = s->shared_count > 0 ? s->shared[0].begin : 0;
    for (size_t i = 0; i < s->shared_count; i++) {
        s->shared[i].begin -= first;
        s->shared[i].end -= first;
    }
    s->first = first - (uintptr_t)anchor;
    *ret = s;
    return GM_OK;
}

void gm_symbols_close(struct gm_symbols *s)
{
    if (!s)
        return;
    free(s->shared);
    free(s);
}

static int by_address(const void *left, const void *right)
{
    const struct gm_sim_function *a = left, *b = right;

    return a->at < b->at ? -1 : a->at > b->at;
}

const struct gm_sim_function *gm_symbols_kernel(const void *address)
{
    const struct gm_sim_table *table = find_table((uintptr_t)address);

    if (!table)
        return NULL;
    struct gm_sim_function key = {.at = (uint32_t)((const char *)address - table->code)};
    return bsearch(&key, table->function, table->functions, sizeof(key), by_address);
}

size_t gm_symbols_shared_count(const struct gm_symbols *s)
{
    return s->shared_count;
}

const struct gm_symbol_shared *gm_symbols_shared(const struct gm_symbols *s, size_t index)
{
    return &s->shared[index];
}

size_t gm_symbols_shared_at(const struct gm_symbols *s, size_t offset)
{
    size_t low = 0, high = s->shared_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (offset < s->shared[middle].begin)
            high = middle;
        else if (offset >= s->shared[middle].end)
            low = middle + 1;
        else
            return middle;
    }
    return GM_SYMBOLS_NONE;
}

bool gm_symbols_shared_of(const struct gm_symbol_shared *shared,
                          const struct gm_sim_function *kernel)
{
    return !shared->from->owner || shared->from->owner == kernel;
}

uint64_t gm_symbols_shared_bytes(const struct gm_symbols *s, const struct gm_sim_function *kernel)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < s->shared_count; i++)
        if (s->shared[i].from->owner == kernel)
            bytes += (s->shared[i].end - s->shared[i].begin + 15) / 16 * 16;
    return bytes;
}

size_t gm_symbols_shared_span(const struct gm_symbols *s)
{
    return s->shared_count > 0 ? s->shared[s->shared_count - 1].end : 0;
}

uintptr_t gm_symbols_shared_here(const struct gm_symbols *s)
{
    return (uintptr_t)anchor + s->first;
}

/* The last line that begins at or before an address. */
static const struct gm_sim_line *find_line(const struct gm_sim_table *table, uint32_t at)
{
    size_t from = 0, to = table->lines;

    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (table->line[middle].at <= at)
            from = middle + 1;
        else
            to = middle;
    }
    return from > 0 ? &table->line[from - 1] : NULL;
}

void gm_symbols_line(uintptr_t pc, struct gm_symbol_line *ret)
{
    const struct gm_sim_table *table = find_table(pc);
    const struct gm_sim_line *line =
        table ? find_line(table, (uint32_t)(pc - (uintptr_t)table->code)) : NULL;

    *ret = (struct gm_symbol_line){.line = 0};
    if (!line || line->line == 0)
        return;
    ret->line = line->line;
    snprintf(ret->file, sizeof(ret->file), "%s", table->text[line->file]);
    snprintf(ret->function, sizeof(ret->function), "%s", table->text[line->function]);
}
