/*
 * matmul_skinny.cu - a matrix times a few vectors: the large operand is read once, at the speed of
 * memory.
 *
 * The difference to matmul_tiled: no tile of the large operand in shared memory. With at most 8
 * columns (or 8 rows) in the result, each of its elements is used at most 8 times, and all there is
 * to win is in how it is read. Only the vectors lie in shared memory, a piece of them at a time.
 * There are three ways, as the large operand's lines run:
 *
 * - Along k: a dot product each. A warp takes 4 lines, and its lanes 16 bytes of each at a time, so
 *   that 4 requests are under way; at the end the lanes' sums are added by shuffles.
 * - Across: each step of k adds a line, times a number, to each vector of the result. A lane has 16
 *   bytes of the line; the block's 8 warps take different steps, and their sums are added in shared
 *   memory.
 * - Short, with k up to 64: a thread has a line for itself, and nothing is added between threads.
 *
 * Where that makes too few warps to keep memory busy, k is cut into slices (slices.h), which are
 * added after. All orders are fixed.
 *
 * Cost, elements of 4 bytes: 16 sectors a request of the large operand, all useful, where its lines
 * begin at 16 bytes; elsewhere they are read by elements, and sectors asked for more than once. 2
 * to 8 vectors cost the arithmetic of 8.
 *
 * When it wins: where the large operand has ten million elements or more, single vectors and up to
 * 8 columns; up to 8 columns with k up to 64, whatever their number. Of less the tiles of
 * matmul_fitted take half to nine tenths of its time: its warps are too few to have enough under
 * way.
 */
#include "kernels/cuda/skinny.h"

template <typename T, unsigned COUNT>
static __global__ void __launch_bounds__(THREADS) skinny_along(skinny<T> s, uint64_t first_matrix)
{
    constexpr unsigned RUN = 16 / sizeof(T);
    __shared__ __align__(16) gm_sum<T> piece[COUNT][PIECE];
    static_assert(PIECE % (GM_WARP * RUN) == 0, "whole runs of a warp");
    unsigned lane = threadIdx.x % GM_WARP, warp = threadIdx.x / GM_WARP;
    uint64_t matrix = first_matrix + blockIdx.z, slice = blockIdx.y;
    uint64_t begin = slice_begin(s, slice), end = slice_begin(s, slice + 1);
    uint64_t line = ((uint64_t)blockIdx.x * WARPS + warp) * LINES;
    const T *vectors = gm_matrix_of<T>(s.vectors, matrix);
    const T *from[LINES];
    gm_sum<T> sum[LINES][COUNT] = {};

    for (unsigned i = 0; i < LINES; i++) {
        uint64_t mine = line + i < s.lines ? line + i : s.lines - 1;
        from[i] = gm_matrix_of<T>(s.large, matrix) + mine * s.large.row;
    }
    for (uint64_t first = begin; first < end; first += PIECE) {
        __syncthreads();
        bring<T, COUNT, PIECE, 1>(piece[0], s, vectors, first, end);
        __syncthreads();
        bool whole = s.aligned && end - first >= PIECE;
#pragma unroll
        for (unsigned in = 0; in < PIECE; in += GM_WARP * RUN) {
            unsigned at = in + lane * RUN;
            uint64_t left = first + at < end ? end - first - at : 0;
            run<T> got[LINES];
            if (whole) { /* nothing to ask for each of them: all are under way at once */
#pragma unroll
                for (unsigned i = 0; i < LINES; i++)
                    got[i] = *(const run<T> *)(from[i] + first + at);
            } else {
#pragma unroll
                for (unsigned i = 0; i < LINES; i++)
                    got[i] = read_run(from[i] + first + at, left, s.aligned);
            }
#pragma unroll
            for (unsigned v = 0; v < COUNT; v++) {
                gm_sum<T> factor[RUN];
                for (unsigned r = 0; r < RUN; r += 16 / sizeof(gm_sum<T>))
                    take_run(&factor[r], &piece[v][at + r]);
#pragma unroll
                for (unsigned r = 0; r < RUN; r++) {
#pragma unroll
                    for (unsigned i = 0; i < LINES; i++)
                        sum[i][v] += gm_load(got[i].x[r]) * factor[r];
                }
            }
        }
    }
    gm_trigger_dependent();
#pragma unroll
    for (unsigned i = 0; i < LINES; i++) {
#pragma unroll
        for (unsigned v = 0; v < COUNT; v++) {
            gm_sum<T> all = sum[i][v];
            for (unsigned apart = GM_WARP / 2; apart > 0; apart /= 2)
                all += __shfl_xor_sync(0xFFFFFFFFu, all, apart);
            if (lane == v && line + i < s.lines && v < s.count)
                finish(s, matrix, slice, line + i, v, all);
        }
    }
}

