/*
 * functions.h - defines CUDA's functions of a single thread: arithmetic, bits, hinted loads, async
 * copies.
 *
 * A part of <simt.h>, which alone includes it.
 */
#ifndef GM_KERNELS_SIM_SIMT_FUNCTIONS_H
#define GM_KERNELS_SIM_SIMT_FUNCTIONS_H

#include "kernels/sim/include/simt/language.h"

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
/* Multiplies the low 24 bits of each. */
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

GM_SIM_INLINE int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
GM_SIM_INLINE int __popcll(unsigned long long x)
{
    return __builtin_popcountll(x);
}
GM_SIM_INLINE int __clz(int x)
{
    return x ? __builtin_clz((unsigned)x) : 32;
}
GM_SIM_INLINE int __clzll(long long x)
{
    return x ? __builtin_clzll((unsigned long long)x) : 64;
}
GM_SIM_INLINE int __ffs(int x)
{
    return __builtin_ffs(x);
}
GM_SIM_INLINE int __ffsll(long long x)
{
    return __builtin_ffsll(x);
}
GM_SIM_INLINE unsigned __brev(unsigned x)
{
    unsigned y = 0;
    for (int i = 0; i < 32; i++)
        y |= (x >> i & 1u) << (31 - i);
    return y;
}
GM_SIM_INLINE unsigned __byte_perm(unsigned x, unsigned y, unsigned selector)
{
    uint64_t bytes = (uint64_t)y << 32 | x;
    unsigned result = 0;
    for (int i = 0; i < 4; i++) {
        unsigned pick = selector >> (4 * i) & 15u;
        unsigned byte = (unsigned)(bytes >> (8 * (pick & 7u))) & 0xFFu;
        if (pick & 8u)
            byte = byte & 0x80u ? 0xFFu : 0;
        result |= byte << (8 * i);
    }
    return result;
}
GM_SIM_INLINE unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift)
{
    return (unsigned)(((uint64_t)high << 32 | low) << (shift & 31u) >> 32);
}
GM_SIM_INLINE unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift)
{
    return (unsigned)(((uint64_t)high << 32 | low) >> (shift & 31u));
}

template <typename T> GM_SIM_INLINE T __ldg(const T *at)
{
    return *at;
}
#define __ldca __ldg
#define __ldcg __ldg
#define __ldcs __ldg
#define __ldlu __ldg
#define __ldcv __ldg
#define gm_load_l2_256 __ldg
template <typename T> GM_SIM_INLINE void __stcs(T *at, T value)
{
    *at = value;
}
#define __stwb __stcs
#define __stcg __stcs
#define __stwt __stcs

/* The copy is done at once. A kernel that is right with an early copy may be wrong with a late one,
 * but that is a race, and races are reported. */
GM_SIM_INLINE void __pipeline_memcpy_async(void *to, const void *from, size_t bytes,
                                           size_t zeros = 0)
{
    gm_sim_copy_async(to, from, bytes, zeros);
}
GM_SIM_INLINE void __pipeline_commit()
{
}
GM_SIM_INLINE void __pipeline_wait_prior(unsigned)
{
}

#endif
