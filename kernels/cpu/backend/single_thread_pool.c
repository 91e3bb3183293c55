#include "single_thread_pool.h"

#include "exec.h"

enum gm_status gm_single_thread_pool_open(struct gm_single_thread_pool *single,
                                          struct gm_error *err)
{
    if (pthread_mutex_init(&single->lock, NULL) != 0)
        return gm_fail(err, GM_MEMORY_FULL, "no lock for the pools of small tasks");
    single->count = 0;
    return GM_OK;
}

void gm_single_thread_pool_close(struct gm_single_thread_pool *single)
{
    while (single->count > 0)
        gm_pool_close(single->idle[--single->count]);
    pthread_mutex_destroy(&single->lock);
}

enum gm_status gm_single_thread_pool_take(struct gm_single_thread_pool *single,
                                          struct gm_pool **ret, struct gm_error *err)
{
    struct gm_pool *pool = NULL;

    pthread_mutex_lock(&single->lock);
    if (single->count > 0)
        pool = single->idle[--single->count]; /* the last one left, which is in the caches */
    pthread_mutex_unlock(&single->lock);
    if (!pool)
        return gm_pool_open(1, GM_CPU_SCRATCH, ret, err);
    *ret = pool;
    return GM_OK;
}

void gm_single_thread_pool_leave(struct gm_single_thread_pool *single, struct gm_pool *pool)
{
    pthread_mutex_lock(&single->lock);
    bool kept = single->count < GM_SINGLE_THREAD_POOLS_KEPT;
    if (kept)
        single->idle[single->count++] = pool;
    pthread_mutex_unlock(&single->lock);
    if (!kept)
        gm_pool_close(pool);
}
