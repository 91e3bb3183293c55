/*
 * feed.h - an operand's way into shared memory, slab by slab, by asynchronous copies.
 */
#ifndef GM_KERNELS_CUDA_FEED_H
#define GM_KERNELS_CUDA_FEED_H

#include "kernels/cuda/cut.h"
#include "kernels/cuda/ways.h"

/* Keeps a value that is cheap to compute in its register: the compiler would rather compute it
 * anew in each round, where every instruction costs. */
__device__ __forceinline__ void gm_keep(uint32_t &value)
{
    asm("" : "+r"(value));
}

/* One operand's way into shared memory: SPAN rows or columns of it a slab. Copies are dealt out
 * evenly; a thread knows the place of its first and the distance to the others. */
template <typename T, unsigned SPAN, unsigned PITCH, unsigned DEPTH, unsigned THREADS, gm_way ONLY>
struct gm_feed {
    static constexpr unsigned VECTOR = 16 / sizeof(T), WARPS = THREADS / GM_WARP;
    static constexpr unsigned COPIES = SPAN * DEPTH / THREADS; /* of elements */
    static constexpr unsigned LAYERS = DEPTH / 8; /* a warp turns 8 of k by 4 rows at a time */
    static constexpr bool PAIRS = VECTOR > 2;     /* two elements are less than a vector */
    static constexpr gm_way BY_PAIRS = PAIRS ? GM_WAY_PAIRS : GM_WAY_VECTORS;
    static_assert(COPIES * THREADS == SPAN * DEPTH && COPIES % VECTOR == 0, "the same for all");
    static_assert(SPAN / VECTOR % THREADS == 0 || THREADS % (SPAN / VECTOR) == 0, "whole rows");
    static_assert(SPAN % THREADS == 0 || THREADS % SPAN == 0, "whole rows");
    static_assert(WARPS % LAYERS == 0 || LAYERS % WARPS == 0, "whole layers");

    const T *from;       /* the slab that is copied next */
    uint64_t step;       /* to the slab after, in elements */
    uint32_t at[COPIES]; /* what this thread copies, from there, in elements */
    uint32_t to, depth;  /* its first copy's place in the slab; of that, the step of k */
    gm_way way;

    /* Copy i's distance from the thread's first: along k, and across. */
    template <gm_way WAY> static constexpr __device__ unsigned down(unsigned i)
    {
        constexpr unsigned wide = gm_wide<T>(WAY);
        return WAY != GM_WAY_TURNED  ? i * THREADS / (SPAN / wide)
               : WARPS % LAYERS == 0 ? 0
                                     : 8 * (i * WARPS % LAYERS);
    }
    template <gm_way WAY> static constexpr __device__ unsigned across(unsigned i)
    {
        constexpr unsigned wide = gm_wide<T>(WAY);
        return WAY == GM_WAY_TURNED ? 4 * (i * WARPS / LAYERS) : i * THREADS % (SPAN / wide) * wide;
    }

    /* `matrix` where its first slab begins, of which `left` rows or columns are there. */
    template <gm_way WAY>
    __device__ __forceinline__ void aim(const T *matrix, uint64_t left, uint64_t stride,
                                        uint64_t stride_k)
    {
        constexpr unsigned wide = gm_wide<T>(WAY);
        unsigned lane = threadIdx.x % GM_WARP, warp = threadIdx.x / GM_WARP, first;
        unsigned last = (left < SPAN ? (unsigned)left : SPAN) - wide;

        way = WAY;
        from = matrix;
        step = DEPTH * stride_k;
        depth = WAY == GM_WAY_TURNED ? lane % 8 + 8 * (warp % LAYERS) : threadIdx.x / (SPAN / wide);
        first = WAY == GM_WAY_TURNED ? lane / 8 + 4 * (warp / LAYERS)
                                     : threadIdx.x % (SPAN / wide) * wide;
        to = depth * PITCH + first;
        gm_keep(to);
#pragma unroll
        for (unsigned i = 0; i < COPIES / wide; i++) {
            unsigned x = first + across<WAY>(i), k = depth + down<WAY>(i);
            at[i] = (x < last ? x : last) * (uint32_t)stride + k * (uint32_t)stride_k;
            gm_keep(at[i]);
        }
    }
    __device__ __forceinline__ void aim_by(gm_way by, const T *matrix, uint64_t left,
                                           uint64_t stride, uint64_t stride_k)
    {
        if constexpr (ONLY != GM_WAY_ANY)
            aim<ONLY>(matrix, left, stride, stride_k);
        else if (by == GM_WAY_VECTORS)
            aim<GM_WAY_VECTORS>(matrix, left, stride, stride_k);
        else if (PAIRS && by == GM_WAY_PAIRS)
            aim<BY_PAIRS>(matrix, left, stride, stride_k);
        else if (by == GM_WAY_ELEMENTS)
            aim<GM_WAY_ELEMENTS>(matrix, left, stride, stride_k);
        else
            aim<GM_WAY_TURNED>(matrix, left, stride, stride_k);
    }

    /* Begins to copy a slab of which `steps` of k are there; WHOLE: all are. */
    template <gm_way WAY, bool WHOLE>
    __device__ __forceinline__ void copy(gm_sum<T> *slab, unsigned steps)
    {
        constexpr unsigned wide = gm_wide<T>(WAY);
        gm_sum<T> *first = slab + to;

#pragma unroll
        for (unsigned i = 0; i < COPIES / wide; i++) {
            bool there = WHOLE || depth + down<WAY>(i) < steps;
            __pipeline_memcpy_async(first + down<WAY>(i) * PITCH + across<WAY>(i), from + at[i],
                                    wide * sizeof(T), there ? 0 : wide * sizeof(T));
        }
    }
    template <bool WHOLE> __device__ __forceinline__ void next(gm_sum<T> *slab, unsigned steps)
    {
        if constexpr (ONLY != GM_WAY_ANY)
            copy<ONLY, WHOLE>(slab, steps);
        else if (way == GM_WAY_VECTORS)
            copy<GM_WAY_VECTORS, WHOLE>(slab, steps);
        else if (PAIRS && way == GM_WAY_PAIRS)
            copy<BY_PAIRS, WHOLE>(slab, steps);
        else if (way == GM_WAY_ELEMENTS)
            copy<GM_WAY_ELEMENTS, WHOLE>(slab, steps);
        else
            copy<GM_WAY_TURNED, WHOLE>(slab, steps);
        from += step;
    }
};

#endif
