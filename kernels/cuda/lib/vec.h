/*
 * vec.h - vectors of 4, 8 or 16 bytes in registers: what one load or store moves, and loads that
 * begin anywhere.
 */
#ifndef GM_KERNELS_CUDA_LIB_VEC_H
#define GM_KERNELS_CUDA_LIB_VEC_H

#include "kernels/cuda/lib/kernel.h"

template <unsigned BYTES> struct alignas(BYTES) gm_vec {
    static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "what one instruction moves");
    uint32_t word[BYTES / 4];
};

/* Stores a vector in global memory with one instruction: as an ordinary store nvcc may take it
 * apart into words, where they were put together one by one. */
template <unsigned BYTES>
__device__ __forceinline__ void gm_store_vec(void *to, const gm_vec<BYTES> &vec)
{
    if constexpr (BYTES == 16)
        __stwb((uint4 *)to, make_uint4(vec.word[0], vec.word[1], vec.word[2], vec.word[3]));
    else if constexpr (BYTES == 8)
        __stwb((uint2 *)to, make_uint2(vec.word[0], vec.word[1]));
    else
        __stwb((uint32_t *)to, vec.word[0]);
}

/* Loads a vector of global memory that no thread writes, for which the L2 cache fetches the 256
 * bytes that it lies in: DRAM answers those as one. For kernels whose blocks read narrow parts of
 * many rows. */
template <unsigned BYTES>
__device__ __forceinline__ gm_vec<BYTES> gm_load_vec_l2_256(const void *at)
{
    gm_vec<BYTES> vec;

    if constexpr (BYTES == 16) {
        uint4 x = gm_load_l2_256((const uint4 *)at);
        vec = {x.x, x.y, x.z, x.w};
    } else if constexpr (BYTES == 8) {
        uint2 x = gm_load_l2_256((const uint2 *)at);
        vec = {x.x, x.y};
    } else {
        vec = {gm_load_l2_256((const uint32_t *)at)};
    }
    return vec;
}

/* Elements of T in a vector. */
template <typename T, unsigned BYTES> struct gm_per_vec {
    static_assert(BYTES % sizeof(T) == 0, "a vector holds whole elements");
    static constexpr unsigned count = BYTES / sizeof(T);
};

/* A vector as elements. */
template <typename T, unsigned BYTES> union gm_elements {
    gm_vec<BYTES> vec;
    T element[BYTES / sizeof(T)];
};

/*
 * Unaligned loads: 16 (or 8, or 4) bytes that begin anywhere, from the two aligned vectors that
 * they lie in.
 *
 *     memory      | low:  w0  w1  w2  w3 | high: w4  w5  w6  w7 |
 *                             ^ at = low + misalignment (6 bytes, say)
 *     by words          w1  w2  w3  w4  w5      selects: 8 bytes, 4 bytes
 *     by bytes          a funnel shift of each neighbouring pair, by the 2 bytes that are left
 */

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
