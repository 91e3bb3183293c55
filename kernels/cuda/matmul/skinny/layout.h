/*
 * layout.h - chooses how many lanes, warps and blocks of matmul/skinny.cu share lines and K.
 *
 * The choice depends on shape and strides alone, so that results are the same on every device, and
 * the scratch size is known in advance. 40 layouts for each of 365 shapes were measured on an H200.
 * The thresholds lose least against the best layouts (kernels/EXPERIMENTS.md).
 */
#ifndef GM_KERNELS_CUDA_MATMUL_SKINNY_LAYOUT_H
#define GM_KERNELS_CUDA_MATMUL_SKINNY_LAYOUT_H

#include "kernels/cuda/matmul/skinny/product.h"

#include <cmath>

/* skinny_rows.cu: computes gathered rows, if there are as many as it is for. */
extern "C" enum gm_status GM_ENTRY(skinny_rows)(const struct gm_op *op, struct gm_exec *exec,
                                                bool *ret_ran);

/* The smallest multiple of `of` that is at least x, divided by x. */
static inline double padding_ratio(double x, double of)
{
    return ceil(x / of) * of / x;
}

/*
 * log2 of the lanes that share a line. Along: no more lanes than have work. Across: a warp covers
 * 32 to 128 elements of a line. With little work it covers less, so that more warps share it. For a
 * single vector whose lines are not aligned it covers more, because neighbouring warps both load
 * the sectors at the borders between them.
 *
 * whole: the distance between lines is whole 16-byte vectors. rounds: requests of each lane, if all
 * warps of the device load at once. The thresholds are from 81 products, each with 1 to 32 lanes,
 * and 652 with two of these (kernels/EXPERIMENTS.md).
 */
template <typename T> static unsigned lanes_log_of(const skinny<T> &s, bool whole, double rounds)
{
    const double span = 16 / sizeof(T), length = (double)(s.along ? s.p.K : s.lines);
    unsigned log = 3;

    if (s.along) {
        while (rounds >= 0.25 && log > 1 && padding_ratio(length / span, 1u << log) > 1.15)
            log--;
    } else if (rounds < 0.5) {
        log = 2;
    } else if (s.count == 1 && !whole && sizeof(T) > 2 && rounds >= 4) {
        log = 5;
    } else if (sizeof(T) > 4 || (s.count > 2 && (sizeof(T) == 4 || (whole && rounds >= 2.5)))) {
        log = 4;
    }
    while (log > 2 && (1u << log) * span >= 2 * length)
        log--;
    return log;
}

/* With at least MANY products of at most SHORT steps, blocks are half as large, so that more of
 * them alternate. */
static constexpr unsigned MANY = 100, SHORT = 384;

/* log2 of the smallest power of two that is at least x. */
static inline unsigned log_of(double x)
{
    unsigned log = 0;

    while ((double)(1u << log) < x && log < 30)
        log++;
    return log;
}

/*
 * Lays out as many warps as the device holds at once, if each has at least a few vectors to load.
 * It divides lines first (of all products of a stack), then K among warps of a block, then K among
 * blocks: splits, which cost a second launch.
 */
