/*
 * ways.h - how operands get into shared memory, as their layouts let them.
 */
#ifndef GM_KERNELS_CUDA_WAYS_H
#define GM_KERNELS_CUDA_WAYS_H

#include "kernels/cuda/kernel.h"

/* How an operand's slab is copied: by 16 bytes, 8 or an element where its rows lie as the slab's
 * do; by elements, and turned on the way, where memory has k along its rows. */
enum gm_way { GM_WAY_VECTORS, GM_WAY_PAIRS, GM_WAY_ELEMENTS, GM_WAY_TURNED, GM_WAY_ANY };

/* Elements that a copy moves at once. */
template <typename T> static constexpr __host__ __device__ unsigned gm_wide(gm_way way)
{
    return way == GM_WAY_VECTORS ? 16 / sizeof(T) : way == GM_WAY_PAIRS ? 2 : 1;
}

/* How an operand is copied: `stride` from one row of a (column of b) to the next, `stride_k` from
 * one step of k to the next. */
template <typename T>
static inline gm_way gm_way_of(const struct gm_view *view, uint64_t stride, uint64_t stride_k)
{
    const gm_way widest[] = {GM_WAY_VECTORS, GM_WAY_PAIRS};

    if (stride != 1)
        return GM_WAY_TURNED;
    for (gm_way way : widest) {
        uint64_t wide = gm_wide<T>(way);
        if (stride_k % wide == 0 && view->batch % wide == 0 &&
            (uintptr_t)view->data % (wide * sizeof(T)) == 0)
            return way;
    }
    return GM_WAY_ELEMENTS;
}

/* Whether both come by elements, where those are held (feed.h): neither is turned, nor do both come
 * by vectors. One kernel for all such pairs, whatever the wider one of the two could do. */
static inline bool gm_both_by_elements(gm_way a, gm_way b)
{
    return a != GM_WAY_TURNED && b != GM_WAY_TURNED && (a != GM_WAY_VECTORS || b != GM_WAY_VECTORS);
}

/* fn(way of a, way of b) as types. FIXED makes kernels of their own of the commonest pairs, which
 * takes time to compile and saves registers and branches. */
template <gm_way WAY> struct gm_way_tag {
    static constexpr gm_way way = WAY;
};
template <bool FIXED, typename F> static inline enum gm_status gm_by_ways(gm_way a, gm_way b, F fn)
{
    if constexpr (FIXED) {
        if (a == GM_WAY_TURNED && b == GM_WAY_VECTORS)
            return fn(gm_way_tag<GM_WAY_TURNED>(), gm_way_tag<GM_WAY_VECTORS>());
        if (a == GM_WAY_TURNED && b == GM_WAY_PAIRS)
            return fn(gm_way_tag<GM_WAY_TURNED>(), gm_way_tag<GM_WAY_PAIRS>());
        if (a == GM_WAY_TURNED && b == GM_WAY_ELEMENTS)
            return fn(gm_way_tag<GM_WAY_TURNED>(), gm_way_tag<GM_WAY_ELEMENTS>());
        if (a == GM_WAY_VECTORS && b == GM_WAY_VECTORS)
            return fn(gm_way_tag<GM_WAY_VECTORS>(), gm_way_tag<GM_WAY_VECTORS>());
        if (a == GM_WAY_TURNED && b == GM_WAY_TURNED)
            return fn(gm_way_tag<GM_WAY_TURNED>(), gm_way_tag<GM_WAY_TURNED>());
        if (a == GM_WAY_ELEMENTS && b == GM_WAY_ELEMENTS)
            return fn(gm_way_tag<GM_WAY_ELEMENTS>(), gm_way_tag<GM_WAY_ELEMENTS>());
    }
    return fn(gm_way_tag<GM_WAY_ANY>(), gm_way_tag<GM_WAY_ANY>());
}

#endif
