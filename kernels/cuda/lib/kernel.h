/*
 * kernel.h - the header that every kernel file includes: device language, element types, launches.
 *
 * nvcc compiles a kernel file for GPUs, and g++ compiles the same file for the simulator. The only
 * difference is which <simt.h> is on the include path.
 *
 *     template <typename T>
 *     static __global__ void flip_mine(const T *in, T *out, uint64_t rows, uint64_t cols) {...}
 *
 *     GM_KERNEL(flip_mine)
 *     {
 *         return gm_by_size(op->result.dtype, [&](auto tag) {
 *             using T = typename decltype(tag)::type;
 *             return gm_launch(exec, flip_mine<T>, grid, block, 0, gm_in<T>(op, 0), ...);
 *         });
 *     }
 */
#ifndef GM_KERNELS_CUDA_LIB_KERNEL_H
#define GM_KERNELS_CUDA_LIB_KERNEL_H

#include "kernels/layout.h"
#include "kernels/op.h"
#include "kernels/variant.h"

#include <simt.h>

#include "kernels/cuda/lib/element.h"

/*
 * <simt.h> provides, in addition to CUDA's own language:
 *
 *   GM_ENTRY(name)         the name of a variant's host function in this build
 *   gm_launch(exec, kernel, grid, block, dynamic_shared, arguments...) -> enum gm_status
 *                          launches or simulates a kernel; an empty grid returns GM_OK
 *   gm_launch_dependent(exec, dependent, kernel, ...)
 *                          the same; if `dependent`, as a programmatic dependent launch (below)
 *   gm_wait_for_primary(), gm_trigger_dependent()  called in dependent kernels and their primaries
 *   gm_shared_carveout(kernel, percent)  a hint for all later launches of the kernel, from any
 *                          thread: reserve that share of a multiprocessor's largest possible shared
 *                          memory; the rest is L1 cache. GM_CARVEOUT_DEFAULT: CUDA chooses
 *   gm_dynamic_shared<T>() in a kernel: the dynamic shared memory, 128-byte aligned
 *   gm_scratch(exec)       device memory, 256-byte aligned, of the size that the variant's
 *                          `scratch` function returned
 *   gm_op_count(exec)      how many operations `op` is the first of: 1, unless the variant groups
 *   gm_kept_of(exec)       what the host function keeps for the other repetitions, or NULL
 *   gm_begin_pass(exec, pass)  later launches count as GM_PASS_PREPARES (rearranging operands or
 *                          result) or GM_PASS_COMPUTES, which is the initial pass
 *   gm_begin_block_times(exec, blocks)  empties the times of the next launch's blocks, which
 *                          are to tell the host when they begin and end; NULL: nobody asks
 *   gm_device_ns()         a clock that all blocks share, in nanoseconds; GPUs move it on
 *                          every 32 ns, or every microsecond
 *   gm_gpu_of(exec)        const struct gm_gpu *: the limits of the device
 *   gm_widen(x), gm_narrow<T>(x)  between gm_f16 or gm_bf16 and float, to nearest even
 *   gm_load_l2_256(at)     loads 4, 8 or 16 read-only bytes, and has the L2 cache fetch the aligned
 *                          256 bytes around them
 *   __pipeline_memcpy_async(to, from, bytes, zeros)  writes zeros for the last `zeros` bytes
 *   __pipeline_commit(), __pipeline_wait_prior(n)
 *
 * A dependent launch may start while the launch before it on the stream, its primary, still runs:
 * once each block of the primary has called gm_trigger_dependent() or has ended. This hides the
 * launch latency. The trigger makes no writes visible. The rules:
 *
 * - The primary belongs to the same operation.
 * - Each thread calls gm_wait_for_primary(), which waits for the whole primary and its writes. It
 *   does so before it reads what the primary writes, before it writes what the primary reads or
 *   writes, and before it ends: launches after a dependent launch rely on everything before it.
 * - A dependent kernel that is itself a primary triggers after it has waited.
 *
 * The simulator reports kernels that break these rules. In other launches, and on devices before
 * compute capability 9.0, both calls do nothing.
 */

#define GM_CARVEOUT_DEFAULT (-1)

/* Defines the host function of a variant in variants.def. Its parameters are `op` and `exec`. */
#define GM_KERNEL(name)                                                                            \
    extern "C" gm_kernel_fn GM_ENTRY(name);                                                        \
    extern "C" enum gm_status GM_ENTRY(name)(const struct gm_op *op, struct gm_exec *exec)

/* Declares a variant's own `accepts` or `scratch` function. It is host code and the same in both
 * builds of the file, so the linker keeps one. */
#define GM_ROW_FUNCTION extern "C" __attribute__((weak))

/* Pointers to operand `index` and to the result, aligned to 256 bytes; of a variant that groups, in
 * the host's memory and to 64. */
template <typename T> static inline const T *gm_in(const struct gm_op *op, unsigned index)
{
    return (const T *)op->operand[index].data;
}
template <typename T> static inline T *gm_out(const struct gm_op *op)
{
    return (T *)op->result.data;
}

/* total / each, rounded up. */
__host__ __device__ static inline uint64_t gm_ceil_div(uint64_t total, uint64_t each)
{
    return total / each + (total % each != 0);
}

/* CUDA's grid limits along x, and along y and z. Larger problems take several launches. */
#define GM_GRID_X_MAX 2147483647u
#define GM_GRID_YZ_MAX 65535u

/*
 * Splits [0, total) into parts of at most `max` and calls fn(first, count) for each, until one
 * fails. For grid dimensions that a shape may exceed.
 */
template <typename F> static inline enum gm_status gm_launches(uint64_t total, uint64_t max, F fn)
{
    enum gm_status status = GM_OK;

    for (uint64_t first = 0; first < total && status == GM_OK; first += max)
        status = fn(first, total - first < max ? total - first : max);
    return status;
}

#endif