template <typename T, unsigned COUNT>
static __global__ void __launch_bounds__(THREADS) skinny_across(skinny<T> s, uint64_t first_matrix)
{
    constexpr unsigned RUN = 16 / sizeof(T), WIDE = GM_WARP * RUN;
    __shared__ __align__(16) gm_sum<T> piece[PIECE][COUNT];
    __shared__ gm_sum<T> part[WARPS][WIDE];
    static_assert(PIECE % (WARPS * AHEAD) == 0, "each warp the same steps");
    unsigned lane = threadIdx.x % GM_WARP, warp = threadIdx.x / GM_WARP;
    uint64_t matrix = first_matrix + blockIdx.z, slice = blockIdx.y;
    uint64_t begin = slice_begin(s, slice), end = slice_begin(s, slice + 1);
    uint64_t line = (uint64_t)blockIdx.x * WIDE, mine = line + lane * RUN;
    uint64_t left = mine < s.lines ? s.lines - mine : 0;
    const T *large = gm_matrix_of<T>(s.large, matrix) + mine;
    const T *vectors = gm_matrix_of<T>(s.vectors, matrix);
    gm_sum<T> sum[RUN][COUNT] = {};

    for (uint64_t first = begin; first < end; first += PIECE) {
        __syncthreads();
        bring<T, COUNT, 1, COUNT>(piece[0], s, vectors, first, end);
        __syncthreads();
        unsigned steps = end - first < PIECE ? (unsigned)(end - first) : PIECE;
        for (unsigned in = warp; in < steps; in += WARPS * AHEAD) {
            const T *next = large + (first + in) * s.large.col;
            run<T> got[AHEAD];
            if (s.aligned && left >= RUN && in + WARPS * (AHEAD - 1) < steps) {
#pragma unroll
                for (unsigned i = 0; i < AHEAD; i++)
                    got[i] = *(const run<T> *)(next + i * WARPS * s.large.col);
            } else {
#pragma unroll
                for (unsigned i = 0; i < AHEAD; i++)
                    got[i] = read_run(next + i * WARPS * s.large.col,
                                      in + i * WARPS < steps ? left : 0, s.aligned);
            }
#pragma unroll
            for (unsigned i = 0; i < AHEAD; i++) {
#pragma unroll
                for (unsigned v = 0; v < COUNT; v++) {
                    gm_sum<T> factor = piece[in + i * WARPS][v];
#pragma unroll
                    for (unsigned r = 0; r < RUN; r++)
                        sum[r][v] += gm_load(got[i].x[r]) * factor;
                }
            }
        }
    }
    gm_trigger_dependent();
#pragma unroll
    for (unsigned v = 0; v < COUNT; v++) {
        __syncthreads();
#pragma unroll
        for (unsigned r = 0; r < RUN; r++)
            part[warp][lane * RUN + r] = sum[r][v];
        __syncthreads();
        for (unsigned i = threadIdx.x; i < WIDE; i += THREADS) {
            gm_sum<T> all = 0;
            for (unsigned w = 0; w < WARPS; w++)
                all += part[w][i];
            if (line + i < s.lines && v < s.count)
                finish(s, matrix, slice, line + i, v, all);
        }
    }
}

/* A line a thread. */
template <typename T, unsigned COUNT>
static __global__ void __launch_bounds__(THREADS) skinny_short(skinny<T> s, uint64_t first_matrix)
{
    constexpr unsigned RUN = 16 / sizeof(T);
    __shared__ __align__(16) gm_sum<T> piece[PIECE][COUNT];
    uint64_t matrix = first_matrix + blockIdx.z;
    uint64_t line = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    const T *large = gm_matrix_of<T>(s.large, matrix) + line * s.large.row;
    gm_sum<T> sum[COUNT] = {};

    bring<T, COUNT, 1, COUNT>(piece[0], s, gm_matrix_of<T>(s.vectors, matrix), 0, s.p.k);
    __syncthreads();
    if (line >= s.lines)
        return;
    for (unsigned k = 0; k < s.p.k; k += RUN) {
        uint64_t left = s.p.k - k;
        run<T> got = {};
        if (s.large.col == 1) {
            got = read_run(large + k, left, s.aligned);
        } else {
#pragma unroll
            for (unsigned r = 0; r < RUN; r++) {
                if (r < left)
                    got.x[r] = large[(k + r) * s.large.col];
            }
        }
#pragma unroll
        for (unsigned r = 0; r < RUN; r++) {
#pragma unroll
            for (unsigned v = 0; v < COUNT; v++)
                sum[v] += gm_load(got.x[r]) * piece[k + r][v];
        }
    }
    if constexpr (COUNT % RUN == 0) {
        if (s.whole_rows) {
#pragma unroll
            for (unsigned v = 0; v < COUNT; v += RUN) {
                run<T> out;
#pragma unroll
                for (unsigned r = 0; r < RUN; r++)
                    out.x[r] = gm_finished(s.p, matrix, line, v + r, sum[v + r]);
                *(run<T> *)&s.p.result[(matrix * s.p.m + line) * s.p.n + v] = out;
            }
            return;
        }
    }
#pragma unroll
    for (unsigned v = 0; v < COUNT; v++) {
        if (v < s.count)
            finish(s, matrix, 0, line, v, sum[v]);
    }
}

