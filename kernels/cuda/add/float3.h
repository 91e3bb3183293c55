/*
 * float3.h - holds what the add_float3 kernels share: the accepted operations, and launches by
 * points.
 */
#ifndef GM_KERNELS_CUDA_ADD_FLOAT3_H
#define GM_KERNELS_CUDA_ADD_FLOAT3_H

#include "kernels/cuda/lib/kernel.h"

/* The points of a stack of N x 3 matrices, which are contiguous. */
static inline uint64_t gm_points(const struct gm_op *op)
{
    return op->result.batch * op->result.rows;
}

/* Accepts matrices of 3 columns, without broadcasts. */
GM_ROW_FUNCTION enum gm_status
gm_float3_accepts(const struct gm_op *op, const struct gm_device_facts *, struct gm_error *err)
{
    uint64_t elements = gm_matrix_elements(&op->result);
    char a[GM_SHAPE_TEXT_MAX], b[GM_SHAPE_TEXT_MAX];

    if (op->result.cols == 3 && gm_matrix_elements(&op->operand[0]) == elements &&
        gm_matrix_elements(&op->operand[1]) == elements)
        return GM_OK;
    return gm_fail(err, GM_KERNEL_UNAVAILABLE,
                   "the float3 kernels add f32 matrices of one shape with 3 columns, and these are "
                   "%s and %s",
                   gm_matrix_shape_text(&op->operand[0], a),
                   gm_matrix_shape_text(&op->operand[1], b));
}

#define GM_FLOAT3_THREADS 256u

/* Calls fn(grid, first) for each launch that `count` threads need, in blocks of
 * GM_FLOAT3_THREADS. */
template <typename F> static inline enum gm_status gm_float3_launches(uint64_t count, F fn)
{
    return gm_launches(gm_ceil_div(count, GM_FLOAT3_THREADS), GM_GRID_X_MAX,
                       [&](uint64_t x, uint64_t blocks) {
                           return fn(dim3((unsigned)blocks), x * GM_FLOAT3_THREADS);
                       });
}

#endif
