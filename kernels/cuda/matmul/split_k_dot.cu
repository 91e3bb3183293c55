/*
 * split_k_dot.cu - computes few long dot products: up to 131,072 threads split K.
 *
 * Unlike in matmul_skinny, which gives a warp whole lines of the large operand, no operand is large
 * here, and a dot product is a single line. A block takes a split of K. A thread takes every 256th
 * step of it, for all of at most 4 x 4 results at once. Shuffles and shared memory add the sums of
 * a block's threads; a second launch adds the splits (split_k.h). Both orders are fixed.
 *
 * Cost, elements of 4 bytes: 4 sectors a request along K, all useful. Only registers reuse loads.
 *
 * When it wins: results of at most 4 x 4, with K from some hundred on.
 */
#include "kernels/cuda/matmul/split_k.h"

#define DOT_SIDE_MAX 4u
#define WARPS 8u
#define THREADS (GM_WARP * WARPS)
#define DOT_SPLITS_MAX 512u
#define BLOCKS (8 * GM_H200_SMS) /* for the whole stack: as many as an H200 has room for */

static_assert(DOT_SIDE_MAX * DOT_SIDE_MAX <= THREADS, "a thread finishes each sum");

/* Steps of K that a thread loads at once, for a result of ROWS x COLS. */
template <unsigned ROWS, unsigned COLS> static constexpr unsigned ahead = 16 / (ROWS + COLS);

template <typename T, unsigned ROWS, unsigned COLS>
static __global__ void __launch_bounds__(THREADS)
    matmul_split_k_dot(gm_product<T> p, gm_acc<T> *splits, uint64_t steps, uint64_t first_matrix)
{
    constexpr unsigned AHEAD = ahead<ROWS, COLS>;
    __shared__ gm_acc<T> part[WARPS][ROWS * COLS];
    uint64_t matrix = first_matrix + blockIdx.y, begin = blockIdx.x * steps;
    uint64_t end = p.K - begin < steps ? p.K : begin + steps;
    const T *a = gm_matrix_of<T>(p.a, matrix), *b = gm_matrix_of<T>(p.b, matrix);
    unsigned lane = threadIdx.x % GM_WARP, warp = threadIdx.x / GM_WARP;
    gm_acc<T> sum[ROWS][COLS] = {};

    gm_trigger_dependent(); /* at once: few blocks leave room for the reduction */
    for (uint64_t k = begin + threadIdx.x; k < end; k += THREADS * AHEAD) {
        gm_acc<T> left[AHEAD][ROWS], right[AHEAD][COLS];
#pragma unroll
        for (unsigned i = 0; i < AHEAD; i++) {
            uint64_t step = k + i * THREADS;
#pragma unroll
            for (unsigned r = 0; r < ROWS; r++)
                left[i][r] =
                    step < end && r < p.M ? gm_load(a[r * p.a.row + step * p.a.col]) : gm_acc<T>(0);
#pragma unroll
            for (unsigned c = 0; c < COLS; c++)
                right[i][c] =
                    step < end && c < p.N ? gm_load(b[step * p.b.row + c * p.b.col]) : gm_acc<T>(0);
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
        gm_acc<T> all = sum[i / COLS][i % COLS];
        for (unsigned apart = GM_WARP / 2; apart > 0; apart /= 2)
            all += __shfl_xor_sync(0xFFFFFFFFu, all, apart);
        if (lane == 0)
            part[warp][i] = all;
    }
    __syncthreads();
    unsigned row = threadIdx.x / COLS, col = threadIdx.x % COLS;
    if (row >= ROWS || row >= p.M || col >= p.N)
        return;
    gm_acc<T> all = 0;
    for (unsigned w = 0; w < WARPS; w++)
        all += part[w][threadIdx.x];
    uint64_t at = (matrix * p.M + row) * p.N + col;
    if (splits)
        splits[blockIdx.x * p.batch * p.M * p.N + at] = all;
    else
        p.result[at] = gm_finished(p, matrix, row, col, all);
}

/* Depends on the shape alone, so that results are the same on every device. block_steps: the steps
 * of K that a block loads at once. */
static unsigned splits_of(uint64_t batch, uint64_t k, uint64_t block_steps)
{
    uint64_t splits = batch ? BLOCKS / batch : 1, rounds = gm_ceil_div(k, block_steps);

    splits = splits < rounds ? splits : rounds;
    splits = splits < DOT_SPLITS_MAX ? splits : DOT_SPLITS_MAX;
    return splits > 1 ? (unsigned)splits : 1;
}

/* Calls fn(rows, cols) with the size of a thread's result, as integral constants. */
template <unsigned N> struct count {
    static constexpr unsigned value = N;
};
template <typename F> static enum gm_status by_side(uint64_t m, uint64_t n, F fn)
{
    if (m == 1)
        return n == 1 ? fn(count<1>(), count<1>()) : fn(count<1>(), count<DOT_SIDE_MAX>());
    return n == 1 ? fn(count<DOT_SIDE_MAX>(), count<1>())
                  : fn(count<DOT_SIDE_MAX>(), count<DOT_SIDE_MAX>());
}

GM_ROW_FUNCTION enum gm_status gm_split_k_dot_accepts(const struct gm_op *op,
                                                      const struct gm_device_facts *facts,
                                                      struct gm_error *err)
{
    (void)facts;
    if (op->result.rows > DOT_SIDE_MAX || op->result.cols > DOT_SIDE_MAX)
        return gm_fail(err, GM_KERNEL_UNAVAILABLE,
                       "kernel \"split_k_dot\" takes results of at most %u x %u elements",
                       DOT_SIDE_MAX, DOT_SIDE_MAX);
    return GM_OK;
}

GM_ROW_FUNCTION uint64_t gm_split_k_dot_scratch(const struct gm_op *op)
{
    uint64_t bytes = 0;

    (void)by_side(gm_op_m(op), gm_op_n(op), [&](auto rows, auto cols) {
        constexpr unsigned block_steps =
            THREADS * ahead<decltype(rows)::value, decltype(cols)::value>;
        unsigned splits = splits_of(op->result.batch, gm_op_k(op), block_steps);
        bytes = splits > 1 ? gm_splits_bytes(op, splits) : 0;
        return GM_OK;
    });
    return bytes;
}

GM_KERNEL(matmul_split_k_dot)
{
    return gm_by_type(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        gm_product<T> p = gm_product_of<T>(op, false); /* each matrix has few sums */

        return by_side(p.M, p.N, [&](auto rows, auto cols) {
            constexpr unsigned ROWS = decltype(rows)::value, COLS = decltype(cols)::value;
            constexpr unsigned BLOCK_STEPS = THREADS * ahead<ROWS, COLS>;
            unsigned splits = splits_of(p.batch, p.K, BLOCK_STEPS);
            uint64_t steps = gm_ceil_div(gm_ceil_div(p.K, BLOCK_STEPS), splits) * BLOCK_STEPS;
            gm_acc<T> *splits_at = splits > 1 ? (gm_acc<T> *)gm_scratch(exec) : nullptr;

            splits = steps > 0 ? (unsigned)gm_ceil_div(p.K, steps) : 1; /* none of them empty */
            enum gm_status status =
                gm_launches(p.batch, GM_GRID_YZ_MAX, [&](uint64_t first, uint64_t count) {
                    return gm_launch(exec, matmul_split_k_dot<T, ROWS, COLS>,
                                     dim3(splits, (unsigned)count), dim3(THREADS), 0, p, splits_at,
                                     steps, first);
                });
            return status == GM_OK && splits_at ? gm_reduce_splits(exec, p, splits_at, splits)
                                                : status;
        });
    });
}
