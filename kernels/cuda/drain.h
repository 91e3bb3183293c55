/*
 * drain.h - a tile's way (the epilogue) from the registers that summed it up into the result: what
 * each warp has of it, and the way where rows of the result begin vectors. The others:
 * drain_runs.h.
 */
#ifndef GM_KERNELS_CUDA_DRAIN_H
#define GM_KERNELS_CUDA_DRAIN_H

#include "kernels/cuda/cut.h"
#include "kernels/cuda/pieces.h"

/*
 * A warp's rectangle of a result, and this lane's part of it: sum[i][j] belongs in the rectangle's
 * row y * VECTOR + down(i) and column x * VECTOR + across(j). Few instructions matter: while a
 * block stores, it multiplies nothing, and where its tile is large no other block does either. So
 * places are steps from a pointer, and what is beyond the edges is one comparison.
 */
template <typename C> struct gm_drain {
    using T = typename C::type;
    using S = gm_sum<T>;

    uint64_t matrix, row, col; /* where the rectangle begins */
    unsigned x, y;             /* the lane's place in it */

    static constexpr __device__ int down(unsigned i)
    {
        return (int)(i / C::VECTOR * C::VECTOR * C::LANES_DOWN + i % C::VECTOR);
    }
    static constexpr __device__ int across(unsigned j)
    {
        return (int)(j / C::VECTOR * C::VECTOR * C::LANES_ACROSS + j % C::VECTOR);
    }
    /* How many of the rectangle's rows, or columns, the result has from one on; 0 or less: none. */
    static __device__ __forceinline__ int left(uint64_t all, uint64_t begin, unsigned most,
                                               unsigned from)
    {
        uint64_t there = begin < all ? all - begin : 0;
        return (int)(there < most ? (unsigned)there : most) - (int)from;
    }
    __device__ __forceinline__ int rows_left(const gm_product<T> &p, unsigned from) const
    {
        return left(p.m, row, C::WARP_HEIGHT, from);
    }
    __device__ __forceinline__ int cols_left(const gm_product<T> &p, unsigned from) const
    {
        return left(p.n, col, C::WARP_WIDTH, from);
    }

    /* Adds c, if there is one. Returns by what sums are still to be multiplied. */
    __device__ __forceinline__ S add_c(const gm_product<T> &p, S (&sum)[C::ROWS][C::COLS]) const
    {
        if (!p.c.data)
            return p.alpha;
        int rows = rows_left(p, y * C::VECTOR), cols = cols_left(p, x * C::VECTOR);
        const T *c = gm_matrix_of<T>(p.c, matrix) + (row + y * C::VECTOR) * p.c.row +
                     (col + x * C::VECTOR) * p.c.col;
#pragma unroll
        for (unsigned i = 0; i < C::ROWS; i++) {
#pragma unroll
            for (unsigned j = 0; j < C::COLS; j++) {
                sum[i][j] *= p.alpha;
                if (down(i) < rows && across(j) < cols)
                    sum[i][j] += p.beta * c[down(i) * p.c.row + across(j) * p.c.col];
            }
        }
        return 1;
    }

    /* Where each row of the result begins a vector: from registers, 16 bytes a store. */
    __device__ __forceinline__ void by_vectors(const gm_product<T> &p, S factor,
                                               const S (&sum)[C::ROWS][C::COLS], T *out) const
    {
        T *to = out + (row + y * C::VECTOR) * p.n + col + x * C::VECTOR;
        int rows = rows_left(p, y * C::VECTOR), cols = cols_left(p, x * C::VECTOR);
        int rows_of[C::COLS / C::VECTOR];

#pragma unroll
        for (unsigned j = 0; j < C::COLS; j += C::VECTOR)
            rows_of[j / C::VECTOR] = across(j) < cols ? rows : 0;
#pragma unroll
        for (unsigned i = 0; i < C::ROWS; i++) {
#pragma unroll
            for (unsigned j = 0; j < C::COLS; j += C::VECTOR) {
                if (down(i) < rows_of[j / C::VECTOR])
                    gm_put(to + across(j), vector(factor, &sum[i][j]));
            }
            if (i + 1 < C::ROWS)
                to += (uint64_t)(down(i + 1) - down(i)) * p.n;
        }
    }

    static __device__ __forceinline__ gm_piece<16> vector(S factor, const S *sum)
    {
        gm_elements<T, 16> run;

#pragma unroll
        for (unsigned v = 0; v < C::VECTOR; v++)
            run.element[v] = factor * sum[v];
        return run.piece;
    }
};

#endif
