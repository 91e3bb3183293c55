/*
 * matmul_skinny.cu - a matrix times a few vectors: the large operand is read once, at the speed of
 * memory.
 *
 * The difference to matmul_tiled: no tile of the large operand in shared memory. With at most 8
 * columns (or 8 rows) in the result, each of its elements is used at most 8 times, and all there is
 * to win is in how it is read. Only the vectors lie in shared memory, a piece of them at a time;
 * while they come, the first elements of the large operand are under way already. There are two
 * ways, as its lines run:
 *
 * - Along k: a dot product each. A few lanes have 16 bytes of a line each at a time, of one line or
 *   of several.
 * - Across: each step of k adds a line, times a number, to each vector of the result. Lanes have 16
 *   bytes of the line; the other lanes of the warp have other steps.
 *
 * Lanes' sums are folded by shuffles (fold.h), those of warps that share k added in shared memory,
 * and those of blocks that do (slices.h) after. How many share what is skinny_layout.h's to say, so
 * that there are enough under way: all of the device's warps, with 4 requests each, and 4 more
 * before these are used up. All orders are fixed.
 *
 * Cost, elements of 4 bytes: 16 sectors a request of the large operand, all useful, where its lines
 * begin at 16 bytes and more than two lanes have one (of two lanes up to 32, whose other halves the
 * L1 cache keeps for the next request); elsewhere 4 requests of 4 to 32 sectors. 3 vectors cost the
 * arithmetic of 4, and 5 to 7 that of 8.
 *
 * When it wins: results of few rows or columns, but for the smallest (matmul_small) and of at most
 * 4 x 4 (matmul_dot).
 *
 * Source: this repository.
 */
#include "kernels/cuda/fold.h"
#include "kernels/cuda/skinny_layout.h"
#include "kernels/cuda/skinny_parts.h"
#include "kernels/cuda/skinny_run.h"

/* Lane `sub` of those that have a line, in group `group` of the warp's, and the warp's place in the
 * block. */
struct place {
    unsigned lanes, groups, sub, group, deep, wide;
};
static __device__ __forceinline__ place place_of(const skinny_layout &at)
{
    unsigned lane = threadIdx.x % GM_WARP, warp = threadIdx.x / GM_WARP, lanes = 1u << at.lanes_log;

    return {lanes,
            GM_WARP >> at.lanes_log,
            lane & (lanes - 1),
            lane >> at.lanes_log,
            warp & ((1u << at.deep_log) - 1),
            warp >> at.deep_log};
}

/* Whether two of the largest blocks are to be on a multiprocessor: where the sums of a run for each
 * vector, or along k its factors, leave room for that, which nvcc by itself does not always. */
template <typename T, unsigned COUNT, unsigned LINES>
static constexpr bool two_fit = LINES == 1 && COUNT * 16 / sizeof(T) * sizeof(gm_sum<T>) <= 64;

