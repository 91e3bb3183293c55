#include "solo.h"

#include "exec.h"

void gm_solo_open(struct gm_solo *solo)
{
    pthread_mutex_init(&solo->lock, NULL);
    solo->count = 0;
}

void gm_solo_close(struct gm_solo *solo)
{
    while (solo->count > 0)
        gm_pool_close(solo->idle[--solo->count]);
    pthread_mutex_destroy(&solo->lock);
}

enum gm_status gm_solo_take(struct gm_solo *solo, struct gm_pool **ret, struct gm_error *err)
{
    struct gm_pool *pool = NULL;

    pthread_mutex_lock(&solo->lock);
    if (solo->count > 0)
        pool = solo->idle[--solo->count]; /* the last one left, which is in the caches */
    pthread_mutex_unlock(&solo->lock);
    if (!pool)
        return gm_pool_open(1, GM_CPU_SCRATCH, ret, err);
    *ret = pool;
    return GM_OK;
}

void gm_solo_leave(struct gm_solo *solo, struct gm_pool *pool)
{
    pthread_mutex_lock(&solo->lock);
    bool kept = solo->count < GM_SOLO_KEPT;
    if (kept)
        solo->idle[solo->count++] = pool;
    pthread_mutex_unlock(&solo->lock);
    if (!kept)
        gm_pool_close(pool);
}
