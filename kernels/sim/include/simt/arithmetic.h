/*
 * arithmetic.h - CUDA's integer and floating-point functions. A part of <simt.h>, which alone
 * includes it.
 */
#ifndef GM_KERNELS_SIM_SIMT_ARITHMETIC_H
#define GM_KERNELS_SIM_SIMT_ARITHMETIC_H

#include "kernels/sim/include/simt/compile.h"

#include <math.h>

template <typename T> GM_SIM_INLINE constexpr T min(T a, T b)
{
    return b < a ? b : a;
}
template <typename T> GM_SIM_INLINE constexpr T max(T a, T b)
{
    return a < b ? b : a;
}
GM_SIM_INLINE float __fmaf_rn(float a, float b, float c)
{
    return __builtin_fmaf(a, b, c);
}
GM_SIM_INLINE double __fma_rn(double a, double b, double c)
{
    return __builtin_fma(a, b, c);
}
GM_SIM_INLINE float __fadd_rn(float a, float b)
{
    return a + b;
}
GM_SIM_INLINE float __fmul_rn(float a, float b)
{
    return a * b;
}
GM_SIM_INLINE double __dadd_rn(double a, double b)
{
    return a + b;
}
GM_SIM_INLINE double __dmul_rn(double a, double b)
{
    return a * b;
}
GM_SIM_INLINE float __fdividef(float a, float b)
{
    return a / b;
}
GM_SIM_INLINE float rsqrtf(float x)
{
    return 1.0f / __builtin_sqrtf(x);
}
/* The low 24 bits of each count. */
GM_SIM_INLINE unsigned __umul24(unsigned a, unsigned b)
{
    return (a & 0xFFFFFFu) * (b & 0xFFFFFFu);
}
GM_SIM_INLINE int __mul24(int a, int b)
{
    int low_a = (int)((unsigned)a << 8) >> 8, low_b = (int)((unsigned)b << 8) >> 8;
    return (int)((unsigned)low_a * (unsigned)low_b);
}
GM_SIM_INLINE unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
GM_SIM_INLINE unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((uint64_t)a * b >> 32);
}
GM_SIM_INLINE float __int_as_float(int x)
{
    return gm_sim_value<float>((unsigned)x);
}
GM_SIM_INLINE float __uint_as_float(unsigned x)
{
    return gm_sim_value<float>(x);
}
GM_SIM_INLINE int __float_as_int(float x)
{
    return gm_sim_value<int>(gm_sim_bits(x));
}
GM_SIM_INLINE unsigned __float_as_uint(float x)
{
    return gm_sim_value<unsigned>(gm_sim_bits(x));
}
#define __isGlobal(p) (!gm_sim_is_shared(p))
#define __isShared(p) (gm_sim_is_shared(p))

#endif
