/*
 * drain.h - a tile's way from the registers that summed it up into the result.
 */
#ifndef GM_KERNELS_CUDA_DRAIN_H
#define GM_KERNELS_CUDA_DRAIN_H

#include "kernels/cuda/cut.h"
#include "kernels/cuda/pieces.h"

/* A warp's rectangle of a result, and this lane's part of it: sum[i][j] belongs in the
 * rectangle's row down(i, y) and column across(j). */
template <typename C> struct gm_drain {
    using T = typename C::type;

    uint64_t matrix, row, col; /* where the rectangle begins */
    unsigned x, y;             /* the lane's place in it */

    static constexpr __device__ unsigned down(unsigned i, unsigned lane_y)
    {
        return i / C::VECTOR * C::VECTOR * C::LANES_DOWN + lane_y * C::VECTOR + i % C::VECTOR;
    }
    __device__ __forceinline__ unsigned across(unsigned j) const
    {
        return j / C::VECTOR * C::VECTOR * C::LANES_ACROSS + x * C::VECTOR + j % C::VECTOR;
    }
    /* Row i of the lane's sums: gm_finished of each, but c asks for one branch in all. */
    __device__ __forceinline__ void finish(const gm_product<T> &p,
                                           gm_sum<T> (&sum)[C::ROWS][C::COLS], unsigned i,
                                           T (&value)[C::COLS]) const
    {
        uint64_t r = row + down(i, y);

#pragma unroll
        for (unsigned j = 0; j < C::COLS; j++)
            value[j] = p.alpha * sum[i][j];
        if (!p.c.data)
            return;
#pragma unroll
        for (unsigned j = 0; j < C::COLS; j++)
            if (r < p.m && col + across(j) < p.n)
                value[j] += p.beta *
                            gm_matrix_of<T>(p.c, matrix)[r * p.c.row + (col + across(j)) * p.c.col];
    }

    /* Where each row of the result begins a vector: from registers, 16 bytes a store. */
    __device__ __forceinline__ void by_vectors(const gm_product<T> &p,
                                               gm_sum<T> (&sum)[C::ROWS][C::COLS], T *out) const
    {
#pragma unroll
        for (unsigned i = 0; i < C::ROWS; i++) {
            uint64_t r = row + down(i, y);
            T value[C::COLS];
            finish(p, sum, i, value);
#pragma unroll
            for (unsigned j = 0; j < C::COLS; j += C::VECTOR) {
                if (r < p.m && col + across(j) < p.n)
                    gm_put(&out[r * p.n + col + across(j)], vector(&value[j]));
            }
        }
    }

    /* Of rows that begin anywhere elements are stored one by one. A thread's own lie side by side,
     * so that each store of a warp would leave most of every sector for three more to write: so
     * lanes first exchange a row of each through shared memory, and store neighbours. */
    __device__ __forceinline__ void by_elements(const gm_product<T> &p,
                                                gm_sum<T> (&sum)[C::ROWS][C::COLS], T *out,
                                                gm_sum<T> *shared) const
    {
        constexpr unsigned PITCH = C::WARP_WIDTH + 4 * C::VECTOR; /* two rows, mostly all banks */
        constexpr unsigned ROOM = C::LANES_DOWN * PITCH;
        static_assert(ROOM * C::THREADS / GM_WARP <= C::STAGES * C::STAGE, "slabs leave room");
        unsigned lane = threadIdx.x % GM_WARP;
        unsigned height = row < p.m ? (unsigned)min(p.m - row, (uint64_t)C::WARP_HEIGHT) : 0;
        unsigned width = col < p.n ? (unsigned)min(p.n - col, (uint64_t)C::WARP_WIDTH) : 0;
        T *to = out + row * p.n + col, *mine = (T *)shared + threadIdx.x / GM_WARP * ROOM;

#pragma unroll
        for (unsigned i = 0; i < C::ROWS; i++) {
            T value[C::COLS];
            finish(p, sum, i, value);
#pragma unroll
            for (unsigned j = 0; j < C::COLS; j += C::VECTOR)
                *(gm_piece<16> *)&mine[y * PITCH + across(j)] = vector(&value[j]);
            __syncwarp();
#pragma unroll
            for (unsigned j = 0; j < C::COLS; j++) {
                unsigned place = j * GM_WARP + lane;
                value[j] = mine[place / C::WARP_WIDTH * PITCH + place % C::WARP_WIDTH];
            }
            __syncwarp();
#pragma unroll
            for (unsigned j = 0; j < C::COLS; j++) {
                unsigned place = j * GM_WARP + lane;
                unsigned r = down(i, place / C::WARP_WIDTH), c = place % C::WARP_WIDTH;
                if (r < height && c < width)
                    to[r * p.n + c] = value[j];
            }
        }
    }

    static __device__ __forceinline__ gm_piece<16> vector(const T *value)
    {
        gm_elements<T, 16> run;

#pragma unroll
        for (unsigned v = 0; v < C::VECTOR; v++)
            run.element[v] = value[v];
        return run.piece;
    }
};

#endif
