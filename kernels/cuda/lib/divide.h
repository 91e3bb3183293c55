/*
 * divide.h - replaces division by a number known at launch with a multiplication.
 *
 * An integer division takes some 20 dependent instructions on a GPU.
 */
#ifndef GM_KERNELS_CUDA_LIB_DIVIDE_H
#define GM_KERNELS_CUDA_LIB_DIVIDE_H

#include "kernels/cuda/lib/kernel.h"

/* For d > 1 and x < 2^16: x / d == __umulhi(x, gm_reciprocal(d)). */
static inline unsigned gm_reciprocal(unsigned d)
{
    return (unsigned)(((uint64_t)1 << 32) / d + 1);
}

/* For any 32-bit x. `inverse` is 2^64 / d rounded up: its error is below 1, so that of x / d is
 * below 1 / d. An inverse of 0 stands for d = 1. */
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

/* The same for x < 2^16 and 0 < d < 2^16, with a divisor that is made on the device. */
struct gm_small_divisor {
    unsigned inverse; /* 0 stands for d = 1 */
};
__device__ __forceinline__ gm_small_divisor gm_small_divisor_of(unsigned d)
{
    return {d > 1 ? UINT32_MAX / d + 1 : 0};
}
__device__ __forceinline__ unsigned gm_divide(unsigned x, gm_small_divisor d)
{
    return d.inverse > 0 ? __umulhi(x, d.inverse) : x;
}

#endif
