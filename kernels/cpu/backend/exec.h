/*
 * exec.h - holds what a cpu kernel runs with: threads, stop flag, instruction set.
 */
#ifndef GM_KERNELS_CPU_BACKEND_EXEC_H
#define GM_KERNELS_CPU_BACKEND_EXEC_H

#include "facts.h"
#include "pool.h"

struct gm_exec {
    struct gm_pool *pool;
    const atomic_bool *stop; /* any thread may set it to stop the kernel */
    enum gm_isa isa;
};

/* Bytes of scratch that each thread of exec->pool has. */
#define GM_CPU_SCRATCH ((size_t)896 << 10)

/* Kernels with long chunks, or with one long loop, call this at least every 50 ms. */
static inline bool gm_exec_stopped(const struct gm_exec *exec)
{
    return atomic_load_explicit(exec->stop, memory_order_relaxed);
}

#endif
