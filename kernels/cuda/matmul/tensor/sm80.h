/*
 * sm80.h - holds what the tensor-core products of f16 and bf16 (sm80_mma.cu, sm90_wgmma.cu) share.
 *
 * multistage/repack.h has the operands, split_k.h the units of work; choose/tensor.c chooses tiles.
 */
#ifndef GM_KERNELS_CUDA_MATMUL_TENSOR_SM80_H
#define GM_KERNELS_CUDA_MATMUL_TENSOR_SM80_H

#include "kernels/cuda/lib/vec.h"
#include "kernels/cuda/matmul/multistage/repack.h"
#include "kernels/cuda/matmul/split_k.h"

/* ---- What the variants' host functions share ---- */

/* Repacks operands that are not aligned, calls launch(work, a, b), and adds the splits. */
template <unsigned BM, unsigned BN, unsigned BK, typename T, typename F>
static enum gm_status gm_half_run(struct gm_exec *exec, const gm_product<T> &p, unsigned aligned,
                                  unsigned splits, F launch)
{
    char *room = (char *)gm_scratch(exec);
    gm_half_operand a = gm_half_a(p), b = gm_half_b(p);
    enum gm_status status = gm_half_repack(exec, aligned, &a, &room);

    if (status == GM_OK)
        status = gm_half_repack(exec, aligned, &b, &room);
    gm_split_work<T> w = gm_split_work_of(p, BM, BN, BK, splits, room);
    if (status == GM_OK)
        status = launch(w, a, b);
    return status == GM_OK && w.partial ? gm_reduce_splits(exec, p, w.partial, w.units / w.tiles)
                                        : status;
}

static inline enum gm_status gm_half_accepts(const struct gm_op *op, const char *name, unsigned bm,
                                             unsigned bn, struct gm_error *err)
{
    uint64_t m = gm_op_m(op), n = gm_op_n(op), k = gm_op_k(op), units;

    if (k == 0 || !gm_op_reads(op, 0))
        return gm_fail(err, GM_KERNEL_UNAVAILABLE,
                       "kernel \"%s\" takes products that read a and b: k and alpha are not 0",
                       name);
    if (m > INT32_MAX || n > INT32_MAX || k > INT32_MAX ||
        __builtin_mul_overflow(gm_ceil_div(m, bm) * gm_ceil_div(n, bn), op->result.batch, &units) ||
        units > INT32_MAX)
        return gm_fail(err, GM_KERNEL_UNAVAILABLE,
                       "kernel \"%s\" takes dimensions, and tiles of the result, of at most %d",
                       name, INT32_MAX);
    return GM_OK;
}

/* Copies of operands whose rows do not begin at multiples of `aligned` elements, then the sums of
 * the splits. */
static inline uint64_t gm_half_scratch(const struct gm_op *op, unsigned splits, unsigned aligned)
{
    gm_product<gm_bf16> p = gm_product_of<gm_bf16>(op);
    uint64_t a = gm_half_repack_bytes(gm_half_a(p), aligned);
    uint64_t b = gm_half_repack_bytes(gm_half_b(p), aligned);
    uint64_t partial = splits > 1 ? gm_splits_bytes(op, splits) : 0, bytes;

    return a == UINT64_MAX || b == UINT64_MAX || __builtin_add_overflow(a, b, &bytes) ||
                   __builtin_add_overflow(bytes, partial, &bytes)
               ? UINT64_MAX
               : bytes;
}

/* ---- Fragments ---- */

/*
 * A warp's accumulators of 16 rows x 8 columns, as mma.sync and wgmma leave them. 16 rows x 64
 * columns are rounded and staged in shared memory, swizzled (gm_swizzled_128b draws it); then 8
 * lanes store a row's 128 bytes.
 *
 *      columns  0   1   2   3   4   5   6   7
 *     row 0    [lane 0][lane 1][lane 2][lane 3]
 *         1    [lane 4][     5][     6][     7]
 *        ..      acc[0], acc[1] of each
 *         8    [lane 0]..  acc[2], acc[3]
 */
constexpr unsigned GM_STAGING_COLS = 64, GM_STAGING_BYTES = 16 * 2 * GM_STAGING_COLS;

/* The row and column of acc[i] in the warp's fragments. */
__device__ static inline uint64_t gm_fragment_row(unsigned i)
{
    return i % 4 / 2 * 8 + threadIdx.x % GM_WARP / 4;
}
__device__ static inline uint64_t gm_fragment_col(unsigned i)
{
    return i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2;
}

