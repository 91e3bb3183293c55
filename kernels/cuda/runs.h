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
 * first element is: they keep their place in a piece.
 */
template <typename T>
__device__ __forceinline__ unsigned gm_load_run(const T *in, uint64_t first, unsigned count,
                                                uint64_t total, gm_spread<T> spread, T *shared)
{
    constexpr unsigned N = gm_in_piece<T, 16>::count, EACH = gm_spread<T>::each;
    constexpr unsigned UNITS = 16 / gm_spread<T>::unit, WORDS = gm_spread<T>::unit / 4;
    unsigned skip = (unsigned)(first % N), pieces = (unsigned)gm_pieces(skip + count, N);
    uint64_t begin = first - skip;
    const T *from = in + begin;
    bool cut = begin + (uint64_t)pieces * N > total; /* the last is not whole */
    unsigned whole = pieces - cut;

    for (unsigned base = threadIdx.x; base < whole; base += GM_RUN_BATCH * blockDim.x) {
        gm_piece<16> piece[GM_RUN_BATCH];
#pragma unroll
        for (unsigned i = 0; i < GM_RUN_BATCH; i++)
            if (base + i * blockDim.x < whole)
                piece[i] = ((const gm_piece<16> *)from)[base + i * blockDim.x];
#pragma unroll
        for (unsigned i = 0; i < GM_RUN_BATCH; i++) {
            if (base + i * blockDim.x >= whole)
                continue;
            unsigned unit = (base + i * blockDim.x) * UNITS;
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
    if (cut && whole * N + threadIdx.x < skip + count)
        shared[spread.element(whole * N + threadIdx.x)] = from[whole * N + threadIdx.x];
    return skip;
}

/*
 * Stores `count` elements to `out`: whole pieces of BYTES, but for what its ends share with others'
 * pieces. walk(i) is a walk that begins at element i: each call of what it returns gives the next
 * one. By threads `thread` of `threads`.
 */
template <unsigned BYTES, typename T, typename W>
__device__ __forceinline__ void gm_store_run(T *out, unsigned count, unsigned thread,
                                             unsigned threads, W walk)
{
    constexpr unsigned N = gm_in_piece<T, BYTES>::count;
    unsigned skip = gm_skip<BYTES>(out) / (unsigned)sizeof(T);

    for (unsigned piece = thread; piece * N < skip + count; piece += threads) {
        unsigned begin = piece * N < skip ? 0 : piece * N - skip;
        unsigned end = min(piece * N + N - skip, count);
        auto next = walk(begin);
        if (end - begin == N) {
            gm_elements<T, BYTES> elements;
#pragma unroll
            for (unsigned e = 0; e < N; e++)
                elements.element[e] = next();
            gm_put(out + begin, elements.piece);
        } else {
            for (unsigned e = begin; e < end; e++)
                out[e] = next();
        }
    }
}

#endif
