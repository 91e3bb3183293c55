/*
 * runs.h - runs of elements between global and shared memory, whatever their alignment: 16 bytes
 * an access. For kernels whose blocks take long runs and rearrange them in shared memory.
 */
#ifndef GM_KERNELS_CUDA_RUNS_H
#define GM_KERNELS_CUDA_RUNS_H

#include "kernels/cuda/join.h"
#include "kernels/cuda/spread.h"

#define GM_RUN_BATCH 4u /* pieces of a thread under way at once */

/*
 * Elements [first, first + count) of `in`, which has `total`, into shared memory: whole pieces of
 * 16 bytes, of which the first and the last may hold elements before and after. Returns where the
 * first element is: they keep their place in a piece. By threads `thread` of `threads`.
 */
template <typename T>
__device__ __forceinline__ unsigned gm_load_run(const T *in, uint64_t first, unsigned count,
                                                uint64_t total, unsigned thread, unsigned threads,
                                                gm_spread<T> spread, T *shared)
{
    constexpr unsigned N = gm_in_piece<T, 16>::count, EACH = gm_spread<T>::each;
    constexpr unsigned UNITS = 16 / gm_spread<T>::unit, WORDS = gm_spread<T>::unit / 4;
    unsigned skip = (unsigned)(first % N), pieces = (unsigned)gm_ceil_div(skip + count, N);
    uint64_t begin = first - skip;
    const T *from = in + begin;
    bool cut = begin + (uint64_t)pieces * N > total; /* the last is not whole */
    unsigned whole = pieces - cut;

    for (unsigned base = thread; base < whole; base += GM_RUN_BATCH * threads) {
        gm_piece<16> piece[GM_RUN_BATCH];
#pragma unroll
        for (unsigned i = 0; i < GM_RUN_BATCH; i++)
            if (base + i * threads < whole)
                piece[i] = ((const gm_piece<16> *)from)[base + i * threads];
#pragma unroll
        for (unsigned i = 0; i < GM_RUN_BATCH; i++) {
            if (base + i * threads >= whole)
                continue;
            unsigned unit = (base + i * threads) * UNITS;
#pragma unroll
            for (unsigned u = 0; u < UNITS; u++) {
                gm_piece<gm_spread<T>::unit> part;
#pragma unroll
                for (unsigned w = 0; w < WORDS; w++)
                    part.word[w] = piece[i].word[u * WORDS + w];
                *(gm_piece<gm_spread<T>::unit> *)(shared + spread.at(unit + u) * EACH) = part;
            }
        }
    }
    if (cut && whole * N + thread < skip + count)
        shared[spread.element(whole * N + thread)] = from[whole * N + thread];
    return skip;
}

/*
 * Stores `count` elements to `out`: whole pieces of 16 bytes, and what its ends share with others'
 * pieces by elements, a thread each. walk(i) is a walk that begins at element i: each call of what
 * it returns gives the next one. By threads `thread` of `threads`.
 */
template <typename T, typename W>
__device__ __forceinline__ void gm_store_run(T *out, unsigned count, unsigned thread,
                                             unsigned threads, W walk)
{
    constexpr unsigned N = gm_in_piece<T, 16>::count;
    unsigned lead = min((N - gm_skip<16>(out) / (unsigned)sizeof(T)) % N, count);
    unsigned pieces = (count - lead) / N, ends = count - pieces * N;

    for (unsigned piece = thread; piece < pieces; piece += threads) {
        auto next = walk(lead + piece * N);
        gm_elements<T, 16> elements;
#pragma unroll
        for (unsigned e = 0; e < N; e++)
            elements.element[e] = next();
        gm_put(out + lead + piece * N, elements.piece);
    }
#pragma unroll 1
    for (unsigned e = thread; e < ends; e += threads) {
        unsigned i = e < lead ? e : e + pieces * N;
        out[i] = walk(i)();
    }
}

#endif
