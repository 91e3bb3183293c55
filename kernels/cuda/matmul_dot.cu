/*
 * matmul_dot.cu - few sums of many steps: k is dealt out to up to 131,072 threads.
 *
 * The difference to matmul_skinny, which gives a warp lines of the large operand: of a dot product
 * there is one, which warps and at most 128 slices of k must share. Here no operand is large. A
 * block takes a slice of k, a thread every 256th step of it, for all of at most 4 x 4 sums at once;
 * threads' sums are added by shuffles and in shared memory, and slices after (slices.h), each in
 * one order.
 *
 * Cost, elements of 4 bytes: 4 sectors a request of what lies along k, all useful. There is nothing
 * to reuse but in registers.
 *
 * When it wins: results of at most 4 x 4, from some hundred steps of k on.
 *
 * Source: this repository.
 */
#include "kernels/cuda/slices.h"

#define SIDE_MAX 4u
#define WARPS 8u
#define THREADS (GM_WARP * WARPS)
#define SLICES_MAX 512u
#define BLOCKS (8 * GM_H200_SMS) /* of all matrices: as many as an H200 has room for */

static_assert(SIDE_MAX * SIDE_MAX <= THREADS, "a thread finishes each sum");

/* Steps that a thread has under way, of so many rows and columns. */
template <unsigned ROWS, unsigned COLS> static constexpr unsigned ahead = 16 / (ROWS + COLS);

template <typename T, unsigned ROWS, unsigned COLS>
static __global__ void __launch_bounds__(THREADS)
    matmul_dot(gm_product<T> p, gm_sum<T> *slices, uint64_t steps, uint64_t first_matrix)
{
    constexpr unsigned AHEAD = ahead<ROWS, COLS>;
    __shared__ gm_sum<T> part[WARPS][ROWS * COLS];
    uint64_t matrix = first_matrix + blockIdx.y, begin = blockIdx.x * steps;
    uint64_t end = p.k - begin < steps ? p.k : begin + steps;
    const T *a = gm_matrix_of<T>(p.a, matrix), *b = gm_matrix_of<T>(p.b, matrix);
    unsigned lane = threadIdx.x % GM_WARP, warp = threadIdx.x / GM_WARP;
    gm_sum<T> sum[ROWS][COLS] = {};

    gm_trigger_dependent(); /* at once: there is room beside few blocks for what adds slices */
    for (uint64_t k = begin + threadIdx.x; k < end; k += THREADS * AHEAD) {
        gm_sum<T> left[AHEAD][ROWS], right[AHEAD][COLS];
#pragma unroll
        for (unsigned i = 0; i < AHEAD; i++) {
            uint64_t step = k + i * THREADS;
#pragma unroll
            for (unsigned r = 0; r < ROWS; r++)
                left[i][r] =
                    step < end && r < p.m ? gm_load(a[r * p.a.row + step * p.a.col]) : gm_sum<T>(0);
#pragma unroll
            for (unsigned c = 0; c < COLS; c++)
                right[i][c] =
                    step < end && c < p.n ? gm_load(b[step * p.b.row + c * p.b.col]) : gm_sum<T>(0);
        }
#pragma unroll
        for (unsigned i = 0; i < AHEAD; i++) {
#pragma unroll
            for (unsigned r = 0; r < ROWS; r++) {
#pragma unroll
                for (unsigned c = 0; c < COLS; c++)
                    sum[r][c] += left[i][r] * right[i][c];
            }
        }
    }
#pragma unroll
    for (unsigned i = 0; i < ROWS * COLS; i++) {
        gm_sum<T> all = sum[i / COLS][i % COLS];
        for (unsigned apart = GM_WARP / 2; apart > 0; apart /= 2)
            all += __shfl_xor_sync(0xFFFFFFFFu, all, apart);
        if (lane == 0)
            part[warp][i] = all;
    }
    __syncthreads();
    unsigned row = threadIdx.x / COLS, col = threadIdx.x % COLS;
    if (row >= ROWS || row >= p.m || col >= p.n)
        return;
    gm_sum<T> all = 0;
    for (unsigned w = 0; w < WARPS; w++)
        all += part[w][threadIdx.x];
    uint64_t at = (matrix * p.m + row) * p.n + col;
    if (slices)
        slices[blockIdx.x * p.batch * p.m * p.n + at] = all;
    else
        p.result[at] = gm_finished(p, matrix, row, col, all);
}

