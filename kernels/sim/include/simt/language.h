/*
 * language.h - defines CUDA's keywords and types for g++: vectors, dimensions, half-width floats.
 *
 * A part of <simt.h>, which includes it.
 */
#ifndef GM_KERNELS_SIM_SIMT_LANGUAGE_H
#define GM_KERNELS_SIM_SIMT_LANGUAGE_H

#include "kernels/sim/run/device.h"
#include "proto/number/half.h"

#include <stdint.h>
#include <string.h>

#define GM_ENTRY(name) gm_sim_##name

#define GM_SIM_INLINE static inline __attribute__((always_inline))

#define __global__ __attribute__((noinline))
#define __device__ __attribute__((always_inline))
#define __host__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
/* One copy per host thread, which runs one block at a time. Each variable begins at bank 0, so that
 * banks do not depend on the other variables. */
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

#define GM_SIM_VECTOR(name, type, bytes1, bytes2, bytes4)                                          \
    struct name##1                                                                                 \
    {                                                                                              \
        type x;                                                                                    \
    };                                                                                             \
    struct alignas(bytes2) name##2                                                                 \
    {                                                                                              \
        type x, y;                                                                                 \
    };                                                                                             \
    struct name##3                                                                                 \
    {                                                                                              \
        type x, y, z;                                                                              \
    };                                                                                             \
    struct alignas(bytes4) name##4                                                                 \
    {                                                                                              \
        type x, y, z, w;                                                                           \
    };                                                                                             \
    GM_SIM_INLINE name##1 make_##name##1(type x)                                                   \
    {                                                                                              \
        return {x};                                                                                \
    }                                                                                              \
    GM_SIM_INLINE name##2 make_##name##2(type x, type y)                                           \
    {                                                                                              \
        return {x, y};                                                                             \
    }                                                                                              \
    GM_SIM_INLINE name##3 make_##name##3(type x, type y, type z)                                   \
    {                                                                                              \
        return {x, y, z};                                                                          \
    }                                                                                              \
    GM_SIM_INLINE name##4 make_##name##4(type x, type y, type z, type w)                           \
    {                                                                                              \
        return {x, y, z, w};                                                                       \
    }
GM_SIM_VECTOR(char, signed char, 1, 2, 4)
GM_SIM_VECTOR(uchar, unsigned char, 1, 2, 4)
GM_SIM_VECTOR(short, short, 2, 4, 8)
GM_SIM_VECTOR(ushort, unsigned short, 2, 4, 8)
GM_SIM_VECTOR(int, int, 4, 8, 16)
GM_SIM_VECTOR(uint, unsigned, 4, 8, 16)
GM_SIM_VECTOR(longlong, long long, 8, 16, 16)
GM_SIM_VECTOR(ulonglong, unsigned long long, 8, 16, 16)
GM_SIM_VECTOR(float, float, 4, 8, 16)
GM_SIM_VECTOR(double, double, 8, 16, 16)
#undef GM_SIM_VECTOR

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned vx = 1, unsigned vy = 1, unsigned vz = 1) : x(vx), y(vy), z(vz)
    {
    }
};

struct gm_f16 {
    uint16_t bits;
};
struct gm_bf16 {
    uint16_t bits;
};
GM_SIM_INLINE float gm_widen(gm_f16 x)
{
    return gm_f32_of_f16(x.bits);
}
GM_SIM_INLINE float gm_widen(gm_bf16 x)
{
    return gm_f32_of_bf16(x.bits);
}
template <typename T> T gm_narrow(float x);
template <> inline __attribute__((always_inline)) gm_f16 gm_narrow<gm_f16>(float x)
{
    return {gm_f16_of_f32(x)};
}
template <> inline __attribute__((always_inline)) gm_bf16 gm_narrow<gm_bf16>(float x)
{
    return {gm_bf16_of_f32(x)};
}

#endif
