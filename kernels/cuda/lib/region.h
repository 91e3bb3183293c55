/*
 * region.h - moves a part of a row-major matrix between global and shared memory, by 16 bytes.
 *
 * Rows of any length, at any address. A vector that sticks out of a row is loaded whole where it
 * is still within the matrix, but stored element by element. Where the part is whole rows, they are
 * one span, without such ends between them:
 *
 *     rows of 5 elements, by vectors of 4         the same as one span
 *     | 0 1 2 3 | 4 - - - |                       | 0 1 2 3 | 4 5 6 7 | 8 9 ...
 *     | - 5 6 7 | 8 9 - - |
 */
#ifndef GM_KERNELS_CUDA_LIB_REGION_H
#define GM_KERNELS_CUDA_LIB_REGION_H

#include "kernels/cuda/lib/tiles.h"
#include "kernels/cuda/lib/vec.h"

/* A vector of a region: elements low to high - 1 of it are the region's, the first at (row, col).
 * Past the region's last vector it has none. */
struct gm_region_vector {
    int at; /* of the vector's element 0 from the region's first, in elements */
    unsigned low, high, row, col;
};

/* rows x cols elements, fewer than 2^16, in rows that are `lead` elements apart in memory. To load
 * them: `all` elements from the first to the end of the operand, which begins at 16 bytes. */
template <typename T> struct gm_region {
    static constexpr unsigned V = gm_per_vec<T, 16>::count;
    T *data;
    unsigned cols;
    unsigned spans, length, apart; /* the rows, or one span of all */
    unsigned skew;                 /* of the spans from 16 bytes: 0 if none has any */
    unsigned slots, vectors;       /* of a span; of all */
    int left;                      /* elements from the first to the end of the whole operand */
    gm_small_divisor by_slots, by_cols, by_row; /* by_row: by the whole vectors of a row */

    __device__ __forceinline__ gm_region(T *first, unsigned rows, unsigned columns, unsigned lead,
                                         unsigned all = 0)
    {
        bool one = columns == lead || rows == 1;

        data = first;
        left = (int)all;
        cols = columns;
        spans = one ? 1 : rows;
        length = one ? rows * columns : columns;
        apart = lead;
        skew = ((unsigned)((uintptr_t)first / sizeof(T)) | (one ? 0 : lead)) % V;
        slots = (length + V - 1 + (skew > 0 ? V - 1 : 0)) / V;
        vectors = spans * slots;
        by_slots = gm_small_divisor_of(slots);
        by_cols = gm_small_divisor_of(cols);
        by_row = gm_small_divisor_of(max(cols / V, 1u));
    }
    /* Whether all vectors are whole, and each within one row. */
    __device__ __forceinline__ bool has_even_rows() const
    {
        return skew == 0 && cols % V == 0;
    }
    __device__ __forceinline__ gm_region_vector vector(unsigned index) const
    {
        unsigned span = gm_divide(index, by_slots), slot = index - span * slots;
        int first = (int)(span * apart), begin = (int)(slot * V);
        gm_region_vector vector;

        if (skew > 0)
            begin -= (int)((uintptr_t)(data + first) / sizeof(T) % V);
        unsigned at = begin < 0 ? 0 : (unsigned)begin;
        vector.at = first + begin;
        vector.low = at - begin;
        vector.high = index < vectors && at < length ? min(V, length - begin) : vector.low;
        vector.row = spans > 1 ? span : gm_divide(at, by_cols);
        vector.col = spans > 1 ? at : at - vector.row * cols;
        return vector;
    }
    /* The same, if the region has even rows, in fewer instructions. */
    __device__ __forceinline__ gm_region_vector even_vector(unsigned index) const
    {
        unsigned row = gm_divide(index, by_row), col = (index - row * (cols / V)) * V;

        return {(int)(row * apart + col), 0, V, row, col};
    }
    __device__ __forceinline__ void to_next(gm_region_vector *vector) const
    {
        bool last = ++vector->col == cols;
        vector->row += last;
        vector->col = last ? 0 : vector->col;
    }
};

