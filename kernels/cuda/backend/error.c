/*
 * error.c - classifies CUDA's errors: of one call, or sticky.
 *
 * An error of one call concerns its arguments, its code, or the memory that it asked for. A sticky
 * error destroys the context: each later call returns the same error until the process ends. The
 * list here has errors of the first kind. All others count as sticky, so that an unknown error
 * makes the process restart, instead of going on with a lost device.
 */

#include "call.h"

enum gm_status gm_cuda_status(cudaError_t error)
{
    switch (error) {
    case cudaSuccess:
        return GM_OK;
    case cudaErrorMemoryAllocation:
        return GM_DEVICE_MEMORY;
    case cudaErrorInvalidValue:
    case cudaErrorInvalidConfiguration:
    case cudaErrorInvalidDevicePointer:
    case cudaErrorInvalidMemcpyDirection:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorInvalidDevice:
    case cudaErrorInvalidKernelImage:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidPtx:
    case cudaErrorJitCompilerNotFound:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorJitCompilationDisabled:
    case cudaErrorInvalidResourceHandle:
    case cudaErrorSymbolNotFound:
    case cudaErrorLaunchOutOfResources:
    case cudaErrorCooperativeLaunchTooLarge:
    case cudaErrorNotSupported:
        return GM_INTERNAL;
    default:
        return GM_DEVICE_LOST;
    }
}

enum gm_status gm_cuda_check(cudaError_t error, const char *what, struct gm_error *err)
{
    enum gm_status status = gm_cuda_status(error);

    if (status == GM_OK)
        return GM_OK;
    (void)GM_CALL(cudaGetLastError);
    return gm_fail(err, status, "%s: %s (%s)", what, cudaGetErrorString(error),
                   cudaGetErrorName(error));
}
