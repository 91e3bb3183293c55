/*
 * simt.h - for g++: CUDA's device language on a CPU, for plain SIMT kernels.
 *
 * It also has what kernels/cuda/lib/kernel.h promises. Its counterpart for nvcc is
 * kernels/cuda/include/simt.h.
 *
 * Each CUDA thread is a fiber (kernels/sim/run/block.c). Loads and stores are ordinary ones of the
 * compiled code. The compiler, told to look for data races, calls a function with the address
 * before each; those functions are ours (kernels/sim/watch/hooks.c). So a kernel's source needs no
 * change, and no access is missed.
 */
#ifndef GM_KERNELS_SIM_SIMT_H
#define GM_KERNELS_SIM_SIMT_H

#include "kernels/sim/include/simt/functions.h"
#include "kernels/sim/include/simt/language.h"
#include "kernels/sim/include/simt/threads.h"

#include <time.h>
#include <tuple>

#define threadIdx (gm_sim_thread_idx())
#define blockIdx (gm_sim_block_idx())
#define blockDim (gm_sim_block_dim())
#define gridDim (gm_sim_grid_dim())
#define warpSize 32

/* From a launch in host code to calls of the kernel by simulated threads. */

template <typename T> GM_SIM_INLINE T *gm_dynamic_shared()
{
    return (T *)gm_sim_dynamic_shared();
}

template <typename... P> struct gm_sim_call {
    void (*kernel)(P...);
    std::tuple<P...> arguments;

    /* Runs in every simulated thread. */
    static void run(const void *call)
    {
        const gm_sim_call *self = (const gm_sim_call *)call;
        std::apply(self->kernel, self->arguments);
    }
};

template <typename... P, typename... A>
enum gm_status gm_launch_dependent(struct gm_exec *exec, bool dependent, void (*kernel)(P...),
                                   dim3 grid, dim3 block, size_t dynamic_shared, A... args)
{
    gm_sim_call<P...> call = {kernel, std::tuple<P...>(static_cast<P>(args)...)};
    struct gm_sim_launch launch = {};

    launch.kernel = (const void *)kernel;
    launch.run = gm_sim_call<P...>::run;
    launch.call = &call;
    launch.call_bytes = sizeof call;
    launch.grid = {grid.x, grid.y, grid.z};
    launch.block = {block.x, block.y, block.z};
    launch.dynamic_shared = dynamic_shared;
    launch.dependent = dependent;
    return gm_sim_run(exec, &launch);
}
template <typename... P, typename... A>
enum gm_status gm_launch(struct gm_exec *exec, void (*kernel)(P...), dim3 grid, dim3 block,
                         size_t dynamic_shared, A... args)
{
    return gm_launch_dependent(exec, false, kernel, grid, block, dynamic_shared, args...);
}

/* The simulator has no L1 cache that shares memory with shared memory. */
template <typename... P> void gm_shared_carveout(void (*)(P...), int)
{
}

/* A launch has ended when gm_launch returns, so the host asks for no times. */
static inline struct gm_block_time *gm_begin_block_times(struct gm_exec *, unsigned)
{
    return nullptr;
}
GM_SIM_INLINE uint64_t gm_device_ns()
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

GM_SIM_INLINE void gm_trigger_dependent()
{
    gm_sim_trigger_dependent();
}
GM_SIM_INLINE void gm_wait_for_primary()
{
    gm_sim_wait_for_primary();
}

#endif
