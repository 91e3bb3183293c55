/*
 * matmul_fitted.cu - the tile, and slices of k, chosen so that all multiprocessors end together.
 *
 * The difference to matmul_pipelined: there a tile is 128 x 256, and a result of fewer tiles than
 * there are multiprocessors leaves the others idle; of a few more, nearly as many in the second
 * round. Here there are twelve cuts (f64: three), down to tiles of 16 x 32, and where even these
 * are too few, k is cut into slices, each a result of its own in scratch memory, which are added in
 * their order after (slices.h). Larger tiles use what they load more often; smaller ones and slices
 * make more blocks. Of few tiles those are best that many warps share; of many, those of few warps
 * with many sums each, of which more blocks share a multiprocessor. What a choice would take is
 * reckoned (reckoning.h), with what operands cost (coming.h); the least is taken.
 *
 * An operand whose rows begin where 16 bytes do not comes into shared memory by 8, or by elements
 * (so do both then, where neither is turned); one with k along its rows is turned on its way,
 * element by element. Where that costs all tiles more than copying it once (pitch.h), it is copied:
 * such rows; b transposed, if it is large; and a, if b comes by 16 bytes and many tiles want the
 * same rows.
 *
 * Cost, elements of 4 bytes: as pipelined with 128 sums a thread, which read shared memory once for
 * each 21 multiply-adds; with 64, 32 and 16 sums once for 16, 11 and 8. Slices are written and read
 * once.
 *
 * When it wins: among our own kernels on all but small results (matmul_small, matmul_dot), single
 * vectors and a few that are long (matmul_skinny), and stacks that its tiles do not divide
 * (matmul_stack).
 */
#include "kernels/cuda/coming.h"
#include "kernels/cuda/pipeline.h"
#include "kernels/cuda/reckoning.h"
#include "kernels/cuda/slices.h"

#include <cmath>

#define SLICES_MAX 256u
#define SLABS_LEAST 4u /* of a slice */
#define SCRATCH_ALIGNMENT 256u

struct choice {
    unsigned offer, slices;
    gm_coming coming;
};

/* FIXED: with kernels of their own for ways that are common. */
template <typename C, bool FIXED_, unsigned BLOCKS, unsigned ONE, unsigned TWO, unsigned RATE,
          unsigned START, unsigned SINGLE>
struct offered {
    using cut = C;
    static constexpr bool FIXED = FIXED_;
    static constexpr gm_offer OFFER = {
        C::HEIGHT, C::WIDTH,    C::DEPTH,    FIXED_ ? C::HELD : 0, C::THREADS / GM_WARP,
        BLOCKS,    ONE / 100.0, TWO / 100.0, RATE / 100.0,         START,
        SINGLE};
};

/* Without a name for the linker: the simulator has this file too. */
namespace
{
template <typename... O> struct menu {
    static constexpr gm_offer OFFERS[] = {O::OFFER...};
    static constexpr unsigned COUNT = sizeof...(O);

    template <typename P>
    static enum gm_status run(struct gm_exec *exec, const P &p, struct choice choice,
                              bool dependent)
    {
        enum gm_status status = GM_OK;
        unsigned i = 0;

        (void)((i++ == choice.offer && (status = gm_run_pipelined<typename O::cut, O::FIXED>(
                                            exec, p, choice.slices, dependent),
                                        true)) ||
               ...);
        return status;
    }
};

} // namespace

/* Cuts (cut.h), each with FIXED, and the last six numbers of its offer (offer.h), rates in
 * hundredths. The rate and start of f32's first are set by hand, so that the largest products take
 * it: few of its size were timed with all cuts. */
template <typename T> struct menu_of;
template <>
struct menu_of<float>
    : menu<offered<gm_cut<float, 8, 16, 8, 2, 4, 8, 4, 1, gm_order<3, 1, true>, 1, gm_order<5, 0>>,
                   true, 1, 114, 114, 114, 50, 28>,
           offered<gm_cut<float, 16, 8, 4, 1, 2, 8, 4, 4, gm_order<7, 0>, 1, gm_order<1, 1, true>>,
                   true, 4, 92, 106, 106, 18, 3>,
           offered<gm_cut<float, 8, 8, 4, 2, 2, 8, 4, 3, gm_order<7, 0>, 2>, true, 3, 86, 97, 102,
                   9, 22>,
           offered<gm_cut<float, 8, 8, 4, 1, 2, 16, 3, 6, gm_order<9, 0, true>, 0>, true, 6, 89, 90,
                   102, 19, 25>,
           offered<gm_cut<float, 8, 8, 4, 2, 1, 16, 3, 6, gm_order<24, 0, true>, 0>, true, 6, 88,
                   102, 106, 20, 30>,
           offered<gm_cut<float, 4, 8, 4, 4, 1, 16, 3, 4, gm_order<24, 0>, 2>, true, 4, 68, 86, 93,
                   10, 3>,
           offered<gm_cut<float, 8, 8, 4, 1, 1, 8, 3, 12, gm_order<7, 0>, 2>, true, 12, 70, 90, 92,
                   7, 0>,
           offered<gm_cut<float, 8, 4, 4, 1, 1, 8, 4, 16, gm_order<1, 0>, 2>, true, 16, 52, 81, 82,
                   13, 4>,
           offered<gm_cut<float, 4, 4, 4, 2, 1, 16, 4, 8, gm_order<0, 0>, 0>, true, 10, 60, 70, 65,
                   10, 16>,
           offered<gm_cut<float, 4, 4, 4, 1, 1, 16, 4, 8, gm_order<1, 0, true>>, true, 15, 58, 60,
                   53, 15, 11>,
           offered<gm_cut<float, 4, 8, 4, 1, 1, 16, 4, 4, gm_order<9, 1>>, false, 8, 65, 71, 71, 21,
                   14>,
           offered<gm_cut<float, 8, 4, 8, 1, 1, 16, 4, 4, gm_order<9, 1>>, false, 8, 46, 51, 51, 12,
                   1>> {
};
template <>
struct menu_of<double> : menu<offered<gm_cut<double, 8, 8, 8, 2, 4, 8, 3, 1, gm_order<6, 1>>, false,
                                      1, 112, 112, 112, 51, 7>,
                              offered<gm_cut<double, 4, 4, 4, 2, 2, 8, 4, 4, gm_order<6, 0>>, false,
                                      4, 31, 65, 86, 28, 6>,
                              offered<gm_cut<double, 4, 4, 4, 1, 1, 16, 4, 8, gm_order<0, 0>>,
                                      false, 8, 38, 54, 54, 34, 3>> {
};

