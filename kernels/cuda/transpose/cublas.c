/*
 * cublas.c - transposes with cuBLAS's geam: a baseline that is not our code.
 *
 * geam adds two matrices, each of which may be transposed: here 1 times the first and 0 times the
 * second. It multiplies, so it handles numbers and not bit patterns: a NaN stays a NaN but may
 * change its bits. For complex numbers with an infinite part, infinity times 0 would spoil the
 * other part, so it takes no complex numbers.
 */
#include "kernels/cuda/backend/cublas.h"
#include "kernels/cuda/backend/call.h"
#include "kernels/device_facts.h"
#include "kernels/variant.h"

#include <limits.h>

/* As variants.def has them. */
gm_accepts_fn gm_cublas_accepts_transpose;
gm_kernel_fn gm_cuda_transpose_cublas;

enum gm_status gm_cublas_accepts_transpose(const struct gm_op *op,
                                           const struct gm_device_facts *facts,
                                           struct gm_error *err)
{
    const struct gm_matrix *a = &op->operand[0];

    (void)facts;
    if (a->batch != 1 || a->rows > INT_MAX || a->cols > INT_MAX)
        return gm_fail(err, GM_KERNEL_UNAVAILABLE,
                       "kernel \"cublas\" transposes single matrices, of dimensions of at most %d",
                       INT_MAX);
    return GM_OK;
}

/* Column-major, a is cols x rows, and the result rows x cols. */
enum gm_status gm_cuda_transpose_cublas(const struct gm_op *op, struct gm_exec *exec)
{
    static const float one_f32 = 1, zero_f32 = 0;
    static const double one_f64 = 1, zero_f64 = 0;
    const struct gm_cublas *blas = exec->blas_api;
    const struct gm_matrix *a = &op->operand[0];
    bool wide = a->dtype == GM_F64;
    gm_cublas_geam_fn *geam = wide ? blas->dgeam : blas->sgeam;
    enum gm_status status = gm_cuda_launching(exec, NULL);

    if (status != GM_OK)
        return status;
    int rows = (int)a->rows, cols = (int)a->cols;
    int answer = geam(exec->blas, GM_CUBLAS_OP_T, GM_CUBLAS_OP_N, rows, cols,
                      wide ? (const void *)&one_f64 : &one_f32, a->data, cols,
                      wide ? (const void *)&zero_f64 : &zero_f32, op->result.data, rows,
                      op->result.data, rows);
    return gm_cuda_launched(exec, gm_cublas_error(answer, exec->stream), NULL);
}
