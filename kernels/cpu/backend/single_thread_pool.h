/*
 * single_thread_pool.h - pools of one thread, the caller's, for small tasks. Such a task neither
 * waits for the device's own pool nor wakes a thread. The pools are kept from task to task.
 *
 * Threads: any, at any time, but for open and close.
 */
#ifndef GM_KERNELS_CPU_BACKEND_SINGLE_THREAD_POOL_H
#define GM_KERNELS_CPU_BACKEND_SINGLE_THREAD_POOL_H

#include "pool.h"

#include <pthread.h>

/* As many as are kept, of GM_CPU_SCRATCH bytes each: 7 MiB. More threads at once make new ones. */
#define GM_SINGLE_THREAD_POOLS_KEPT 8

struct gm_single_thread_pool {
    pthread_mutex_t lock;
    struct gm_pool *idle[GM_SINGLE_THREAD_POOLS_KEPT];
    unsigned count;
};

/* GM_MEMORY_FULL, with nothing to close. */
enum gm_status gm_single_thread_pool_open(struct gm_single_thread_pool *single,
                                          struct gm_error *err);
/* All are left. */
void gm_single_thread_pool_close(struct gm_single_thread_pool *single);

/* The caller's until it is left; its scratch is of GM_CPU_SCRATCH bytes. GM_MEMORY_FULL. */
enum gm_status gm_single_thread_pool_take(struct gm_single_thread_pool *single,
                                          struct gm_pool **ret, struct gm_error *err);
void gm_single_thread_pool_leave(struct gm_single_thread_pool *single, struct gm_pool *pool);

#endif
