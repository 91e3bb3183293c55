/*
 * feed.h - an operand's way into shared memory, slab by slab, while others are used.
 */
#ifndef GM_KERNELS_CUDA_FEED_H
#define GM_KERNELS_CUDA_FEED_H

#include "kernels/cuda/cut.h"
#include "kernels/cuda/deal.h"
#include "kernels/cuda/pieces.h"

/* Keeps a value that is cheap to compute in its register: the compiler would rather compute it
 * anew in each round, where every instruction costs. */
__device__ __forceinline__ void gm_keep(uint32_t &value)
{
    asm("" : "+r"(value));
}

/*
 * One operand's way: SPAN rows or columns of it a slab, by asynchronous copies (cp.async); but in
 * the kernels made for a way of up to HELD_MOST elements, not turned, by loads and stores, which
 * take less than so many small copies: a slab is held in registers until the next one is loaded.
 */
template <typename T, unsigned SPAN, unsigned PITCH, unsigned DEPTH, unsigned THREADS,
          unsigned HELD_MOST, gm_way ONLY>
struct gm_feed {
    using deal = gm_deal<T, SPAN, DEPTH, THREADS>;
    static constexpr bool PAIRS = deal::VECTOR > 2; /* two elements are less than a vector */
    static constexpr gm_way BY_PAIRS = PAIRS ? GM_WAY_PAIRS : GM_WAY_VECTORS;
    static constexpr bool HELD =
        (ONLY == GM_WAY_ELEMENTS || ONLY == GM_WAY_PAIRS) && gm_wide<T>(ONLY) <= HELD_MOST;
    using piece = gm_piece<HELD ? gm_wide<T>(ONLY) * sizeof(T) : 4>; /* what a copy moves */
    static constexpr unsigned PIECES = HELD ? deal::COPIES / gm_wide<T>(ONLY) : 1;

    const T *from;             /* the slab that is copied next */
    uint64_t step;             /* to the slab after, in elements */
    uint32_t at[deal::COPIES]; /* what this thread copies, from there, in elements */
    uint32_t to, depth;        /* its first copy's place in the slab; of that, the step of k */
    gm_way way;
    piece held[PIECES]; /* of a slab, and the place there of the first */
    gm_sum<T> *held_for;

    /* `matrix` where its first slab begins, of which `left` rows or columns are there. */
    template <gm_way WAY>
    __device__ __forceinline__ void aim(const T *matrix, uint64_t left, uint64_t stride,
                                        uint64_t stride_k)
    {
        constexpr unsigned wide = gm_wide<T>(WAY);
        unsigned last = (left < SPAN ? (unsigned)left : SPAN) - wide;
        unsigned first = deal::template first_across<WAY>();

        from = matrix;
        step = DEPTH * stride_k;
        depth = deal::template first_down<WAY>();
        to = depth * PITCH + first;
        gm_keep(to);
#pragma unroll
        for (unsigned i = 0; i < deal::COPIES / wide; i++) {
            unsigned x = first + deal::template across<WAY>(i);
            unsigned k = depth + deal::template down<WAY>(i);
            at[i] = (x < last ? x : last) * (uint32_t)stride + k * (uint32_t)stride_k;
            gm_keep(at[i]);
        }
    }
    /* Begins to copy a slab of which `steps` of k are there; WHOLE: all are. */
    template <gm_way WAY, bool WHOLE>
    __device__ __forceinline__ void copy(gm_sum<T> *slab, unsigned steps)
    {
        constexpr unsigned bytes = gm_wide<T>(WAY) * sizeof(T);
        gm_sum<T> *first = slab + to;

#pragma unroll
        for (unsigned i = 0; i < deal::COPIES / gm_wide<T>(WAY); i++) {
            unsigned down = deal::template down<WAY>(i);
            bool there = WHOLE || depth + down < steps;
            if constexpr (HELD)
                held[i] = there ? *(const piece *)(from + at[i]) : piece{};
            else
                __pipeline_memcpy_async(first + down * PITCH + deal::template across<WAY>(i),
                                        from + at[i], bytes, there ? 0 : bytes);
        }
        held_for = first;
    }
    /* fn(the way, as a type). */
    template <typename F> __device__ __forceinline__ void by_way(F fn)
    {
        if constexpr (ONLY != GM_WAY_ANY)
            fn(gm_way_tag<ONLY>());
        else if (way == GM_WAY_VECTORS)
            fn(gm_way_tag<GM_WAY_VECTORS>());
        else if (PAIRS && way == GM_WAY_PAIRS)
            fn(gm_way_tag<BY_PAIRS>());
        else if (way == GM_WAY_ELEMENTS)
            fn(gm_way_tag<GM_WAY_ELEMENTS>());
        else
            fn(gm_way_tag<GM_WAY_TURNED>());
    }
    __device__ __forceinline__ void aim_by(gm_way by, const T *matrix, uint64_t left,
                                           uint64_t stride, uint64_t stride_k)
    {
        way = by;
        by_way([&](auto tag) { aim<decltype(tag)::way>(matrix, left, stride, stride_k); });
    }
    template <bool WHOLE> __device__ __forceinline__ void next(gm_sum<T> *slab, unsigned steps)
    {
        by_way([&](auto tag) { copy<decltype(tag)::way, WHOLE>(slab, steps); });
        from += step;
    }
    /* What is held since next() goes into that slab. */
    __device__ __forceinline__ void put()
    {
        if constexpr (HELD) {
#pragma unroll
            for (unsigned i = 0; i < PIECES; i++)
                *(piece *)(held_for + deal::template down<ONLY>(i) * PITCH +
                           deal::template across<ONLY>(i)) = held[i];
        }
    }
};

#endif
