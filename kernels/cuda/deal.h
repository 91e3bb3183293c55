/*
 * deal.h - how the copies of a slab are dealt out to the threads of a block.
 */
#ifndef GM_KERNELS_CUDA_DEAL_H
#define GM_KERNELS_CUDA_DEAL_H

#include "kernels/cuda/ways.h"

/* SPAN rows or columns of an operand by DEPTH steps of k, each thread as many: a thread knows the
 * place of its first copy and the distance to the others. */
template <typename T, unsigned SPAN, unsigned DEPTH, unsigned THREADS> struct gm_deal {
    static constexpr unsigned VECTOR = 16 / sizeof(T), WARPS = THREADS / GM_WARP;
    static constexpr unsigned COPIES = SPAN * DEPTH / THREADS; /* of elements */
    static constexpr unsigned LAYERS = DEPTH / 8; /* a warp turns 8 of k by 4 rows at a time */
    static_assert(COPIES * THREADS == SPAN * DEPTH && COPIES % VECTOR == 0, "the same for all");
    static_assert(SPAN / VECTOR % THREADS == 0 || THREADS % (SPAN / VECTOR) == 0, "whole rows");
    static_assert(SPAN % THREADS == 0 || THREADS % SPAN == 0, "whole rows");
    static_assert(WARPS % LAYERS == 0 || LAYERS % WARPS == 0, "whole layers");

    /* A thread's first copy: its step of k, and its place across. */
    template <gm_way WAY> static __device__ __forceinline__ unsigned first_down()
    {
        constexpr unsigned wide = gm_wide<T>(WAY);
        return WAY == GM_WAY_TURNED ? threadIdx.x % 8 + 8 * (threadIdx.x / GM_WARP % LAYERS)
                                    : threadIdx.x / (SPAN / wide);
    }
    template <gm_way WAY> static __device__ __forceinline__ unsigned first_across()
    {
        constexpr unsigned wide = gm_wide<T>(WAY);
        return WAY == GM_WAY_TURNED
                   ? threadIdx.x % GM_WARP / 8 + 4 * (threadIdx.x / GM_WARP / LAYERS)
                   : threadIdx.x % (SPAN / wide) * wide;
    }
    /* Copy i's distance from the thread's first. */
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
};

#endif
