/*
 * skinny_run.h - 16 bytes of a line as a lane of matmul_skinny.cu holds them.
 */
#ifndef GM_KERNELS_CUDA_SKINNY_RUN_H
#define GM_KERNELS_CUDA_SKINNY_RUN_H

#include "kernels/cuda/kernel.h"

template <typename T, size_t = sizeof(T)> struct alignas(16) run {
    T x[16 / sizeof(T)];

    __device__ __forceinline__ T get(unsigned i) const
    {
        return x[i];
    }
    __device__ __forceinline__ void set(unsigned i, T value)
    {
        x[i] = value;
    }
};
/* Elements of 2 bytes by words: nvcc would have a register for each, and move them. They are set in
 * their order: the first of a word clears the second. */
template <typename T> struct alignas(16) run<T, 2> {
    uint32_t word[4];

    __device__ __forceinline__ T get(unsigned i) const
    {
        return {(uint16_t)(word[i / 2] >> 16 * (i % 2))};
    }
    __device__ __forceinline__ void set(unsigned i, T value)
    {
        word[i / 2] = i % 2 ? word[i / 2] | (uint32_t)value.bits << 16 : value.bits;
    }
};

/* A lane's elements, of `left` that there are; zeros beyond. They lie side by side where runs are
 * aligned; else `apart` from each other, so that it is lanes whose elements are neighbours. */
template <typename T, bool ALIGNED>
static __device__ __forceinline__ run<T> read_run(const T *from, uint64_t left, unsigned apart)
{
    constexpr unsigned RUN = 16 / sizeof(T);
    run<T> got;

    if (ALIGNED && left >= RUN)
        return *(const run<T> *)from;
#pragma unroll
    for (unsigned i = 0; i < RUN; i++)
        got.set(i, i * apart < left ? from[i * apart] : T{});
    return got;
}

#endif