template <typename T, unsigned COUNT, unsigned LINES, bool ALIGNED>
static __global__ void __launch_bounds__(THREADS_MAX, two_fit<T, COUNT, LINES> ? 2 : 1)
    skinny_along(skinny<T> s, uint64_t first_matrix)
{
    constexpr unsigned RUN = 16 / sizeof(T), RUNS = AHEAD / LINES, VECTOR = 16 / sizeof(gm_sum<T>);
    static_assert(AHEAD % LINES == 0, "as many requests for each line");
    gm_sum<T> *vector = gm_dynamic_shared<gm_sum<T>>();
    const place me = place_of(s.at);
    const unsigned apart = ALIGNED ? 1 : me.lanes, stride = me.lanes * RUN << s.at.deep_log;
    const unsigned lines_log = 5 - s.at.lanes_log + s.at.wide_log + log2_of<LINES>;
    const unsigned mine = me.wide * me.groups * LINES + me.group, down = s.piece_steps + VECTOR;
    const uint64_t matrix = first_matrix + blockIdx.z, line = (uint64_t)blockIdx.x << lines_log;
    const uint64_t end = slice_begin(s, blockIdx.y + 1);
    const T *from[LINES];
    gm_sum<T> sum[LINES * COUNT] = {};

#pragma unroll
    for (unsigned i = 0; i < LINES; i++) {
        uint64_t at = line + mine + i * me.groups;
        from[i] =
            gm_matrix_of<T>(s.large, matrix) + (at < s.lines ? at : s.lines - 1) * s.large.row;
    }
    for (uint64_t first = slice_begin(s, blockIdx.y); first < end; first += s.piece_steps) {
        const skinny_piece k = piece_of(s, first, end);
        run<T> next[AHEAD];
        auto load = [&](unsigned at) {
#pragma unroll
            for (unsigned i = 0; i < AHEAD; i++) {
                unsigned step = at + i / LINES * stride;
                next[i] = read_run<T, ALIGNED>(from[i % LINES] + first + step,
                                               step < k.count ? k.count - step : 0, apart);
            }
        };
        unsigned at = me.deep * me.lanes * RUN + (ALIGNED ? me.sub * RUN : me.sub);
        load(at);
        __syncthreads(); /* nobody needs the last piece */
        bring<T, COUNT>(vector, s, matrix, k, down, 1);
        __syncthreads();
        for (; at < k.count; at += RUNS * stride) {
            run<T> got[AHEAD];
#pragma unroll
            for (unsigned i = 0; i < AHEAD; i++)
                got[i] = next[i];
            if (at + RUNS * stride < k.count)
                load(at + RUNS * stride);
#pragma unroll
            for (unsigned j = 0; j < RUNS; j++) {
                unsigned step = at + j * stride;
                if (j > 0 && step >= k.count)
                    break;
#pragma unroll
                for (unsigned v = 0; v < COUNT; v++) {
                    const gm_sum<T> *factors = vector + v * down + step;
                    gm_sum<T> factor[RUN];
#pragma unroll
                    for (unsigned r = 0; r < RUN; r += ALIGNED ? VECTOR : 1) {
                        if (ALIGNED)
                            *(run<gm_sum<T>> *)&factor[r] = *(const run<gm_sum<T>> *)&factors[r];
                        else
                            factor[r] = factors[r * apart];
                    }
#pragma unroll
                    for (unsigned r = 0; r < RUN; r++) {
#pragma unroll
                        for (unsigned i = 0; i < LINES; i++)
                            sum[i * COUNT + v] += gm_load(got[j * LINES + i].get(r)) * factor[r];
                    }
                }
            }
        }
    }
    gm_trigger_dependent();
    __syncthreads();
    gm_sum<T> *part = vector;
    const unsigned part_down = (1u << lines_log) + 1, part_deep = COUNT * part_down;
    gm_fold(sum, me.lanes / 2, 1, 0, [&](unsigned i, gm_sum<T> all) {
        part[me.deep * part_deep + i % COUNT * part_down + mine + i / COUNT * me.groups] = all;
    });
    __syncthreads();
    add_up<T, COUNT>(s, matrix, part, line, lines_log, part_down, part_deep,
                     [](unsigned in) { return in; });
}

