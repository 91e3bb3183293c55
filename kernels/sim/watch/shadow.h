/*
 * shadow.h - who wrote and read each byte last, and when: what finds races within a block, and
 * reads of shared memory that no thread of the block has written.
 *
 * Time is a clock that goes on with each barrier and each warp operation. Two accesses of
 * different threads, not both reads nor both atomic, race unless one of these lies between: a
 * barrier of the block, or for threads of one warp an operation of the warp (whichever of its lanes
 * take part besides the one that accesses: groups within a warp are not told apart; and an atomic
 * is compared with the last write alone, not with plain ones before other atomics). So what is
 * found does not depend on the order in which the simulator happens to run threads.
 */
#ifndef GM_KERNELS_SIM_WATCH_SHADOW_H
#define GM_KERNELS_SIM_WATCH_SHADOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gm_shadow_cell {
    uint32_t written, read;       /* clock of the last write, and of the last read */
    uint16_t writer, reader;      /* thread, or one of the marks in shadow.c */
    uint32_t split;               /* of a word's first byte: when its bytes began to differ */
    uint32_t written_at, read_at; /* where in the code: the caller's numbers */
};

/* Of global memory only the last cells that were touched are remembered. */
#define GM_SHADOW_GLOBALS 16384u
struct gm_shadow_global {
    uint64_t address;
    struct gm_shadow_cell cell;
};

struct gm_shadow {
    uint32_t clock;
    uint32_t block_began, barrier; /* clock of the block's begin, and of its last barrier */
    size_t dynamic_bytes, static_bytes;
    /* A cell a byte; but of words that are only used whole, as most are, the first byte's cell is
     * that of the word. */
    struct gm_shadow_cell *dynamics, *statics;
    struct gm_shadow_global *globals;
};

enum gm_shadow_how {
    GM_SHADOW_READ,
    GM_SHADOW_WRITE,
    GM_SHADOW_ATOMIC,  /* reads and writes */
    GM_SHADOW_EXCHANGE /* an atomic that does without the value before */
};

/* What is wrong with an access. */
enum gm_shadow_verdict {
    GM_SHADOW_FINE,
    GM_SHADOW_UNWRITTEN,   /* reads what nobody of the block wrote */
    GM_SHADOW_AFTER_WRITE, /* races with a write */
    GM_SHADOW_AFTER_READ   /* writes, and races with a read */
};

/* false without memory. */
bool gm_shadow_open(struct gm_shadow *shadow, size_t dynamic_bytes, size_t static_bytes);
void gm_shadow_close(struct gm_shadow *shadow);

void gm_shadow_begin_block(struct gm_shadow *shadow);
void gm_shadow_barrier(struct gm_shadow *shadow);
/* Moves the clock on: returns what the synced threads' `synced` is now. */
static inline uint32_t gm_shadow_sync(struct gm_shadow *shadow)
{
    return ++shadow->clock;
}

/* The access that one races with. */
struct gm_shadow_other {
    uint16_t thread; /* UINT16_MAX if there are several */
    uint32_t where;  /* of the last of them */
};

/*
 * Thread tid, last synchronised with its warp at clock `synced`, accesses `bytes`, aligned to that,
 * at `offset` of the memory whose cells these are. `where` is a number of the caller's.
 */
enum gm_shadow_verdict gm_shadow_access(struct gm_shadow *shadow, struct gm_shadow_cell *cells,
                                        size_t offset, size_t bytes, enum gm_shadow_how how,
                                        unsigned tid, uint32_t synced, uint32_t where,
                                        struct gm_shadow_other *other);
enum gm_shadow_verdict gm_shadow_access_global(struct gm_shadow *shadow, uint64_t address,
                                               size_t bytes, enum gm_shadow_how how, unsigned tid,
                                               uint32_t synced, uint32_t where,
                                               struct gm_shadow_other *other);

#endif
