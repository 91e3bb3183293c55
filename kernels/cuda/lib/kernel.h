/*
 * kernel.h - what every kernel file includes: the device language, element types, and the way
 * from an operation to a launch. The same file is compiled by nvcc for GPUs and by g++ for the
 * simulator; which of the two <simt.h> is found on the include path is all the difference.
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
 * <simt.h> provides, beside CUDA's own language:
 *
 *   GM_ENTRY(name)         the name of a variant's host function in this build
 *   gm_launch(exec, kernel, grid, block, dynamic_shared, arguments...) -> enum gm_status
 *                          launches a kernel, or simulates it; an empty grid is GM_OK
 *   gm_launch_dependent(exec, dependent, kernel, ...)
 *                          if so, programmatic dependent launch: see below
 *   gm_wait_for_primary(), gm_trigger_dependent()  in such kernels, and those before them
 *   gm_shared_carveout(kernel, percent)  a hint for the kernel's launches from now on, by any
 *                          thread: how much of the shared memory that a multiprocessor can have it
 *                          shall have; the rest is L1 cache. GM_CARVEOUT_DEFAULT: CUDA chooses, as
 *                          it does unasked
 *   gm_dynamic_shared<T>() in a kernel: the dynamic shared memory, 128-byte aligned
 *   gm_scratch(exec)       device memory of as many bytes as the variant's `scratch` said,
 *                          256-byte aligned
 *   gm_kept_of(exec)       what the host function keeps for the other repetitions, or NULL
 *   gm_begin_pass(exec, pass)  what is launched from now on counts as GM_PASS_PREPARES (rearranging
 *                          operands or result) or GM_PASS_COMPUTES, which is how it begins
 *   gm_gpu_of(exec)        const struct gm_gpu *: the limits of the device
 *   gm_widen(x), gm_narrow<T>(x)  between gm_f16 or gm_bf16 and float, to nearest even
 *   gm_load_l2_256(at)     a load of 4, 8 or 16 bytes of what no thread writes, for which the L2
 *                          cache fetches the 256 bytes that it lies in
 *   __pipeline_memcpy_async(to, from, bytes, zeros), of whose bytes the last `zeros` become 0,
 *   __pipeline_commit(), __pipeline_wait_prior(n)
 *
 * A dependent launch may begin while the one before it on the stream, its primary, still runs: when
 * all the primary's blocks have called gm_trigger_dependent(), which makes nothing visible yet, or
 * have ended. So nobody waits for the launch itself. For that
 *
 *   - the primary is of the same operation;
 *   - each thread calls gm_wait_for_primary(), which waits for the whole primary and what it wrote,
 *     before it reads what the primary writes or writes what that touches, and before it ends:
 *     what comes after a dependent launch relies on that for everything before;
 *   - a dependent kernel that is itself a primary triggers after it has waited.
 *
 * The simulator finds who does not. In other launches, and on devices before compute capability
 * 9.0, both calls do nothing.
 */

#define GM_CARVEOUT_DEFAULT (-1)

/* The host function of the variant whose row in variants.def names it: gets `op` and `exec`. */
#define GM_KERNEL(name)                                                                            \
    extern "C" gm_kernel_fn GM_ENTRY(name);                                                        \
    extern "C" enum gm_status GM_ENTRY(name)(const struct gm_op *op, struct gm_exec *exec)

/* The `accepts` or `scratch` of a row, where it has one of its own: host code, the same in both
 * builds of the file, of which the linker keeps one. */
#define GM_ROW_FUNCTION extern "C" __attribute__((weak))

/* Operand `index`, and the result, of an operation whose data lies on the device, where each begins
 * at a multiple of 256 bytes. */
template <typename T> static inline const T *gm_in(const struct gm_op *op, unsigned index)
{
    return (const T *)op->operand[index].data;
}
template <typename T> static inline T *gm_out(const struct gm_op *op)
{
    return (T *)op->result.data;
}

/* total / each, rounded up: how many of `each` make `total`. */
__host__ __device__ static inline uint64_t gm_ceil_div(uint64_t total, uint64_t each)
{
    return total / each + (total % each != 0);
}

/* What a grid may hold along x, and along y and z. Larger problems take several launches. */
#define GM_GRID_X_MAX 2147483647u
#define GM_GRID_YZ_MAX 65535u

/*
 * Calls fn(first, count) for parts of [0, total) of at most `max`, until one fails: for the
 * dimensions of a grid that a shape may exceed.
 */
template <typename F> static inline enum gm_status gm_launches(uint64_t total, uint64_t max, F fn)
{
    enum gm_status status = GM_OK;

    for (uint64_t first = 0; first < total && status == GM_OK; first += max)
        status = fn(first, total - first < max ? total - first : max);
    return status;
}

#endif
