/*
 * parts.h - holds what both skinny kernels share: loading spans, adding up, storing results.
 */
#ifndef GM_KERNELS_CUDA_MATMUL_SKINNY_PARTS_H
#define GM_KERNELS_CUDA_MATMUL_SKINNY_PARTS_H

#include "kernels/cuda/lib/kernel.h"
#include "kernels/cuda/matmul/skinny/product.h"

template <typename T, size_t = sizeof(T)> struct alignas(16) lane_span {
    T x[16 / sizeof(T)];

    __device__ __forceinline__ T get(unsigned i) const
    {
        return x[i];
    }
    __device__ __forceinline__ void set(unsigned i, T value)
    {
        x[i] = value;
    }
};
/* Elements of 2 bytes, held in words: nvcc would use a register for each element. They are set in
 * order, because the first of a word clears the second. */
template <typename T> struct alignas(16) lane_span<T, 2> {
    uint32_t word[4];

    __device__ __forceinline__ T get(unsigned i) const
    {
        return {(uint16_t)(word[i / 2] >> 16 * (i % 2))};
    }
    __device__ __forceinline__ void set(unsigned i, T value)
    {
        word[i / 2] = i % 2 ? word[i / 2] | (uint32_t)value.bits << 16 : value.bits;
    }
};

/* Loads 16 bytes of elements for a lane, of which `left` exist; the others are zero. If ALIGNED
 * they are contiguous. Otherwise they are `apart` from each other, and neighbouring lanes have
 * neighbouring elements. */
template <typename T, bool ALIGNED>
static __device__ __forceinline__ lane_span<T> load_lane_span(const T *from, uint64_t left,
                                                              unsigned apart)
{
    constexpr unsigned SPAN = 16 / sizeof(T);
    lane_span<T> got;

    if (ALIGNED && left >= SPAN)
        return *(const lane_span<T> *)from;
#pragma unroll
    for (unsigned i = 0; i < SPAN; i++)
        got.set(i, i * apart < left ? from[i * apart] : T{});
    return got;
}

/*
 * Warp reduce-scatter, with N = 4 values and 4 lanes:
 *
 *     lane     0 a b c d     1 a b c d     2 a b c d     3 a b c d
 *     far 2    0 a b         1 a b         2 c d         3 c d        a half each, added up
 *     far 1    0 a           1 b           2 c           3 d          the sums over 4 lanes
 *
 * Adds each of a lane's N values to those of the lanes at distances far, far / 2, ... end, and
 * calls put(first + i, sum of x[i]) in one of these lanes. All numbers are powers of two, and all
 * lanes of the warp call it. Reducing one value after the other takes N exchanges for each
 * distance. Here a lane keeps one half of its values and gives the other half to its partner, so
 * each distance halves the values that are left. The order of additions is fixed.
 *
 * Source: recursive halving, as reduce-scatter has it: Thakur, Rabenseifner and Gropp,
 * "Optimization of Collective Communication Operations in MPICH", 2005.
 */
template <unsigned N, typename S, typename F>
static __device__ __forceinline__ void gm_reduce_scatter(S (&x)[N], unsigned far, unsigned end,
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
        gm_reduce_scatter<N / 2>(half, far / 2, end, upper ? first + N / 2 : first, put);
    } else {
        unsigned same = 2 * far - end; /* lanes that differ only in these bits have the same sum */
        for (; far >= end; far /= 2)
            x[0] += __shfl_xor_sync(0xFFFFFFFFu, x[0], far);
        if ((lane & same) == 0)
            put(first, x[0]);
    }
}

/* Loads the vectors' steps of a chunk: vector v's `step` goes to v * down + step * across. */
template <typename T, unsigned COUNT>
static __device__ __forceinline__ void load_vectors(gm_acc<T> *to, const skinny<T> &s,
                                                    uint64_t matrix, const skinny_chunk &k,
                                                    unsigned down, unsigned across)
{
    constexpr unsigned SPAN = 16 / sizeof(T), OUT = 16 / sizeof(gm_acc<T>);
    const T *vectors = gm_matrix_of<T>(s.vectors, matrix) + k.first * s.vectors.row;
    auto each_step = [&](auto load) {
#pragma unroll 2
        for (unsigned step = threadIdx.x; step < k.room; step += blockDim.x) {
            T got[COUNT];
            load(step, vectors + step * s.vectors.row, got);
            if constexpr (COUNT % OUT == 0) {
                if (down == 1) {
#pragma unroll
                    for (unsigned v = 0; v < COUNT; v += OUT) {
                        lane_span<gm_acc<T>> out;
#pragma unroll
                        for (unsigned i = 0; i < OUT; i++)
                            out.set(i, gm_load(got[v + i]));
                        *(lane_span<gm_acc<T>> *)&to[v + step * across] = out;
                    }
                    continue;
                }
            }
#pragma unroll
            for (unsigned v = 0; v < COUNT; v++)
                to[v * down + step * across] = gm_load(got[v]);
        }
    };

    if (COUNT % SPAN == 0 && s.vectors.col == 1 && s.count == COUNT && s.vectors.row % SPAN == 0 &&
        (uintptr_t)vectors % 16 == 0) /* a step of all vectors is whole vectors of 16 bytes */
        each_step([&](unsigned step, const T *from, T(&got)[COUNT]) {
#pragma unroll
            for (unsigned v = 0; v < COUNT; v += SPAN) {
                auto span = load_lane_span<T, true>(from + v, step < k.count ? SPAN : 0, 1);
#pragma unroll
                for (unsigned i = 0; i < SPAN && v + i < COUNT; i++)
                    got[v + i] = span.get(i);
            }
        });
    else
        each_step([&](unsigned step, const T *from, T(&got)[COUNT]) {
#pragma unroll
            for (unsigned v = 0; v < COUNT; v++)
                got[v] = v < s.count && step < k.count ? from[v * s.vectors.col] : T{};
        });
}

/* Adds the sums of the warps that share K, and finishes the results of a block's 2^lines_log lines
 * from `first` on. In shared memory, vector v's sums begin at part[v * down], those of the next
 * warp `deep` further on, and a line's sum is at place(line) among them. */
template <typename T, unsigned COUNT, typename F>
static __device__ __forceinline__ void
add_up(const skinny<T> &s, uint64_t matrix, const gm_acc<T> *part, uint64_t first,
       unsigned lines_log, unsigned down, unsigned deep, F place)
{
    for (unsigned i = threadIdx.x; i < COUNT << lines_log; i += blockDim.x) {
        /* Neighbouring threads store neighbouring elements. */
        unsigned vector = s.transposed ? i >> lines_log : i % COUNT;
        unsigned in = s.transposed ? i & ((1u << lines_log) - 1) : i / COUNT;
        const gm_acc<T> *from = part + vector * down + place(in);
        uint64_t line = first + in, row = s.transposed ? vector : line,
                 col = s.transposed ? line : vector;
        gm_acc<T> sum = 0;

        if (line >= s.lines || vector >= s.count)
            continue;
#pragma unroll 4
        for (unsigned d = 0; d < 1u << s.at.deep_log; d++)
            sum += from[d * deep];
        if (s.at.splits > 1) {
            uint64_t before = (blockIdx.y * s.p.batch + matrix) * s.p.M * s.p.N;
            ((gm_acc<T> *)s.p.result)[before + row * s.p.N + col] = sum;
        } else {
            T value = gm_finished(s.p, matrix, row, col, sum);
            s.p.result[matrix * s.p.M * s.p.N + row * s.p.N + col] = value;
        }
    }
}

#endif
