/*
 * simt.h - for nvcc: adds to CUDA's language what kernels/cuda/lib/kernel.h promises; and, for
 * tensor-core kernels alone, addresses in shared memory and copies to it without registers.
 *
 * The simulator's counterpart is kernels/sim/include/simt.h.
 */
#ifndef GM_KERNELS_CUDA_SIMT_H
#define GM_KERNELS_CUDA_SIMT_H

#include "kernels/cuda/backend/exec.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline_primitives.h>
#include <cuda_runtime.h>
#include <stdint.h>

#define GM_ENTRY(name) gm_cuda_##name

struct gm_f16 {
    uint16_t bits;
};
struct gm_bf16 {
    uint16_t bits;
};

__device__ __forceinline__ float gm_widen(gm_f16 x)
{
    return __half2float(__ushort_as_half(x.bits));
}
__device__ __forceinline__ float gm_widen(gm_bf16 x)
{
    return __uint_as_float((uint32_t)x.bits << 16);
}
template <typename T> __device__ T gm_narrow(float x);
template <> __device__ __forceinline__ gm_f16 gm_narrow<gm_f16>(float x)
{
    return {__half_as_ushort(__float2half_rn(x))};
}
template <> __device__ __forceinline__ gm_bf16 gm_narrow<gm_bf16>(float x)
{
    return {__bfloat16_as_ushort(__float2bfloat16_rn(x))};
}

template <typename T> __device__ __forceinline__ T *gm_dynamic_shared()
{
    extern __shared__ __align__(128) unsigned char gm_dynamic_shared_bytes[];
    return (T *)gm_dynamic_shared_bytes;
}

/* The address of shared memory that PTX instructions take. */
__device__ __forceinline__ uint32_t gm_shared_address(const void *at)
{
    return (uint32_t)__cvta_generic_to_shared(at);
}

/* Copies 16 bytes asynchronously, in parts of BYTES. All but the first `exist` become zeros. (The
 * CUDA header's function makes a branch for each number of them.) From compute capability 8.0 on.
 */
template <unsigned BYTES>
__device__ __forceinline__ void gm_copy_async(char *to, const void *from, unsigned exist)
{
#pragma unroll
    for (unsigned i = 0; i < 16; i += BYTES) {
        uint32_t address = gm_shared_address(to + i);
        const char *part = (const char *)from + i;
        unsigned left = exist > i ? min(exist - i, BYTES) : 0;
        if constexpr (BYTES == 16)
            asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(address),
                         "l"(part), "r"(left)
                         : "memory");
        else
            asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(address), "l"(part),
                         "n"(BYTES), "r"(left)
                         : "memory");
    }
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define GM_L2_256 "ld.global"
#else
#define GM_L2_256 "ld.global.L2::256B"
#endif

__device__ __forceinline__ uint4 gm_load_l2_256(const uint4 *at)
{
    uint4 x;
    asm(GM_L2_256 ".v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
        : "l"(at));
    return x;
}
__device__ __forceinline__ uint2 gm_load_l2_256(const uint2 *at)
{
    uint2 x;
    asm(GM_L2_256 ".v2.u32 {%0, %1}, [%2];" : "=r"(x.x), "=r"(x.y) : "l"(at));
    return x;
}
__device__ __forceinline__ uint32_t gm_load_l2_256(const uint32_t *at)
{
    uint32_t x;
    asm(GM_L2_256 ".u32 %0, [%1];" : "=r"(x) : "l"(at));
    return x;
}

/* The first compute capability with programmatic dependent launch. */
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

__device__ __forceinline__ uint64_t gm_device_ns()
{
    uint64_t now;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

/* Errors are ignored, because this is a hint. */
template <typename... P> static inline void gm_shared_carveout(void (*kernel)(P...), int percent)
{
    if (cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                             percent) != cudaSuccess)
        (void)cudaGetLastError();
}

/* A kernel must opt in to more than 48 KB of dynamic shared memory. It gets all that the device
 * has, because the attribute is one for all threads, and other threads launch the same kernel with
 * other sizes. */
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
        /* Code compiled for older devices runs here too, but does not wait for its primary. */
        config.numAttrs = dependent && code.ptxVersion >= GM_DEPENDENT_CAPABILITY ? 1 : 0;
        error = cudaLaunchKernelEx(&config, kernel, static_cast<P>(args)...);
    }
    if (error != cudaSuccess)
        (void)cudaGetLastError(); /* else the next to ask, such as cuBLAS, sees it */
    return gm_cuda_launched(exec, error, (const void *)kernel);
}

template <typename... P, typename... A>
static inline enum gm_status gm_launch(struct gm_exec *exec, void (*kernel)(P...), dim3 grid,
                                       dim3 block, size_t dynamic_shared, A... args)
{
    return gm_launch_dependent(exec, false, kernel, grid, block, dynamic_shared, args...);
}

#endif
