/*
 * product.h - a matrix product as its kernels see it: strides instead of flags.
 */
#ifndef GM_KERNELS_CUDA_MATMUL_PRODUCT_H
#define GM_KERNELS_CUDA_MATMUL_PRODUCT_H

#include "kernels/cuda/lib/kernel.h"

/*
 * result = alpha * a b + beta * c, with a of m x k and b of k x n as their strides say: transposed
 * and column-major operands have row and col exchanged, and one of a stack's that goes with all
 * has batch 0. k is 0 where alpha is, so that a and b are not read; c.data is NULL where beta is 0.
 */
template <typename T> struct gm_product {
    struct gm_view a, b, c;
    T *result;
    uint64_t batch, M, N, K;
    gm_acc<T> alpha, beta;
};

/* join: a stack that goes with one b becomes one tall matrix (gm_op_joined), of which a tile has
 * rows of many, and b is read once for all that share it. */
template <typename T>
static inline gm_product<T> gm_product_of(const struct gm_op *op, bool join = true)
{
    gm_product<T> product = {};

    product.a = gm_op_view(op, 0);
    product.b = gm_op_view(op, 1);
    if (gm_op_reads(op, 2))
        product.c = gm_op_view(op, 2);
    product.result = gm_out<T>(op);
    product.batch = op->result.batch;
    product.M = gm_op_m(op);
    product.N = gm_op_n(op);
    product.K = gm_op_reads(op, 0) ? gm_op_k(op) : 0;
    uint64_t joined = join ? gm_op_joined(op) : 1;
    product.M *= joined;
    product.batch /= joined;
    if (joined > 1) /* not to be taken for what must be a multiple of something (gm_load_mode_of) */
        product.a.batch = product.c.batch = 0;
    product.alpha = gm_factor<gm_acc<T>>(&op->alpha);
    product.beta = gm_factor<gm_acc<T>>(&op->beta);
    return product;
}

/* One of a stack. */
template <typename T>
__device__ __forceinline__ const T *gm_matrix_of(const struct gm_view &view, uint64_t matrix)
{
    return (const T *)view.data + matrix * view.batch;
}

/* What the result has at (row, col), when the sum there is known. */
template <typename T>
__device__ __forceinline__ T gm_finished(const gm_product<T> &p, uint64_t matrix, uint64_t row,
                                         uint64_t col, gm_acc<T> sum)
{
    gm_acc<T> value = p.alpha * sum;

    if (p.c.data)
        value += p.beta * gm_load(gm_matrix_of<T>(p.c, matrix)[row * p.c.row + col * p.c.col]);
    return gm_store<T>(value);
}

#endif
