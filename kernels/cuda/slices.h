/*
 * slices.h - results of slices of k, added up, where blocks share k (split-K): in one order,
 * whatever block was first, so that the same operands give the same bits.
 */
#ifndef GM_KERNELS_CUDA_SLICES_H
#define GM_KERNELS_CUDA_SLICES_H

#include "kernels/cuda/product.h"

#define GM_SLICES_THREADS 256u /* of a block, where few slices are added */
#define GM_SLICES_MOST 1024u   /* where many are */

/*
 * Element i of slice s is slices[s * elements + i]. Lanes run along the elements; where there are
 * many slices the block's rows of threads take turns with them, since one that added all would wait
 * for each.
 */
template <typename T>
static __global__ void __launch_bounds__(GM_SLICES_MOST)
    gm_add_slices(gm_product<T> p, const gm_sum<T> *slices, unsigned count, uint64_t elements,
                  uint64_t first)
{
    __shared__ gm_sum<T> part[GM_SLICES_MOST];
    unsigned x = threadIdx.x, y = threadIdx.y;
    uint64_t i = first + (uint64_t)blockIdx.x * blockDim.x + x;
    gm_sum<T> sum = 0;

    gm_wait_for_primary();
    if (i < elements) {
#pragma unroll 4
        for (unsigned slice = y; slice < count; slice += blockDim.y)
            sum += slices[slice * elements + i];
    }
    if (blockDim.y > 1) {
        part[y * blockDim.x + x] = sum;
        __syncthreads();
        for (unsigned deep = 1; y == 0 && deep < blockDim.y; deep++)
            sum += part[deep * blockDim.x + x];
    }
    if (y == 0 && i < elements) {
        uint64_t matrix = 0, row = 0, col = 0;
        if (p.c.data) { /* else it does not matter where, and is not worth two divisions */
            matrix = i / (p.m * p.n);
            row = i % (p.m * p.n) / p.n;
            col = i % p.n;
        }
        p.result[i] = gm_finished(p, matrix, row, col, sum);
    }
}

/* What a kernel that computes slices is given: its results go to `slices`, as they are. */
template <typename T> static inline gm_product<T> gm_slice_of(const gm_product<T> &p, void *slices)
{
    gm_product<T> slice = p;

    slice.result = (T *)slices;
    slice.alpha = gm_sum<T>(1);
    slice.beta = gm_sum<T>(0);
    slice.c = {};
    return slice;
}

static_assert(GM_SLICES_MOST == GM_WARP * GM_WARP, "a warp across, and up to as many deep");

/* Adds up slices that the launch before writes, or launches: this one is dependent on the last. */
template <typename T>
static inline enum gm_status gm_finish_slices(struct gm_exec *exec, const gm_product<T> &p,
                                              const void *slices, unsigned count)
{
    uint64_t elements = p.batch * p.m * p.n;
    unsigned deep = 1; /* so many rows as give each four slices to add */

    while (deep < GM_SLICES_MOST / GM_WARP && 4 * deep < count)
        deep *= 2;
    unsigned across = deep * GM_WARP < GM_SLICES_THREADS ? GM_SLICES_THREADS / deep : GM_WARP;
    return gm_launches(
        gm_ceil_div(elements, across), GM_GRID_X_MAX, [&](uint64_t first, uint64_t blocks) {
            return gm_launch_dependent(exec, true, gm_add_slices<T>, dim3((unsigned)blocks),
                                       dim3(across, deep), 0, p, (const gm_sum<T> *)slices, count,
                                       elements, first * across);
        });
}

/* Bytes of `count` slices of op's result; UINT64_MAX on overflow. */
static inline uint64_t gm_slices_bytes(const struct gm_op *op, uint64_t count)
{
    uint64_t elements = gm_matrix_elements(&op->result), width = gm_dtype_size(op->result.dtype);

    width = width < 4 ? 4 : width; /* f16 and bf16 are summed in f32 */
    return count > 0 && elements > UINT64_MAX / width / count ? UINT64_MAX
                                                              : elements * width * count;
}

#endif
