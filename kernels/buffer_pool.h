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

/* Plain memory; from this size on in huge pages, where the system has them. */
#define GM_BUFFER_HUGE_PAGE ((uint64_t)2 << 20)
extern const struct gm_buffer_allocator gm_buffer_plain;

struct gm_buffer_pool;

/* One limit for the bytes that several pools use and keep. A pool that needs room releases what
 * another one keeps. Close it after its pools. */
struct gm_buffer_limit;
enum gm_status gm_buffer_limit_open(uint64_t bytes, struct gm_buffer_limit **ret,
                                    struct gm_error *err);
void gm_buffer_limit_close(struct gm_buffer_limit *limit);
/* Returns to the system the buffers that were idle for idle_ns, and returns their bytes. now_ns is
 * the caller's clock. The first call only sets it, and must come before the first buffer that is to
 * be kept is put back: a buffer is idle since the last call before it was put back. */
uint64_t gm_buffer_limit_trim(struct gm_buffer_limit *limit, int64_t now_ns, int64_t idle_ns);
enum gm_status gm_buffer_pool_open_below(const struct gm_buffer_allocator *allocator,
                                         struct gm_buffer_limit *limit, struct gm_buffer_pool **ret,
                                         struct gm_error *err);

/* A pool with its own limit of bytes in use and kept, together. */
enum gm_status gm_buffer_pool_open(const struct gm_buffer_allocator *allocator, uint64_t limit,
                                   struct gm_buffer_pool **ret, struct gm_error *err);
/* A backend's pool: below options->shared_limit if there is one, else with this limit. */
enum gm_status gm_buffer_pool_open_for(const struct gm_backend_options *options,
                                       const struct gm_buffer_allocator *allocator, uint64_t limit,
                                       struct gm_buffer_pool **ret, struct gm_error *err);
/* All buffers have been put back. close(NULL) is fine. */
void gm_buffer_pool_close(struct gm_buffer_pool *pool);

/* What gm_buffer_pool_get(bytes) takes: bytes rounded up by at most 1/16 (or 64), and the padding;
 * at least 256. UINT64_MAX on overflow. */
uint64_t gm_buffer_pool_cost(uint64_t bytes);

/*
 * Gets a buffer of `bytes`, with undefined content. Kept buffers of other sizes are released if the
 * limit demands it. GM_TOO_LARGE if it can never fit; GM_MEMORY_FULL if it does not fit now or the
 * system has no memory.
 */
enum gm_status gm_buffer_pool_get(struct gm_buffer_pool *pool, uint64_t bytes,
                                  struct gm_buffer *ret, struct gm_error *err);
/* Takes back a buffer and zeroes *buffer; an empty one is fine. */
void gm_buffer_pool_put(struct gm_buffer_pool *pool, struct gm_buffer *buffer);

/* limit: the shared limit if there is one. The others count this pool, or all pools below the
 * limit. */
struct gm_buffer_usage {
    uint64_t limit, in_use, idle;
};

struct gm_buffer_usage gm_buffer_pool_usage(struct gm_buffer_pool *pool);
struct gm_buffer_usage gm_buffer_limit_usage(struct gm_buffer_limit *limit);

#endif
