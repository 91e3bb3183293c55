/*
 * vec.h - vectors of 4, 8 or 16 bytes in registers, swizzles, and vector loads at any address.
 */
#ifndef GM_KERNELS_CUDA_LIB_VEC_H
#define GM_KERNELS_CUDA_LIB_VEC_H

#include "kernels/cuda/lib/kernel.h"

template <unsigned BYTES> struct alignas(BYTES) gm_vec {
    static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "what one instruction moves");
    uint32_t word[BYTES / 4];
};

/* Stores a vector to global memory with one instruction. nvcc may split an ordinary store into
 * words if the vector was assembled word by word. */
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

/* Loads a read-only vector from global memory, and has the L2 cache fetch the aligned 256 bytes
 * around it, which DRAM serves as one access. For kernels whose blocks read narrow parts of many
 * rows. */
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

template <typename T, unsigned BYTES> struct gm_per_vec {
    static_assert(BYTES % sizeof(T) == 0, "a vector holds whole elements");
    static constexpr unsigned count = BYTES / sizeof(T);
};

template <typename T, unsigned BYTES> union gm_elements {
    gm_vec<BYTES> vec;
    T element[BYTES / sizeof(T)];
};

/*
 * The swizzles: the byte offset of 16-byte vector `vec` of a row of 64 or 128 bytes in shared
 * memory. 8 vectors below each other, which tensor cores read at once, then lie in 8 different
 * groups of 4 banks. Stored vectors of a row, left to right:
 *
 *     64 bytes    rows 0, 1: 0 1 2 3    rows 2, 3: 1 0 3 2    rows 4, 5: 2 3 0 1    ..
 *     128 bytes   row 0: 0 1 2 3 4 5 6 7    row 1: 1 0 3 2 5 4 7 6    row 2: 2 3 0 1 6 7 4 5    ..
 */
__device__ __forceinline__ unsigned gm_swizzled_64b(unsigned row, unsigned vec)
{
    return row * 64 + ((vec ^ (row >> 1 & 3)) << 4);
}
__device__ __forceinline__ unsigned gm_swizzled_128b(unsigned row, unsigned vec)
{
    return row * 128 + ((vec ^ (row & 7)) << 4);
}

/*
 * Unaligned vector loads: 16 (or 8, or 4) bytes at any address, from the two aligned vectors that
 * contain them.
 *
 *     memory      | low:  w0  w1  w2  w3 | high: w4  w5  w6  w7 |
 *                             ^ at = low + misalignment (6 bytes, say)
 *     words:            w1  w2  w3  w4  w5      selects shift by 8 bytes, then by 4
 *     bytes:            a funnel shift of each pair of neighbours shifts by the last 2
 */

template <unsigned BYTES> struct gm_vec_pair {
    gm_vec<BYTES> low, high;
};

/* Bytes from the last BYTES-aligned address to `at`. */
template <unsigned BYTES> __device__ __forceinline__ unsigned gm_misalignment(const void *at)
{
    return (unsigned)(uintptr_t)at & (BYTES - 1);
}

/* Loads the one or two aligned vectors that contain the BYTES bytes at `at`. If `at` is aligned,
 * the same vector is loaded twice: no branch, and no access beyond it. */
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

/* Returns the BYTES bytes that begin `skip` bytes into a pair. `skip` is a multiple of sizeof(T).
 * Selects move words down by two and by one; funnel shifts move the remaining bytes. */
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
