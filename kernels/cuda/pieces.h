/*
 * pieces.h - 4, 8 or 16 bytes of a row as a thread holds them: what one instruction moves, in
 * registers.
 */
#ifndef GM_KERNELS_CUDA_PIECES_H
#define GM_KERNELS_CUDA_PIECES_H

#include "kernels/cuda/kernel.h"

template <unsigned BYTES> struct alignas(BYTES) gm_piece {
    static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "what one instruction moves");
    uint32_t word[BYTES / 4];
};

/* Stores a piece in global memory with one instruction: as an ordinary store nvcc may take it apart
 * into words, where they were put together one by one. */
template <unsigned BYTES>
__device__ __forceinline__ void gm_put(void *to, const gm_piece<BYTES> &piece)
{
    if constexpr (BYTES == 16)
        __stwb((uint4 *)to, make_uint4(piece.word[0], piece.word[1], piece.word[2], piece.word[3]));
    else if constexpr (BYTES == 8)
        __stwb((uint2 *)to, make_uint2(piece.word[0], piece.word[1]));
    else
        __stwb((uint32_t *)to, piece.word[0]);
}

/* Loads a piece of global memory that no thread writes, for which the L2 cache fetches the 256
 * bytes that it lies in: DRAM answers those as one. For kernels whose blocks read narrow parts of
 * many rows. */
template <unsigned BYTES> __device__ __forceinline__ gm_piece<BYTES> gm_get_l2_256(const void *at)
{
    gm_piece<BYTES> piece;

    if constexpr (BYTES == 16) {
        uint4 x = gm_load_l2_256((const uint4 *)at);
        piece = {x.x, x.y, x.z, x.w};
    } else if constexpr (BYTES == 8) {
        uint2 x = gm_load_l2_256((const uint2 *)at);
        piece = {x.x, x.y};
    } else {
        piece = {gm_load_l2_256((const uint32_t *)at)};
    }
    return piece;
}

/* Elements of T in a piece. */
template <typename T, unsigned BYTES> struct gm_in_piece {
    static_assert(BYTES % sizeof(T) == 0, "a piece holds whole elements");
    static constexpr unsigned count = BYTES / sizeof(T);
};

/* A piece as elements. */
template <typename T, unsigned BYTES> union gm_elements {
    gm_piece<BYTES> piece;
    T element[BYTES / sizeof(T)];
};

#endif
