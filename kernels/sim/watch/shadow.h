/*
 * shadow.h - remembers who wrote and read each byte last, and when, to find races within a block.
 *
 * It also finds reads of shared memory that no thread of the block has written. Time is a clock
 * that advances with each barrier and each warp operation. Two accesses by different threads, not
 * both reads and not both atomic, race unless they are separated by a barrier of the block or, for
 * threads of one warp, by an operation of the warp. (Any lanes may take part besides the accessing
 * one: groups within a warp are not distinguished. And an atomic is compared with the last write
 * alone, not with plain writes before other atomics.) So what is found does not depend on the order
 * in which the simulator runs threads.
 */
#ifndef GM_KERNELS_SIM_WATCH_SHADOW_H
#define GM_KERNELS_SIM_WATCH_SHADOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gm_shadow_cell {
    uint32_t written, read;       /* time of the last write, and of the last read */
    uint16_t writer, reader;      /* thread, or a mark of shadow.c */
    uint32_t split;               /* in a word's first byte: when its bytes began to differ */
    uint32_t written_at, read_at; /* where in the code, as the caller numbers places */
};

/* Of global memory only the cells touched last are remembered. */
#define GM_SHADOW_GLOBALS 16384u
struct gm_shadow_global {
    uint64_t address;
    struct gm_shadow_cell cell;
};

struct gm_shadow {
    uint32_t clock;
    uint32_t block_began, barrier; /* time of the block's beginning, and of its last barrier */
    size_t dynamic_bytes, static_bytes;
    /* One cell per byte. For words that are only used whole, as most are, the first byte's cell is
     * that of the word. */
    struct gm_shadow_cell *dynamics, *statics;
    struct gm_shadow_global *globals;
};

enum gm_shadow_how {
    GM_SHADOW_READ,
    GM_SHADOW_WRITE,
    GM_SHADOW_ATOMIC,  /* reads and writes */
    GM_SHADOW_EXCHANGE /* an atomic that ignores the old value */
};

/* What is wrong with an access, if anything. */
enum gm_shadow_verdict {
    GM_SHADOW_FINE,
    GM_SHADOW_UNWRITTEN,   /* reads what nobody of the block wrote */
    GM_SHADOW_AFTER_WRITE, /* races with a write */
    GM_SHADOW_AFTER_READ   /* writes, and races with a read */
};

/* Returns false if there is no memory. */
bool gm_shadow_open(struct gm_shadow *shadow, size_t dynamic_bytes, size_t static_bytes);
void gm_shadow_close(struct gm_shadow *shadow);

void gm_shadow_begin_block(struct gm_shadow *shadow);
void gm_shadow_barrier(struct gm_shadow *shadow);
/* Advances the clock. Returns the new `synced` of the threads that synchronized. */
static inline uint32_t gm_shadow_sync(struct gm_shadow *shadow)
{
    return ++shadow->clock;
}

/* The access that one races with. */
struct gm_shadow_other {
    uint16_t thread; /* UINT16_MAX if there are several */
    uint32_t where;  /* place of the last of them */
};

/*
 * Records and checks an access of thread `tid`, which last synchronized with its warp at time
 * `synced`: `bytes` bytes, aligned to their size, at `offset` of the memory of these cells. `where`
 * is the caller's number of the place.
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
