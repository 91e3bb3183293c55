/*
 * mainloop.h - the multistage kernel: multiplies one k-tile while the next ones are copied.
 *
 * Copies to shared memory bypass the registers (cp.async), which leaves them to accumulators. The
 * k-tiles in flight hide the latency of global memory. Two points are not obvious from the code:
 *
 * - Beyond the operand's edge a tile repeats its last row (column), and beyond K it has zeros. The
 *   repeated rows only reach accumulators that are never stored; the zeros add nothing.
 * - Accumulators are multiplied by alpha before they are stored, even by 1. A 16-byte store takes
 *   four consecutive registers. If accumulators were stored directly, nvcc would keep them in
 *   consecutive registers throughout the loop, in the same register bank as their factors: two
 *   cycles a multiply-add.
 */
#ifndef GM_KERNELS_CUDA_MATMUL_MULTISTAGE_MAINLOOP_H
#define GM_KERNELS_CUDA_MATMUL_MULTISTAGE_MAINLOOP_H

#include "kernels/cuda/lib/tiles.h"
#include "kernels/cuda/matmul/multistage/epilogue.h"
#include "kernels/cuda/matmul/multistage/loader.h"

#define GM_RASTER_ROWS 8u /* rows of tiles in a group of the rasterization */

/* The parameters of a launch (launch.h). */
struct gm_mainloop {
    uint64_t matrix;                     /* index in the stack of the launch's first matrix */
    unsigned tiles_m, tiles_n;           /* of a matrix */
    struct gm_divisor group, last_group; /* divide by a group's tiles; by the last group's rows */
    /* Split-K: each split has k_tiles k-tiles, and the first `extra_k_tiles` splits one more. A
     * split stores its own result, `batch` matrices after the previous one. */
    uint64_t k_tiles, extra_k_tiles;
    gm_load_mode mode_a, mode_b;
    uint64_t span_a, span_b; /* M and N rounded up to the load width; rows have room for it */
};

/*
 * Tile rasterization: which tile a block computes. Blocks go down each column of a group of
 * GM_RASTER_ROWS rows of tiles, so that blocks that run together share rows of A and columns of B
 * in the L2 cache:
 *
 *     0  8 16 ..       then the
 *     1  9 17 ..       next 8 rows
 *     :  :  :
 */
static __device__ __forceinline__ void gm_tile_of(unsigned block, const struct gm_mainloop &how,
                                                  unsigned *row, unsigned *col)
{
    unsigned group = gm_divide(block, how.group), first = group * GM_RASTER_ROWS;
    unsigned in = block - first * how.tiles_n;
    bool full = how.tiles_m - first >= GM_RASTER_ROWS;
    unsigned height = full ? GM_RASTER_ROWS : how.tiles_m - first;

    *col = full ? in / GM_RASTER_ROWS : gm_divide(in, how.last_group);
    *row = first + in - *col * height;
}

/*
 * The pipeline of k-tiles over STAGES = 4 stages. While k-tile t is multiplied, the next three are
 * in flight:
 *
 *     time       prologue   t = 0      t = 1      t = 2      t = 3      t = 4
 *     stage 0    copy 0     MULTIPLY   copy 4     :          :          MULTIPLY
 *     stage 1    copy 1     :          MULTIPLY   copy 5     :          :
 *     stage 2    copy 2     :          :          MULTIPLY   copy 6     :
 *     stage 3               copy 3     :          :          MULTIPLY   copy 7
 *
 *     copy t: the copy of k-tile t begins        : it is in flight, or waits to be multiplied
 *
 * K-tile t, of BK = 8 steps of K, as each thread goes through it. Fragments, a step's elements of A
 * and B, are double-buffered in registers:
 *
 *     step of K           0    1    2    3    4    5    6    7
 *     load fragments of   1    2    3    4    5    6    7    0 of k-tile t + 1
 *     barrier                                           #
 *     multiply            0    1    2    3    4    5    6    7
 *     begin copy t + 3         #                               (COPY_AT = 3: after step 1)
 *
 * At the barrier, for all threads, this k-tile has been read and the next one has arrived. TILE is
 * a gm_tile. MODE_A and MODE_B: the load modes the kernel is compiled for, or GM_LOAD_ANY.
 */
