/*
 * sum.h - describes an elementwise sum to kernels: strides in elements, 0 where an operand
 * broadcasts.
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

#endif
