/*
 * budget.h - admission by memory: what the requests now being served have taken of
 * --memory-limit. Memory is reserved before it is taken, so that the limit holds, and all of
 * it is slabs, so that what backends keep for reuse counts too.
 *
 * A part of the limit, GM_SMALL_MEMORY_PART, is for small requests: those that take no more than
 * GM_SMALL_PART of that part each. However many large ones there are, small ones find memory. A
 * request that could not be served without that part may have it, if nobody else does.
 */
#ifndef GM_SERVER_BUDGET_H
#define GM_SERVER_BUDGET_H

#include "kernels/backend.h"

#include <stdatomic.h>
#include <stdint.h>

struct gm_budget {
    uint64_t limit; /* bytes; set once, before use */
    _Atomic uint64_t reserved;
};

/* One request's share. used <= reserved, and reserved is counted in the budget. Used by one
 * thread at a time. */
struct gm_share {
    struct gm_budget *budget;
    uint64_t reserved, used;
};

/* A slab of a share, and where it came from. All zero: none. */
struct gm_block {
    struct gm_slab slab;
    const struct gm_backend *backend;
    void *context;
};

/* Where blocks come from. */
struct gm_source {
    const struct gm_backend *backend;
    void *context;
};

/* A sixteenth of the memory, and of that an eighth for each who uses it. */
#define GM_SMALL_MEMORY_PART 16
#define GM_SMALL_PART 8

/*
 * Raises the reservation to what is used plus `more`, if it is not that high. GM_TOO_LARGE if
 * that alone exceeds the limit, GM_MEMORY_FULL if it does not fit now; nothing has changed then.
 */
enum gm_status gm_share_reserve(struct gm_share *share, uint64_t more, struct gm_error *err);
/* Lowers the reservation to what is used plus `more`, if it is higher. */
void gm_share_trim(struct gm_share *share, uint64_t more);

/* What a block of so many bytes takes of a share. */
uint64_t gm_block_cost(struct gm_source source, uint64_t bytes);
/* Reserves what is not yet reserved, and takes the block, which must be empty. */
enum gm_status gm_block_get(struct gm_block *block, struct gm_share *share, struct gm_source source,
                            uint64_t bytes, struct gm_error *err);
/* Puts it back, and its part of the reservation too. An empty one is fine. */
void gm_block_put(struct gm_block *block, struct gm_share *share);

#endif
