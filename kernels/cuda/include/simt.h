/*
 * simt.h for nvcc - the device language is CUDA's; here is what kernels/cuda/kernel.h promises
 * beside it. The simulator's counterpart is kernels/sim/include/simt.h.
 */
#ifndef GM_KERNELS_CUDA_SIMT_H
#define GM_KERNELS_CUDA_SIMT_H

#include "kernels/cuda/exec.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline_primitives.h>
#include <cuda_runtime.h>
#include <stdint.h>

#include "simt/launch.h"

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

#endif
