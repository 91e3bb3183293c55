/*
 * divide.h - divides by a number known before a launch, as a multiplication.
 *
 * On a GPU a division takes some 20 instructions, each of which waits for the one before.
 */
#ifndef GM_KERNELS_CUDA_LIB_DIVIDE_H
#define GM_KERNELS_CUDA_LIB_DIVIDE_H

#include "kernels/cuda/lib/kernel.h"

/* d > 1, dividing numbers below 2^16: x / d is __umulhi(x, gm_reciprocal(d)). */
static inline unsigned gm_reciprocal(unsigned d)
{
    return (unsigned)(((uint64_t)1 << 32) / d + 1);
}

/* x / d of any 32-bit number: 2^64 / d, rounded up, which is too large by less than 1, so that of
 * x / d by less than 1 / d; 0 is a divisor of 1. */
struct gm_divisor {
    uint64_t inverse;
};
static inline struct gm_divisor gm_divisor_of(unsigned d)
{
    return {d > 1 ? UINT64_MAX / d + 1 : 0};
}
static __device__ __forceinline__ unsigned gm_divide(unsigned x, struct gm_divisor d)
{
    return d.inverse > 0 ? (unsigned)__umul64hi(d.inverse, x) : x;
}

#endif
