/*
 * solo.h - pools of one thread, the caller's: what small tasks run with beside the device's own
 * pool, without waiting for it and without waking anybody. Kept from task to task.
 *
 * Threads: any, at any time, but for open and close.
 */
#ifndef GM_KERNELS_CPU_SOLO_H
#define GM_KERNELS_CPU_SOLO_H

#include "pool.h"

#include <pthread.h>

/* As many as are kept, of GM_CPU_SCRATCH bytes each: 7 MiB. More threads at once make new ones. */
#define GM_SOLO_KEPT 8

struct gm_solo {
    pthread_mutex_t lock;
    struct gm_pool *idle[GM_SOLO_KEPT];
    unsigned count;
};

void gm_solo_open(struct gm_solo *solo);
/* All are left. */
void gm_solo_close(struct gm_solo *solo);

/* The caller's until it is left; its scratch is of GM_CPU_SCRATCH bytes. GM_MEMORY_FULL. */
enum gm_status gm_solo_take(struct gm_solo *solo, struct gm_pool **ret, struct gm_error *err);
void gm_solo_leave(struct gm_solo *solo, struct gm_pool *pool);

#endif
