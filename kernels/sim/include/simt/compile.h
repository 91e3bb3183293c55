/*
 * compile.h - what CUDA's keywords are to g++. A part of <simt.h>.
 */
#ifndef GM_KERNELS_SIM_SIMT_COMPILE_H
#define GM_KERNELS_SIM_SIMT_COMPILE_H

#include "kernels/sim/run/device.h"

#include <stdint.h>
#include <string.h>

#define GM_ENTRY(name) gm_sim_##name

/* The simulator's own part of what is compiled with a kernel: not looked at. */
#define GM_SIM_UNSEEN __attribute__((no_sanitize("thread", "undefined"), no_sanitize_coverage))
#define GM_SIM_INLINE static inline __attribute__((always_inline))

#define __global__ __attribute__((noinline))
#define __device__ __attribute__((always_inline))
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
/* One copy for each host thread, which runs one block at a time. Beginning at bank 0, so that
 * banks do not depend on what else there is. */
#define __shared__ static thread_local __attribute__((aligned(128)))
#define __constant__ static const

/* A value of up to 8 bytes as bits, and back. */
template <typename T> GM_SIM_INLINE uint64_t gm_sim_bits(T value)
{
    static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
    uint64_t bits = 0;
    __builtin_memcpy(&bits, &value, sizeof(T));
    return bits;
}
template <typename T> GM_SIM_INLINE T gm_sim_value(uint64_t bits)
{
    T value;
    __builtin_memcpy(&value, &bits, sizeof(T));
    return value;
}

#endif