template <typename T, unsigned N>
__device__ static inline void gm_add_c(const gm_product<T> &p, uint64_t matrix, uint64_t row,
                                       uint64_t col, float (&value)[N])
{
    const T *c = gm_matrix_of<T>(p.c, matrix);

#pragma unroll
    for (unsigned i = 0; i < N; i++) {
        uint64_t r = row + gm_fragment_row(i), at = col + gm_fragment_col(i);
        if (r < p.M && at < p.N)
            value[i] += p.beta * gm_load(c[r * p.c.row + at * p.c.col]);
    }
}

/* Stores the 16 x 64 that a warp has staged, at (row, col) of the result. */
template <typename T>
__device__ static inline void gm_store_staged(const gm_product<T> &p, uint64_t matrix, uint64_t row,
                                              uint64_t col, const char *staging)
{
    unsigned lane = threadIdx.x % GM_WARP;
    T *result = p.result + (matrix * p.M + row) * p.N + col;

    if (p.N % GM_HALF_VEC == 0) {
#pragma unroll
        for (unsigned i = 0; i < 4; i++) {
            unsigned r = i * 4 + lane / 8, vec = lane % 8;
            if (row + r < p.M && col + vec * GM_HALF_VEC < p.N)
                *(uint4 *)(result + r * p.N + vec * GM_HALF_VEC) =
                    *(const uint4 *)(staging + gm_swizzled_128b(r, vec));
        }
        return;
    }
    bool even = p.N % 2 == 0;
    for (unsigned i = 0; i < (even ? 16 : 32); i++) { /* a row at once, or half a row */
        unsigned r = even ? i : i / 2, c = even ? lane * 2 : i % 2 * GM_WARP + lane;
        const char *from = staging + gm_swizzled_128b(r, c / GM_HALF_VEC) + c % GM_HALF_VEC * 2;
        if (row + r >= p.M || col + c >= p.N)
            continue;
        if (even)
            *(uint32_t *)(result + r * p.N + c) = *(const uint32_t *)from;
        else
            result[r * p.N + c] = *(const T *)from;
    }
}

/* Stores the sums of a split, in f32, by pairs if rows are even. */
template <typename T, unsigned N>
__device__ static inline void gm_store_partial(const gm_split_work<T> &w, const gm_split_unit &unit,
                                               uint64_t row, uint64_t col, const float (&acc)[N])
{
    const gm_product<T> &p = w.p;
    float *to = w.partial + ((uint64_t)unit.split * p.batch + unit.matrix) * p.M * p.N;

#pragma unroll
    for (unsigned i = 0; i < N; i += 2) {
        uint64_t r = row + gm_fragment_row(i), c = col + gm_fragment_col(i);
        if (r >= p.M || c >= p.N)
            continue;
        if (p.N % 2 == 0) {
            *(float2 *)(to + r * p.N + c) = make_float2(acc[i], acc[i + 1]);
        } else {
            to[r * p.N + c] = acc[i];
            if (c + 1 < p.N)
                to[r * p.N + c + 1] = acc[i + 1];
        }
    }
}

/* Rounds a warp's 16 rows x 2 N columns at (row, col) and calls store(col, staging) for each 64 of
 * them. get() is called before each and returns GM_STAGING_BYTES of the warp's own. */
template <typename T, unsigned N, typename G, typename F>
__device__ static inline void
gm_store_fragments(const gm_split_work<T> &w, const gm_split_unit &unit, uint64_t row, uint64_t col,
                   const float (&acc)[N], G get, F store)
{
    const gm_product<T> &p = w.p;
    unsigned lane = threadIdx.x % GM_WARP;

    if (w.partial) {
        gm_store_partial(w, unit, row, col, acc);
        return;
    }
#pragma unroll
    for (unsigned first = 0; first < N; first += GM_STAGING_COLS / 2) {
        float value[GM_STAGING_COLS / 2];
        char *staging = get();
#pragma unroll
        for (unsigned i = 0; i < GM_STAGING_COLS / 2; i++)
            value[i] = p.alpha * acc[first + i];
        if (p.c.data)
            gm_add_c(p, unit.matrix, row, col + 2 * first, value);
#pragma unroll
        for (unsigned i = 0; i < GM_STAGING_COLS / 2; i += 2)
            *(uint32_t *)(staging + gm_swizzled_128b(i % 4 / 2 * 8 + lane / 4, i / 4) +
                          lane % 4 * 4) =
                (uint32_t)gm_store<T>(value[i + 1]).bits << 16 | gm_store<T>(value[i]).bits;
        store(col + 2 * first, staging);
    }
}

#endif
