/*
 * skinny_rows.cu - multiplies 9 to 32 gathered rows by a matrix that is read once.
 *
 * It is not a variant, but what `skinny` runs for so many rows. Each row must have the bits that it
 * has alone, when skinny_across computes it. There a lane adds every 64th step of K, say, and the
 * 64 sums are added in a fixed order. The sums of 32 rows would not fit into registers. So this
 * kernel takes the same sums one after the other, eight at a time:
 *
 *     K ->    0 1 .. 7 8 9 .. 15 .. 63 | 64 65 .. 71 72 ..    a step's class: its place among 64
 *     first   a b .. h                 |  a  b ..  h          eight classes, one for each warp,
 *     then             a b ..  h       |              a ..    are summed over all of K, then the
 *     ..                                                      next eight
 *
 * Each warp computes a tile of ROWS x 64 lines of its class: a thread has ROWS/4 rows of 8 lines in
 * registers, and so each element that it reads from shared memory is used 4 or 8 times. Copies to
 * shared memory are asynchronous, some stages ahead.
 *
 * Cost, 32 rows of f32: each element of the matrix is loaded once, and used by 32 multiply-adds,
 * which take longer than memory does. Every block of 64 lines loads all of the rows: half as many
 * bytes again, from the L2 cache.
 *
 * Source: the tiles of matmul/register_tiled.cu, in the order of sums of matmul/skinny.cu.
 */
#include "kernels/cuda/matmul/skinny/layout.h"
#include "kernels/cuda/matmul/skinny/parts.h"

static constexpr unsigned LINES = 64, CLASSES = 8, TERMS = 16; /* TERMS: of a class, in a stage */
static constexpr unsigned STEPS = CLASSES * TERMS, STAGES = 3, THREADS = CLASSES * GM_WARP;
static constexpr unsigned COLUMNS = 4; /* of neighbouring lines; a thread has two such spans */

template <typename T, unsigned N> struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) row_span {
    T x[N];
};

/* Shared memory of a block. `part` has the sums of eight classes. */
template <typename T, unsigned ROWS> struct rows_memory {
    alignas(16) T matrix[STAGES][STEPS][LINES];
    alignas(16) T rows[STAGES][STEPS][ROWS];
    alignas(16) gm_acc<T> part[CLASSES][ROWS * LINES];
};

/* The steps of a split, counted by class: step `term` of class c is c + term * classes. */
struct row_steps {
    unsigned count, classes, stages_each; /* stages of eight classes */
};

/*
 * Copies a thread's part of a stage: 16 bytes of each of some steps. A stage has 16 terms of each
 * of 8 classes. WIDTH: elements of a step in shared memory. What does not exist is zero there, so
 * that sums stay as they are.
 */
template <typename T, unsigned WIDTH> struct stage_loader {
    static constexpr unsigned SPAN = 16 / sizeof(T), SPANS = WIDTH / SPAN;
    static constexpr unsigned AT_ONCE = THREADS / SPANS < STEPS ? THREADS / SPANS : STEPS;
    static constexpr unsigned CLASSES_AT_ONCE = AT_ONCE / TERMS;

    const T *from;         /* in the next stage */
    uint64_t stride;       /* from step to step */
    unsigned step, to, at; /* of its first copy; places in a stage of shared memory */
    bool exists;           /* its elements of each step */

    /* width: elements of a step that exist. first: the first step, from its first element on. */
    __device__ __forceinline__ stage_loader(const T *first, uint64_t step_stride, uint64_t width,
                                            const row_steps &k)
    {
        unsigned in_stage = threadIdx.x / SPANS;

        at = threadIdx.x % SPANS * SPAN;
        to = in_stage * WIDTH + at;
        exists = in_stage < STEPS && at < width;
        step = in_stage / TERMS + in_stage % TERMS * k.classes;
        stride = step_stride;
        from = first + step * stride + at;
    }
    __device__ __forceinline__ void clear(T *stage) const
    {
        if (threadIdx.x / SPANS < STEPS && !exists)
#pragma unroll
            for (unsigned i = 0; i < STEPS; i += AT_ONCE)
                *(row_span<T, SPAN> *)(stage + i * WIDTH + to) = {};
    }
    /* WHOLE: all steps of the stage exist. */
    template <bool WHOLE> __device__ __forceinline__ void copy(T *stage, const row_steps &k) const
    {
        if (!exists)
            return;
#pragma unroll
        for (unsigned i = 0; i < STEPS / AT_ONCE; i++) {
            T *there = stage + i * AT_ONCE * WIDTH + to;
            if (WHOLE || step + i * CLASSES_AT_ONCE < k.count)
                __pipeline_memcpy_async(there, from + i * CLASSES_AT_ONCE * stride, 16, 0);
            else
                *(row_span<T, SPAN> *)there = {};
        }
    }
    __device__ __forceinline__ void advance(int64_t steps)
    {
        step += (unsigned)steps;
        from += steps * (int64_t)stride;
    }
};

