/*
 * spread.h - where elements lie in shared memory so that those at equal distances are in different
 * banks.
 */
#ifndef GM_KERNELS_CUDA_SPREAD_H
#define GM_KERNELS_CUDA_SPREAD_H

#include "kernels/cuda/kernel.h"

/*
 * Shared memory is cut into units of 4 bytes, or of an element where that is larger, and one is
 * left out after each `1 << shift` of them, so that elements at equal distances, a power of two
 * apart, lie in different banks.
 */
template <typename T> struct gm_spread {
    static constexpr unsigned unit = sizeof(T) < 4 ? 4 : (unsigned)sizeof(T);
    static constexpr unsigned row = 128 / unit;                  /* units that the banks hold */
    static constexpr unsigned each = unit / (unsigned)sizeof(T); /* elements of one */
    static constexpr unsigned none = 24; /* the shift that leaves none out: 2^24 units do not fit */
    unsigned shift;

    /* Where unit `index` is. */
    __host__ __device__ __forceinline__ unsigned at(unsigned index) const
    {
        return index + (index >> shift);
    }
    /* Of element `index`. */
    __device__ __forceinline__ unsigned element(unsigned index) const
    {
        return index + (index >> (shift + each / 2)) * each; /* each is 1, 2 or 4 */
    }
};

/* For elements that are `stride` apart. One less than a row would, with the one left out, be a row
 * apart: the same banks. */
template <typename T> static inline gm_spread<T> gm_spread_for(uint64_t stride)
{
    constexpr unsigned row = gm_spread<T>::row;
    constexpr unsigned shift = row == 32 ? 5 : row == 16 ? 4 : 3;

    return {stride % row == row - 1 ? gm_spread<T>::none : shift};
}

/* Bytes of shared memory that `count` elements need, wherever in a piece they begin: what is stored
 * there is whole pieces of 16 bytes (runs.h). */
template <typename T> static inline uint64_t gm_spread_bytes(gm_spread<T> spread, uint64_t count)
{
    uint64_t units = gm_ceil_div(count * sizeof(T) + 15, 16) * (16 / spread.unit);

    return (units + (units >> spread.shift) + 1) * spread.unit;
}

#endif
