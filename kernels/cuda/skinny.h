/*
 * skinny.h - what the kernels of matmul_skinny.cu have in common.
 */
#ifndef GM_KERNELS_CUDA_SKINNY_H
#define GM_KERNELS_CUDA_SKINNY_H

#include "kernels/cuda/slices.h"

#define VECTORS_MAX 8u
#define LINES 4u /* of a warp, along k */
#define WARPS 8u
#define THREADS (GM_WARP * WARPS)
#define SLICES_MAX 512u
#define AHEAD 8u   /* lines across that a warp has under way */
#define SHORT 64u  /* k up to which a thread takes a line */
#define PIECE 256u /* steps of k of the vectors that are in shared memory */

/* The product as it is computed, `large` of lines x k times `vectors` of k x count: a b, or,
 * turned, b' a'. */
template <typename T> struct skinny {
    gm_product<T> p;
    struct gm_view large, vectors; /* row: from line to line, from step to step */
    uint64_t lines, slice_steps;
    unsigned count, slices;
    bool turned, aligned; /* aligned: runs of `large` are */
    bool whole_rows;      /* a row of the result is VECTORS_MAX elements, and so aligned */
};

template <typename T> struct alignas(16) run {
    T x[16 / sizeof(T)];
};

/* Elements that lie side by side, of which `left` are there; zeros beyond. */
template <typename T>
static __device__ __forceinline__ run<T> read_run(const T *from, uint64_t left, bool aligned)
{
    constexpr unsigned RUN = 16 / sizeof(T);
    run<T> got;

    if (aligned && left >= RUN)
        return *(const run<T> *)from;
#pragma unroll
    for (unsigned i = 0; i < RUN; i++)
        got.x[i] = i < left ? from[i] : T{};
    return got;
}

/* A run from shared memory, where it begins at 16 bytes. */
template <typename S> static __device__ __forceinline__ void take_run(S *to, const S *from)
{
    constexpr unsigned RUN = 16 / sizeof(S);
#pragma unroll
    for (unsigned i = 0; i < RUN; i++)
        to[i] = ((const run<S> *)from)->x[i];
}

template <typename T>
static __device__ __forceinline__ void finish(const skinny<T> &s, uint64_t matrix, uint64_t slice,
                                              uint64_t line, unsigned vector, gm_sum<T> sum)
{
    uint64_t row = s.turned ? vector : line, col = s.turned ? line : vector;

    if (s.slices > 1) {
        uint64_t before = (slice * s.p.batch + matrix) * s.p.m * s.p.n;
        ((gm_sum<T> *)s.p.result)[before + row * s.p.n + col] = sum;
    } else {
        T value = gm_finished(s.p, matrix, row, col, sum);
        s.p.result[matrix * s.p.m * s.p.n + row * s.p.n + col] = value;
    }
}

/* The vectors' steps from `first` on, zeros from `end` on and for vectors that there are not. */
template <typename T, unsigned COUNT, unsigned DOWN, unsigned ACROSS>
static __device__ __forceinline__ void bring(gm_sum<T> *piece, const skinny<T> &s, const T *vectors,
                                             uint64_t first, uint64_t end)
{
    for (unsigned i = threadIdx.x; i < PIECE * COUNT; i += THREADS) {
        /* Neighbours in memory: vectors of one step, or steps of one vector. */
        unsigned vector = s.vectors.col == 1 ? i % COUNT : i / PIECE;
        unsigned step = s.vectors.col == 1 ? i / COUNT : i % PIECE;
        bool there = vector < s.count && first + step < end;
        piece[vector * DOWN + step * ACROSS] =
            there ? gm_load(vectors[(first + step) * s.vectors.row + vector * s.vectors.col])
                  : gm_sum<T>(0);
    }
}

template <typename T>
static __device__ __forceinline__ uint64_t slice_begin(const skinny<T> &s, uint64_t slice)
{
    uint64_t begin = slice * s.slice_steps;

    return begin < s.p.k ? begin : s.p.k;
}

template <typename T> static uint64_t lines_of_a_block(const skinny<T> &s)
{
    return s.p.k <= SHORT ? THREADS : s.large.col == 1 ? WARPS * LINES : GM_WARP * (16 / sizeof(T));
}

/* By the shape alone, so that sums are the same on every device. */
template <typename T> static unsigned slices_of(const skinny<T> &s)
{
    const uint64_t wanted = 1056; /* blocks: 8 for each of an H200's multiprocessors */
    uint64_t blocks = s.p.batch * gm_pieces(s.lines, lines_of_a_block(s));
    uint64_t pieces = gm_pieces(s.p.k, PIECE), slices = blocks ? wanted / blocks : 1;

    slices = slices < pieces ? slices : pieces;
    slices = slices < SLICES_MAX ? slices : SLICES_MAX;
    return slices > 1 ? (unsigned)slices : 1;
}

#endif
