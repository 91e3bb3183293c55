/*
 * sm90_split_bf16.h - splits f32 operands into three bf16 planes, x = hi + mid + lo.
 *
 * An image is a row of stages, laid out as in shared memory:
 *
 *     stage 0                          stage 1
 *     | hi: rows x 32 of K | mid | lo | hi | mid | lo | ...      rows of 64 bytes, swizzled
 *
 * So the product copies a stage at once and needs no tensor map. The pass that writes images
 * handles any layout and shape of the operand.
 */
#ifndef GM_KERNELS_CUDA_MATMUL_SM90_SPLIT_BF16_H
#define GM_KERNELS_CUDA_MATMUL_SM90_SPLIT_BF16_H

#include "kernels/cuda/lib/sm90.h"
#include "kernels/cuda/matmul/tensor/sm80.h"

#include <cuda_bf16.h>

constexpr unsigned GM_SPLIT_BK = 32;                     /* steps of K in a stage */
constexpr unsigned GM_SPLIT_ROW_BYTES = 2 * GM_SPLIT_BK; /* of a plane: the swizzle's width */
constexpr unsigned GM_SPLIT_PLANES = 3;                  /* hi, mid, lo */
constexpr unsigned GM_SPLIT_THREADS = 256;

/* One operand as rows x K: rows of A, columns of B. */
struct gm_split_operand {
    const float *data;
    uint64_t matrices, matrix_stride; /* one matrix if it broadcasts */
    uint64_t rows, k, row_stride, k_stride;
    bool aligned;         /* 4 neighbours from a multiple of 4 on are one aligned vector */
    __nv_bfloat16 *image; /* [matrix][tile of rows][stage of k][plane][row][k], swizzled */
};

struct gm_split_planes {
    __nv_bfloat16 part[GM_SPLIT_PLANES];
};

/* The parts of x. If x is not finite, the lower parts are zero. If x would round to infinity, it is
 * truncated. */
__device__ static inline gm_split_planes split(float x)
{
    gm_split_planes p;

    p.part[0] = __float2bfloat16_rn(x);
    if (isinf(__bfloat162float(p.part[0])) && !isinf(x))
        p.part[0] = __float2bfloat16_rz(x);
    float rest = isfinite(x) ? x - __bfloat162float(p.part[0]) : 0.0f;
    p.part[1] = __float2bfloat16_rn(rest);
    p.part[2] = __float2bfloat16_rn(rest - __bfloat162float(p.part[1]));
    return p;
}

/* A thread's elements of a tile: 4 neighbours in memory. Eight threads read 128 bytes. Along K a
 * warp then writes 32 banks of shared memory at once; along the rows 8, which takes no longer,
 * since memory is the limit. */
constexpr unsigned GM_SPLIT_SPAN = 4;
struct gm_split_span {
    unsigned row, k; /* of the first, in the tile */
};

template <unsigned ROWS>
__device__ static inline gm_split_span gm_split_span_of(unsigned i, bool along_k)
{
    constexpr unsigned SPANS = GM_SPLIT_BK / GM_SPLIT_SPAN, LINES = ROWS / GM_SPLIT_BK;
    unsigned line = i / SPANS, at = i % SPANS * GM_SPLIT_SPAN;

    if (along_k)
        return {line, at};
    return {line % LINES * GM_SPLIT_BK + at, line / LINES};
}

/* A block reads ROWS x BK elements into shared memory, along whichever dimension is contiguous, and
 * writes their three planes. Elements beyond the operand are zero. */
