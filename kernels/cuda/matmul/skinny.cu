/*
 * skinny.cu - multiplies a matrix by at most 8 vectors, reading the matrix once at memory speed.
 *
 * Unlike in matmul_tiled, each element of the large operand is used at most 8 times, so it goes
 * straight to registers. Only the vectors are in shared memory, one chunk of K at a time. There are
 * two kernels, for the two layouts of the large operand's lines (drawn in skinny/product.h):
 * - along: lines run along K. A line is a dot product; a few lanes load 16 bytes each of a line, or
 *   of several lines.
 * - across: lines run across K. Each step of K adds a line, times a number, to each result vector.
 * A reduce-scatter adds lanes, shared memory the warps that share K, and split-K the blocks.
 *
 * Cost, elements of 4 bytes: 16 sectors a request of the large operand, all useful, if its lines
 * are 16-byte aligned; else 4 requests of 4 to 32 sectors. 3 vectors cost as much as 4, and 5 to 7
 * as 8.
 *
 * Rows of gathered products are vectors like others, but laid out as one alone would be (set_rows);
 * for more than 8 there is skinny_rows.cu.
 *
 * When it wins: results of few rows or columns, except the smallest (small_tile, split_k_dot).
 */
#include "kernels/cuda/matmul/skinny/layout.h"
#include "kernels/cuda/matmul/skinny/parts.h"

/* A thread's position: lane `sub` of `lanes` lanes that share a line, in group `group` of the
 * warp's `groups`; its warp is at (deep, wide) in the block. */
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

/* Whether two of the largest blocks should fit on a multiprocessor. nvcc does not always see to
 * that by itself. It is true if the accumulators, or along K the factors, leave enough
 * registers. */
template <typename T, unsigned COUNT, unsigned LINES>
static constexpr bool two_fit = LINES == 1 && COUNT * 16 / sizeof(T) * sizeof(gm_acc<T>) <= 64;

template <typename T, unsigned COUNT, unsigned LINES, bool ALIGNED>
static __global__ void __launch_bounds__(THREADS_MAX, two_fit<T, COUNT, LINES> ? 2 : 1)
    skinny_along(skinny<T> s, uint64_t first_matrix)
{
    constexpr unsigned SPAN = 16 / sizeof(T), SPANS = AHEAD / LINES,
                       VECTOR = 16 / sizeof(gm_acc<T>);
    static_assert(AHEAD % LINES == 0, "as many requests for each line");
    gm_acc<T> *vector = gm_dynamic_shared<gm_acc<T>>();
    const place me = place_of(s.at);
    const unsigned apart = ALIGNED ? 1 : me.lanes, stride = me.lanes * SPAN << s.at.deep_log;
    const unsigned lines_log = 5 - s.at.lanes_log + s.at.wide_log + log2_of<LINES>;
    const unsigned mine = me.wide * me.groups * LINES + me.group, down = s.chunk_steps + VECTOR;
    const uint64_t matrix = first_matrix + blockIdx.z, line = (uint64_t)blockIdx.x << lines_log;
    const uint64_t end = split_begin(s, blockIdx.y + 1);
    const T *from[LINES];
    gm_acc<T> acc[LINES * COUNT] = {};

#pragma unroll
    for (unsigned i = 0; i < LINES; i++) {
        uint64_t at = line + mine + i * me.groups;
        from[i] =
            gm_matrix_of<T>(s.large, matrix) + (at < s.lines ? at : s.lines - 1) * s.large.row;
    }
    for (uint64_t first = split_begin(s, blockIdx.y); first < end; first += s.chunk_steps) {
        const skinny_chunk k = chunk_of(s, first, end);
        lane_span<T> next[AHEAD];
        auto load = [&](unsigned at) {
#pragma unroll
            for (unsigned i = 0; i < AHEAD; i++) {
                unsigned step = at + i / LINES * stride;
                next[i] = load_lane_span<T, ALIGNED>(from[i % LINES] + first + step,
                                                     step < k.count ? k.count - step : 0, apart);
            }
        };
        unsigned at = me.deep * me.lanes * SPAN + (ALIGNED ? me.sub * SPAN : me.sub);
        load(at);
        __syncthreads(); /* nobody needs the last vector */
        load_vectors<T, COUNT>(vector, s, matrix, k, down, 1);
        __syncthreads();
        for (; at < k.count; at += SPANS * stride) {
            lane_span<T> got[AHEAD];
#pragma unroll
            for (unsigned i = 0; i < AHEAD; i++)
                got[i] = next[i];
            if (at + SPANS * stride < k.count)
                load(at + SPANS * stride);
#pragma unroll
            for (unsigned j = 0; j < SPANS; j++) {
                unsigned step = at + j * stride;
                if (j > 0 && step >= k.count)
                    break;
#pragma unroll
                for (unsigned v = 0; v < COUNT; v++) {
                    const gm_acc<T> *factors = vector + v * down + step;
                    gm_acc<T> factor[SPAN];
#pragma unroll
                    for (unsigned r = 0; r < SPAN; r += ALIGNED ? VECTOR : 1) {
                        if (ALIGNED)
                            *(lane_span<gm_acc<T>> *)&factor[r] =
                                *(const lane_span<gm_acc<T>> *)&factors[r];
                        else
                            factor[r] = factors[r * apart];
                    }
#pragma unroll
                    for (unsigned r = 0; r < SPAN; r++) {
#pragma unroll
                        for (unsigned i = 0; i < LINES; i++)
                            acc[i * COUNT + v] += gm_load(got[j * LINES + i].get(r)) * factor[r];
                    }
                }
            }
        }
    }
    gm_trigger_dependent();
    __syncthreads();
    gm_acc<T> *part = vector;
    const unsigned part_down = (1u << lines_log) + 1, part_deep = COUNT * part_down;
    gm_reduce_scatter(acc, me.lanes / 2, 1, 0, [&](unsigned i, gm_acc<T> all) {
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
    constexpr unsigned SPAN = 16 / sizeof(T);
    gm_acc<T> *vector = gm_dynamic_shared<gm_acc<T>>();
    const place me = place_of(s.at);
    const unsigned apart = ALIGNED ? 1 : me.lanes, stride = me.groups << s.at.deep_log;
    const unsigned lines_log = s.at.wide_log + s.at.lanes_log + log2_of<SPAN>;
    const unsigned mine = me.wide * me.lanes * SPAN + (ALIGNED ? me.sub * SPAN : me.sub);
    const uint64_t matrix = first_matrix + blockIdx.z, line = (uint64_t)blockIdx.x << lines_log;
    const uint64_t left = line + mine < s.lines ? s.lines - line - mine : 0;
    const uint64_t end = split_begin(s, blockIdx.y + 1);
    const T *large = gm_matrix_of<T>(s.large, matrix) + line + mine;
    gm_acc<T> acc[COUNT * SPAN] = {};

    for (uint64_t first = split_begin(s, blockIdx.y); first < end; first += s.chunk_steps) {
        const skinny_chunk k = chunk_of(s, first, end);
        lane_span<T> next[AHEAD];
        auto load = [&](unsigned at) {
#pragma unroll
            for (unsigned i = 0; i < AHEAD; i++) {
                unsigned step = at + i * stride;
                next[i] = load_lane_span<T, ALIGNED>(large + (first + step) * s.large.col,
                                                     step < k.count ? left : 0, apart);
            }
        };
        unsigned at = me.deep * me.groups + me.group;
        load(at);
        __syncthreads(); /* nobody needs the last vector */
        load_vectors<T, COUNT>(vector, s, matrix, k, 1, COUNT);
        __syncthreads();
        for (; at < k.count; at += AHEAD * stride) {
            lane_span<T> got[AHEAD];
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
                    gm_acc<T> factor = vector[step * COUNT + v];
#pragma unroll
                    for (unsigned r = 0; r < SPAN; r++)
                        acc[v * SPAN + r] += gm_load(got[i].get(r)) * factor;
                }
            }
        }
    }
    gm_trigger_dependent();
    __syncthreads();
    gm_acc<T> *part = vector;
    const unsigned row = padded_lanes(me.lanes);
    const unsigned part_down = (SPAN * row << s.at.wide_log) + 1, part_deep = COUNT * part_down;
    gm_reduce_scatter(acc, GM_WARP / 2, me.lanes, 0, [&](unsigned i, gm_acc<T> all) {
        unsigned at = (me.wide * SPAN + i % SPAN) * row + me.sub;
        part[me.deep * part_deep + i / SPAN * part_down + at] = all;
    });
    __syncthreads();
    add_up<T, COUNT>(s, matrix, part, line, lines_log, part_down, part_deep, [&](unsigned in) {
        unsigned warp = in / SPAN >> s.at.lanes_log, of_warp = in & (me.lanes * SPAN - 1);
        unsigned r = ALIGNED ? of_warp % SPAN : of_warp >> s.at.lanes_log;
        return (warp * SPAN + r) * row + (ALIGNED ? of_warp / SPAN : of_warp & (me.lanes - 1));
    });
}

