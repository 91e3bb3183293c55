/*
 * error.c - CUDA's errors, sorted.
 *
 * An error is either an answer to one call (its arguments, its code, the memory it asked for) or
 * sticky: the context is destroyed, and each later call answers the same until the process ends.
 * Those of the first sort are listed. What is not in the list counts as sticky, so that an error
 * nobody thought of ends the process to be restarted, and never goes on with a device that is
 * beyond use.
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
