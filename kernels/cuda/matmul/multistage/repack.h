/*
 * repack.h - copies an operand so that rows of its k-tiles are contiguous and 16-byte aligned.
 *
 * The loader then fills k-tiles with 16-byte copies instead of 8-byte or single-element ones
 * (tile_config.h). The pass reads and writes the operand once, and transposes it if K runs along
 * its rows. The product reads the operand once for each tile in the other direction. The pass
 * counts as part of the kernel, not as `prepare`: an event between the two would keep them from
 * overlapping.
 */
#ifndef GM_KERNELS_CUDA_MATMUL_MULTISTAGE_REPACK_H
#define GM_KERNELS_CUDA_MATMUL_MULTISTAGE_REPACK_H

#include "kernels/cuda/lib/tiles.h"
#include "kernels/cuda/lib/vec.h"
#include "kernels/cuda/matmul/multistage/tile_config.h"

#define GM_REPACK_THREADS 256u
#define GM_REPACK_TILE 32u /* a block transposes GM_REPACK_TILE x GM_REPACK_TILE elements */

/* A repacked operand: `matrices` matrices of `steps` rows (one per step of K) of `span` elements,
 * with leading dimension `ld`. */
struct gm_repack {
    uint64_t matrices, steps, span, ld;
};

template <typename T>
static inline gm_repack gm_repack_of(const struct gm_view *view, uint64_t batch, uint64_t steps,
                                     uint64_t span)
{
    const uint64_t vec = 16 / sizeof(T);

    return {view->batch ? batch : 1, steps, span, gm_ceil_div(span, vec) * vec};
}

/* Repacks an operand whose steps of K are rows. The last 16 bytes of a row are filled up with
 * zeros. If B is repacked after A, its pass is dependent and waits for the first only when it is
 * done itself; the product then waits for the second alone. Neither triggers its dependent early
 * (kernels/EXPERIMENTS.md: measured, slow). */
template <typename T>
static __global__ void __launch_bounds__(GM_REPACK_THREADS)
    gm_repack_rows(const T *in, T *out, gm_repack p, uint64_t batch, uint64_t stride_k,
                   gm_origin origin)
{
    constexpr unsigned VEC = 16 / sizeof(T);
    uint64_t matrix = origin.matrix + blockIdx.z;
    uint64_t step = origin.row + blockIdx.y * blockDim.y + threadIdx.y;
    uint64_t at = (origin.col + (uint64_t)blockIdx.x * blockDim.x + threadIdx.x) * VEC;
    gm_vec_of<T> vec;

    if (step < p.steps && at < p.ld) {
        uint64_t from = matrix * batch + step * stride_k + at;
        T *to = out + (matrix * p.steps + step) * p.ld + at;
        /* 2-byte elements by vectors that may reach into the next row, but not beyond the last */
        if (sizeof(T) == 2 && at + VEC <= p.span &&
            from + 2 * VEC <= (p.matrices - 1) * batch + (p.steps - 1) * stride_k + p.span) {
            gm_vec_pair<16> pair = gm_load_vec_pair<16>(in + from);
            gm_store_vec(to, gm_unaligned_vec<T, 16>(pair, gm_misalignment<16>(in + from)));
        } else {
#pragma unroll
            for (unsigned i = 0; i < VEC; i++)
                vec.x[i] = at + i < p.span ? in[from + i] : T(0);
            *(gm_vec_of<T> *)to = vec;
        }
    }
    gm_wait_for_primary();
}

/* The same for an operand with K along its rows: the elements of a step are `stride` apart. The
 * tile in shared memory is padded as in transpose/padded.cu. */
template <typename T>
static __global__ void __launch_bounds__(GM_REPACK_THREADS)
    gm_repack_transposed(const T *in, T *out, gm_repack p, uint64_t batch, uint64_t stride,
                         uint64_t stride_k, gm_origin origin)
{
    __shared__ T tile[GM_REPACK_TILE][GM_REPACK_TILE + 1];
    uint64_t matrix = origin.matrix + blockIdx.z, first = matrix * batch;
    uint64_t first_step = origin.row + (uint64_t)blockIdx.y * GM_REPACK_TILE;
    uint64_t first_at = origin.col + (uint64_t)blockIdx.x * GM_REPACK_TILE;

#pragma unroll
    for (unsigned y = 0; y < GM_REPACK_TILE; y += GM_REPACK_THREADS / GM_REPACK_TILE) {
        uint64_t at = first_at + threadIdx.y + y, step = first_step + threadIdx.x;
        bool exists = at < p.span && step < p.steps;
        tile[threadIdx.y + y][threadIdx.x] =
            exists ? in[first + at * stride + step * stride_k] : T(0);
    }
    __syncthreads();
#pragma unroll
    for (unsigned y = 0; y < GM_REPACK_TILE; y += GM_REPACK_THREADS / GM_REPACK_TILE) {
        uint64_t at = first_at + threadIdx.x, step = first_step + threadIdx.y + y;
        if (at < p.ld && step < p.steps)
            out[(matrix * p.steps + step) * p.ld + at] = tile[threadIdx.x][threadIdx.y + y];
    }
    gm_wait_for_primary();
}

