/*
 * pool.h - compute threads, which run the chunks of one job. A job is divided into chunks by its
 * shape, never by the number of threads, so that neither load nor --threads changes the bits of a
 * result.
 */
#ifndef GM_KERNELS_CPU_BACKEND_POOL_H
#define GM_KERNELS_CPU_BACKEND_POOL_H

#include "proto/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gm_pool;

/* `thread` is below gm_pool_threads and differs between chunks that run at the same time. */
typedef void gm_chunk_fn(void *cls, uint64_t chunk, unsigned thread);

/* threads: the caller of gm_pool_run is one of them. scratch_bytes: each thread's own. */
enum gm_status gm_pool_open(unsigned threads, size_t scratch_bytes, struct gm_pool **ret,
                            struct gm_error *err);
/* close(NULL) is fine. */
void gm_pool_close(struct gm_pool *pool);

unsigned gm_pool_threads(const struct gm_pool *pool);
/* 64-byte aligned; what a chunk leaves there is gone with it. */
void *gm_pool_scratch(const struct gm_pool *pool, unsigned thread);

/*
 * Runs fn for each chunk below `chunks`, in any order, and returns when all are done; the
 * caller takes part. false if *stop (which may be NULL) was set: then some may not have run.
 * One job at a time: not to be called by two threads at once, nor from a chunk.
 */
bool gm_pool_run(struct gm_pool *pool, uint64_t chunks, const atomic_bool *stop, gm_chunk_fn *fn,
                 void *cls);

#endif
