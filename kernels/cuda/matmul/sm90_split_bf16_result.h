/*
 * sm90_split_bf16_result.h - stores the sums of sm90_split_bf16.cu, and recomputes those that are
 * not finite.
 *
 * inf * x is inf, but inf * (hi + mid + lo) is NaN if mid is 0; and hi * hi may overflow where the
 * whole product does not. So a kernel recomputes such elements in f32 arithmetic, in the tiles that
 * have any. Without such tiles it ends at once.
 */
#ifndef GM_KERNELS_CUDA_MATMUL_SM90_SPLIT_BF16_RESULT_H
#define GM_KERNELS_CUDA_MATMUL_SM90_SPLIT_BF16_RESULT_H

#include "kernels/cuda/matmul/sm90_split_bf16.h"

struct gm_split_product {
    gm_split_work<float> work;
    const __nv_bfloat16 *a, *b; /* images */
    uint64_t *doubtful;         /* of each unit, a byte per consumer warp: a result is not finite */
};

/* Stores a consumer's part of a tile, or of a split of it, in pairs if the result's rows allow it.
 * Returns true if one of the thread's elements is not finite. */
template <unsigned N>
__device__ static bool gm_split_store(const gm_split_work<float> &w, const gm_split_unit &unit,
                                      uint64_t row0, uint64_t col0, const float (&sum)[N])
{
    const gm_product<float> &p = w.p;
    float *result = p.result + unit.matrix * p.M * p.N;
    bool in_pairs = p.N % 2 == 0, doubtful = false;

    if (w.partial)
        gm_store_partial(w, unit, row0, col0, sum);
#pragma unroll
    for (unsigned i = 0; i < N; i += 2) {
        uint64_t r = row0 + gm_fragment_row(i), c = col0 + gm_fragment_col(i);
        if (r >= p.M || c >= p.N)
            continue;
        float *to = result + r * p.N + c, first = sum[i], second = c + 1 < p.N ? sum[i + 1] : 0;
        if (!w.partial) {
            first = gm_finished(p, unit.matrix, r, c, first);
            second = c + 1 < p.N ? gm_finished(p, unit.matrix, r, c + 1, second) : 0;
            if (in_pairs) {
                *(float2 *)to = make_float2(first, second);
            } else {
                to[0] = first;
                if (c + 1 < p.N)
                    to[1] = second;
            }
        }
        doubtful |= !isfinite(first) || !isfinite(second);
    }
    return doubtful;
}

template <typename C>
static __global__ void __launch_bounds__(GM_SPLIT_THREADS) gm_split_repair(const gm_split_product s)
{
    constexpr unsigned STEPS = 8, ROWS = 8, COLS = C::BM * C::BN / GM_SPLIT_THREADS / ROWS;
    constexpr unsigned ACROSS = C::BN / COLS;
    __shared__ float left[STEPS][C::BM + 1], right[STEPS][C::BN + 1];
    const gm_product<float> &p = s.work.p;
    unsigned row = threadIdx.x / ACROSS * ROWS, col = threadIdx.x % ACROSS * COLS;

    for (uint32_t tile = blockIdx.x; tile < s.work.tiles; tile += gridDim.x) {
        uint64_t doubtful = 0;
        for (uint32_t unit = tile; unit < s.work.units; unit += s.work.tiles)
            doubtful |= s.doubtful[unit];
        if (!doubtful)
            continue;
        gm_split_unit at = gm_split_unit_at(s.work, tile);
        uint64_t row0 = (uint64_t)at.row * C::BM, col0 = (uint64_t)at.col * C::BN;
        const float *a = gm_matrix_of<float>(p.a, at.matrix);
        const float *b = gm_matrix_of<float>(p.b, at.matrix);
        float sum[ROWS][COLS] = {};

        for (uint64_t k0 = 0; k0 < p.K; k0 += STEPS) {
            __syncthreads();
            for (unsigned i = threadIdx.x; i < STEPS * C::BM; i += GM_SPLIT_THREADS) {
                uint64_t r = row0 + i / STEPS, k = k0 + i % STEPS;
                left[i % STEPS][i / STEPS] =
                    r < p.M && k < p.K ? a[r * p.a.row + k * p.a.col] : 0.0f;
            }
            for (unsigned i = threadIdx.x; i < STEPS * C::BN; i += GM_SPLIT_THREADS) {
                uint64_t c = col0 + i % C::BN, k = k0 + i / C::BN;
                right[i / C::BN][i % C::BN] =
                    c < p.N && k < p.K ? b[k * p.b.row + c * p.b.col] : 0.0f;
            }
            __syncthreads();
            unsigned steps = p.K - k0 < STEPS ? (unsigned)(p.K - k0) : STEPS;
            for (unsigned k = 0; k < steps; k++) {
#pragma unroll
                for (unsigned r = 0; r < ROWS; r++) {
#pragma unroll
                    for (unsigned c = 0; c < COLS; c++)
                        sum[r][c] += left[k][row + r] * right[k][col + c];
                }
            }
        }
#pragma unroll
        for (unsigned i = 0; i < ROWS * COLS; i++) {
            uint64_t r = row0 + row + i / COLS, c = col0 + col + i % COLS;
            if (r >= p.M || c >= p.N)
                continue;
            float *element = p.result + (at.matrix * p.M + r) * p.N + c;
            if (!isfinite(*element))
                *element = gm_finished(p, at.matrix, r, c, sum[i / COLS][i % COLS]);
        }
    }
}

#endif
