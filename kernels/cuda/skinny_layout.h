/*
 * skinny_layout.h - how many warps of matmul_skinny.cu share lines and steps of k. By the shape and
 * strides alone, so that sums are the same on every device, and that what scratch memory is wanted
 * is known before there is any. (Which elements a lane has depends on whether runs are aligned.)
 *
 * Thresholds: those with which the layouts that were measured, 40 each of 365 shapes on an H200,
 * are missed by the least (kernels/HUNT_MATMUL.md).
 */
#ifndef GM_KERNELS_CUDA_SKINNY_LAYOUT_H
#define GM_KERNELS_CUDA_SKINNY_LAYOUT_H

#include "kernels/cuda/skinny_lanes.h"

/* Of so many products, each of so few steps, blocks are half as large: more of them take turns. */
#define MANY 100u
#define SHORT 384u

/* The logarithm of the least power of two that is no less than x. */
static inline unsigned log_of(double x)
{
    unsigned log = 0;

    while ((double)(1u << log) < x && log < 30)
        log++;
    return log;
}

/*
 * As many warps as the device has at once, if each still has a few runs to ask for: lines first,
 * those of all products of a stack, then warps of a block that share k, then slices, which take a
 * launch more to be added up.
 */
template <typename T> static void lay_out(skinny<T> *s, bool whole)
{
    /* Along k by vectors: 1, 2, up to 4, 8.
     *     warps      that are wanted on the device: with more vectors fewer fit
     *     several    from so many rounds of requests a lane on, each lane has several lines
     *     block_log  warps of a block (log2), which bring its vectors together, if lines suffice */
    static const struct {
        double warps, several;
        unsigned block_log;
    } along[] = {{3000, INFINITY, 4}, {3000, 1, 3}, {2112, 0.25, 3}, {1500, 1, 4}},
      across = {32 * GM_H200_SMS, INFINITY, 3};
    static_assert(ROOM / sizeof(gm_sum<T>) / VECTORS_MAX % warp_run<T> == 0,
                  "pieces of the vectors are whole runs of a warp, with the zeros behind them");
    const unsigned count = kernel_count(s->count), most = ROOM / sizeof(gm_sum<T>) / count;
    const auto &of = s->along ? along[log_of(count)] : across;
    const double run = 16 / sizeof(T), k = (double)s->p.k, lines = (double)s->lines;
    const double batch = (double)s->p.batch;
    const double rounds = batch * lines * k / run / GM_WARP / AHEAD / of.warps;
    const unsigned least_log = s->p.batch >= MANY && s->p.k <= SHORT ? 2 : BLOCK_LEAST_LOG;

    s->at = {};
    s->at.lanes_log = lanes_log_of(*s, whole, rounds);
    s->at.several_lines = rounds >= of.several;

    /* How many warps share k: as many as are wanted, if none has less than half a round, or a
     * third. To the nearest power of two, or the next below. */
    double lanes = 1u << s->at.lanes_log, line_warps = lines / (double)lines_of_a_warp(*s);
    double round = AHEAD * (s->along ? lanes * run : GM_WARP / lanes);
    if (s->at.several_lines)
        round /= several_lines<T>(count);
    double share = of.warps / batch / (line_warps > 1 ? line_warps : 1);
    double fill = k / (round * (s->along ? 0.35 : 0.5));
    unsigned share_log = log_of((share < fill ? share : fill) * (s->along ? 0.71 : 0.5));
    bool sliced = share_log > log2_of<WARPS_MAX> || s->p.k > most;
    unsigned deep_most = sliced ? s->along ? 1 : 2 : log2_of<WARPS_MAX>;
    s->at.deep_log = share_log < deep_most ? share_log : deep_most;
    uint64_t slices = (uint64_t)1 << (share_log - s->at.deep_log);
    while (s->at.deep_log + s->at.wide_log < of.block_log &&
           line_warps >= (double)(2u << s->at.wide_log))
        s->at.wide_log++;
    while (s->at.deep_log + s->at.wide_log < least_log)
        s->at.deep_log++;

    slices = slices * most < s->p.k ? gm_ceil_div(s->p.k, most) : slices;
    slices = slices < SLICES_MAX ? slices : SLICES_MAX;
    s->slice_steps = gm_ceil_div(gm_ceil_div(s->p.k, slices), warp_run<T>) * warp_run<T>;
    s->piece_steps = (unsigned)(s->slice_steps < most ? s->slice_steps : most);
    s->at.slices = s->slice_steps > 0 ? (unsigned)gm_ceil_div(s->p.k, s->slice_steps) : 1;
    while (shared_of(*s) > SHARED_MAX && s->at.deep_log + s->at.wide_log > 0)
        (s->at.deep_log > 0 ? s->at.deep_log : s->at.wide_log)--;
}

/* The strides and counts of op. */
template <typename T> static skinny<T> skinny_of(const struct gm_op *op)
{
    skinny<T> s = {};
    constexpr uint64_t RUN = 16 / sizeof(T);

    s.p = gm_product_of<T>(op);
    if (s.p.m > VECTORS_MAX && s.p.n > VECTORS_MAX) /* joined, it is too tall and too wide */
        s.p = gm_product_of<T>(op, false);
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
    s.along = s.large.col == 1;
    bool whole = (s.along ? s.large.row : s.large.col) % RUN == 0 && s.large.batch % RUN == 0;
    s.aligned = whole && (uintptr_t)s.large.data % 16 == 0;
    lay_out(&s, whole);
    return s;
}

#endif
