/*
 * sum.h - describes an elementwise sum to kernels: strides in elements, 0 where an operand
 * broadcasts; or N x 3 matrices as points, for the float3 kernels.
 */
#ifndef GM_KERNELS_CUDA_ADD_SUM_H
#define GM_KERNELS_CUDA_ADD_SUM_H

#include "kernels/cuda/lib/kernel.h"

template <typename T> struct gm_addition {
    struct gm_view a, b;
    T *result; /* row-major */
    uint64_t batch, rows, cols;
};

/* Whether an operand's rows are contiguous, so that they are one long row. */
static inline bool gm_rows_are_contiguous(const struct gm_view &view, uint64_t cols)
{
    return view.row == cols * view.col;
}

static inline bool gm_matrices_are_contiguous(const struct gm_view &view, uint64_t cols)
{
    return view.batch == cols * view.col;
}

/* Describes `op` with as few rows as its strides allow: one, if nothing broadcasts. */
template <typename T> static inline gm_addition<T> gm_addition_of(const struct gm_op *op)
{
    gm_addition<T> sum = {};

    sum.a = gm_op_view(op, 0);
    sum.b = gm_op_view(op, 1);
    sum.result = gm_out<T>(op);
    sum.batch = op->result.batch;
    sum.rows = op->result.rows;
    sum.cols = op->result.cols;
    if (sum.rows == 1 ||
        (gm_rows_are_contiguous(sum.a, sum.cols) && gm_rows_are_contiguous(sum.b, sum.cols))) {
        sum.cols *= sum.rows;
        sum.rows = 1;
    }
    if (sum.rows == 1 && gm_matrices_are_contiguous(sum.a, sum.cols) &&
        gm_matrices_are_contiguous(sum.b, sum.cols)) {
        sum.cols *= sum.batch;
        sum.batch = 1;
    }
    return sum;
}

/* Matrix `matrix` of a stack. */
template <typename T>
__device__ __forceinline__ const T *gm_addend_of(const struct gm_view &view, uint64_t matrix)
{
    return (const T *)view.data + matrix * view.batch;
}

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
