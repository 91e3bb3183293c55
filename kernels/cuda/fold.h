/*
 * fold.h - several values of each lane added up over lanes, in as few exchanges as there can be.
 */
#ifndef GM_KERNELS_CUDA_FOLD_H
#define GM_KERNELS_CUDA_FOLD_H

#include "kernels/cuda/kernel.h"

/*
 * Adds each of a lane's N values to those of the lanes at distances far, far / 2, ... end, and
 * calls put(first + i, sum of x[i]) in one of these lanes. All are powers of two; all lanes of the
 * warp call it. Done one value after the other, that is N exchanges for each distance; here a lane
 * keeps one half of its values, gives its partner the other, and has half as many from then on. The
 * order of additions is fixed.
 *
 * Source: recursive halving, as reduce-scatter has it: Thakur, Rabenseifner and Gropp,
 * "Optimization of Collective Communication Operations in MPICH", 2005.
 */
template <unsigned N, typename S, typename F>
static __device__ __forceinline__ void gm_fold(S (&x)[N], unsigned far, unsigned end,
                                               unsigned first, F put)
{
    unsigned lane = threadIdx.x % GM_WARP;

    if (far < end) {
#pragma unroll
        for (unsigned i = 0; i < N; i++)
            put(first + i, x[i]);
        return;
    }
    if constexpr (N > 1) {
        bool upper = lane & far;
        S half[N / 2];
#pragma unroll
        for (unsigned i = 0; i < N / 2; i++) {
            S keep = upper ? x[i + N / 2] : x[i], give = upper ? x[i] : x[i + N / 2];
            half[i] = keep + __shfl_xor_sync(0xFFFFFFFFu, give, far);
        }
        gm_fold<N / 2>(half, far / 2, end, upper ? first + N / 2 : first, put);
    } else {
        unsigned same = 2 * far - end; /* bits of the lanes that come to the same sum */
        for (; far >= end; far /= 2)
            x[0] += __shfl_xor_sync(0xFFFFFFFFu, x[0], far);
        if ((lane & same) == 0)
            put(first, x[0]);
    }
}

#endif
