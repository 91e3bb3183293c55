/*
 * skinny.h - a matrix times a few vectors as the kernels of matmul/skinny.cu see it.
 *
 *     along (lines run along k)                    across (a step of k adds a line)
 *
 *              k ->                                         lines ->
 *     line 0   [l0 l1 l2 l3|l0 l1 ..   . v0        step 0   [l0 l1 .. |l0 ..]  x v0[0]
 *     line 1   [l4 l5 l6 l7|..         . v0        step 1   [l8 l9 .. |     ]  x v0[1]
 *
 *     2^lanes_log lanes side by side, 16 bytes each; 2^deep_log warps share the steps of k, and
 *     2^wide_log the lines; `splits` blocks share k
 */
#ifndef GM_KERNELS_CUDA_MATMUL_SKINNY_H
#define GM_KERNELS_CUDA_MATMUL_SKINNY_H

#include "kernels/cuda/matmul/split_k.h"

#define VECTORS_MAX 8u
#define WARPS_MAX 16u
#define THREADS_MAX (GM_WARP * WARPS_MAX)
#define AHEAD 4u    /* spans of 16 bytes that a lane loads at once */
#define ROOM 32768u /* bytes of a block's vectors that are in shared memory at a time */
#define SKINNY_SPLITS_MAX 128u
#define BLOCK_LEAST_LOG 3u /* warps of a block, at least: to load the vectors with */
#define SHARED_MAX 40960u  /* bytes a block: five in an H200's multiprocessor */

/* Elements of a warp that has one span a lane. */
template <typename T> static constexpr unsigned warp_span = GM_WARP * 16 / sizeof(T);

/* As drawn above. The lanes of a warp beyond 2^lanes_log have other lines (along), or other steps
 * (across). */
struct skinny_layout {
    unsigned lanes_log, deep_log, wide_log;
    unsigned splits;    /* of k, for blocks to share */
    bool several_lines; /* of a lane, along k: what it reads of the vectors is for all of them */
};

/* The product as it is computed, `large` of lines x k times `vectors` of k x count: a b, or,
 * transposed, b' a'. */
template <typename T> struct skinny {
    gm_product<T> p;
    struct gm_view large, vectors; /* row: from line to line, from step to step */
    uint64_t lines, split_steps;
    unsigned count, chunk_steps;     /* chunk_steps: of a split, whose vectors are loaded at once */
    bool transposed, along, aligned; /* lines lie along k; spans of `large` are aligned */
    struct skinny_layout at;
};

/* For how many vectors there is a kernel that has `count`; of an empty result there are none. */
static inline unsigned kernel_count(unsigned count)
{
    return count <= 1 ? 1 : count <= 2 ? 2 : count <= 4 ? 4 : VECTORS_MAX;
}

/* Lines of a lane along k, where it has several: of single vectors never, for which nothing is
 * shared by that; of 8 vectors of 8 bytes the sums of more do not fit in registers. */
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

/* From element to element of a vector, where sums across lines are in shared memory: in other
 * banks.
 */
static __host__ __device__ inline unsigned padded_lanes(unsigned lanes)
{
    return lanes + 8;
}

/* Bytes of shared memory for a block's vectors, and after them for its sums. */
template <typename T> static size_t shared_of(const skinny<T> &s)
{
    constexpr size_t SPAN = 16 / sizeof(T);
    size_t count = kernel_count(s.count);
    size_t vectors = count * (s.chunk_steps + 16 / sizeof(gm_acc<T>));
    size_t row = s.along ? (size_t)lines_of_a_warp(s) : SPAN * padded_lanes(1u << s.at.lanes_log);
    size_t sums = (count * ((row << s.at.wide_log) + 1)) << s.at.deep_log;

    return (vectors > sums ? vectors : sums) * sizeof(gm_acc<T>);
}

/* Of a power of two. */
template <unsigned X> static constexpr unsigned log2_of = 1 + log2_of<X / 2>;
template <> constexpr unsigned log2_of<1> = 0;

#endif
