/*
 * skinny_parts.h - what both kernels of matmul_skinny.cu do: bring pieces of the vectors to shared
 * memory, and add up and finish what warps have.
 */
#ifndef GM_KERNELS_CUDA_SKINNY_PARTS_H
#define GM_KERNELS_CUDA_SKINNY_PARTS_H

#include "kernels/cuda/skinny.h"

/* Steps of k, a piece of those that a block has. */
struct skinny_piece {
    uint64_t first;
    unsigned count, room; /* room: with zeros behind them, so that whole runs can be read */
};
template <typename T>
static __device__ __forceinline__ skinny_piece piece_of(const skinny<T> &s, uint64_t first,
                                                        uint64_t end)
{
    uint64_t left = first < end ? end - first : 0;
    unsigned count = (unsigned)(left < s.piece_steps ? left : s.piece_steps);

    return {first, count, (count + warp_run<T> - 1) / warp_run<T> * warp_run<T>};
}

/* Where the block's slice of k begins, and where the next one does. */
template <typename T>
static __device__ __forceinline__ uint64_t slice_begin(const skinny<T> &s, unsigned slice)
{
    uint64_t begin = slice * s.slice_steps;

    return begin < s.p.k ? begin : s.p.k;
}

/* The vectors' steps: that of vector v at `step` goes to v * down + step * across. */
template <typename T, unsigned COUNT>
static __device__ __forceinline__ void bring(gm_sum<T> *to, const skinny<T> &s, uint64_t matrix,
                                             const skinny_piece &k, unsigned down, unsigned across)
{
    const T *vectors = gm_matrix_of<T>(s.vectors, matrix) + k.first * s.vectors.row;

    if (s.vectors.col == 1 && COUNT > 1) { /* neighbours in memory are vectors of one step */
#pragma unroll 4
        for (unsigned i = threadIdx.x; i < k.room * COUNT; i += blockDim.x) {
            unsigned vector = i % COUNT, step = i / COUNT;
            bool there = vector < s.count && step < k.count;
            to[vector * down + step * across] =
                there ? gm_load(vectors[step * s.vectors.row + vector]) : gm_sum<T>(0);
        }
        return;
    }
#pragma unroll 2
    for (unsigned step = threadIdx.x; step < k.room; step += blockDim.x) {
        T got[COUNT];
#pragma unroll
        for (unsigned v = 0; v < COUNT; v++)
            got[v] = v < s.count && step < k.count
                         ? vectors[step * s.vectors.row + v * s.vectors.col]
                         : T{};
#pragma unroll
        for (unsigned v = 0; v < COUNT; v++)
            to[v * down + step * across] = gm_load(got[v]);
    }
}

/* Adds what the warps have that share k, and finishes the results of a block's 2^lines_log lines
 * from `first` on. Vector v's sums are at part[v * down], of the next warp `deep` further on, and
 * that of a line at place(line) among them. */
template <typename T, unsigned COUNT, typename F>
static __device__ __forceinline__ void
add_up(const skinny<T> &s, uint64_t matrix, const gm_sum<T> *part, uint64_t first,
       unsigned lines_log, unsigned down, unsigned deep, F place)
{
    for (unsigned i = threadIdx.x; i < COUNT << lines_log; i += blockDim.x) {
        /* Threads that are neighbours have neighbours in the result. */
        unsigned vector = s.turned ? i >> lines_log : i % COUNT;
        unsigned in = s.turned ? i & ((1u << lines_log) - 1) : i / COUNT;
        const gm_sum<T> *from = part + vector * down + place(in);
        uint64_t line = first + in, row = s.turned ? vector : line, col = s.turned ? line : vector;
        gm_sum<T> sum = 0;

        if (line >= s.lines || vector >= s.count)
            continue;
#pragma unroll 4
        for (unsigned d = 0; d < 1u << s.at.deep_log; d++)
            sum += from[d * deep];
        if (s.at.slices > 1) {
            uint64_t before = (blockIdx.y * s.p.batch + matrix) * s.p.m * s.p.n;
            ((gm_sum<T> *)s.p.result)[before + row * s.p.n + col] = sum;
        } else {
            T value = gm_finished(s.p, matrix, row, col, sum);
            s.p.result[matrix * s.p.m * s.p.n + row * s.p.n + col] = value;
        }
    }
}

#endif
