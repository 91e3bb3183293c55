#include "shadow.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Marks in place of thread numbers, which are below 1024: written by atomics; accessed by several
 * threads of warp 0 to 31; accessed by threads of several warps. */
#define THREAD 0x03FFu
#define ATOMIC 0x8000u
#define OF_WARP 0x4000u
#define OF_MANY 0x2000u
#define WARP_OF(tid) ((tid) / 32u)

/* Beyond this time the clock restarts, far before it would wrap within a block. */
#define CLOCK_MAX UINT32_C(0xF0000000)

static void *get(size_t bytes)
{
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return map == MAP_FAILED ? NULL : map;
}

static void put(void *map, size_t bytes)
{
    if (map)
        munmap(map, bytes);
}

bool gm_shadow_open(struct gm_shadow *shadow, size_t dynamic_bytes, size_t static_bytes)
{
    *shadow = (struct gm_shadow){
        .dynamic_bytes = dynamic_bytes,
        .static_bytes = (static_bytes + 4) / 4 * 4,
    };
    shadow->dynamics = get(dynamic_bytes * sizeof(*shadow->dynamics));
    shadow->statics = get(shadow->static_bytes * sizeof(*shadow->statics));
    shadow->globals = get(GM_SHADOW_GLOBALS * sizeof(*shadow->globals));
    if (shadow->dynamics && shadow->statics && shadow->globals)
        return true;
    gm_shadow_close(shadow);
    return false;
}

void gm_shadow_close(struct gm_shadow *shadow)
{
    put(shadow->dynamics, shadow->dynamic_bytes * sizeof(*shadow->dynamics));
    put(shadow->statics, shadow->static_bytes * sizeof(*shadow->statics));
    put(shadow->globals, GM_SHADOW_GLOBALS * sizeof(*shadow->globals));
    *shadow = (struct gm_shadow){0};
}

void gm_shadow_begin_block(struct gm_shadow *shadow)
{
    if (shadow->clock > CLOCK_MAX) {
        memset(shadow->dynamics, 0, shadow->dynamic_bytes * sizeof(*shadow->dynamics));
        memset(shadow->statics, 0, shadow->static_bytes * sizeof(*shadow->statics));
        memset(shadow->globals, 0, GM_SHADOW_GLOBALS * sizeof(*shadow->globals));
        shadow->clock = 0;
    }
    shadow->block_began = shadow->barrier = ++shadow->clock;
}

void gm_shadow_barrier(struct gm_shadow *shadow)
{
    shadow->barrier = ++shadow->clock;
}

/* Whether what `warp` did at `when` is ordered before what thread tid does now. */
static bool ordered(const struct gm_shadow *shadow, uint32_t when, unsigned warp, unsigned tid,
                    uint32_t synced)
{
    uint32_t since = warp == WARP_OF(tid) && synced > shadow->barrier ? synced : shadow->barrier;

    return when < since;
}

/* Whether what `who` did at `when` (a thread, or a mark) races with thread tid. */
static bool races(const struct gm_shadow *shadow, unsigned who, uint32_t when, unsigned tid,
                  uint32_t synced)
{
    if (who & OF_MANY)
        return when >= shadow->barrier;
    if (who & OF_WARP)
        return !ordered(shadow, when, who & THREAD, tid, synced);
    return (who & THREAD) != tid && !ordered(shadow, when, WARP_OF(who & THREAD), tid, synced);
}

/* The mark for all threads that accessed a cell in the same way since the last synchronization: of
 * `before`, at time `when`, and of tid, now. */
static uint16_t joined(const struct gm_shadow *shadow, unsigned before, uint32_t when, unsigned tid,
                       uint32_t synced)
{
    unsigned warp = before & OF_WARP ? before & THREAD : WARP_OF(before & THREAD);

    if (when < shadow->barrier || before == tid)
        return (uint16_t)tid;
    if (before & OF_MANY || warp != WARP_OF(tid))
        return OF_MANY;
    return (uint16_t)(when < synced ? tid : OF_WARP | warp);
}

static uint16_t thread_of(unsigned who)
{
    return who & (OF_WARP | OF_MANY) ? UINT16_MAX : who & THREAD;
}

