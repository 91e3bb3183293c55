/*
 * fake_cublas.c - cuBLAS on the host, column-major as the library is, in place of the search for
 * it. It checks what the library checks: leading dimensions, types, handles.
 */
#include "fake_cuda.h"
#include "kernels/cuda/backend/cublas.h"
#include "proto/number/half.h"

#include <complex.h>
#include <stdlib.h>
#include <string.h>

struct handle {
    cudaStream_t stream;
    int math_mode;
};

static int create(void **ret)
{
    struct handle *handle = calloc(1, sizeof(*handle));

    if (!handle)
        return GM_CUBLAS_ALLOC_FAILED;
    fake_cuda_handles(1);
    *ret = handle;
    return GM_CUBLAS_SUCCESS;
}

static int destroy(void *handle)
{
    free(handle);
    fake_cuda_handles(-1);
    return GM_CUBLAS_SUCCESS;
}

static int set_stream(void *handle, cudaStream_t stream)
{
    ((struct handle *)handle)->stream = stream;
    return stream ? GM_CUBLAS_SUCCESS : GM_CUBLAS_INVALID_VALUE;
}

static int set_math_mode(void *handle, int mode)
{
    ((struct handle *)handle)->math_mode = mode;
    return GM_CUBLAS_SUCCESS;
}

static int get_version(void *handle, int *version)
{
    (void)handle;
    *version = 130002;
    return GM_CUBLAS_SUCCESS;
}

static double get(const void *data, int type, long long at)
{
    switch (type) {
    case GM_CUBLAS_R_64F:
        return ((const double *)data)[at];
    case GM_CUBLAS_R_16F:
        return gm_f32_of_f16(((const uint16_t *)data)[at]);
    case GM_CUBLAS_R_16BF:
        return gm_f32_of_bf16(((const uint16_t *)data)[at]);
    default:
        return ((const float *)data)[at];
    }
}

static void put(void *data, int type, long long at, double value)
{
    if (type == GM_CUBLAS_R_64F)
        ((double *)data)[at] = value;
    else if (type == GM_CUBLAS_R_16F)
        ((uint16_t *)data)[at] = gm_f16_of_f64(value);
    else if (type == GM_CUBLAS_R_16BF)
        ((uint16_t *)data)[at] = gm_bf16_of_f64(value);
    else
        ((float *)data)[at] = (float)value;
}

static bool is_wide(int compute)
{
    return compute == GM_CUBLAS_COMPUTE_64F || compute == GM_CUBLAS_COMPUTE_64F_PEDANTIC;
}

static int gemm(void *handle, int transa, int transb, int m, int n, int k, const void *alpha,
                const void *a, int a_type, int lda, long long stride_a, const void *b, int b_type,
                int ldb, long long stride_b, const void *beta, void *c, int c_type, int ldc,
                long long stride_c, int batch, int compute, int algorithm)
{
    bool wide = is_wide(compute);
    double factor = wide ? *(const double *)alpha : *(const float *)alpha;
    double add = wide ? *(const double *)beta : *(const float *)beta;

    if (!((struct handle *)handle)->stream || algorithm != GM_CUBLAS_GEMM_DEFAULT ||
        wide != (c_type == GM_CUBLAS_R_64F) || a_type != c_type || b_type != c_type ||
        lda < (transa ? k : m) || ldb < (transb ? n : k) || ldc < m || batch < 1)
        return GM_CUBLAS_INVALID_VALUE;
    if (fake_cuda.blas_answer != GM_CUBLAS_SUCCESS) {
        if (fake_cuda.blas_error != cudaSuccess)
            fake_cuda_break(fake_cuda.blas_error);
        return fake_cuda.blas_answer;
    }
    if (fake_cuda.blas_loads_at > 1) {
        fake_cuda.blas_loads_at--;
    } else if (fake_cuda.blas_loads_us > 0) {
        fake_cuda_load(fake_cuda.blas_loads_us);
        fake_cuda.blas_loads_us = fake_cuda.blas_loads_at = 0;
    }
    atomic_store(&fake_cuda.blas_batch, batch); /* by any stream's thread */
    for (long long z = 0; z < batch; z++) {
        for (long long j = 0; j < n; j++) {
            for (long long i = 0; i < m; i++) {
                double sum = 0;
                for (long long p = 0; p < k; p++)
                    sum += get(a, a_type, z * stride_a + (transa ? p + i * lda : i + p * lda)) *
                           get(b, b_type, z * stride_b + (transb ? j + p * ldb : p + j * ldb));
                long long at = z * stride_c + i + j * ldc;
                put(c, c_type, at, factor * sum + (add != 0 ? add * get(c, c_type, at) : 0));
            }
        }
    }
    return fake_cuda_launch() == cudaSuccess ? GM_CUBLAS_SUCCESS : 13;
}

/* The n-th row of a geam for each of the two element types; beta is 0 wherever it is called. */
#define GEAM(name, type)                                                                           \
    static int name(void *handle, int transa, int transb, int m, int n, const void *alpha,         \
                    const void *a, int lda, const void *beta, const void *b, int ldb, void *c,     \
                    int ldc)                                                                       \
    {                                                                                              \
        const type *in = a;                                                                        \
        type *out = c, one = *(const type *)alpha;                                                 \
                                                                                                   \
        if (!((struct handle *)handle)->stream || *(const type *)beta != 0 || transb || b != c ||  \
            ldb != ldc || lda < (transa ? n : m) || ldc < m)                                       \
            return GM_CUBLAS_INVALID_VALUE;                                                        \
        for (long long j = 0; j < n; j++)                                                          \
            for (long long i = 0; i < m; i++)                                                      \
                out[i + j * ldc] = one * in[transa ? j + i * lda : i + j * lda];                   \
        return fake_cuda_launch() == cudaSuccess ? GM_CUBLAS_SUCCESS : 13;                         \
    }
GEAM(sgeam, float)
GEAM(dgeam, double)

bool gm_cublas_load(struct gm_cublas *ret)
{
    *ret = (struct gm_cublas){create,      destroy, set_stream, set_math_mode,
                              get_version, gemm,    sgeam,      dgeam};
    return !fake_cuda.no_blas;
}