/* Starts the copies of one stage after the other. */
template <typename T, unsigned ROWS> struct row_loader {
    row_steps k;
    stage_loader<T, LINES> matrix;
    stage_loader<T, ROWS> rows;
    unsigned loaded, of_these, last; /* stages; of these eight classes; the last step of the next */

    __device__ __forceinline__ row_loader(const skinny<T> &s, const row_steps &steps,
                                          uint64_t begin, uint64_t line)
        : k(steps), matrix((const T *)s.large.data + begin * s.large.col + line, s.large.col,
                           s.lines - line, k),
          rows((const T *)s.vectors.data + begin * s.vectors.row, s.vectors.row, s.p.M, k),
          loaded(0), of_these(0), last(CLASSES - 1 + (TERMS - 1) * k.classes)
    {
    }
    __device__ __forceinline__ void load(rows_memory<T, ROWS> *memory)
    {
        T *lines = memory->matrix[loaded % STAGES][0], *columns = memory->rows[loaded % STAGES][0];
        int64_t steps = (int64_t)TERMS * k.classes;

        if (last < k.count) {
            matrix.template copy<true>(lines, k);
            rows.template copy<true>(columns, k);
        } else {
            matrix.template copy<false>(lines, k);
            rows.template copy<false>(columns, k);
        }
        loaded++;
        if (++of_these == k.stages_each) { /* the next eight classes, from the first term on */
            steps = CLASSES - steps * (k.stages_each - 1);
            of_these = 0;
        }
        matrix.advance(steps);
        rows.advance(steps);
        last += (unsigned)steps;
    }
};

/* Adds the sums of eight classes to those before, as gm_reduce_scatter adds the groups of a warp,
 * and then add_up the warps that share K. Each thread has 4 neighbours of each THREADS * 4. */
template <typename T, unsigned ROWS, unsigned N>
static __device__ __forceinline__ void add_classes(const rows_memory<T, ROWS> *memory,
                                                   unsigned groups, gm_acc<T> (&total)[N])
{
#pragma unroll
    for (unsigned i = 0; i < N; i += COLUMNS) {
        const unsigned at = (i / COLUMNS * THREADS + threadIdx.x) * COLUMNS;
        row_span<gm_acc<T>, COLUMNS> x[CLASSES];
#pragma unroll
        for (unsigned c = 0; c < CLASSES; c++)
            x[c] = *(const row_span<gm_acc<T>, COLUMNS> *)&memory->part[c][at];
#pragma unroll
        for (unsigned j = 0; j < COLUMNS; j++) {
            gm_acc<T> &sum = total[i + j];
            if (groups == CLASSES)
                sum += ((x[0].x[j] + x[4].x[j]) + (x[2].x[j] + x[6].x[j])) +
                       ((x[1].x[j] + x[5].x[j]) + (x[3].x[j] + x[7].x[j]));
            else
                sum = (sum + ((x[0].x[j] + x[2].x[j]) + (x[1].x[j] + x[3].x[j]))) +
                      ((x[4].x[j] + x[6].x[j]) + (x[5].x[j] + x[7].x[j]));
        }
    }
}