template <typename T> static void lay_out(skinny<T> *s, bool whole)
{
    /* Along, for 1, 2, up to 4, and up to 8 vectors:
     *     warps      the wanted number on the device: with more vectors fewer fit
     *     several    a lane has several lines from that many rounds of requests on
     *     block_log  log2 of the warps of a block, which load the vectors together, with lines
     *                enough for all */
    static const struct {
        double warps, several;
        unsigned block_log;
    } along[] = {{3000, INFINITY, 4}, {3000, 1, 3}, {2112, 0.25, 3}, {1500, 1, 4}},
      across = {32 * GM_H200_SMS, INFINITY, 3};
    static_assert(ROOM / sizeof(gm_acc<T>) / VECTORS_MAX % warp_span<T> == 0,
                  "chunks of the vectors are whole vectors of a warp, with the zeros behind them");
    const unsigned count = kernel_count(s->count), most = ROOM / sizeof(gm_acc<T>) / count;
    const auto &of = s->along ? along[log_of(count)] : across;
    const double span = 16 / sizeof(T), k = (double)s->p.K, lines = (double)s->lines;
    const double batch = (double)s->p.batch;
    const double rounds = batch * lines * k / span / GM_WARP / AHEAD / of.warps;
    const unsigned least_log = s->p.batch >= MANY && s->p.K <= SHORT ? 2 : BLOCK_LEAST_LOG;

    s->at = {};
    s->at.lanes_log = lanes_log_of(*s, whole, rounds);
    s->at.several_lines = rounds >= of.several;

    /* How many warps share K: as many as are wanted, if each has at least half (along: a third) of
     * a round. Rounded to a power of two. */
    double lanes = 1u << s->at.lanes_log, line_warps = lines / (double)lines_of_a_warp(*s);
    double round = AHEAD * (s->along ? lanes * span : GM_WARP / lanes);
    if (s->at.several_lines)
        round /= several_lines<T>(count);
    double share = of.warps / batch / (line_warps > 1 ? line_warps : 1);
    double fill = k / (round * (s->along ? 0.35 : 0.5));
    unsigned share_log = log_of((share < fill ? share : fill) * (s->along ? 0.71 : 0.5));
    bool is_split = share_log > log2_of<WARPS_MAX> || s->p.K > most;
    unsigned deep_most = is_split ? s->along ? 1 : 2 : log2_of<WARPS_MAX>;
    s->at.deep_log = share_log < deep_most ? share_log : deep_most;
    uint64_t splits = (uint64_t)1 << (share_log - s->at.deep_log);
    while (s->at.deep_log + s->at.wide_log < of.block_log &&
           line_warps >= (double)(2u << s->at.wide_log))
        s->at.wide_log++;
    while (s->at.deep_log + s->at.wide_log < least_log)
        s->at.deep_log++;

    splits = splits * most < s->p.K ? gm_ceil_div(s->p.K, most) : splits;
    splits = splits < SKINNY_SPLITS_MAX ? splits : SKINNY_SPLITS_MAX;
    s->split_steps = gm_ceil_div(gm_ceil_div(s->p.K, splits), warp_span<T>) * warp_span<T>;
    s->chunk_steps = (unsigned)(s->split_steps < most ? s->split_steps : most);
    s->at.splits = s->split_steps > 0 ? (unsigned)gm_ceil_div(s->p.K, s->split_steps) : 1;
    while (shared_of(*s) > SHARED_MAX && s->at.deep_log + s->at.wide_log > 0)
        (s->at.deep_log > 0 ? s->at.deep_log : s->at.wide_log)--;
}

/*
 * Rows of gathered products are computed by the layout of a single vector, `count` of them in a
 * pass: as many as the sums of a block leave room for. Chunks have other lengths, but are whole
 * strides of a lane, so that it has the same steps in the same order. They are as long as the
 * multiprocessor's shared memory permits, because at the end of each nothing is being loaded.
 */
template <typename T> static void set_rows(skinny<T> *s, unsigned count, const struct gm_gpu *gpu)
{
    static_assert(ROOM / sizeof(gm_acc<T>) / VECTORS_MAX >= WARPS_MAX * 8 * (16 / sizeof(T)),
                  "a chunk has a stride of the most lanes that share a line (along), or more");
    const size_t share =
        gpu->shared_per_block >> (log2_of<WARPS_MAX> - (s->at.deep_log + s->at.wide_log));
    size_t room = ROOM;

    while (2 * room + VECTORS_MAX * 16 <= share) /* and whole vectors behind (shared_of) */
        room *= 2;
    do {
        const uint64_t most = room / sizeof(gm_acc<T>) / kernel_count(count);
        s->count = count;
        s->chunk_steps = (unsigned)(s->split_steps < most ? s->split_steps : most);
        count = kernel_count(count) / 2;
    } while (count > 0 && shared_of(*s) > (share > SHARED_MAX ? share : SHARED_MAX));
}

/* Describes `op`, and lays it out: gathered products for a single vector, until set_rows. */
template <typename T> static skinny<T> skinny_of(const struct gm_op *op)
{
    skinny<T> s = {};
    constexpr uint64_t SPAN = 16 / sizeof(T);

    s.p = gm_product_of<T>(op);
    if (s.p.M > VECTORS_MAX && s.p.N > VECTORS_MAX) /* as one tall matrix it is not skinny */
        s.p = gm_product_of<T>(op, false);
    s.transposed = op->gathered || s.p.N > VECTORS_MAX || (s.p.M <= VECTORS_MAX && s.p.M < s.p.N);
    s.large = s.transposed ? s.p.b : s.p.a;
    s.vectors = s.transposed ? s.p.a : s.p.b;
    if (s.transposed) {
        s.large.row = s.p.b.col;
        s.large.col = s.p.b.row;
        s.vectors.row = s.p.a.col;
        s.vectors.col = s.p.a.row;
    }
    s.lines = s.transposed ? s.p.N : s.p.M;
    s.count = op->gathered ? 1 : (unsigned)(s.transposed ? s.p.M : s.p.N);
    s.along = s.large.col == 1;
    bool whole = (s.along ? s.large.row : s.large.col) % SPAN == 0 && s.large.batch % SPAN == 0;
    s.aligned = whole && (uintptr_t)s.large.data % 16 == 0;
    lay_out(&s, whole);
    return s;
}

#endif
