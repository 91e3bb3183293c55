/*
 * join.h - 16 (or 8, or 4) bytes that begin anywhere: put together, in registers, out of the two
 * pieces that they lie in, in global memory or in shared memory.
 */
#ifndef GM_KERNELS_CUDA_JOIN_H
#define GM_KERNELS_CUDA_JOIN_H

#include "kernels/cuda/pieces.h"

/* Two pieces that lie side by side in memory. */
template <unsigned BYTES> struct gm_neighbours {
    gm_piece<BYTES> low, high;
};

/* How many bytes lie between a piece's beginning and `at`. */
template <unsigned BYTES> __device__ __forceinline__ unsigned gm_skip(const void *at)
{
    return (unsigned)(uintptr_t)at & (BYTES - 1);
}

/* The one or two pieces that the BYTES bytes at `at` lie in. If they are one piece it is loaded
 * twice: so no other piece is touched, and there is no branch. */
template <unsigned BYTES>
__device__ __forceinline__ gm_neighbours<BYTES> gm_load_neighbours(const void *at)
{
    unsigned skip = gm_skip<BYTES>(at);
    const gm_piece<BYTES> *from = (const gm_piece<BYTES> *)((const uint8_t *)at - skip);
    gm_neighbours<BYTES> pair;

    pair.low = gm_get_l2_256<BYTES>(from);
    pair.high = gm_get_l2_256<BYTES>(from + (skip != 0));
    return pair;
}

/* What begins `skip` bytes into the first of two pieces, whole elements of T. The words are moved
 * down by selects, by two and by one; what is left, bytes within words, by funnel shifts. */
template <typename T, unsigned BYTES>
__device__ __forceinline__ gm_piece<BYTES> gm_join(const gm_neighbours<BYTES> &pair, unsigned skip)
{
    constexpr unsigned WORDS = BYTES / 4;
    gm_piece<BYTES> result = pair.low;

    if constexpr (sizeof(T) < BYTES) {
        uint32_t x[2 * WORDS + 1];
#pragma unroll
        for (unsigned i = 0; i < WORDS; i++) {
            x[i] = pair.low.word[i];
            x[WORDS + i] = pair.high.word[i];
        }
        x[2 * WORDS] = 0;
        if constexpr (BYTES == 16) {
#pragma unroll
            for (unsigned i = 0; i < 6; i++)
                x[i] = skip & 8 ? x[i + 2] : x[i];
        }
        if constexpr (BYTES >= 8 && sizeof(T) <= 4) {
#pragma unroll
            for (unsigned i = 0; i < WORDS + 1; i++)
                x[i] = skip & 4 ? x[i + 1] : x[i];
        }
#pragma unroll
        for (unsigned i = 0; i < WORDS; i++)
            result.word[i] = sizeof(T) < 4 ? __funnelshift_r(x[i], x[i + 1], 8 * (skip & 3)) : x[i];
    }
    return result;
}

#endif