template <typename T, unsigned ROWS>
static __global__ void __launch_bounds__(THREADS, 1) skinny_rows(skinny<T> s)
{
    constexpr unsigned MINE = ROWS / 4, SPANS = 2, TOTALS = ROWS * LINES / THREADS;
    static_assert(LINES == 8 * SPANS * COLUMNS, "a warp of 8 x 4 threads has a tile");
    rows_memory<T, ROWS> *memory = gm_dynamic_shared<rows_memory<T, ROWS>>();
    const unsigned me = threadIdx.x % GM_WARP, mine = threadIdx.x / GM_WARP;
    const unsigned col = me % 8 * COLUMNS, row = me / 8 * MINE;
    const unsigned groups = GM_WARP >> s.at.lanes_log;
    const uint64_t line = (uint64_t)blockIdx.x * LINES;
    const uint64_t begin = split_begin(s, blockIdx.y);
    row_steps k = {(unsigned)(split_begin(s, blockIdx.y + 1) - begin), groups << s.at.deep_log, 0};
    k.stages_each = gm_ceil_div(k.count, k.classes * TERMS);
    const unsigned stages = k.classes / CLASSES * k.stages_each;
    row_loader<T, ROWS> loader(s, k, begin, line);
    gm_acc<T> acc[SPANS][MINE][COLUMNS] = {}, total[TOTALS] = {};
    unsigned done = 0; /* stages of these eight classes */

    for (unsigned stage = 0; stage < STAGES; stage++) {
        loader.matrix.clear(memory->matrix[stage][0]);
        loader.rows.clear(memory->rows[stage][0]);
    }
    for (unsigned stage = 0; stage + 1 < STAGES; stage++) {
        if (stage < stages)
            loader.load(memory);
        __pipeline_commit();
    }
    for (unsigned stage = 0; stage < stages; stage++) {
        __pipeline_wait_prior(STAGES - 2);
        __syncthreads(); /* the stage is here, and nobody needs the one before */
        if (stage + STAGES - 1 < stages)
            loader.load(memory);
        __pipeline_commit();
        const T(*lines)[LINES] = &memory->matrix[stage % STAGES][mine * TERMS];
        const T(*rows)[ROWS] = &memory->rows[stage % STAGES][mine * TERMS];
#pragma unroll
        for (unsigned term = 0; term < TERMS; term++) {
            auto factors = *(const row_span<T, MINE> *)&rows[term][row];
#pragma unroll
            for (unsigned span = 0; span < SPANS; span++) {
                auto got = *(const row_span<T, COLUMNS> *)&lines[term][span * LINES / SPANS + col];
#pragma unroll
                for (unsigned i = 0; i < MINE * COLUMNS; i++)
                    acc[span][i / COLUMNS][i % COLUMNS] +=
                        gm_load(got.x[i % COLUMNS]) * gm_load(factors.x[i / COLUMNS]);
            }
        }
        if (++done < k.stages_each)
            continue;
        done = 0;
#pragma unroll
        for (unsigned i = 0; i < SPANS * MINE * COLUMNS; i++) {
            unsigned span = i / (MINE * COLUMNS), r = i / COLUMNS % MINE, c = i % COLUMNS;
            memory->part[mine][(row + r) * LINES + span * LINES / SPANS + col + c] =
                acc[span][r][c];
            acc[span][r][c] = 0;
        }
        __syncthreads();
        add_classes<T, ROWS>(memory, groups, total);
    }
    gm_trigger_dependent();
#pragma unroll
    for (unsigned i = 0; i < TOTALS; i++) {
        unsigned at = (i / COLUMNS * THREADS + threadIdx.x) * COLUMNS + i % COLUMNS;
        uint64_t r = at / LINES, c = line + at % LINES;
        if (r >= s.p.M || c >= s.lines)
            continue;
        if (s.at.splits > 1)
            ((gm_acc<T> *)s.p.result)[(blockIdx.y * s.p.M + r) * s.p.N + c] = total[i];
        else
            s.p.result[r * s.p.N + c] = gm_finished(s.p, 0, r, c, total[i]);
    }
}

template <typename T, unsigned ROWS>
static enum gm_status launch(struct gm_exec *exec, const skinny<T> &s)
{
    dim3 grid((unsigned)gm_ceil_div(s.lines, LINES), s.at.splits);

    return gm_launch(exec, skinny_rows<T, ROWS>, grid, dim3(THREADS), sizeof(rows_memory<T, ROWS>),
                     s);
}

/* Whether this is for the gathered rows of op: their columns and the matrix are whole vectors, four
 * or eight groups of lanes share a line's steps, in whole eights of classes, and a split, which is
 * rounded up, has the terms of a stage. */
template <typename T> static bool is_for(const skinny<T> &s, const struct gm_gpu *gpu)
{
    const unsigned groups = GM_WARP >> s.at.lanes_log;

    return s.p.M > VECTORS_MAX && s.p.M <= GM_GATHERED_MAX && s.p.batch == 1 && !s.along &&
           s.aligned && s.vectors.col == 1 && s.p.M * sizeof(T) % 16 == 0 &&
           (uintptr_t)s.vectors.data % 16 == 0 && groups >= CLASSES / 2 && groups <= CLASSES &&
           (groups << s.at.deep_log) % CLASSES == 0 && s.split_steps <= INT32_MAX &&
           gm_ceil_div(s.lines, LINES) <= GM_GRID_X_MAX &&
           s.split_steps >= (uint64_t)(groups << s.at.deep_log) * TERMS &&
           gpu->shared_per_block >= sizeof(rows_memory<T, GM_GATHERED_MAX>);
}

extern "C" enum gm_status GM_ENTRY(skinny_rows)(const struct gm_op *op, struct gm_exec *exec,
                                                bool *ret_ran)
{
    return gm_by_type(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;

        *ret_ran = false;
        if constexpr (sizeof(gm_acc<T>) == 4) {
            skinny<T> s = skinny_of<T>(op);
            const gm_product<T> whole = s.p;
            if (!is_for(s, gm_gpu_of(exec)))
                return GM_OK;
            *ret_ran = true;
            if (s.at.splits > 1)
                s.p.result = (T *)gm_scratch(exec);
            enum gm_status status = s.p.M <= GM_GATHERED_MAX / 2
                                        ? launch<T, GM_GATHERED_MAX / 2>(exec, s)
                                        : launch<T, GM_GATHERED_MAX>(exec, s);
            return status == GM_OK && s.at.splits > 1
                       ? gm_reduce_splits(exec, whole, gm_scratch(exec), s.at.splits)
                       : status;
        }
        return GM_OK;
    });
}