template <unsigned ROWS>
__device__ static void gm_split_tile(const gm_split_operand &x, uint64_t at,
                                     float (*tile)[ROWS + 1])
{
    constexpr unsigned SPANS = ROWS * GM_SPLIT_BK / GM_SPLIT_SPAN / GM_SPLIT_THREADS;
    uint64_t tiles_a_matrix = gm_ceil_div(x.rows, ROWS), matrix = at / tiles_a_matrix;
    uint64_t row0 = at % tiles_a_matrix * ROWS, k0 = (uint64_t)blockIdx.x * GM_SPLIT_BK;
    const float *data = x.data + matrix * x.matrix_stride + row0 * x.row_stride + k0 * x.k_stride;
    bool along_k = x.k_stride == 1;
    bool whole = x.aligned && row0 + ROWS <= x.rows && k0 + GM_SPLIT_BK <= x.k;
    alignas(16) float got[SPANS][GM_SPLIT_SPAN];

#pragma unroll
    for (unsigned i = 0; i < SPANS; i++) {
        gm_split_span s = gm_split_span_of<ROWS>(i * GM_SPLIT_THREADS + threadIdx.x, along_k);
        const float *from = data + s.row * x.row_stride + s.k * x.k_stride;
        if (whole) {
            *(float4 *)got[i] = *(const float4 *)from;
            continue;
        }
#pragma unroll
        for (unsigned j = 0; j < GM_SPLIT_SPAN; j++) {
            uint64_t row = row0 + s.row + (along_k ? 0 : j), k = k0 + s.k + (along_k ? j : 0);
            bool inside = row < x.rows && k < x.k;
            got[i][j] = inside ? from[j * (along_k ? x.k_stride : x.row_stride)] : 0.0f;
        }
    }
#pragma unroll
    for (unsigned i = 0; i < SPANS; i++) {
        gm_split_span s = gm_split_span_of<ROWS>(i * GM_SPLIT_THREADS + threadIdx.x, along_k);
#pragma unroll
        for (unsigned j = 0; j < GM_SPLIT_SPAN; j++)
            tile[s.k + (along_k ? j : 0)][s.row + (along_k ? 0 : j)] = got[i][j];
    }
    __syncthreads();

    char *image =
        (char *)(x.image + (at * gridDim.x + blockIdx.x) * GM_SPLIT_PLANES * ROWS * GM_SPLIT_BK);
    for (unsigned i = threadIdx.x; i < ROWS * GM_SPLIT_BK / 8; i += GM_SPLIT_THREADS) {
        unsigned row = i / (GM_SPLIT_BK / 8), vec = i % (GM_SPLIT_BK / 8);
        alignas(16) __nv_bfloat16 plane[GM_SPLIT_PLANES][8];
#pragma unroll
        for (unsigned j = 0; j < 8; j++) {
            gm_split_planes p = split(tile[vec * 8 + j][row]);
#pragma unroll
            for (unsigned part = 0; part < GM_SPLIT_PLANES; part++)
                plane[part][j] = p.part[part];
        }
#pragma unroll
        for (unsigned part = 0; part < GM_SPLIT_PLANES; part++)
            *(uint4 *)(image + part * ROWS * GM_SPLIT_ROW_BYTES + gm_swizzled_64b(row, vec)) =
                *(const uint4 *)plane[part];
    }
}

static inline uint64_t gm_split_matrices(const gm_view &view, uint64_t batch)
{
    return view.batch == 0 ? 1 : batch;
}

/* One operand: rows of A as row, k; columns of B as column, k. */
static gm_split_operand gm_split_operand_of(const gm_view &view, uint64_t batch, uint64_t rows,
                                            uint64_t k, uint64_t row_stride, uint64_t k_stride,
                                            __nv_bfloat16 *image)
{
    uint64_t other = k_stride == 1 ? row_stride : k_stride;
    bool aligned = (k_stride == 1 || row_stride == 1) && other % GM_SPLIT_SPAN == 0 &&
                   view.batch % GM_SPLIT_SPAN == 0 &&
                   (uintptr_t)view.data % (GM_SPLIT_SPAN * sizeof(float)) == 0;

    return {(const float *)view.data,
            gm_split_matrices(view, batch),
            view.batch,
            rows,
            k,
            row_stride,
            k_stride,
            aligned,
            image};
}

/* The tiles of A, then those of B, each of BM, BN rows. */
template <unsigned BM, unsigned BN>
static __global__ void __launch_bounds__(GM_SPLIT_THREADS)
    gm_split_pass(gm_split_operand a, gm_split_operand b, uint64_t first_tile)
{
    __shared__ float tile[GM_SPLIT_BK * ((BM > BN ? BM : BN) + 1)];
    uint64_t at = first_tile + blockIdx.y, of_a = a.matrices * gm_ceil_div(a.rows, BM);

    if (at < of_a)
        gm_split_tile<BM>(a, at, (float(*)[BM + 1]) tile);
    else
        gm_split_tile<BN>(b, at - of_a, (float(*)[BN + 1]) tile);
}

/* Bytes of an operand's image; 0 on overflow. */
static uint64_t gm_split_image_bytes(uint64_t matrices, uint64_t rows, unsigned tile, uint64_t k)
{
    uint64_t padded_rows = gm_ceil_div(rows, tile) * tile,
             padded_k = gm_ceil_div(k, GM_SPLIT_BK) * GM_SPLIT_BK, bytes;

    if (__builtin_mul_overflow(matrices, padded_rows, &bytes) ||
        __builtin_mul_overflow(bytes, padded_k, &bytes) ||
        __builtin_mul_overflow(bytes, (uint64_t)(GM_SPLIT_PLANES * sizeof(__nv_bfloat16)), &bytes))
        return 0;
    return bytes;
}

template <unsigned BM, unsigned BN>
static enum gm_status gm_split_both(struct gm_exec *exec, const gm_split_operand &a,
                                    const gm_split_operand &b)
{
    uint64_t tiles = a.matrices * gm_ceil_div(a.rows, BM) + b.matrices * gm_ceil_div(b.rows, BN);

    return gm_launches(tiles, GM_GRID_YZ_MAX, [&](uint64_t first, uint64_t count) {
        dim3 grid((unsigned)gm_ceil_div(a.k, GM_SPLIT_BK), (unsigned)count);
        return gm_launch(exec, gm_split_pass<BM, BN>, grid, dim3(GM_SPLIT_THREADS), 0, a, b, first);
    });
}

#endif
