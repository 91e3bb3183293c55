/*
 * buffer_pool.h - buffers for request matrices, kept for reuse by the backends.
 *
 * Fresh memory is slow: the system zeroes each page on its first touch, and pinning takes longer
 * still. So buffers that are returned are kept and given out again. Buffers in use and kept
 * buffers together stay below one limit.
 *
 * Threads: any thread may call any function but open and close.
 */
#ifndef GM_KERNELS_BUFFER_POOL_H
#define GM_KERNELS_BUFFER_POOL_H

#include "backend.h"

/* Where the memory comes from. take returns NULL, or `bytes` bytes aligned to 64. */
struct gm_buffer_allocator {
    void *(*take)(void *cls, uint64_t bytes);
    void (*give)(void *cls, void *data, uint64_t bytes);
    void *cls;
};

/* Plain memory; large buffers in huge pages where the system has them. */
extern const struct gm_buffer_allocator gm_buffer_plain;

struct gm_buffer_pool;

/* One limit for several pools, of bytes in use and bytes kept, in all of them together: a pool that
 * needs room gives up what another one keeps. To be closed after them. */
struct gm_buffer_limit;
enum gm_status gm_buffer_limit_open(uint64_t bytes, struct gm_buffer_limit **ret,
                                    struct gm_error *err);
void gm_buffer_limit_close(struct gm_buffer_limit *limit);
/* Gives back to the system what has not been asked for again for idle_ns, and answers how many
 * bytes that is. The clock is the caller's, whose first call only sets it, and must come before
 * those buffers are put back that are to be kept: a buffer is idle since the last call before that.
 */
uint64_t gm_buffer_limit_trim(struct gm_buffer_limit *limit, int64_t now_ns, int64_t idle_ns);
enum gm_status gm_buffer_pool_open_below(const struct gm_buffer_allocator *allocator,
                                         struct gm_buffer_limit *limit, struct gm_buffer_pool **ret,
                                         struct gm_error *err);

/* A pool with a limit of its own: of bytes in use and bytes kept, together. */
enum gm_status gm_buffer_pool_open(const struct gm_buffer_allocator *allocator, uint64_t limit,
                                   struct gm_buffer_pool **ret, struct gm_error *err);
/* A backend's pool: below the limit that its options share, else with this one. */
enum gm_status gm_buffer_pool_open_for(const struct gm_backend_options *options,
                                       const struct gm_buffer_allocator *allocator, uint64_t limit,
                                       struct gm_buffer_pool **ret, struct gm_error *err);
/* All buffers have been put back. close(NULL) is fine. */
void gm_buffer_pool_close(struct gm_buffer_pool *pool);

/* What gm_buffer_pool_get(bytes) takes: bytes rounded up by at most 1/16 (or 64), and the padding;
 * at least 256. UINT64_MAX on overflow. */
uint64_t gm_buffer_pool_cost(uint64_t bytes);

/*
 * A buffer that holds `bytes`; its content is what was there. Kept buffers of other sizes are given
 * up where the limit asks for it. GM_TOO_LARGE where it can never fit, GM_MEMORY_FULL where
 * it does not fit now or the system has no memory.
 */
enum gm_status gm_buffer_pool_get(struct gm_buffer_pool *pool, uint64_t bytes,
                                  struct gm_buffer *ret, struct gm_error *err);
/* Takes back a buffer and zeroes *buffer; an empty one is fine. */
void gm_buffer_pool_put(struct gm_buffer_pool *pool, struct gm_buffer *buffer);

/* `limit` is shared where it is; the others are this pool's, or of all below the limit. */
struct gm_buffer_usage {
    uint64_t limit, in_use, idle;
};

struct gm_buffer_usage gm_buffer_pool_usage(struct gm_buffer_pool *pool);
struct gm_buffer_usage gm_buffer_limit_usage(struct gm_buffer_limit *limit);

#endif
