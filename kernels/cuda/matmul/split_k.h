/*
 * split_k.h - reduces the partial results of blocks that share K (split-K).
 *
 *         K ->   split 0    split 1    split 2
 *            A [          |          |          ]        each split: a block of its own
 *                  |           |          |
 *     scratch   A0 B0       A1 B1       A2 B2            M x N each, in the accumulator type
 *                  \___________|__________/
 *                        alpha (sum) + beta C  -> result
 *
 * A second launch adds the splits in a fixed order, whichever block finished first. So the same
 * operands give the same bits.
 */
#ifndef GM_KERNELS_CUDA_MATMUL_SPLIT_K_H
#define GM_KERNELS_CUDA_MATMUL_SPLIT_K_H

#include "kernels/cuda/lib/tiles.h"
#include "kernels/cuda/matmul/product.h"

#define GM_REDUCE_THREADS 256u      /* of a block, where few splits are added */
#define GM_REDUCE_THREADS_MAX 1024u /* where many are */
/* Elements that a thread adds. */
template <typename T> constexpr unsigned GM_REDUCE_VEC = 16 / sizeof(gm_acc<T>);

/*
 * Element i of split s is splits[s * elements + i]. A thread adds 16 bytes of them, and lanes run
 * along the elements. With many splits each row of threads in the block adds some of them, because
 * one thread would wait for each load in turn.
 */
template <typename T>
static __global__ void __launch_bounds__(GM_REDUCE_THREADS_MAX)
    gm_reduce_splits_kernel(gm_product<T> p, const gm_acc<T> *splits, unsigned count,
                            uint64_t elements, uint64_t first)
{
    constexpr unsigned VEC = GM_REDUCE_VEC<T>;
    struct alignas(16) sums {
        gm_acc<T> x[VEC];
    };
    struct alignas(sizeof(T) * VEC) results {
        T x[VEC];
    };
    __shared__ sums part[GM_REDUCE_THREADS_MAX];
    unsigned x = threadIdx.x, y = threadIdx.y;
    uint64_t i = (first + (uint64_t)blockIdx.x * blockDim.x + x) * VEC;
    bool whole = elements % VEC == 0 && (uintptr_t)p.result % sizeof(results) == 0;
    sums sum = {};

    gm_wait_for_primary();
    if (whole && i < elements) {
#pragma unroll 4
        for (unsigned split = y; split < count; split += blockDim.y) {
            sums more = *(const sums *)&splits[split * elements + i];
#pragma unroll
            for (unsigned j = 0; j < VEC; j++)
                sum.x[j] += more.x[j];
        }
    } else {
        for (unsigned split = y; split < count; split += blockDim.y)
#pragma unroll
            for (unsigned j = 0; j < VEC; j++)
                sum.x[j] += i + j < elements ? splits[split * elements + i + j] : gm_acc<T>(0);
    }
    if (blockDim.y > 1) {
        part[y * blockDim.x + x] = sum;
        __syncthreads();
        for (unsigned deep = 1; y == 0 && deep < blockDim.y; deep++)
#pragma unroll
            for (unsigned j = 0; j < VEC; j++)
                sum.x[j] += part[deep * blockDim.x + x].x[j];
    }
    if (y > 0 || i >= elements)
        return;
    results result;
#pragma unroll
    for (unsigned j = 0; j < VEC; j++) {
        uint64_t matrix = 0, row = 0, col = 0, at = i + j;
        if (p.c.data) { /* without C the position is not needed, and two divisions are saved */
            matrix = at / (p.M * p.N);
            row = at % (p.M * p.N) / p.N;
            col = at % p.N;
        }
        if (at < elements)
            result.x[j] = gm_finished(p, matrix, row, col, sum.x[j]);
        if (!whole && at < elements)
            p.result[at] = result.x[j];
    }
    if (whole)
        *(results *)&p.result[i] = result;
}

