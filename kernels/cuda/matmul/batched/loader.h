/*
 * loader.h - copies operands of matmul/batched.cu into shared memory, asynchronously.
 *
 * Copies move 16 bytes at any alignment of the span, or single elements if the operand is
 * transposed.
 */
#ifndef GM_KERNELS_CUDA_MATMUL_BATCHED_LOADER_H
#define GM_KERNELS_CUDA_MATMUL_BATCHED_LOADER_H

#include "kernels/cuda/lib/tiles.h"
#include "kernels/cuda/lib/vec.h"
#include "kernels/cuda/matmul/batched/config.h"

/* The parameters of a launch; by_k, by_bm and by_bk are short_divisor() of K, BM and BK. */
template <typename T> struct batched_product {
    gm_product<T> p;
    struct batched_config c;
    unsigned M, N, K, by_k, by_bm, by_bk;
};

static_assert(BLOCK_BYTES / sizeof(float) <= UINT16_MAX, "elements of a block have 16 bits");

/* x / d, where by = short_divisor(d). */
static __device__ __forceinline__ unsigned divide_short(unsigned x, unsigned by)
{
    return by > 0 ? __umulhi(x, by) : x;
}
static inline unsigned short_divisor(unsigned d)
{
    return d > 1 ? gm_reciprocal(d) : 0;
}

/* Starts to copy `vecs` 16-byte vectors, beginning with the one that contains element `first` of
 * `data`. Returns the position of that element in its vector. Elements at and beyond `total` become
 * zero. */
template <typename T>
static __device__ __forceinline__ unsigned load_span(T *to, const T *data, uint64_t first,
                                                     unsigned vecs, uint64_t total)
{
    constexpr unsigned VEC = 16 / sizeof(T);
    unsigned misaligned = gm_misalignment<16>(data + first) / (unsigned)sizeof(T);
    const T *from = data + first - misaligned;
    uint64_t rest = total - first + misaligned;
    unsigned left = rest < UINT32_MAX ? (unsigned)rest : UINT32_MAX;

    if (vecs * VEC <= left) {
#pragma unroll 4
        for (unsigned i = threadIdx.x * VEC; i < vecs * VEC; i += blockDim.x * VEC)
            __pipeline_memcpy_async(to + i, from + i, 16, 0);
        return misaligned;
    }
    for (unsigned e = threadIdx.x; e < vecs * VEC; e += blockDim.x)
        __pipeline_memcpy_async(to + e, from + (e < left ? e : 0), sizeof(T),
                                e < left ? 0 : sizeof(T));
    return misaligned;
}

/* Starts to copy `rows` rows of A, from `row` on, of each of `there` matrices. Returns where the
 * first row begins in `to`. */
template <typename T>
static __device__ __forceinline__ unsigned load_a(T *to, const batched_product<T> &s,
                                                  uint64_t matrix, unsigned there, unsigned row,
                                                  unsigned rows)
{
    constexpr unsigned VEC = 16 / sizeof(T);
    const T *from = gm_matrix_of<T>(s.p.a, matrix) + row * s.p.a.row;
    unsigned count = there * rows * s.K;

    if (s.p.a.col != 1) { /* lanes run down columns */
        for (unsigned e = threadIdx.x; e < there * s.c.BM * s.K; e += blockDim.x) {
            unsigned line = divide_short(e, s.by_bm), r = e - line * s.c.BM;
            unsigned g = divide_short(line, s.by_k), step = line - g * s.K;
            if (r < rows)
                __pipeline_memcpy_async(to + (g * rows + r) * s.c.lda + step,
                                        from + g * s.p.a.batch + r + step * s.p.a.col, sizeof(T),
                                        0);
        }
    } else if (!s.c.padded) {
        return load_span(to, (const T *)s.p.a.data, (matrix * s.M + row) * s.K,
                         (unsigned)gm_ceil_div(count, VEC) + 1, s.p.batch * s.M * s.K);
    } else if (gm_misalignment<16>(from) == 0) {
        for (unsigned e = threadIdx.x * VEC; e < count; e += blockDim.x * VEC) {
            unsigned r = divide_short(e, s.by_k);
            __pipeline_memcpy_async(to + e + r * (s.c.lda - s.K), from + e, 16, 0);
        }
    } else {
        for (unsigned e = threadIdx.x; e < count; e += blockDim.x) {
            unsigned r = divide_short(e, s.by_k);
            __pipeline_memcpy_async(to + e + r * (s.c.lda - s.K), from + e, sizeof(T), 0);
        }
    }
    return 0;
}

/* Starts to copy a k-tile of B, from step `first` on. Returns where it begins in `to`. */
template <typename T>
static __device__ __forceinline__ unsigned load_b(T *to, const batched_product<T> &s,
                                                  uint64_t matrix, unsigned there, unsigned first)
{
    constexpr unsigned VEC = 16 / sizeof(T);
    unsigned steps = min(s.c.BK, s.K - first);

    if (s.p.b.col == 1)
        return load_span(to, (const T *)s.p.b.data, (matrix * s.K + first) * s.N,
                         (unsigned)gm_ceil_div(s.c.many * s.c.BK * s.N, VEC) + 1,
                         s.p.batch * s.K * s.N);
    for (unsigned e = threadIdx.x; e < s.c.many * s.c.BK * s.N; e += blockDim.x) {
        unsigned line = divide_short(e, s.by_bk), step = e - line * s.c.BK; /* along a column */
        unsigned g = line / s.N, col = line - g * s.N;
        bool is = g < there && step < steps;
        const T *from = gm_matrix_of<T>(s.p.b, matrix + (is ? g : 0)) + first;
        __pipeline_memcpy_async(to + (g * s.c.BK + step) * s.N + col,
                                is ? from + col * s.p.b.col + step : from, sizeof(T),
                                is ? 0 : sizeof(T));
    }
    return 0;
}

#endif