/* fn(slices) for each number of them that is worth a look: 1, and for each number of blocks that a
 * multiprocessor may get, from what two slices give it up to twice what it holds, the most slices
 * that give it no more. None has fewer than SLABS_LEAST slabs. */
template <typename F>
static void for_slices(const gm_offer &offer, const gm_offered_work &work, F fn)
{
    uint64_t whole = work.slabs / SLABS_LEAST;
    unsigned most = whole < SLICES_MAX ? (unsigned)whole : SLICES_MAX, before = 1;

    fn(1u);
    for (double blocks = floor(2 * work.tiles / GM_H200_SMS);
         blocks <= 2 * offer.blocks && before < most; blocks++) {
        double fill = blocks * GM_H200_SMS / work.tiles;
        unsigned slices = fill < most ? (unsigned)fill : most;
        if (slices > before)
            fn(before = slices);
    }
}

template <typename T>
static struct choice choose(const gm_offer *offers, unsigned count, const gm_product<T> &p)
{
    gm_coming ways[4]; /* neither operand copied first, a, b, both; as far as they are ways */
    unsigned many = 0;
    struct choice best = {0, 1, {}};
    double least = INFINITY;

    for (unsigned copied = 0; copied < 4; copied++)
        many += gm_coming_of(p, copied & 1, copied & 2, &ways[many]);
    for (unsigned i = 0; i < count; i++) {
        gm_offered_work work = gm_offered_work_of(offers[i], p);
        for_slices(offers[i], work, [&](unsigned slices) {
            gm_offered_time time = gm_offered(offers[i], work, slices);
            for (unsigned w = 0; w < many; w++) {
                double step = gm_coming_step<T>(offers[i], ways[w], time.warps);
                double us = time.us + ways[w].us + time.coming_us * step;
                if (us < least) {
                    least = us;
                    best = {i, slices, ways[w]};
                }
            }
        });
    }
    return best;
}

/* What is done. Scratch memory holds the slices, then operands at a pitch of whole 16 bytes. */
struct plan {
    struct choice choice;
    uint64_t at[2], scratch;
};

template <typename T> static struct plan plan_of(const struct gm_op *op)
{
    using menu = menu_of<T>;
    struct plan plan = {};

    plan.choice = choose(menu::OFFERS, menu::COUNT, gm_product_of<T>(op));
    if (plan.choice.slices > 1)
        plan.scratch = gm_slices_bytes(op, plan.choice.slices);
    for (unsigned i = 0; i < 2 && plan.scratch < UINT64_MAX - 4 * GM_PITCH_BYTES_MAX; i++) {
        const gm_pitch &pitch = plan.choice.coming.pitch[i];
        if (pitch.matrices == 0)
            continue;
        plan.at[i] = gm_ceil_div(plan.scratch, SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT;
        plan.scratch = plan.at[i] + pitch.matrices * pitch.steps * pitch.pitch * sizeof(T);
    }
    return plan;
}

GM_ROW_FUNCTION uint64_t gm_fitted_scratch(const struct gm_op *op)
{
    uint64_t bytes = 0;

    (void)gm_by_float_type(op->result.dtype, [&](auto tag) {
        bytes = plan_of<typename decltype(tag)::type>(op).scratch;
        return GM_OK;
    });
    return bytes;
}

extern "C" enum gm_status GM_ENTRY(matmul_fitted)(const struct gm_op *op, struct gm_exec *exec)
{
    return gm_by_float_type(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        using menu = menu_of<T>;
        gm_product<T> p = gm_product_of<T>(op);
        struct plan plan = plan_of<T>(op);
        uint8_t *scratch = plan.scratch > 0 ? (uint8_t *)gm_scratch(exec) : nullptr;
        const gm_pitch *pitch = plan.choice.coming.pitch;
        bool pitches_a = pitch[0].matrices > 0, pitches_b = pitch[1].matrices > 0;
        bool pitches = pitches_a || pitches_b;
        enum gm_status status = GM_OK;

        if (pitches_a)
            status = gm_pitch_operand<T>(exec, false, pitch[0], scratch + plan.at[0], &p.a,
                                         &p.a.row, &p.a.col);
        if (status == GM_OK && pitches_b)
            status = gm_pitch_operand<T>(exec, pitches_a, pitch[1], scratch + plan.at[1], &p.b,
                                         &p.b.col, &p.b.row);
        if (status != GM_OK || plan.choice.slices == 1)
            return status == GM_OK ? menu::run(exec, p, plan.choice, pitches) : status;
        status = menu::run(exec, gm_slice_of(p, scratch), plan.choice, pitches);
        return status == GM_OK ? gm_finish_slices(exec, p, scratch, plan.choice.slices) : status;
    });
}