template <typename TILE, gm_load_mode MODE_A, gm_load_mode MODE_B>
static __global__ void __launch_bounds__(TILE::THREADS, TILE::BLOCKS_PER_SM)
    gm_multistage(gm_product<typename TILE::type> p, struct gm_mainloop how)
{
    using T = typename TILE::type;
    using S = gm_acc<T>;
    constexpr unsigned VEC = TILE::VEC, TM = TILE::TM, TN = TILE::TN, BK = TILE::BK;
    S *shared = gm_dynamic_shared<S>();
    unsigned lane = threadIdx.x % GM_WARP, warp = threadIdx.x / GM_WARP;
    /* lanes in quads of 2 x 2 (tile_config.h) */
    unsigned x = (lane & 1) | (lane >> 2 & (TILE::LANES_N / 2 - 1)) << 1;
    unsigned y = (lane >> 1 & 1) | lane / (2 * TILE::LANES_N) << 1;
    unsigned tile_row, tile_col;
    gm_tile_of(blockIdx.x, how, &tile_row, &tile_col);
    uint64_t row = (uint64_t)tile_row * TILE::BM, col = (uint64_t)tile_col * TILE::BN;
    uint64_t matrix = how.matrix + blockIdx.z, split = blockIdx.y;

    /* The k-tiles and the steps of K of this split. */
    uint64_t first =
        (split * how.k_tiles + (split < how.extra_k_tiles ? split : how.extra_k_tiles)) * BK;
    unsigned k_tiles = (unsigned)how.k_tiles + (split < how.extra_k_tiles);
    uint64_t steps = p.K - first < (uint64_t)k_tiles * BK ? p.K - first : (uint64_t)k_tiles * BK;
    unsigned whole = (unsigned)(steps / BK), begun = 0;

    gm_loader<T, TILE::BM, TILE::LDA, BK, TILE::THREADS, TILE::STAGED_MAX, MODE_A> loader_a;
    gm_loader<T, TILE::BN, TILE::LDB, BK, TILE::THREADS, TILE::STAGED_MAX, MODE_B> loader_b;
    loader_a.init(how.mode_a, gm_matrix_of<T>(p.a, matrix) + row * p.a.row + first * p.a.col,
                  how.span_a - row, p.a.row, p.a.col);
    loader_b.init(how.mode_b, gm_matrix_of<T>(p.b, matrix) + col * p.b.col + first * p.b.row,
                  how.span_b - col, p.b.col, p.b.row);

    S *next_stage = shared;
    auto copy_next = [&]() {
        if (begun - 1 < k_tiles) { /* a k-tile was loaded before: it may be staged */
            loader_a.store_staged();
            loader_b.store_staged();
        }
        if (begun < whole) {
            loader_a.template load_next<true>(next_stage, BK);
            loader_b.template load_next<true>(next_stage + TILE::TILE_A, BK);
        } else if (begun < k_tiles) {
            loader_a.template load_next<false>(next_stage, (unsigned)(steps % BK));
            loader_b.template load_next<false>(next_stage + TILE::TILE_A, (unsigned)(steps % BK));
        }
        __pipeline_commit(); /* also if empty: __pipeline_wait_prior counts commits */
        begun++;
        next_stage += TILE::STAGE;
        if (next_stage == shared + TILE::STAGES * TILE::STAGE)
            next_stage = shared;
    };

    S acc[TM][TN] = {};
    S a[2][TM], b[2][TN]; /* fragments of this step of K and of the next */
    unsigned at_a = warp % TILE::WARPS_M * TILE::WM + y * VEC;
    unsigned at_b = TILE::TILE_A + warp / TILE::WARPS_M * TILE::WN + x * VEC;
    using schedule =
        typename TILE::template schedule<MODE_A == GM_LOAD_TRANSPOSED && MODE_B == GM_LOAD_VEC>;
    if (schedule::BY_COLUMNS) {
        gm_keep(at_a);
        gm_keep(at_b);
    }
    auto load_fragments = [&](unsigned set, const S *stage, unsigned k) {
#pragma unroll
        for (unsigned i = 0; i < TM; i += VEC)
            gm_load_fragment(&a[set][i], stage + k * TILE::LDA + at_a + i * TILE::LANES_M);
#pragma unroll
        for (unsigned j = 0; j < TN; j += VEC)
            gm_load_fragment(&b[set][j], stage + k * TILE::LDB + at_b + j * TILE::LANES_N);
    };

    gm_wait_for_primary(); /* the primary repacks operands */
#pragma unroll
    for (unsigned i = 0; i < TILE::STAGES - 1; i++)
        copy_next();
    __pipeline_wait_prior(TILE::STAGES - 2);
    __syncthreads();
    const S *stage = shared;
    if (k_tiles > 0)
        load_fragments(0, stage, 0);
#pragma unroll 1
    for (unsigned done = 0; done < k_tiles; done++) {
#pragma unroll
        for (unsigned k = 0; k < BK; k++) {
            if (k == BK - 1) { /* after the last k-tile it is read again */
                stage = done + 1 == k_tiles ? stage : stage + TILE::STAGE;
                if (stage == shared + TILE::STAGES * TILE::STAGE)
                    stage = shared;
            }
            load_fragments((k + 1) % 2, stage, (k + 1) % BK);
            if (k == BK - 2) { /* all threads have read this k-tile, and the next has arrived */
                __pipeline_wait_prior(TILE::STAGES - 2);
                __syncthreads();
            }
            if (2 * k == schedule::COPY_AT)
                copy_next();
            gm_multiply<TILE, schedule>(acc, a[k % 2], b[k % 2]);
            if (2 * k + 1 == schedule::COPY_AT)
                copy_next();
        }
    }

    gm_trigger_dependent(); /* the dependent reduces the splits */
    T *out = p.result + (split * p.batch + matrix) * p.M * p.N;
    gm_epilogue<TILE> epilogue = {matrix, row + warp % TILE::WARPS_M * TILE::WM,
                                  col + warp / TILE::WARPS_M * TILE::WN, x, y};
    epilogue.store(p, acc, out, shared);
}

#endif
