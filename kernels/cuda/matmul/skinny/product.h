/*
 * product.h - describes a matrix times a few vectors to the kernels of matmul/skinny.cu.
 *
 *     along (lines run along K)                    across (a step of K adds a line)
 *
 *              K ->                                         lines ->
 *     line 0   [l0 l1 l2 l3|l0 l1 ..   . v0        step 0   [l0 l1 .. |l0 ..]  x v0[0]
 *     line 1   [l4 l5 l6 l7|..         . v0        step 1   [l8 l9 .. |     ]  x v0[1]
 *
 *     l0, l1, ..: lanes of a warp, 16 bytes each; 2^lanes_log of them share a line
 *     2^deep_log warps of a block share the steps of K, 2^wide_log the lines
 *     `splits` blocks share K
 */
#ifndef GM_KERNELS_CUDA_MATMUL_SKINNY_PRODUCT_H
#define GM_KERNELS_CUDA_MATMUL_SKINNY_PRODUCT_H

#include "kernels/cuda/matmul/split_k.h"

static constexpr unsigned VECTORS_MAX = 8, WARPS_MAX = 16, THREADS_MAX = GM_WARP * WARPS_MAX;
static constexpr unsigned AHEAD = 4;    /* 16-byte vectors that a lane loads at once */
static constexpr unsigned ROOM = 32768; /* bytes of the small operand in shared memory at a time */
static constexpr unsigned SKINNY_SPLITS_MAX = 128;
static constexpr unsigned BLOCK_LEAST_LOG =
    3;                                        /* log2 of the fewest warps, which load the vectors */
static constexpr unsigned SHARED_MAX = 40960; /* bytes per block: five on an H200's SM */

/* Elements that a warp loads with one 16-byte vector a lane. */
template <typename T> static constexpr unsigned warp_span = GM_WARP * 16 / sizeof(T);

/* The layout drawn above. The other lanes of a warp have other lines (along), or other steps
 * (across). */
struct skinny_layout {
    unsigned lanes_log, deep_log, wide_log;
    unsigned splits;    /* blocks that share K */
    bool several_lines; /* along: factors are reused for several lines */
};

/* The product as it is computed: `large` of lines x K times `vectors` of K x count. It is A B or,
 * transposed, B' A'. */
template <typename T> struct skinny {
    gm_product<T> p;
    struct gm_view large, vectors; /* row: stride from line to line, or from step to step */
    uint64_t lines, split_steps;
    unsigned count, chunk_steps;     /* steps loaded at once */
    bool transposed, along, aligned; /* aligned: `large` allows 16-byte loads */
    struct skinny_layout at;
};

/* The number of vectors, 1, 2, 4 or 8, of the kernel that computes `count`. */
static inline unsigned kernel_count(unsigned count)
{
    return count <= 1 ? 1 : count <= 2 ? 2 : count <= 4 ? 4 : VECTORS_MAX;
}

/* Lines per lane (along), if a lane has several. A single vector has one, because nothing would be
 * shared. For 8 vectors of 8-byte elements, more accumulators do not fit in registers. */
template <typename T> static constexpr unsigned several_lines(unsigned count)
{
    return count == 1 ? 1 : sizeof(gm_acc<T>) == 8 && count == VECTORS_MAX ? AHEAD / 2 : AHEAD;
}

template <typename T> static uint64_t lines_of_a_warp(const skinny<T> &s)
{
    uint64_t lanes = (uint64_t)1 << s.at.lanes_log;

    if (!s.along)
        return lanes * (16 / sizeof(T));
    return GM_WARP / lanes * (s.at.several_lines ? several_lines<T>(kernel_count(s.count)) : 1);
}

/* Across: the distance in shared memory between the elements of a 16-byte vector, padded to use
 * other banks. */
static __host__ __device__ inline unsigned padded_lanes(unsigned lanes)
{
    return lanes + 8;
}

/* Bytes of shared memory of a block: first for its vectors, then, in the same place, for its
 * sums. */
template <typename T> static size_t shared_of(const skinny<T> &s)
{
    constexpr size_t SPAN = 16 / sizeof(T);
    size_t count = kernel_count(s.count);
    size_t vectors = count * (s.chunk_steps + 16 / sizeof(gm_acc<T>));
    size_t row = s.along ? (size_t)lines_of_a_warp(s) : SPAN * padded_lanes(1u << s.at.lanes_log);
    size_t sums = (count * ((row << s.at.wide_log) + 1)) << s.at.deep_log;

    return (vectors > sums ? vectors : sums) * sizeof(gm_acc<T>);
}

/* A chunk: consecutive steps of K of a block's split, loaded at once. */
struct skinny_chunk {
    uint64_t first;
    unsigned count, room; /* room: count rounded up with zeros, so that whole vectors can be read */
};
template <typename T>
static __device__ __forceinline__ skinny_chunk chunk_of(const skinny<T> &s, uint64_t first,
                                                        uint64_t end)
{
    uint64_t left = first < end ? end - first : 0;
    unsigned count = (unsigned)(left < s.chunk_steps ? left : s.chunk_steps);

    return {first, count, (count + warp_span<T> - 1) / warp_span<T> * warp_span<T>};
}

/* The first step of a split, or K beyond the last split. */
template <typename T>
static __device__ __forceinline__ uint64_t split_begin(const skinny<T> &s, unsigned split)
{
    uint64_t begin = split * s.split_steps;

    return begin < s.p.K ? begin : s.p.K;
}

/* log2 of a power of two. */
template <unsigned X> static constexpr unsigned log2_of = 1 + log2_of<X / 2>;
template <> constexpr unsigned log2_of<1> = 0;

#endif
