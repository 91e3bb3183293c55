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
template <typename... P> static inline void gm_shared_carveout(void (*kernel)(P...), int percent)
{
    if (cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                             percent) != cudaSuccess)
        (void)cudaGetLastError();
}

/* Beyond 48 KB a kernel must be allowed its dynamic shared memory first. It is allowed all that the
 * device has: other threads launch the same kernel with more or less, and there is one allowance
 * for all of them. */
#define GM_SHARED_UNASKED 49152u

static inline cudaError_t gm_allow_shared(const struct gm_gpu *gpu, const void *kernel,
                                          const cudaFuncAttributes *code, size_t dynamic_shared)
{
    if (dynamic_shared <= (size_t)code->maxDynamicSharedSizeBytes)
        return cudaSuccess;
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                (int)(gpu->shared_per_block - code->sharedSizeBytes));
}

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
    cudaFuncAttributes code = {};
    if (dependent || dynamic_shared > GM_SHARED_UNASKED)
        error = cudaFuncGetAttributes(&code, (const void *)kernel);
    if (error == cudaSuccess && dynamic_shared > GM_SHARED_UNASKED)
        error = gm_allow_shared(gm_gpu_of(exec), (const void *)kernel, &code, dynamic_shared);
    if (error == cudaSuccess) {
        cudaLaunchAttribute attribute = {};
        attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attribute.val.programmaticStreamSerializationAllowed = 1;
        cudaLaunchConfig_t config = {};
        config.gridDim = grid;
        config.blockDim = block;
        config.dynamicSmemBytes = dynamic_shared;
        config.stream = gm_cuda_stream(exec);
        config.attrs = &attribute;
        /* Code for older devices, which a newer one runs too, does not wait. */
        config.numAttrs = dependent && code.ptxVersion >= GM_DEPENDENT_CAPABILITY ? 1 : 0;
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
