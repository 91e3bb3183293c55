/*
 * find.h - finds the memory that an address is in.
 */
#ifndef GM_KERNELS_SIM_WATCH_FIND_H
#define GM_KERNELS_SIM_WATCH_FIND_H

#include "kernels/sim/run/worker.h"

/* Whether it is a local variable of the kernel, on a fiber's stack. */
static inline bool gm_sim_is_local(const struct gm_sim_worker *w, uintptr_t at)
{
    return at - (uintptr_t)w->stacks < GM_SIM_THREADS_MAX * GM_SIM_STACK_BYTES;
}

/* Whether it is in the launch's arguments or in constants: parts of the program that cannot be
 * written. */
bool gm_sim_is_constant(const struct gm_sim_worker *w, uintptr_t at, size_t bytes);

/* Whether the bytes are in the kernel's shared memory. Sets *memory to GM_SIM_DYNAMIC, or
 * GM_SIM_SHARED and beyond, and *cells and *cell to their place in the shadow. */
bool gm_sim_find_shared(const struct gm_sim_worker *w, uintptr_t at, size_t bytes, unsigned *memory,
                        struct gm_shadow_cell **cells, size_t *cell);

/* The memory that an address is in: a buffer's index, or what gm_sim_find_shared returns, which
 * alone sets *cells and *cell. GM_SIM_NOWHERE: in none, or where the kernel must not access it. */
static inline unsigned gm_sim_find(const struct gm_sim_worker *w, uintptr_t at, size_t bytes,
                                   struct gm_shadow_cell **cells, size_t *cell)
{
    const struct gm_sim_memory *memory = w->job->memory;
    unsigned index;

    if (at - w->statics < w->shadow.static_bytes) /* the most frequent case in long loops */
        return gm_sim_find_shared(w, at, bytes, &index, cells, cell) ? index : GM_SIM_NOWHERE;
    for (index = 0; index < memory->count; index++)
        if (at >= memory->buffer[index].begin && at + bytes <= memory->buffer[index].end)
            return index;
    return gm_sim_find_shared(w, at, bytes, &index, cells, cell) ? index : GM_SIM_NOWHERE;
}

/* Describes an address by the nearest memory: "a + 4096, which has 4096 bytes". */
void gm_sim_say_where(const struct gm_sim_worker *w, uintptr_t at, char *buf, size_t size);

#endif
