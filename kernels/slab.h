/*
 * slab.h - the pool of slabs that request matrices live in, shared by the backends.
 *
 * Taking fresh memory is dear: the system zeroes each page on its first touch (and a driver
 * that pins it takes longer still), so slabs that are put back are kept and given out again.
 * What is in use and what is kept stay together below one limit.
 *
 * Threads: every function but open and close may be called from any thread.
 */
#ifndef GM_KERNELS_SLAB_H
#define GM_KERNELS_SLAB_H

#include "backend.h"

/* Where the memory comes from. take returns NULL, or `bytes` bytes aligned to 64. */
struct gm_slab_source {
    void *(*take)(void *cls, uint64_t bytes);
    void (*give)(void *cls, void *data, uint64_t bytes);
    void *cls;
};

/* Plain memory; large slabs in huge pages where the system has them. */
extern const struct gm_slab_source gm_slab_plain;

struct gm_slabs;

/* One limit for several pools, of bytes in use and bytes kept, in all of them together: a pool that
 * needs room gives up what another one keeps. To be closed after them. */
struct gm_slab_limit;
enum gm_status gm_slab_limit_open(uint64_t bytes, struct gm_slab_limit **ret, struct gm_error *err);
void gm_slab_limit_close(struct gm_slab_limit *limit);
enum gm_status gm_slabs_open_below(const struct gm_slab_source *source, struct gm_slab_limit *limit,
                                   struct gm_slabs **ret, struct gm_error *err);

/* A pool with a limit of its own: of bytes in use and bytes kept, together. */
enum gm_status gm_slabs_open(const struct gm_slab_source *source, uint64_t limit,
                             struct gm_slabs **ret, struct gm_error *err);
/* A backend's pool: below the limit that its options share, else with this one. */
enum gm_status gm_slabs_open_for(const struct gm_backend_options *options,
                                 const struct gm_slab_source *source, uint64_t limit,
                                 struct gm_slabs **ret, struct gm_error *err);
/* All slabs have been put back. close(NULL) is fine. */
void gm_slabs_close(struct gm_slabs *slabs);

/* What gm_slabs_get(bytes) takes: bytes rounded up by at most 1/16 (or 64), and the padding; at
 * least 256. UINT64_MAX on overflow. */
uint64_t gm_slabs_cost(uint64_t bytes);

/*
 * A slab that holds `bytes`; its content is what was there. Kept slabs of other sizes are given
 * up where the limit asks for it. GM_TOO_LARGE where it can never fit, GM_MEMORY_FULL where
 * it does not fit now or the system has no memory.
 */
enum gm_status gm_slabs_get(struct gm_slabs *slabs, uint64_t bytes, struct gm_slab *ret,
                            struct gm_error *err);
/* Takes back a slab and zeroes *slab; an empty one is fine. */
void gm_slabs_put(struct gm_slabs *slabs, struct gm_slab *slab);

/* `limit` is shared where it is; the others are this pool's. */
struct gm_slab_usage {
    uint64_t limit, in_use, idle;
};

struct gm_slab_usage gm_slabs_usage(struct gm_slabs *slabs);

#endif