/* The strides and counts of op. */
template <typename T> static skinny<T> skinny_of(const struct gm_op *op)
{
    skinny<T> s = {};
    constexpr uint64_t RUN = 16 / sizeof(T);

    s.p = gm_product_of<T>(op);
    s.turned = s.p.n > VECTORS_MAX || (s.p.m <= VECTORS_MAX && s.p.m < s.p.n);
    s.large = s.turned ? s.p.b : s.p.a;
    s.vectors = s.turned ? s.p.a : s.p.b;
    if (s.turned) {
        s.large.row = s.p.b.col;
        s.large.col = s.p.b.row;
        s.vectors.row = s.p.a.col;
        s.vectors.col = s.p.a.row;
    }
    s.lines = s.turned ? s.p.n : s.p.m;
    s.count = (unsigned)(s.turned ? s.p.m : s.p.n);
    s.whole_rows = !s.turned && s.count == VECTORS_MAX;
    s.aligned = (s.large.col == 1 ? s.large.row : s.large.col) % RUN == 0 &&
                s.large.batch % RUN == 0 && (uintptr_t)s.large.data % 16 == 0;
    return s;
}

GM_ROW_FUNCTION enum gm_status
gm_skinny_accepts(const struct gm_op *op, const struct gm_device_facts *facts, struct gm_error *err)
{
    (void)facts;
    if (op->result.rows > VECTORS_MAX && op->result.cols > VECTORS_MAX)
        return gm_fail(err, GM_KERNEL_UNAVAILABLE,
                       "kernel \"skinny\" takes results of at most %u rows or %u columns",
                       VECTORS_MAX, VECTORS_MAX);
    return GM_OK;
}

GM_ROW_FUNCTION uint64_t gm_skinny_scratch(const struct gm_op *op)
{
    uint64_t bytes = 0;

    (void)gm_by_type(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        unsigned slices = slices_of(skinny_of<T>(op));
        bytes = slices > 1 ? gm_slices_bytes(op, slices) : 0;
        return GM_OK;
    });
    return bytes;
}

template <typename T, unsigned COUNT>
static enum gm_status launch(struct gm_exec *exec, const skinny<T> &s)
{
    uint64_t blocks = gm_pieces(s.lines, lines_of_a_block(s));
    void (*kernel)(skinny<T>, uint64_t) = s.p.k <= SHORT     ? skinny_short<T, COUNT>
                                          : s.large.col == 1 ? skinny_along<T, COUNT>
                                                             : skinny_across<T, COUNT>;

    return gm_launches(s.p.batch, GM_GRID_YZ_MAX, [&](uint64_t matrix, uint64_t depth) {
        dim3 grid((unsigned)blocks, s.slices, (unsigned)depth);
        return gm_launch(exec, kernel, grid, dim3(THREADS), 0, s, matrix);
    });
}

extern "C" enum gm_status GM_ENTRY(matmul_skinny)(const struct gm_op *op, struct gm_exec *exec)
{
    return gm_by_type(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        skinny<T> s = skinny_of<T>(op);
        gm_product<T> whole = s.p;

        s.slices = slices_of(s);
        s.slice_steps = gm_pieces(gm_pieces(s.p.k, PIECE), s.slices) * PIECE;
        if (s.slices > 1)
            s.p.result = (T *)gm_scratch(exec);
        enum gm_status status =
            s.count == 1 ? launch<T, 1>(exec, s) : launch<T, VECTORS_MAX>(exec, s);
        if (status == GM_OK && s.slices > 1)
            status = gm_finish_slices(exec, whole, gm_scratch(exec), s.slices);
        return status;
    });
}
