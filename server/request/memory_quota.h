/*
 * memory_quota.h - admission by memory: what the requests now being served have taken of
 * --memory-limit. Memory is reserved before it is taken, so that the limit holds, and all of
 * it is buffers, so that what backends keep for reuse counts too.
 *
 * It is shared out as places in a queue are (sched.h): a client may hold GM_MEMORY_SHARE times what
 * is free, so that one alone leaves a fifth to others. A request that could not be served so may
 * have what it needs while others have next to nothing.
 *
 * A part of the limit, GM_SMALL_MEMORY_PART, is for small requests: those that take no more than
 * GM_SMALL_PART of that part each. However much large ones hold, whosever they are, small ones
 * find memory there, and share that part out in the same way.
 */
#ifndef GM_SERVER_REQUEST_MEMORY_QUOTA_H
#define GM_SERVER_REQUEST_MEMORY_QUOTA_H

#include "kernels/backend.h"

#include "server/sched/fair_queue.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

struct gm_budget {
    uint64_t limit; /* bytes */

    pthread_mutex_t mutex;     /* of all below */
    _Atomic uint64_t reserved; /* which may be read without it */
    uint64_t small;            /* of that, what small requests have */
    struct {
        uint64_t all, small;
    } held[GM_FAIR_BUCKETS]; /* by clients */
};

/* One request's share. used <= reserved, and reserved is counted in the budget. Used by one
 * thread at a time. */
struct gm_share {
    struct gm_budget *budget;
    uint64_t client; /* whose: client.h */
    uint64_t reserved, used;
};

/* A buffer of a share, and where it came from. All zero: none. */
struct gm_block {
    struct gm_buffer buffer;
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
/* Times as much as is free, for a client. */
#define GM_MEMORY_SHARE 4

/* GM_INTERNAL without a lock. */
enum gm_status gm_budget_open(struct gm_budget *budget, uint64_t limit, struct gm_error *err);
void gm_budget_close(struct gm_budget *budget);
/* Whether a request that takes so much is small. */
bool gm_budget_is_small(const struct gm_budget *budget, uint64_t bytes);
/* What a client has reserved. */
uint64_t gm_budget_held(struct gm_budget *budget, uint64_t client);

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
