/*
 * cublas.c - multiplies matrices with cuBLAS: the baseline of every product on a GPU.
 *
 * cuBLAS is column-major. A row-major matrix, read as column-major, is its own transpose, and
 * result = A B is result' = B' A'. So the operands change places, and none is copied. gemm adds
 * beta * C to what the result holds, so C is copied there first; that copy counts as part of the
 * kernel.
 *
 * `precision` selects the arithmetic: ieee is the type's plain arithmetic (pedantic), fp32 allows
 * what is no less accurate, tf32 and bf16 let the tensor cores round the factors of f32 products.
 * f16 and bf16 accumulate in f32.
 */
#include "kernels/cuda/backend/cublas.h"
#include "kernels/cuda/backend/call.h"
#include "kernels/device_facts.h"
#include "kernels/layout.h"
#include "kernels/variant.h"

#include <limits.h>

/* As variants.def has them. */
gm_accepts_fn gm_cublas_accepts_product;
gm_kernel_fn gm_cuda_matmul_cublas;

enum gm_status gm_cublas_accepts_product(const struct gm_op *op,
                                         const struct gm_device_facts *facts, struct gm_error *err)
{
    (void)facts;
    if (gm_op_k(op) == 0 || !gm_op_reads(op, 0))
        return gm_fail(err, GM_KERNEL_UNAVAILABLE,
                       "kernel \"cublas\" takes products that read a and b: k and alpha are not 0");
    if (gm_op_m(op) > INT_MAX || gm_op_n(op) > INT_MAX || gm_op_k(op) > INT_MAX ||
        op->result.batch > INT_MAX)
        return gm_fail(err, GM_KERNEL_UNAVAILABLE,
                       "kernel \"cublas\" takes dimensions of at most %d", INT_MAX);
    /* Seen on an H200 with cuBLAS 13.1: more than one rounding, where product and c cancel. */
    if (gm_op_reads(op, 2) && gm_dtype_size(op->result.dtype) == 2)
        return gm_fail(err, GM_KERNEL_UNAVAILABLE,
                       "kernel \"cublas\" adds c only to f32 and f64: in %s it rounds in between",
                       gm_dtype_name(op->result.dtype));
    return GM_OK;
}

/* The transpose flag and leading dimension for a view of rows x cols, which cuBLAS reads as the
 * transpose. */
static int describe(const struct gm_view *view, uint64_t rows, uint64_t cols, int *ld)
{
    bool plain = view->col == 1;

    *ld = (int)(plain ? cols : rows); /* operands have no padding between rows */
    return plain ? GM_CUBLAS_OP_N : GM_CUBLAS_OP_T;
}

static void types_of(const struct gm_op *op, int *type, int *compute)
{
    bool ieee = op->precision == GM_PRECISION_IEEE;

    *compute = ieee ? GM_CUBLAS_COMPUTE_32F_PEDANTIC : GM_CUBLAS_COMPUTE_32F;
    switch (op->result.dtype) {
    case GM_F64:
        *type = GM_CUBLAS_R_64F;
        *compute = ieee ? GM_CUBLAS_COMPUTE_64F_PEDANTIC : GM_CUBLAS_COMPUTE_64F;
        break;
    case GM_F16:
        *type = GM_CUBLAS_R_16F;
        break;
    case GM_BF16:
        *type = GM_CUBLAS_R_16BF;
        break;
    default:
        *type = GM_CUBLAS_R_32F;
        if (op->precision == GM_PRECISION_TF32)
            *compute = GM_CUBLAS_COMPUTE_32F_FAST_TF32;
        else if (op->precision == GM_PRECISION_BF16_PRODUCTS)
            *compute = GM_CUBLAS_COMPUTE_32F_FAST_16BF;
    }
}

/* Copies C into the result. If C broadcasts, the copy doubles what is there until the result is
 * full. */
static cudaError_t put_c(const struct gm_op *op, cudaStream_t stream)
{
    uint64_t bytes = gm_matrix_bytes(&op->result), done = gm_matrix_bytes(&op->operand[2]);
    char *result = op->result.data;
    cudaError_t error = GM_CALL(cudaMemcpyAsync, result, op->operand[2].data, done,
                                cudaMemcpyDeviceToDevice, stream);

    while (done < bytes && error == cudaSuccess) {
        uint64_t more = bytes - done < done ? bytes - done : done;
        error =
            GM_CALL(cudaMemcpyAsync, result + done, result, more, cudaMemcpyDeviceToDevice, stream);
        done += more;
    }
    return error;
}

static int multiply(const struct gm_op *op, const struct gm_exec *exec)
{
    struct gm_view a = gm_op_view(op, 0), b = gm_op_view(op, 1);
    uint64_t joined = gm_op_joined(op), batch = op->result.batch / joined;
    uint64_t m = gm_op_m(op) * joined, n = gm_op_n(op), k = gm_op_k(op);
    float alpha_f32 = (float)op->alpha.real, beta_f32 = (float)op->beta.real;
    bool wide = op->result.dtype == GM_F64, adds = gm_op_reads(op, 2);
    double beta_f64 = adds ? op->beta.real : 0;
    int lda, ldb, type, compute;
    int transa = describe(&a, m, k, &lda), transb = describe(&b, k, n, &ldb);

    beta_f32 = adds ? beta_f32 : 0;
    types_of(op, &type, &compute);
    return exec->blas_api->gemm(exec->blas, transb, transa, (int)n, (int)m, (int)k,
                                wide ? (const void *)&op->alpha.real : &alpha_f32, b.data, type,
                                ldb, (long long)b.batch, a.data, type, lda, (long long)a.batch,
                                wide ? (const void *)&beta_f64 : &beta_f32, op->result.data, type,
                                (int)n, (long long)(m * n), (int)batch, compute,
                                GM_CUBLAS_GEMM_DEFAULT);
}

enum gm_status gm_cuda_matmul_cublas(const struct gm_op *op, struct gm_exec *exec)
{
    enum gm_status status = gm_cuda_launching(exec, NULL);
    cudaError_t error = cudaSuccess;

    if (status != GM_OK)
        return status;
    if (gm_op_reads(op, 2))
        error = put_c(op, exec->stream);
    if (error == cudaSuccess)
        error = gm_cublas_error(multiply(op, exec), exec->stream);
    return gm_cuda_launched(exec, error, NULL);
}
