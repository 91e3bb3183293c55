/*
 * spans.h - moves contiguous spans of elements between global and shared memory, at any alignment.
 *
 * For kernels whose blocks rearrange long spans in shared memory. Global memory sees 16-byte
 * accesses, and padding keeps elements at equal distances in different banks.
 */
#ifndef GM_KERNELS_CUDA_TRANSPOSE_SPANS_H
#define GM_KERNELS_CUDA_TRANSPOSE_SPANS_H

#include "kernels/cuda/lib/kernel.h"
#include "kernels/cuda/lib/vec.h"

/*
 * Bank-conflict padding. Shared memory is divided into units of 4 bytes (or of an element, if that
 * is larger), and one unit is left out after each `1 << shift`. So elements whose distances are
 * equal, and a power of two, lie in different banks:
 *
 *     bank       0    1    2   ..   31
 *              [ 0] [ 1] [ 2] .. [ 31]
 *              [--] [32] [33] .. [ 62]        [--]: left out
 *              [63] [--] [64] .. [ 93]        units 0, 32, 64, ... lie in banks 0, 1, 2, ...
 */
template <typename T> struct gm_bank_padding {
    static constexpr unsigned unit = sizeof(T) < 4 ? 4 : (unsigned)sizeof(T);
    static constexpr unsigned row = 128 / unit;                  /* units in one row of all banks */
    static constexpr unsigned each = unit / (unsigned)sizeof(T); /* elements per unit */
    static constexpr unsigned none = 24; /* no padding: 2^24 units do not fit */
    unsigned shift;

    /* The padded position of unit `index`. */
    __host__ __device__ __forceinline__ unsigned at(unsigned index) const
    {
        return index + (index >> shift);
    }
    /* The padded position of element `index`. */
    __device__ __forceinline__ unsigned element(unsigned index) const
    {
        return index + (index >> (shift + each / 2)) * each; /* each is 1, 2 or 4 */
    }
};

/* The padding for elements that are `stride` apart. A stride of one less than a row gets none: with
 * the unit left out it would be a whole row, which is the same bank. */
template <typename T> static inline gm_bank_padding<T> gm_bank_padding_for(uint64_t stride)
{
    constexpr unsigned row = gm_bank_padding<T>::row;
    constexpr unsigned shift = row == 32 ? 5 : row == 16 ? 4 : 3;

    return {stride % row == row - 1 ? gm_bank_padding<T>::none : shift};
}

/* Bytes of shared memory for `count` elements at any alignment: gm_load_span stores whole 16-byte
 * vectors. */
template <typename T>
static inline uint64_t gm_padded_bytes(gm_bank_padding<T> padding, uint64_t count)
{
    uint64_t units = gm_ceil_div(count * sizeof(T) + 15, 16) * (16 / padding.unit);

    return (units + (units >> padding.shift) + 1) * padding.unit;
}

#define GM_SPAN_BATCH 4u /* vectors that a thread loads at once */

/*
 * Loads elements [first, first + count) of `in`, which has `total`, into shared memory, as thread
 * `thread` of `threads`. It loads whole 16-byte vectors; the first and the last may contain
 * elements before and after. Returns the position of the first element: it keeps its position in
 * its vector.
 */
template <typename T>
__device__ __forceinline__ unsigned gm_load_span(const T *in, uint64_t first, unsigned count,
                                                 uint64_t total, unsigned thread, unsigned threads,
                                                 gm_bank_padding<T> padding, T *shared)
{
    constexpr unsigned N = gm_per_vec<T, 16>::count, EACH = gm_bank_padding<T>::each;
    constexpr unsigned UNITS = 16 / gm_bank_padding<T>::unit, WORDS = gm_bank_padding<T>::unit / 4;
    unsigned skip = (unsigned)(first % N), vecs = (unsigned)gm_ceil_div(skip + count, N);
    uint64_t begin = first - skip;
    const T *from = in + begin;
    bool partial = begin + (uint64_t)vecs * N > total; /* the last vector ends beyond `total` */
    unsigned whole = vecs - partial;

    for (unsigned base = thread; base < whole; base += GM_SPAN_BATCH * threads) {
        gm_vec<16> vec[GM_SPAN_BATCH];
#pragma unroll
        for (unsigned i = 0; i < GM_SPAN_BATCH; i++)
            if (base + i * threads < whole)
                vec[i] = ((const gm_vec<16> *)from)[base + i * threads];
#pragma unroll
        for (unsigned i = 0; i < GM_SPAN_BATCH; i++) {
            if (base + i * threads >= whole)
                continue;
            unsigned unit = (base + i * threads) * UNITS;
#pragma unroll
            for (unsigned u = 0; u < UNITS; u++) {
                gm_vec<gm_bank_padding<T>::unit> part;
#pragma unroll
                for (unsigned w = 0; w < WORDS; w++)
                    part.word[w] = vec[i].word[u * WORDS + w];
                *(gm_vec<gm_bank_padding<T>::unit> *)(shared + padding.at(unit + u) * EACH) = part;
            }
        }
    }
    if (partial && whole * N + thread < skip + count)
        shared[padding.element(whole * N + thread)] = from[whole * N + thread];
    return skip;
}

/*
 * Stores `count` elements to `out`, as thread `thread` of `threads`: whole 16-byte vectors, and the
 * ends, which share vectors with others, one element per thread. iterate(i) returns an iterator
 * that begins at element i: each call of it returns the next element.
 */
template <typename T, typename W>
__device__ __forceinline__ void gm_store_span(T *out, unsigned count, unsigned thread,
                                              unsigned threads, W iterate)
{
    constexpr unsigned N = gm_per_vec<T, 16>::count;
    unsigned lead = min((N - gm_misalignment<16>(out) / (unsigned)sizeof(T)) % N, count);
    unsigned vecs = (count - lead) / N, ends = count - vecs * N;

    for (unsigned vec = thread; vec < vecs; vec += threads) {
        auto next = iterate(lead + vec * N);
        gm_elements<T, 16> elements;
#pragma unroll
        for (unsigned e = 0; e < N; e++)
            elements.element[e] = next();
        gm_store_vec(out + lead + vec * N, elements.vec);
    }
#pragma unroll 1
    for (unsigned e = thread; e < ends; e += threads) {
        unsigned i = e < lead ? e : e + vecs * N;
        out[i] = iterate(i)();
    }
}

#endif