/* The product as a kernel that computes splits sees it: it stores plain sums to `splits`. */
template <typename T> static inline gm_product<T> gm_split_of(const gm_product<T> &p, void *splits)
{
    gm_product<T> split = p;

    split.result = (T *)splits;
    split.alpha = gm_acc<T>(1);
    split.beta = gm_acc<T>(0);
    split.c = {};
    return split;
}

static_assert(GM_REDUCE_THREADS_MAX == GM_WARP * GM_WARP, "a warp across, and up to as many deep");

/* Reduces the splits that the previous launch writes. This launch is dependent on that one. */
template <typename T>
static inline enum gm_status gm_reduce_splits(struct gm_exec *exec, const gm_product<T> &p,
                                              const void *splits, unsigned count)
{
    uint64_t elements = p.batch * p.M * p.N, vecs = gm_ceil_div(elements, GM_REDUCE_VEC<T>);
    unsigned deep = 1; /* rows of threads: each adds about four splits */

    while (deep < GM_REDUCE_THREADS_MAX / GM_WARP && 4 * deep < count)
        deep *= 2;
    unsigned across = deep * GM_WARP < GM_REDUCE_THREADS ? GM_REDUCE_THREADS / deep : GM_WARP;
    return gm_launches(
        gm_ceil_div(vecs, across), GM_GRID_X_MAX, [&](uint64_t first, uint64_t blocks) {
            return gm_launch_dependent(exec, true, gm_reduce_splits_kernel<T>,
                                       dim3((unsigned)blocks), dim3(across, deep), 0, p,
                                       (const gm_acc<T> *)splits, count, elements, first * across);
        });
}

/* Bytes of `count` splits of op's result; UINT64_MAX on overflow. */
static inline uint64_t gm_splits_bytes(const struct gm_op *op, uint64_t count)
{
    uint64_t elements = gm_matrix_elements(&op->result), width = gm_dtype_size(op->result.dtype);

    width = width < 4 ? 4 : width; /* f16 and bf16 accumulate in f32 */
    return count > 0 && elements > UINT64_MAX / width / count ? UINT64_MAX
                                                              : elements * width * count;
}

/* ---- Units of work: parts of K of a tile of the result ---- */

template <typename T> struct gm_split_work {
    gm_product<T> p;
    float *partial;                              /* the sums of splits; NULL if there is one */
    uint32_t tile_rows, tile_cols, tiles, units; /* tiles: of the whole stack */
    uint32_t k_tiles, k_tiles_a_unit, group;     /* group: of the rasterization */
};
#define GM_SPLIT_GROUP_ROWS 2048u /* square, of what an H200 runs at once */

struct gm_split_unit {
    uint32_t matrix, row, col; /* row and col in tiles */
    uint32_t split, k_first, k_end;
};

/* The splits are as equal as can be, and none is empty. */
template <typename T>
static inline gm_split_work<T> gm_split_work_of(const gm_product<T> &p, unsigned bm, unsigned bn,
                                                unsigned bk, uint64_t splits, void *partial)
{
    auto rows = (uint32_t)gm_ceil_div(p.M, bm), cols = (uint32_t)gm_ceil_div(p.N, bn);
    auto k = (uint32_t)gm_ceil_div(p.K, bk), each = (uint32_t)gm_ceil_div(k, splits);
    auto tiles = (uint32_t)p.batch * rows * cols, units = tiles * (uint32_t)gm_ceil_div(k, each);
    float *sums = units > tiles ? (float *)partial : nullptr;

    return {p, sums, rows, cols, tiles, units, k, each, GM_SPLIT_GROUP_ROWS / bm};
}

template <typename T>
__device__ static inline gm_split_unit gm_split_unit_at(const gm_split_work<T> &w, uint32_t unit)
{
    uint32_t split = w.partial ? unit / w.tiles : 0;
    gm_tile_index at = gm_tile_in_groups(unit - split * w.tiles, w.tile_rows, w.tile_cols, w.group);
    uint32_t first = split * w.k_tiles_a_unit;

    uint32_t end = min(first + w.k_tiles_a_unit, w.k_tiles);
    return {(uint32_t)at.matrix, (uint32_t)at.row, (uint32_t)at.col, split, first, end};
}

#endif