/* By the shape alone, so that sums are the same on every device. `run`: a block's steps at once. */
static unsigned slices_of(uint64_t batch, uint64_t k, uint64_t run)
{
    uint64_t slices = batch ? BLOCKS / batch : 1, runs = gm_ceil_div(k, run);

    slices = slices < runs ? slices : runs;
    slices = slices < SLICES_MAX ? slices : SLICES_MAX;
    return slices > 1 ? (unsigned)slices : 1;
}

/* fn(rows, cols) with how many of each a thread sums: integral constants. */
template <unsigned N> struct count {
    static constexpr unsigned value = N;
};
template <typename F> static enum gm_status by_side(uint64_t m, uint64_t n, F fn)
{
    if (m == 1)
        return n == 1 ? fn(count<1>(), count<1>()) : fn(count<1>(), count<SIDE_MAX>());
    return n == 1 ? fn(count<SIDE_MAX>(), count<1>()) : fn(count<SIDE_MAX>(), count<SIDE_MAX>());
}

GM_ROW_FUNCTION enum gm_status
gm_dot_accepts(const struct gm_op *op, const struct gm_device_facts *facts, struct gm_error *err)
{
    (void)facts;
    if (op->result.rows > SIDE_MAX || op->result.cols > SIDE_MAX)
        return gm_fail(err, GM_KERNEL_UNAVAILABLE,
                       "kernel \"dot\" takes results of at most %u x %u elements", SIDE_MAX,
                       SIDE_MAX);
    return GM_OK;
}

GM_ROW_FUNCTION uint64_t gm_dot_scratch(const struct gm_op *op)
{
    uint64_t bytes = 0;

    (void)by_side(gm_op_m(op), gm_op_n(op), [&](auto rows, auto cols) {
        constexpr unsigned run = THREADS * ahead<decltype(rows)::value, decltype(cols)::value>;
        unsigned slices = slices_of(op->result.batch, gm_op_k(op), run);
        bytes = slices > 1 ? gm_slices_bytes(op, slices) : 0;
        return GM_OK;
    });
    return bytes;
}

extern "C" enum gm_status GM_ENTRY(matmul_dot)(const struct gm_op *op, struct gm_exec *exec)
{
    return gm_by_type(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        gm_product<T> p = gm_product_of<T>(op, false); /* each matrix has a few sums */

        return by_side(p.m, p.n, [&](auto rows, auto cols) {
            constexpr unsigned ROWS = decltype(rows)::value, COLS = decltype(cols)::value;
            constexpr unsigned RUN = THREADS * ahead<ROWS, COLS>;
            unsigned slices = slices_of(p.batch, p.k, RUN);
            uint64_t steps = gm_ceil_div(gm_ceil_div(p.k, RUN), slices) * RUN;
            gm_sum<T> *sums = slices > 1 ? (gm_sum<T> *)gm_scratch(exec) : nullptr;

            slices = steps > 0 ? (unsigned)gm_ceil_div(p.k, steps) : 1; /* none of them empty */
            enum gm_status status =
                gm_launches(p.batch, GM_GRID_YZ_MAX, [&](uint64_t first, uint64_t count) {
                    return gm_launch(exec, matmul_dot<T, ROWS, COLS>, dim3(slices, (unsigned)count),
                                     dim3(THREADS), 0, p, sums, steps, first);
                });
            return status == GM_OK && sums ? gm_finish_slices(exec, p, sums, slices) : status;
        });
    });
}