/* The vectors that a region of at most rows x cols elements, V a vector, may have. */
__host__ __device__ constexpr unsigned gm_region_room(unsigned rows, unsigned cols, unsigned V)
{
    return rows * (cols / V + (V > 1));
}

/* The loops below stay loops: a kernel of some microseconds waits for its code, too. Regions with
 * even rows have loops of their own, whose few instructions overlap. */

/* Begins to load a region's vectors into shared memory. `room` has gm_region_room. A thread may
 * read its own after __pipeline_wait_prior. */
template <typename T>
__device__ __forceinline__ void gm_region_fetch(const gm_region<const T> &region, unsigned thread,
                                                unsigned threads, gm_elements<T, 16> *room)
{
    constexpr unsigned V = gm_per_vec<T, 16>::count;
    bool even = region.has_even_rows();

    if (even)
#pragma unroll 4
        for (unsigned i = thread; i < region.vectors; i += threads)
            __pipeline_memcpy_async(&room[i], region.data + region.even_vector(i).at, 16, 0);
#pragma unroll 1
    for (unsigned i = thread; !even && i < region.vectors; i += threads) {
        gm_region_vector vector = region.vector(i);
        const T *from = region.data + vector.at;
        if (vector.at + (int)V <= region.left) {
            __pipeline_memcpy_async(&room[i], from, 16, 0);
            continue;
        }
        T element[V] = {};
#pragma unroll
        for (unsigned e = 0; e < V; e++)
            if (e >= vector.low && e < vector.high)
                element[e] = from[e];
#pragma unroll
        for (unsigned e = 0; e < V; e++)
            room[i].element[e] = element[e];
    }
    __pipeline_commit();
}

/* Calls put_vector(row, col, elements) for each vector that the thread has fetched if the region
 * has even rows, else put(row, col, element) for each element. */
template <typename T, typename F, typename G>
__device__ __forceinline__ void gm_region_put(const gm_region<const T> &region, unsigned thread,
                                              unsigned threads, const gm_elements<T, 16> *room,
                                              F put_vector, G put)
{
    if (region.has_even_rows()) {
#pragma unroll 4
        for (unsigned i = thread; i < region.vectors; i += threads) {
            gm_region_vector vector = region.even_vector(i);
            put_vector(vector.row, vector.col, room[i]);
        }
        return;
    }
#pragma unroll 1
    for (unsigned i = thread; i < region.vectors; i += threads) {
        gm_region_vector vector = region.vector(i);
#pragma unroll 1
        for (unsigned e = vector.low; e < vector.high; e++) {
            put(vector.row, vector.col, room[i].element[e]);
            region.to_next(&vector);
        }
    }
}

/* Stores get_vector(row, col), which returns elements, to each vector of a region with even rows;
 * else get(row, col) to each element. */
template <typename T, typename F, typename G>
__device__ __forceinline__ void gm_region_store(const gm_region<T> &region, unsigned thread,
                                                unsigned threads, F get_vector, G get)
{
    constexpr unsigned V = gm_per_vec<T, 16>::count;

    if (region.has_even_rows()) {
#pragma unroll 2
        for (unsigned i = thread; i < region.vectors; i += threads) {
            gm_region_vector vector = region.even_vector(i);
            gm_store_vec(region.data + vector.at, get_vector(vector.row, vector.col).vec);
        }
        return;
    }
#pragma unroll 1
    for (unsigned i = thread; i < region.vectors; i += threads) {
        gm_region_vector vector = region.vector(i);
        unsigned low = vector.low, high = vector.high;
        T *to = region.data + vector.at;
        gm_elements<T, 16> elements;
#pragma unroll
        for (unsigned e = 0; e < V; e++) {
            if (e < low || e >= high)
                continue;
            elements.element[e] = get(vector.row, vector.col);
            region.to_next(&vector);
        }
        if (high - low == V) {
            gm_store_vec(to, elements.vec);
            continue;
        }
#pragma unroll
        for (unsigned e = 0; e < V; e++)
            if (e >= low && e < high)
                to[e] = elements.element[e];
    }
}

#endif