/* Repacks the operand to `to`, which has room for p, and makes the view describe the copy.
 * dependent: the previous launch repacks the other operand. */
template <typename T>
static inline enum gm_status gm_repack_operand(struct gm_exec *exec, bool dependent,
                                               const gm_repack &p, void *to, struct gm_view *view,
                                               uint64_t *stride, uint64_t *stride_k)
{
    const uint64_t vectors = p.ld * sizeof(T) / 16;
    const dim3 rows = gm_block_of_rows(p.steps, vectors, GM_REPACK_THREADS);
    const dim3 square(GM_REPACK_TILE, GM_REPACK_THREADS / GM_REPACK_TILE);
    const T *from = (const T *)view->data;
    enum gm_status status;

    if (*stride == 1)
        status = gm_tiles(
            p.matrices, p.steps, vectors, rows.y, rows.x, [&](dim3 grid, gm_origin origin) {
                return gm_launch_dependent(exec, dependent, gm_repack_rows<T>, grid, rows, 0, from,
                                           (T *)to, p, view->batch, *stride_k, origin);
            });
    else
        status = gm_tiles(p.matrices, p.steps, p.ld, GM_REPACK_TILE, GM_REPACK_TILE,
                          [&](dim3 grid, gm_origin origin) {
                              return gm_launch_dependent(exec, dependent, gm_repack_transposed<T>,
                                                         grid, square, 0, from, (T *)to, p,
                                                         view->batch, *stride, *stride_k, origin);
                          });
    view->data = to;
    view->batch = view->batch ? p.steps * p.ld : 0;
    *stride = 1;
    *stride_k = p.ld;
    return status;
}

/* ---- Operands of f16 and bf16, of which whole rows are copied, whatever K runs along ---- */

constexpr unsigned GM_HALF_VEC = 8;   /* elements of 16 bytes */
constexpr unsigned GM_HALF_LINE = 64; /* of 128: a box of a copy's row is one request, not two */

/* An operand in its stored order. `batch` is the stride of a stack, 0 if one matrix broadcasts. */
struct gm_half_operand {
    const uint16_t *data;
    uint64_t matrices, batch;
    uint64_t rows, cols, ld; /* cols: the contiguous direction */
    bool along_k;            /* K runs along the rows in memory */
};

/* across: A's rows or B's columns, and their stride. */
static inline gm_half_operand gm_half_operand_of(const struct gm_view &view, uint64_t batch,
                                                 uint64_t k, uint64_t k_stride, uint64_t across,
                                                 uint64_t across_stride)
{
    bool along_k = k_stride == 1;
    uint64_t rows = along_k ? across : k, cols = along_k ? k : across;
    uint64_t ld = along_k ? across_stride : k_stride, matrices = view.batch ? batch : 1;
    gm_half_operand x = {
        (const uint16_t *)view.data, matrices, view.batch, rows, cols, ld, along_k};

    if (x.rows == 1 && x.matrices == 1) /* no second row whose place would matter */
        x.ld = gm_ceil_div(x.cols, GM_HALF_VEC) * GM_HALF_VEC;
    return x;
}

template <typename T> static inline gm_half_operand gm_half_a(const gm_product<T> &p)
{
    return gm_half_operand_of(p.a, p.batch, p.K, p.a.col, p.M, p.a.row);
}
template <typename T> static inline gm_half_operand gm_half_b(const gm_product<T> &p)
{
    return gm_half_operand_of(p.b, p.batch, p.K, p.b.row, p.N, p.b.col);
}
/* Bytes of a copy of the operand whose rows begin at lines: 0 if they begin at multiples of
 * `aligned` elements as it is; UINT64_MAX on overflow. Every buffer begins at 256 bytes. */
static inline uint64_t gm_half_repack_bytes(const gm_half_operand &x, unsigned aligned)
{
    uint64_t ld = gm_ceil_div(x.cols, GM_HALF_LINE) * GM_HALF_LINE, bytes;

    if (x.ld % aligned == 0 && x.batch % aligned == 0)
        return 0;
    if (__builtin_mul_overflow(x.matrices, x.rows, &bytes) ||
        __builtin_mul_overflow(bytes, ld * sizeof(uint16_t), &bytes) || bytes > UINT64_MAX - 255)
        return UINT64_MAX;
    return gm_ceil_div(bytes, 256) * 256;
}

/* Makes *x describe such a copy at *room, and moves *room behind it. */
static inline enum gm_status gm_half_repack(struct gm_exec *exec, unsigned aligned,
                                            gm_half_operand *x, char **room)
{
    uint64_t bytes = gm_half_repack_bytes(*x, aligned), one = 1;
    struct gm_view view = {x->data, x->batch, x->ld, 1};
    gm_repack copy = {x->matrices, x->rows, x->cols,
                      gm_ceil_div(x->cols, GM_HALF_LINE) * GM_HALF_LINE};

    if (bytes == 0)
        return GM_OK;
    enum gm_status status =
        gm_repack_operand<uint16_t>(exec, false, copy, *room, &view, &one, &x->ld);
    x->data = (const uint16_t *)view.data;
    x->batch = view.batch;
    *room += bytes;
    return status;
}

#endif
