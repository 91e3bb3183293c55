/*
 * bits.h - CUDA's functions of single bits and bytes. A part of <simt.h>, which alone includes it.
 */
#ifndef GM_KERNELS_SIM_SIMT_BITS_H
#define GM_KERNELS_SIM_SIMT_BITS_H

#include "kernels/sim/include/simt/compile.h"

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

#endif