GM_ROW_FUNCTION enum gm_status
gm_skinny_accepts(const struct gm_op *op, const struct gm_device_facts *facts, struct gm_error *err)
{
    (void)facts;
    if (!op->gathered && op->result.rows > VECTORS_MAX && op->result.cols > VECTORS_MAX)
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
        unsigned splits = skinny_of<T>(op).at.splits;
        bytes = splits > 1 ? gm_splits_bytes(op, splits) : 0;
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
        dim3 grid((unsigned)blocks, s.at.splits, (unsigned)depth);
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

template <typename T> static enum gm_status multiply(struct gm_exec *exec, skinny<T> s)
{
    gm_product<T> whole = s.p;

    if (s.at.splits > 1)
        s.p.result = (T *)gm_scratch(exec);
    enum gm_status status =
        s.aligned ? launch_by_count<T, true>(exec, s) : launch_by_count<T, false>(exec, s);
    if (status == GM_OK && s.at.splits > 1)
        status = gm_reduce_splits(exec, whole, gm_scratch(exec), s.at.splits);
    return status;
}

GM_KERNEL(matmul_skinny)
{
    static_assert(VECTORS_MAX == GM_GATHERED_NARROW, "one row is laid out as it is in company");
    bool ran = false;

    if (op->gathered) {
        enum gm_status status = GM_ENTRY(skinny_rows)(op, exec, &ran);
        if (ran || status != GM_OK)
            return status;
    }
    return gm_by_type(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        skinny<T> s = skinny_of<T>(op);

        if (!op->gathered)
            return multiply<T>(exec, s);
        set_rows(&s, s.p.M < VECTORS_MAX ? (unsigned)s.p.M : VECTORS_MAX, gm_gpu_of(exec));
        return gm_launches(s.p.M, s.count, [&](uint64_t first, uint64_t rows) {
            skinny<T> pass = s;
            pass.p.M = rows;
            pass.count = (unsigned)rows;
            pass.p.result += first * s.p.N;
            pass.vectors.data = (const T *)s.vectors.data + first * s.vectors.col;
            return multiply<T>(exec, pass);
        });
    });
}
