/*
 * unaligned_load.h - loads 16 (or 8, or 4) bytes that begin anywhere, from the two aligned vectors
 * that they lie in.
 *
 *     memory      | low:  w0  w1  w2  w3 | high: w4  w5  w6  w7 |
 *                             ^ at = low + misalignment (6 bytes, say)
 *     by words          w1  w2  w3  w4  w5      selects: 8 bytes, 4 bytes
 *     by bytes          a funnel shift of each neighbouring pair, by the 2 bytes that are left
 */
#ifndef GM_KERNELS_CUDA_LIB_UNALIGNED_LOAD_H
#define GM_KERNELS_CUDA_LIB_UNALIGNED_LOAD_H

#include "kernels/cuda/lib/vec.h"

/* Two neighbours in memory. */
template <unsigned BYTES> struct gm_vec_pair {
    gm_vec<BYTES> low, high;
};

/* Bytes from the beginning of the aligned vector that has `at`, to `at`. */
template <unsigned BYTES> __device__ __forceinline__ unsigned gm_misalignment(const void *at)
{
    return (unsigned)(uintptr_t)at & (BYTES - 1);
}

/* The one or two vectors that the BYTES bytes at `at` lie in. If they are one vector it is loaded
 * twice: so no other vector is touched, and there is no branch. */
template <unsigned BYTES>
__device__ __forceinline__ gm_vec_pair<BYTES> gm_load_vec_pair(const void *at)
{
    unsigned skip = gm_misalignment<BYTES>(at);
    const gm_vec<BYTES> *from = (const gm_vec<BYTES> *)((const uint8_t *)at - skip);
    gm_vec_pair<BYTES> pair;

    pair.low = gm_load_vec_l2_256<BYTES>(from);
    pair.high = gm_load_vec_l2_256<BYTES>(from + (skip != 0));
    return pair;
}

/* What begins `skip` bytes into the first of two vectors, whole elements of T. The words are moved
 * down by selects, by two and by one; what is left, bytes within words, by funnel shifts. */
template <typename T, unsigned BYTES>
__device__ __forceinline__ gm_vec<BYTES> gm_unaligned_vec(const gm_vec_pair<BYTES> &pair,
                                                          unsigned skip)
{
    constexpr unsigned WORDS = BYTES / 4;
    gm_vec<BYTES> result = pair.low;

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
