/*
 * cublas.c - creates cuBLAS handles, and translates cuBLAS's errors.
 */
#include "cublas.h"

#include "call.h"

cudaError_t gm_cublas_error(int status, cudaStream_t stream)
{
    cudaError_t error;

    switch (status) {
    case GM_CUBLAS_SUCCESS:
        return cudaSuccess;
    case GM_CUBLAS_ALLOC_FAILED:
        return cudaErrorMemoryAllocation;
    case GM_CUBLAS_INVALID_VALUE:
        return cudaErrorInvalidValue;
    case GM_CUBLAS_ARCH_MISMATCH:
    case GM_CUBLAS_NOT_SUPPORTED:
        return cudaErrorNotSupported;
    default:
        error = GM_CALL(cudaStreamSynchronize, stream);
        return error == cudaSuccess ? cudaErrorNotSupported : error;
    }
}

void *gm_cublas_handle(const struct gm_cublas *blas, cudaStream_t stream)
{
    void *handle;

    if (blas->create(&handle) != GM_CUBLAS_SUCCESS) {
        (void)GM_CALL(cudaGetLastError);
        return NULL;
    }
    if (blas->set_stream(handle, stream) == GM_CUBLAS_SUCCESS &&
        blas->set_math_mode(handle, GM_CUBLAS_MATH_FULL_REDUCTION) == GM_CUBLAS_SUCCESS)
        return handle;
    (void)blas->destroy(handle);
    (void)GM_CALL(cudaGetLastError);
    return NULL;
}
