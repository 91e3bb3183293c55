/*
 * cublas.h - declares the part of cuBLAS that is used, which is loaded at run time.
 *
 * The library is opened and not linked, so that the daemon starts, and its own kernels run, on
 * machines without it.
 */
#ifndef GM_KERNELS_CUDA_BACKEND_CUBLAS_H
#define GM_KERNELS_CUDA_BACKEND_CUBLAS_H

#include "exec.h"

/* Values from the library's binary interface. */
enum { GM_CUBLAS_SUCCESS = 0, GM_CUBLAS_ALLOC_FAILED = 3, GM_CUBLAS_INVALID_VALUE = 7 };
enum { GM_CUBLAS_ARCH_MISMATCH = 8, GM_CUBLAS_NOT_SUPPORTED = 15 };
enum { GM_CUBLAS_OP_N = 0, GM_CUBLAS_OP_T = 1 };
enum { GM_CUBLAS_R_32F = 0, GM_CUBLAS_R_64F = 1, GM_CUBLAS_R_16F = 2, GM_CUBLAS_R_16BF = 14 };
enum {
    GM_CUBLAS_COMPUTE_32F = 68,
    GM_CUBLAS_COMPUTE_32F_PEDANTIC = 69,
    GM_CUBLAS_COMPUTE_64F = 70,
    GM_CUBLAS_COMPUTE_64F_PEDANTIC = 71,
    GM_CUBLAS_COMPUTE_32F_FAST_16BF = 75,
    GM_CUBLAS_COMPUTE_32F_FAST_TF32 = 77
};
/* Keeps partial sums of f16 and bf16 in f32. */
enum { GM_CUBLAS_MATH_FULL_REDUCTION = 16 };
enum { GM_CUBLAS_GEMM_DEFAULT = -1 };

typedef int gm_cublas_gemm_fn(void *handle, int transa, int transb, int m, int n, int k,
                              const void *alpha, const void *a, int a_type, int lda,
                              long long stride_a, const void *b, int b_type, int ldb,
                              long long stride_b, const void *beta, void *c, int c_type, int ldc,
                              long long stride_c, int batch, int compute, int algorithm);
/* The functions for S, D, C and Z differ only in what the pointers point to. */
typedef int gm_cublas_geam_fn(void *handle, int transa, int transb, int m, int n, const void *alpha,
                              const void *a, int lda, const void *beta, const void *b, int ldb,
                              void *c, int ldc);

struct gm_cublas {
    int (*create)(void **handle);
    int (*destroy)(void *handle);
    int (*set_stream)(void *handle, cudaStream_t stream);
    int (*set_math_mode)(void *handle, int mode);
    int (*get_version)(void *handle, int *version);
    gm_cublas_gemm_fn *gemm; /* cublasGemmStridedBatchedEx */
    gm_cublas_geam_fn *sgeam, *dgeam;
};

/* Loads the library, and returns whether all these functions are in it. It stays loaded until the
 * process ends, because it cannot unregister from CUDA. */
bool gm_cublas_load(struct gm_cublas *ret);

/* Creates a handle on a stream of the current device, for `destroy`; NULL on failure. */
void *gm_cublas_handle(const struct gm_cublas *blas, cudaStream_t stream);

/* Translates a call's status to a CUDA error. cuBLAS has its own runtime, whose errors ours does
 * not see. If the status does not say what happened, this waits for the stream, whose error says
 * whether the device is lost. If it is not, the call counts as not supported. */
cudaError_t gm_cublas_error(int status, cudaStream_t stream);

#endif
