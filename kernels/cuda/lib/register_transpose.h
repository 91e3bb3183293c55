/*
 * register_transpose.h - transposes a block of N x N elements in registers, one vector a row.
 *
 *     vector 0   a b c d         a e i m
 *     vector 1   e f g h   ->    b f j n
 *     vector 2   i j k l         c g k o
 *     vector 3   m n o p         d h l p
 *
 * All loops are unrolled, so that indices into vectors are compile-time constants. Otherwise nvcc
 * would keep the vectors in local memory.
 */
#ifndef GM_KERNELS_CUDA_LIB_REGISTER_TRANSPOSE_H
#define GM_KERNELS_CUDA_LIB_REGISTER_TRANSPOSE_H

#include "kernels/cuda/lib/vec.h"

/* 4 x 4 bytes: y[i] holds byte i of each of x[0] to x[3]. */
__device__ __forceinline__ void gm_transpose_4x4_bytes(const uint32_t x[4], uint32_t y[4])
{
    uint32_t low01 = __byte_perm(x[0], x[1], 0x5140), low23 = __byte_perm(x[2], x[3], 0x5140);
    uint32_t high01 = __byte_perm(x[0], x[1], 0x7362), high23 = __byte_perm(x[2], x[3], 0x7362);

    y[0] = __byte_perm(low01, low23, 0x5410);
    y[1] = __byte_perm(low01, low23, 0x7632);
    y[2] = __byte_perm(high01, high23, 0x5410);
    y[3] = __byte_perm(high01, high23, 0x7632);
}

/* Vector i becomes column i. Elements of whole words only change registers; elements of 1 and 2
 * bytes are permuted, half an instruction each. */
template <typename T, unsigned BYTES, unsigned N>
__device__ __forceinline__ void gm_register_transpose(gm_vec<BYTES> (&block)[N])
{
    static_assert(N == gm_per_vec<T, BYTES>::count, "a block is as high as it is wide");
    constexpr unsigned WORDS = BYTES / 4;
    gm_vec<BYTES> transposed[N];

    if constexpr (sizeof(T) == 1) {
#pragma unroll
        for (unsigned i = 0; i < N; i += 4) {
#pragma unroll
            for (unsigned j = 0; j < WORDS; j++) {
                uint32_t x[4], y[4];
#pragma unroll
                for (unsigned k = 0; k < 4; k++)
                    x[k] = block[i + k].word[j];
                gm_transpose_4x4_bytes(x, y);
#pragma unroll
                for (unsigned k = 0; k < 4; k++)
                    transposed[4 * j + k].word[i / 4] = y[k];
            }
        }
    } else if constexpr (sizeof(T) == 2) {
#pragma unroll
        for (unsigned i = 0; i < N; i += 2) {
#pragma unroll
            for (unsigned j = 0; j < WORDS; j++) {
                uint32_t above = block[i].word[j], below = block[i + 1].word[j];
                transposed[2 * j].word[i / 2] = __byte_perm(above, below, 0x5410);
                transposed[2 * j + 1].word[i / 2] = __byte_perm(above, below, 0x7632);
            }
        }
    } else {
        constexpr unsigned EACH = sizeof(T) / 4; /* words of an element */
#pragma unroll
        for (unsigned i = 0; i < N; i++) {
#pragma unroll
            for (unsigned j = 0; j < WORDS; j++)
                transposed[j / EACH].word[i * EACH + j % EACH] = block[i].word[j];
        }
    }
#pragma unroll
    for (unsigned i = 0; i < N; i++)
        block[i] = transposed[i];
}

#endif
