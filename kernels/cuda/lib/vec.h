/*
 * vec.h - vectors of 4, 8 or 16 bytes in registers: what one load or store moves.
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

#endif
