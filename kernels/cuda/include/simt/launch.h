/*
 * launch.h - launches of kernels, and of those that may begin while the one before them still runs:
 * what kernels/cuda/kernel.h says of them.
 */
#ifndef GM_KERNELS_CUDA_SIMT_LAUNCH_H
#define GM_KERNELS_CUDA_SIMT_LAUNCH_H

#include "kernels/cuda/exec.h"

#include <cuda_runtime.h>

/* Programmatic dependent launch came with compute capability 9.0. */
#define GM_DEPENDENT_CAPABILITY 90

__device__ __forceinline__ void gm_trigger_dependent()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}
__device__ __forceinline__ void gm_wait_for_primary()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
}

/* A hint: a device that cannot take it goes without. */
template <typename... P>
static inline void gm_share(struct gm_exec *, void (*kernel)(P...), unsigned percent)
{
    if (cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                             (int)percent) != cudaSuccess)
        (void)cudaGetLastError();
}

/* Beyond 48 KB a kernel must be allowed its dynamic shared memory first. */
#define GM_SHARED_UNASKED 49152u

template <typename... P, typename... A>
static inline enum gm_status gm_launch_dependent(struct gm_exec *exec, bool dependent,
                                                 void (*kernel)(P...), dim3 grid, dim3 block,
                                                 size_t dynamic_shared, A... args)
{
    if (grid.x == 0 || grid.y == 0 || grid.z == 0)
        return GM_OK;
    enum gm_status status = gm_cuda_launching(exec, (const void *)kernel);
    if (status != GM_OK)
        return status;
    cudaError_t error = cudaSuccess;
    if (dynamic_shared > GM_SHARED_UNASKED)
        error = cudaFuncSetAttribute(
            (const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)dynamic_shared);
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    if (dependent && error == cudaSuccess) {
        /* Code for older devices, which a newer one runs too, does not wait. */
        cudaFuncAttributes code;
        error = cudaFuncGetAttributes(&code, (const void *)kernel);
        dependent = error == cudaSuccess && code.ptxVersion >= GM_DEPENDENT_CAPABILITY;
    }
    if (error == cudaSuccess) {
        cudaLaunchConfig_t config = {};
        config.gridDim = grid;
        config.blockDim = block;
        config.dynamicSmemBytes = dynamic_shared;
        config.stream = gm_cuda_stream(exec);
        config.attrs = &attribute;
        config.numAttrs = dependent ? 1 : 0;
        error = cudaLaunchKernelEx(&config, kernel, static_cast<P>(args)...);
    }
    if (error != cudaSuccess)
        (void)cudaGetLastError(); /* or whoever asks next, as cuBLAS may, is told of it */
    return gm_cuda_launched(exec, error, (const void *)kernel);
}

template <typename... P, typename... A>
static inline enum gm_status gm_launch(struct gm_exec *exec, void (*kernel)(P...), dim3 grid,
                                       dim3 block, size_t dynamic_shared, A... args)
{
    return gm_launch_dependent(exec, false, kernel, grid, block, dynamic_shared, args...);
}

#endif
