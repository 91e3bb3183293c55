/*
 * skinny_lanes.h - how many lanes of a warp of matmul_skinny.cu lie side by side in memory.
 */
#ifndef GM_KERNELS_CUDA_SKINNY_LANES_H
#define GM_KERNELS_CUDA_SKINNY_LANES_H

#include "kernels/cuda/skinny.h"

#include <cmath>

/* How many times x the least multiple of `of` is that is no less. */
static inline double padding_ratio(double x, double of)
{
    return ceil(x / of) * of / x;
}

/*
 * As a logarithm. Along k no more than have all something to do. Across, a warp's part of a line is
 * 32 to 128 elements, and where there is little to do less, so that more warps share it; more of
 * single vectors whose lines begin anywhere, since two warps then ask for the sectors in which
 * their parts meet. `whole`: from line to line it is whole runs. `rounds`: of requests that all
 * warps of the device ask for at once.
 *
 * Thresholds: by 81 products, each with 1 to 32 lanes, and 652 with two of these
 * (kernels/HUNT_MATMUL.md).
 */
template <typename T> static unsigned lanes_log_of(const skinny<T> &s, bool whole, double rounds)
{
    const double run = 16 / sizeof(T), length = (double)(s.along ? s.p.k : s.lines);
    unsigned log = 3;

    if (s.along) {
        while (rounds >= 0.25 && log > 1 && padding_ratio(length / run, 1u << log) > 1.15)
            log--;
    } else if (rounds < 0.5) {
        log = 2;
    } else if (s.count == 1 && !whole && sizeof(T) > 2 && rounds >= 4) {
        log = 5;
    } else if (sizeof(T) > 4 || (s.count > 2 && (sizeof(T) == 4 || (whole && rounds >= 2.5)))) {
        log = 4;
    }
    while (log > 2 && (1u << log) * run >= 2 * length)
        log--;
    return log;
}

#endif
