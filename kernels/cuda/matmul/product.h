/*
 * product.h - describes a matrix product to kernels, with strides instead of transpose flags.
 */
#ifndef GM_KERNELS_CUDA_MATMUL_PRODUCT_H
#define GM_KERNELS_CUDA_MATMUL_PRODUCT_H

#include "kernels/cuda/lib/kernel.h"

/*
 * result = alpha * A B + beta * C, with A of M x K and B of K x N. Strides are in elements.
 * Transposed and column-major operands have `row` and `col` exchanged. A matrix that broadcasts
 * over the stack has a batch stride of 0. K is 0 if alpha is, so that A and B are not read. c.data
 * is NULL if beta is 0.
 */
template <typename T> struct gm_product {
    struct gm_view a, b, c;
    T *result;
    uint64_t batch, M, N, K;
    gm_acc<T> alpha, beta;
};

/* join: a stack of A that shares one B becomes one tall matrix (gm_op_joined). Its tiles then span
 * several matrices of the stack, and B is read once for all of them. */
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
    if (joined > 1) /* gm_load_mode_of would otherwise demand that unused strides are aligned */
        product.a.batch = product.c.batch = 0;
    product.alpha = gm_factor<gm_acc<T>>(&op->alpha);
    product.beta = gm_factor<gm_acc<T>>(&op->beta);
    return product;
}

/* Matrix `matrix` of a stack. */
template <typename T>
__device__ __forceinline__ const T *gm_matrix_of(const struct gm_view &view, uint64_t matrix)
{
    return (const T *)view.data + matrix * view.batch;
}

/* The result at (row, col): alpha * sum + beta * C, rounded to T. */
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