template <typename T, unsigned COUNT, bool ALIGNED>
static __global__ void __launch_bounds__(THREADS_MAX, two_fit<T, COUNT, 1> ? 2 : 1)
    skinny_across(skinny<T> s, uint64_t first_matrix)
{
    constexpr unsigned RUN = 16 / sizeof(T);
    gm_sum<T> *vector = gm_dynamic_shared<gm_sum<T>>();
    const place me = place_of(s.at);
    const unsigned apart = ALIGNED ? 1 : me.lanes, stride = me.groups << s.at.deep_log;
    const unsigned lines_log = s.at.wide_log + s.at.lanes_log + log2_of<RUN>;
    const unsigned mine = me.wide * me.lanes * RUN + (ALIGNED ? me.sub * RUN : me.sub);
    const uint64_t matrix = first_matrix + blockIdx.z, line = (uint64_t)blockIdx.x << lines_log;
    const uint64_t left = line + mine < s.lines ? s.lines - line - mine : 0;
    const uint64_t end = slice_begin(s, blockIdx.y + 1);
    const T *large = gm_matrix_of<T>(s.large, matrix) + line + mine;
    gm_sum<T> sum[COUNT * RUN] = {};

    for (uint64_t first = slice_begin(s, blockIdx.y); first < end; first += s.piece_steps) {
        const skinny_piece k = piece_of(s, first, end);
        run<T> next[AHEAD];
        auto load = [&](unsigned at) {
#pragma unroll
            for (unsigned i = 0; i < AHEAD; i++) {
                unsigned step = at + i * stride;
                next[i] = read_run<T, ALIGNED>(large + (first + step) * s.large.col,
                                               step < k.count ? left : 0, apart);
            }
        };
        unsigned at = me.deep * me.groups + me.group;
        load(at);
        __syncthreads(); /* nobody needs the last piece */
        bring<T, COUNT>(vector, s, matrix, k, 1, COUNT);
        __syncthreads();
        for (; at < k.count; at += AHEAD * stride) {
            run<T> got[AHEAD];
#pragma unroll
            for (unsigned i = 0; i < AHEAD; i++)
                got[i] = next[i];
            if (at + AHEAD * stride < k.count)
                load(at + AHEAD * stride);
#pragma unroll
            for (unsigned i = 0; i < AHEAD; i++) {
                unsigned step = at + i * stride;
                if (i > 0 && step >= k.count)
                    break;
#pragma unroll
                for (unsigned v = 0; v < COUNT; v++) {
                    gm_sum<T> factor = vector[step * COUNT + v];
#pragma unroll
                    for (unsigned r = 0; r < RUN; r++)
                        sum[v * RUN + r] += gm_load(got[i].get(r)) * factor;
                }
            }
        }
    }
    gm_trigger_dependent();
    __syncthreads();
    gm_sum<T> *part = vector;
    const unsigned row = run_apart(me.lanes);
    const unsigned part_down = (RUN * row << s.at.wide_log) + 1, part_deep = COUNT * part_down;
    gm_fold(sum, GM_WARP / 2, me.lanes, 0, [&](unsigned i, gm_sum<T> all) {
        unsigned at = (me.wide * RUN + i % RUN) * row + me.sub;
        part[me.deep * part_deep + i / RUN * part_down + at] = all;
    });
    __syncthreads();
    add_up<T, COUNT>(s, matrix, part, line, lines_log, part_down, part_deep, [&](unsigned in) {
        unsigned warp = in / RUN >> s.at.lanes_log, of_warp = in & (me.lanes * RUN - 1);
        unsigned r = ALIGNED ? of_warp % RUN : of_warp >> s.at.lanes_log;
        return (warp * RUN + r) * row + (ALIGNED ? of_warp / RUN : of_warp & (me.lanes - 1));
    });
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
        unsigned slices = skinny_of<T>(op).at.slices;
        bytes = slices > 1 ? gm_slices_bytes(op, slices) : 0;
        return GM_OK;
    });
    return bytes;
}

template <typename T, unsigned COUNT, bool ALIGNED>
static enum gm_status launch(struct gm_exec *exec, const skinny<T> &s)
{
    constexpr unsigned SEVERAL = several_lines<T>(COUNT);
    void (*kernel)(skinny<T>, uint64_t) = !s.along ? skinny_across<T, COUNT, ALIGNED>
                                          : s.at.several_lines
                                              ? skinny_along<T, COUNT, SEVERAL, ALIGNED>
                                              : skinny_along<T, COUNT, 1, ALIGNED>;
    uint64_t blocks = gm_ceil_div(s.lines, lines_of_a_warp(s) << s.at.wide_log);

    return gm_launches(s.p.batch, GM_GRID_YZ_MAX, [&](uint64_t matrix, uint64_t depth) {
        dim3 grid((unsigned)blocks, s.at.slices, (unsigned)depth);
        dim3 block(GM_WARP << s.at.deep_log << s.at.wide_log);
        return gm_launch(exec, kernel, grid, block, shared_of(s), s, matrix);
    });
}

template <typename T, bool ALIGNED>
static enum gm_status launch_by_count(struct gm_exec *exec, const skinny<T> &s)
{
    switch (kernel_count(s.count)) {
    case 1:
        return launch<T, 1, ALIGNED>(exec, s);
    case 2:
        return launch<T, 2, ALIGNED>(exec, s);
    case 4:
        return launch<T, 4, ALIGNED>(exec, s);
    default:
        return launch<T, VECTORS_MAX, ALIGNED>(exec, s);
    }
}

extern "C" enum gm_status GM_ENTRY(matmul_skinny)(const struct gm_op *op, struct gm_exec *exec)
{
    return gm_by_type(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        skinny<T> s = skinny_of<T>(op);
        gm_product<T> whole = s.p;

        if (s.at.slices > 1)
            s.p.result = (T *)gm_scratch(exec);
        enum gm_status status =
            s.aligned ? launch_by_count<T, true>(exec, s) : launch_by_count<T, false>(exec, s);
        if (status == GM_OK && s.at.slices > 1)
            status = gm_finish_slices(exec, whole, gm_scratch(exec), s.at.slices);
        return status;
    });
}
