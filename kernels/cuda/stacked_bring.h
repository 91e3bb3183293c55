/*
 * stacked_bring.h - what a block of matmul_stack.cu brings into shared memory, by asynchronous
 * copies: by 16 bytes wherever they begin, if the operand is read as it lies.
 */
#ifndef GM_KERNELS_CUDA_STACKED_BRING_H
#define GM_KERNELS_CUDA_STACKED_BRING_H

#include "kernels/cuda/divide.h"
#include "kernels/cuda/join.h"
#include "kernels/cuda/stacked.h"

/* What a block is given. */
template <typename T> struct stack {
    gm_product<T> p;
    struct part c;
    unsigned m, n, k, by_k, by_height, by_depth;
};

static_assert(BLOCK_BYTES / sizeof(float) <= UINT16_MAX, "elements of a block have 16 bits");

/* x / d, by what short_divisor(d) is (gm_reciprocal). */
static __device__ __forceinline__ unsigned divide_short(unsigned x, unsigned by)
{
    return by > 0 ? __umulhi(x, by) : x;
}
static inline unsigned short_divisor(unsigned d)
{
    return d > 1 ? gm_reciprocal(d) : 0;
}

/* Starts to copy `pieces` pieces of 16 bytes, from the one that holds element `first` of `data`.
 * Returns that element's place in its piece. What lies beyond the operand's `total` elements
 * becomes zero. */
template <typename T>
static __device__ __forceinline__ unsigned bring_run(T *to, const T *data, uint64_t first,
                                                     unsigned pieces, uint64_t total)
{
    constexpr unsigned RUN = 16 / sizeof(T);
    unsigned skip = gm_skip<16>(data + first) / (unsigned)sizeof(T);
    const T *from = data + first - skip;
    uint64_t rest = total - first + skip;
    unsigned left = rest < UINT32_MAX ? (unsigned)rest : UINT32_MAX;

    if (pieces * RUN <= left) {
#pragma unroll 4
        for (unsigned i = threadIdx.x * RUN; i < pieces * RUN; i += blockDim.x * RUN)
            __pipeline_memcpy_async(to + i, from + i, 16, 0);
        return skip;
    }
    for (unsigned e = threadIdx.x; e < pieces * RUN; e += blockDim.x)
        __pipeline_memcpy_async(to + e, from + (e < left ? e : 0), sizeof(T),
                                e < left ? 0 : sizeof(T));
    return skip;
}

/* Starts to copy a's rows: `rows` of one matrix from `row` on, or all of `there` matrices. Returns
 * where the first begins in `to`. */
template <typename T>
static __device__ __forceinline__ unsigned bring_rows(T *to, const stack<T> &s, uint64_t matrix,
                                                      unsigned there, unsigned row, unsigned rows)
{
    constexpr unsigned RUN = 16 / sizeof(T);
    const T *from = gm_matrix_of<T>(s.p.a, matrix) + row * s.p.a.row;
    unsigned count = there * rows * s.k;

    if (s.p.a.col != 1) { /* lanes go down columns */
        for (unsigned e = threadIdx.x; e < there * s.c.height * s.k; e += blockDim.x) {
            unsigned line = divide_short(e, s.by_height), r = e - line * s.c.height;
            unsigned g = divide_short(line, s.by_k), step = line - g * s.k;
            if (r < rows)
                __pipeline_memcpy_async(to + (g * rows + r) * s.c.pitch + step,
                                        from + g * s.p.a.batch + r + step * s.p.a.col, sizeof(T),
                                        0);
        }
    } else if (!s.c.padded) {
        return bring_run(to, (const T *)s.p.a.data, (matrix * s.m + row) * s.k,
                         (unsigned)gm_ceil_div(count, RUN) + 1, s.p.batch * s.m * s.k);
    } else if (gm_skip<16>(from) == 0) {
        for (unsigned e = threadIdx.x * RUN; e < count; e += blockDim.x * RUN) {
            unsigned r = divide_short(e, s.by_k);
            __pipeline_memcpy_async(to + e + r * (s.c.pitch - s.k), from + e, 16, 0);
        }
    } else {
        for (unsigned e = threadIdx.x; e < count; e += blockDim.x) {
            unsigned r = divide_short(e, s.by_k);
            __pipeline_memcpy_async(to + e + r * (s.c.pitch - s.k), from + e, sizeof(T), 0);
        }
    }
    return 0;
}

/* Starts to copy a slab of b, from step `first` on. Returns where it begins in `to`. */
template <typename T>
static __device__ __forceinline__ unsigned bring_slab(T *to, const stack<T> &s, uint64_t matrix,
                                                      unsigned there, unsigned first)
{
    constexpr unsigned RUN = 16 / sizeof(T);
    unsigned steps = min(s.c.depth, s.k - first);

    if (s.p.b.col == 1)
        return bring_run(to, (const T *)s.p.b.data, (matrix * s.k + first) * s.n,
                         (unsigned)gm_ceil_div(s.c.many * s.c.depth * s.n, RUN) + 1,
                         s.p.batch * s.k * s.n);
    for (unsigned e = threadIdx.x; e < s.c.many * s.c.depth * s.n; e += blockDim.x) {
        unsigned line = divide_short(e, s.by_depth),
                 step = e - line * s.c.depth; /* along a column */
        unsigned g = line / s.n, col = line - g * s.n;
        bool is = g < there && step < steps;
        const T *from = gm_matrix_of<T>(s.p.b, matrix + (is ? g : 0)) + first;
        __pipeline_memcpy_async(to + (g * s.c.depth + step) * s.n + col,
                                is ? from + col * s.p.b.col + step : from, sizeof(T),
                                is ? 0 : sizeof(T));
    }
    return 0;
}

#endif
