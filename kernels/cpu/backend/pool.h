/*
 * pool.h - runs the chunks of one job on compute threads.
 *
 * A job is divided into chunks by its shape, never by the number of threads. So neither load nor
 * --threads changes the bits of a result.
 */
#ifndef GM_KERNELS_CPU_BACKEND_POOL_H
#define GM_KERNELS_CPU_BACKEND_POOL_H

#include "proto/status.h"

#include <pthread.h>
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
/* The scratch memory of a thread, 64-byte aligned. Its content is lost after a chunk. */
void *gm_pool_scratch(const struct gm_pool *pool, unsigned thread);

/*
 * Runs fn for each chunk below `chunks`, in any order, and returns when all are done; the caller
 * takes part. Returns false if *stop (which may be NULL) was set: then some may not have run. One
 * job at a time: not by two threads at once, nor from a chunk.
 */
bool gm_pool_run(struct gm_pool *pool, uint64_t chunks, const atomic_bool *stop, gm_chunk_fn *fn,
                 void *cls);

/*
 * Pools of one thread, the caller's, for small tasks. Such a task neither waits for the device's
 * own pool nor wakes a thread. The pools are kept from task to task.
 *
 * Threads: any, at any time, but for open and close.
 */

/* Pools that are kept, with GM_CPU_SCRATCH bytes each: 14 MiB. If more threads need one at once,
 * new ones are made. */
#define GM_SINGLE_THREAD_POOLS_KEPT 16

/* All zero: none is kept. A processor's last pool lies in its own place, where no other looks
 * first; its scratch is in that processor's cache. */
struct gm_single_thread_pool {
    _Atomic(struct gm_pool *) idle[GM_SINGLE_THREAD_POOLS_KEPT];
};

/* Call when all pools have been left. */
void gm_single_thread_pool_close(struct gm_single_thread_pool *single);

/* Takes a pool for the caller, until it is left; its scratch has GM_CPU_SCRATCH bytes.
 * GM_MEMORY_FULL. */
enum gm_status gm_single_thread_pool_take(struct gm_single_thread_pool *single,
                                          struct gm_pool **ret, struct gm_error *err);
void gm_single_thread_pool_leave(struct gm_single_thread_pool *single, struct gm_pool *pool);

#endif
