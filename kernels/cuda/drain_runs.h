/*
 * drain_runs.h - a tile's way into a result whose rows begin anywhere, or at pairs of elements.
 *
 * There WIDE elements are stored at once. A thread's sums are neighbours, so that each store of a
 * warp would fill a small part of many sectors: so each warp first passes a row of each lane's
 * through shared memory, and then stores runs of neighbours.
 */
#ifndef GM_KERNELS_CUDA_DRAIN_RUNS_H
#define GM_KERNELS_CUDA_DRAIN_RUNS_H

#include "kernels/cuda/drain.h"

/* Sums are multiplied by `factor`; shared: room for a row of each lane's, of which no thread of the
 * block needs anything any more. */
template <unsigned WIDE, typename C>
__device__ __forceinline__ void
gm_drain_by_runs(const gm_drain<C> &drain, const gm_product<typename C::type> &p,
                 gm_sum<typename C::type> factor,
                 const gm_sum<typename C::type> (&sum)[C::ROWS][C::COLS], typename C::type *out,
                 gm_sum<typename C::type> *shared)
{
    using T = typename C::type;
    using piece = gm_piece<WIDE * sizeof(T)>;
    constexpr unsigned PITCH = C::WARP_WIDTH + 4 * C::VECTOR; /* two rows, mostly all banks */
    constexpr unsigned ROOM = C::LANES_DOWN * PITCH;
    static_assert(ROOM * C::THREADS / GM_WARP <= C::STAGES * C::STAGE, "slabs leave room");
    constexpr unsigned RUN = GM_WARP * WIDE; /* what a warp stores at once: of a row, or rows */
    static_assert(RUN % C::WARP_WIDTH == 0 || C::WARP_WIDTH % RUN == 0, "whole rows, or runs");
    constexpr unsigned RUNS = RUN < C::WARP_WIDTH ? C::WARP_WIDTH / RUN : 1; /* of a row */
    constexpr unsigned ROWS = RUN < C::WARP_WIDTH ? 1 : RUN / C::WARP_WIDTH; /* of a run */
    unsigned lane = threadIdx.x % GM_WARP;
    unsigned first = lane * WIDE / C::WARP_WIDTH, at = lane * WIDE % C::WARP_WIDTH;
    T *mine = (T *)shared + threadIdx.x / GM_WARP * ROOM, *from = mine + first * PITCH + at;
    T *to = out + (drain.row + first * C::VECTOR) * p.n + drain.col + at;
    int rows = drain.rows_left(p, first * C::VECTOR), cols = drain.cols_left(p, at);
    int rows_of[RUNS];

#pragma unroll
    for (unsigned run = 0; run < RUNS; run++)
        rows_of[run] = (int)(run * RUN) < cols ? rows : 0;
#pragma unroll
    for (unsigned i = 0; i < C::ROWS; i++) {
        piece held[C::COLS / WIDE];
#pragma unroll
        for (unsigned j = 0; j < C::COLS; j += C::VECTOR)
            *(gm_piece<16> *)&mine[drain.y * PITCH + drain.x * C::VECTOR + drain.across(j)] =
                drain.vector(factor, &sum[i][j]);
        __syncwarp();
#pragma unroll
        for (unsigned s = 0; s < C::COLS / WIDE; s++)
            held[s] = *(const piece *)(from + s / RUNS * ROWS * PITCH + s % RUNS * RUN);
        __syncwarp();
        T *line = to;
#pragma unroll
        for (unsigned s = 0; s < C::COLS / WIDE; s++) {
            if (drain.down(i) + (int)(s / RUNS * ROWS * C::VECTOR) < rows_of[s % RUNS])
                gm_put(line + s % RUNS * RUN, held[s]);
            if (s % RUNS == RUNS - 1)
                line += ROWS * C::VECTOR * p.n;
        }
        if (i + 1 < C::ROWS)
            to += (uint64_t)(drain.down(i + 1) - drain.down(i)) * p.n;
    }
}

#endif