static inline __attribute__((always_inline)) enum gm_shadow_verdict
access_cell(const struct gm_shadow *shadow, struct gm_shadow_cell *cell, enum gm_shadow_how how,
            unsigned tid, uint32_t synced, bool must_be_written, uint32_t where,
            struct gm_shadow_other *other)
{
    if (cell->written >= shadow->block_began) {
        if (!(how >= GM_SHADOW_ATOMIC && cell->writer & ATOMIC) &&
            races(shadow, cell->writer, cell->written, tid, synced)) {
            *other = (struct gm_shadow_other){thread_of(cell->writer), cell->written_at};
            return GM_SHADOW_AFTER_WRITE;
        }
    } else if (must_be_written && (how == GM_SHADOW_READ || how == GM_SHADOW_ATOMIC)) {
        return GM_SHADOW_UNWRITTEN;
    }
    if (how == GM_SHADOW_READ) {
        cell->reader = joined(shadow, cell->reader, cell->read, tid, synced);
        cell->read = shadow->clock;
        cell->read_at = where;
        return GM_SHADOW_FINE;
    }
    if (cell->read >= shadow->block_began && races(shadow, cell->reader, cell->read, tid, synced)) {
        *other = (struct gm_shadow_other){thread_of(cell->reader), cell->read_at};
        return GM_SHADOW_AFTER_READ;
    }
    if (how < GM_SHADOW_ATOMIC)
        cell->writer = (uint16_t)tid;
    else if (cell->writer & ATOMIC)
        cell->writer = ATOMIC | joined(shadow, cell->writer & ~ATOMIC, cell->written, tid, synced);
    else
        cell->writer = (uint16_t)(ATOMIC | tid);
    cell->written = shadow->clock;
    cell->written_at = where;
    return GM_SHADOW_FINE;
}

/* From now on in this block each byte of the word has its own cell. */
static void split_word(const struct gm_shadow *shadow, struct gm_shadow_cell *word)
{
    if (word->split >= shadow->block_began)
        return;
    for (unsigned byte = 1; byte < 4; byte++)
        word[byte] = word[0];
    word->split = shadow->block_began;
}

enum gm_shadow_verdict gm_shadow_access(struct gm_shadow *shadow, struct gm_shadow_cell *cells,
                                        size_t offset, size_t bytes, enum gm_shadow_how how,
                                        unsigned tid, uint32_t synced, uint32_t where,
                                        struct gm_shadow_other *other)
{
    enum gm_shadow_verdict verdict = GM_SHADOW_FINE;

    if (bytes < 4)
        split_word(shadow, &cells[offset / 4 * 4]);
    for (size_t at = offset, step; at < offset + bytes && verdict == GM_SHADOW_FINE; at += step) {
        step = bytes < 4 || cells[at / 4 * 4].split >= shadow->block_began ? 1 : 4;
        verdict = access_cell(shadow, &cells[at], how, tid, synced, true, where, other);
    }
    return verdict;
}

enum gm_shadow_verdict gm_shadow_access_global(struct gm_shadow *shadow, uint64_t address,
                                               size_t bytes, enum gm_shadow_how how, unsigned tid,
                                               uint32_t synced, uint32_t where,
                                               struct gm_shadow_other *other)
{
    /* Elements smaller than a word have their own cells: neighbours in one word do not race. */
    size_t step = bytes >= 4 ? 4 : 1;
    enum gm_shadow_verdict verdict = GM_SHADOW_FINE;

    for (size_t i = 0; i < bytes && verdict == GM_SHADOW_FINE; i += step) {
        uint64_t at = address + i;
        uint64_t hash = at * UINT64_C(0x9E3779B97F4A7C15);
        struct gm_shadow_global *global = &shadow->globals[hash >> 40 & (GM_SHADOW_GLOBALS - 1)];
        if (global->address != at) {
            global->address = at;
            global->cell = (struct gm_shadow_cell){0};
        }
        verdict = access_cell(shadow, &global->cell, how, tid, synced, false, where, other);
    }
    return verdict;
}
