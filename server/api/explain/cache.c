/*
 * cache.c - estimates what the caches of a GPU serve, and what is left for its memory.
 *
 * L1: a block's loads of a sector hit from the second on. What misses goes to the L2 cache, which
 * begins cold: each sector of an operand misses once, if all of it stays there. Where the operands
 * are larger than the cache, what blocks of a row of the grid share (the simulator compares blocks
 * side by side) is still loaded once for the row. What blocks of a column share was dropped before
 * the next row comes, unless its blocks run at the same time: the first waves of blocks do, and
 * later ones drift apart.
 *
 * COUNTERS.md has the rates beside those that Nsight Compute counts.
 */
#include "server/api/explain/explain.h"

#include <math.h>
#include <string.h>

#define SHARED_MIN                                                                                 \
    0.5 /* of a block's sectors, as many as its neighbour loads too: they share them */
#define IN_STEP_WAVES 10.0 /* waves of blocks that start and end together, about */
#define STAYS 0.5          /* of the L2 cache: a buffer smaller than this stays there */
#define MEMORIES 4

/* Loads from, and stores to, one buffer. */
struct traffic {
    const char *memory;
    double misses;        /* sectors of loads that miss L1 */
    double beside, again; /* as in gm_access_sums */
    double stored;        /* sectors */
    double bytes;         /* of the buffer; negative: not known */
};

static double bytes_of(const struct gm_op *op, const char *memory)
{
    static const char *const names[GM_OPERANDS_MAX] = {"a", "b", "c"};

    for (unsigned i = 0; i < op->operands; i++)
        if (strcmp(memory, names[i]) == 0)
            return (double)gm_matrix_bytes(&op->operand[i]);
    return strcmp(memory, "result") == 0 ? (double)gm_matrix_bytes(&op->result) : -1;
}

/* Sums sites by their buffers; false if there are more than there is room for. */
static bool sum_traffic(const struct gm_explain *e, struct traffic traffic[MEMORIES], unsigned *ret)
{
    unsigned count = 0;

    for (size_t i = 0; i < e->report->sites; i++) {
        const struct gm_access_site *s = &e->report->site[i];
        unsigned at = 0;
        if (gm_access_is_shared(s->kind))
            continue;
        while (at < count && strcmp(traffic[at].memory, s->memory) != 0)
            at++;
        if (at == MEMORIES)
            return false;
        if (at == count)
            traffic[count++] =
                (struct traffic){.memory = s->memory, .bytes = bytes_of(e->op, s->memory)};
        if (s->kind != GM_GLOBAL_LOAD) {
            traffic[at].stored += s->sums.units;
            continue;
        }
        traffic[at].misses += s->sums.first;
        traffic[at].beside += s->sums.beside;
        traffic[at].again += s->sums.again;
    }
    *ret = count;
    return true;
}

/* Of so many sectors, as many as a buffer has. */
static double at_most_all(const struct traffic *t, double sectors)
{
    return t->bytes < 0 ? sectors : fmin(sectors, ceil(t->bytes / GM_SECTOR));
}

/* Whether blocks of a row load the same of a buffer. */
static bool is_shared_by_row(const struct traffic *t)
{
    return t->beside > 0 && t->again >= SHARED_MIN * t->beside;
}

/* Distinct sectors that are loaded of a buffer. */
static double distinct(const struct traffic *t, const uint32_t grid[3])
{
    if (t->bytes < 0 && is_shared_by_row(t))
        return t->misses / grid[0];
    return at_most_all(t, t->misses);
}

/* Sectors of loads that miss a cache smaller than what is loaded; negative: not known. */
static double misses_of(const struct gm_explain *e, const struct gm_explain_figures *f,
                        const struct traffic *traffic, unsigned count)
{
    const uint32_t *grid = f->launch->grid;
    double per_row = 0, misses = 0, rows = (double)grid[1] * grid[2];
    double at_once = (double)f->occupancy.blocks * e->gpu->sms;
    double together = fmax(1, at_once / grid[0]); /* rows of blocks */

    for (unsigned i = 0; i < count; i++)
        per_row += traffic[i].misses / rows / (is_shared_by_row(&traffic[i]) ? grid[0] : 1);
    for (unsigned i = 0; i < count; i++) {
        const struct traffic *t = &traffic[i];
        double once = distinct(t, grid), mine = once;
        if (t->misses < 1.5 * once || once * GM_SECTOR < STAYS * e->gpu->l2_bytes) {
            misses += once;
            continue;
        }
        if (t->beside == 0 || grid[0] * rows < f->blocks)
            return -1; /* loaded again, and not known by whom */
        if (is_shared_by_row(t))
            mine = fmax(once, t->misses / grid[0]);
        else if (per_row * GM_SECTOR > e->gpu->l2_bytes)
            mine = fmax(once, t->misses / (f->blocks > IN_STEP_WAVES * at_once ? 1 : together));
        misses += mine;
    }
    return misses;
}

void gm_explain_caches(const struct gm_explain *e, struct gm_explain_figures *f)
{
    struct traffic traffic[MEMORIES];
    double loaded = 0, asked = 0, stored = 0;
    unsigned count = 0;

    f->l2_hit_percent = f->dram_bytes = -1;
    if (!f->launch || e->report->cut || e->gpu->l2_bytes == 0 || !sum_traffic(e, traffic, &count))
        return;
    for (unsigned i = 0; i < count; i++) {
        asked += traffic[i].misses;
        loaded += distinct(&traffic[i], f->launch->grid);
        stored += at_most_all(&traffic[i], traffic[i].stored);
    }
    if (loaded * GM_SECTOR > e->gpu->l2_bytes)
        loaded = misses_of(e, f, traffic, count);
    if (loaded < 0)
        return;
    if (asked > 0)
        f->l2_hit_percent = 100 * (1 - loaded / asked);
    f->dram_bytes = (loaded + stored) * GM_SECTOR;
}
