/*
 * matmul_fitted.cu - the tile, and slices of k, chosen so that all multiprocessors end together.
 *
 * The difference to matmul_pipelined: there a tile is 128 x 256, and a result of fewer tiles than
 * there are multiprocessors leaves the others idle; of a few more, nearly as many in the second
 * round. Here there are tiles of ten sizes (f64: three), down to 16 x 32, and where even these are
 * too few, k is cut into slices, each a result of its own in scratch memory, which are added in
 * their order after (slices.h). Larger tiles use what they load more often; smaller ones and slices
 * make more blocks. What a choice would take is reckoned, from numbers of the tile that were fitted
 * to measured times:
 *
 *     blocks that share a multiprocessor
 *     rate   of FLOPS_US, with so many blocks or more
 *     alone  of FLOPS_US, with one block: what its few threads can do
 *     start  what beginning and ending a tile takes, in steps of k
 *
 * as the fullest multiprocessor goes, with what operands cost that do not come as they did when
 * that was measured, and the slices' way through memory. The least is taken. It is reckoned for
 * the 132 multiprocessors of an H200 wherever it runs: so slices, and with them the order of sums,
 * are the same on every device.
 *
 * An operand whose rows begin where 16 bytes do not comes into shared memory by 8, or by elements;
 * one with k along its rows is turned on its way, element by element. Where that costs all tiles
 * more than copying it once (pitch.h), it is copied: such rows; b transposed, if it is large; and
 * a, if b comes by 16 bytes and the results of the stack have thousands of columns in all.
 *
 * Cost, elements of 4 bytes: as pipelined for the large tiles; the smaller ones read shared memory
 * once for each 16, 11 or 8 multiply-adds, the large ones for 21. Slices are written and read once.
 *
 * When it wins: among our own kernels on all but small results (matmul_small, matmul_dot), a few
 * vectors (matmul_skinny), and stacks that its tiles do not divide (matmul_stack).
 */
#include "kernels/cuda/pipeline.h"
#include "kernels/cuda/pitch.h"
#include "kernels/cuda/slices.h"

#include <cmath>

#define SMS 132u
#define SLICES_MAX 256u
#define SLABS_LEAST 4u       /* of a slice */
#define ADDING_US 1.0        /* launching what adds the slices */
#define SLICE_BYTES_US 2.5e6 /* of slices, a microsecond: written, and read from the cache */
#define FLOPS_US 50.5e6      /* 50.5 TFLOP/s of f32, about what cuBLAS reaches: the unit of rates */
/* An operand that does not come by 16 bytes costs a microsecond more for each so many copies: of 4
 * or 8 bytes, asynchronous; of those through registers (feed.h), and of b's that are turned; of a's
 * that are turned. */
#define COPIES_US 0.8e6
#define HELD_US 1.3e6
#define TURNED_A_US 5.3e6
#define PITCHING_US 3.0                     /* launching what copies an operand first */
#define PITCH_BYTES_US 1.3e6                /* of the operand */
#define PITCH_BYTES_MAX ((uint64_t)1 << 29) /* more is a few hundredths of the whole time */
#define SCRATCH_ALIGNMENT 256u

struct offer {
    unsigned height, width, depth, held, blocks;
    double rate, alone, start;
};

struct choice {
    unsigned offer, slices;
};

/* A cut with its numbers. FIXED: with kernels of their own for ways that are common. */
template <typename C, bool FIXED_, unsigned BLOCKS, unsigned RATE, unsigned ALONE, unsigned START>
struct offered {
    using cut = C;
    static constexpr bool FIXED = FIXED_;
    static constexpr struct offer OFFER = {
        C::HEIGHT, C::WIDTH,     C::DEPTH,      FIXED_ ? C::HELD : 0,
        BLOCKS,    RATE / 100.0, ALONE / 100.0, START};
};

/* Without a name for the linker: the simulator has this file too. */
namespace
{
template <typename... O> struct menu {
    static constexpr struct offer OFFERS[] = {O::OFFER...};
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

/* Cuts (cut.h), each with FIXED, blocks, rate, alone and start as measured on an H200. */
template <typename T> struct menu_of;
template <>
struct menu_of<float>
    : menu<offered<gm_cut<float, 8, 16, 8, 2, 4, 8, 4, 1, gm_order<3, 1, true>, 1, gm_order<5, 0>>,
                   true, 1, 105, 105, 20>,
           offered<gm_cut<float, 16, 8, 4, 4, 2, 8, 4, 1, gm_order<10, 0>>, true, 1, 98, 98, 22>,
           offered<gm_cut<float, 8, 16, 8, 2, 2, 8, 4, 2, gm_order<3, 1, true>>, true, 2, 101, 86,
                   13>,
           offered<gm_cut<float, 8, 8, 4, 2, 2, 8, 4, 3, gm_order<7, 0>, 2>, true, 3, 99, 83, 17>,
           offered<gm_cut<float, 4, 8, 4, 4, 1, 16, 3, 4, gm_order<24, 0>, 2>, true, 4, 86, 70, 8>,
           offered<gm_cut<float, 4, 8, 8, 1, 2, 16, 4, 6, gm_order<1, 0>>, false, 6, 71, 39, 13>,
           offered<gm_cut<float, 4, 4, 4, 2, 1, 16, 4, 8, gm_order<0, 0>, 0>, true, 10, 67, 37, 14>,
           offered<gm_cut<float, 4, 4, 4, 1, 1, 16, 4, 8, gm_order<1, 0, true>>, true, 15, 58, 16,
                   14>,
           offered<gm_cut<float, 4, 8, 4, 1, 1, 16, 4, 4, gm_order<9, 1>>, false, 8, 65, 18, 18>,
           offered<gm_cut<float, 8, 4, 8, 1, 1, 16, 4, 4, gm_order<9, 1>>, false, 8, 63, 23, 43>> {
};
template <>
struct menu_of<double>
    : menu<offered<gm_cut<double, 8, 8, 8, 2, 4, 8, 3, 1, gm_order<6, 1>>, false, 1, 100, 100, 47>,
           offered<gm_cut<double, 4, 4, 4, 2, 2, 8, 4, 4, gm_order<6, 0>>, false, 4, 90, 41, 48>,
           offered<gm_cut<double, 4, 4, 4, 1, 1, 16, 4, 8, gm_order<0, 0>>, false, 8, 46, 8, 33>> {
};

static double tiles_of(const struct offer &offer, const struct gm_op *op)
{
    return (double)op->result.batch * (double)gm_pieces(gm_op_m(op), offer.height) *
           (double)gm_pieces(gm_op_n(op), offer.width);
}

/* What it would take, in microseconds. f64 is reckoned at f32's speed too. */
static double time_of(const struct offer &offer, const struct gm_op *op, double tiles,
                      uint64_t slabs_in_all, unsigned slices)
{
    double slabs = (double)gm_pieces(slabs_in_all, slices);
    double flops = 2.0 * offer.height * offer.width * (slabs * offer.depth + offer.start);
    double fullest = (double)gm_pieces((uint64_t)(tiles * slices), SMS); /* blocks */
    double rate = fullest * offer.alone, us;

    if (fullest > offer.blocks || rate > offer.rate)
        rate = offer.rate;
    us = fullest / rate * flops / (FLOPS_US / SMS);
    if (slices > 1)
        us += ADDING_US + (double)gm_slices_bytes(op, slices) / SLICE_BYTES_US;
    return us;
}

/* How a and b come into tiles, and what that costs in microseconds beyond coming as they did when
 * rates were measured: a turned on its way, b by 16 bytes. */
struct coming {
    gm_pitch pitch[2]; /* copied first; of no matrices: taken as it lies */
    double us;
};

/* All tiles in a row, or column, of the result want the same part of an operand. Where none gets it
 * by 16 bytes, it is copied first if that costs less. b's copy comes first: only with a b that
 * comes by 16 bytes is a better off copied than turned on its way, since there are kernels of their
 * own that turn a and hold b's copies, and none for a by 16 bytes with b by less (gm_by_ways). */
template <typename T>
static struct coming coming_into(const struct offer &offer, const gm_product<T> &p)
{
    struct coming coming = {};
    gm_way way[] = {gm_unpitched_way<T>(&p.a, p.a.row, p.a.col),
                    gm_unpitched_way<T>(&p.b, p.b.col, p.b.row)};
    bool turned[] = {way[0] == GM_WAY_TURNED, way[1] == GM_WAY_TURNED};
    bool held = turned[0] && gm_wide<T>(way[1]) <= offer.held;
    double rate[] = {turned[0] ? TURNED_A_US : COPIES_US, turned[1] || held ? HELD_US : COPIES_US};

    for (unsigned i = 2; i-- > 0;) {
        if (way[i] == GM_WAY_VECTORS || (i == 0 && turned[0] && way[1] != GM_WAY_VECTORS))
            continue;
        uint64_t tiles = i == 0 ? gm_pieces(p.n, offer.width) : gm_pieces(p.m, offer.height);
        gm_pitch pitch = gm_pitch_of<T>(i == 0 ? &p.a : &p.b, p.batch, p.k, i == 0 ? p.m : p.n);
        double bytes =
            (double)pitch.matrices * (double)pitch.steps * (double)pitch.pitch * sizeof(T);
        double elements = (double)tiles * (double)p.batch * (double)p.k * (double)pitch.span;
        double each = elements / gm_wide<T>(way[i]) / rate[i];
        double once = PITCHING_US + bytes / PITCH_BYTES_US;
        bool copied = bytes <= PITCH_BYTES_MAX && once <= each;

        if (copied) {
            way[i] = GM_WAY_VECTORS;
            coming.pitch[i] = pitch;
        }
        if (i == 1 || !turned[0])
            coming.us += copied ? once : each;
    }
    return coming;
}

template <typename T>
static struct choice choose(const struct offer *offers, unsigned count, const struct gm_op *op,
                            const gm_product<T> &p)
{
    struct choice best = {0, 1};
    double least = INFINITY;

    for (unsigned i = 0; i < count; i++) {
        double tiles = tiles_of(offers[i], op), operands = coming_into(offers[i], p).us;
        uint64_t slabs = gm_pieces(p.k, offers[i].depth), most = slabs / SLABS_LEAST;
        unsigned before = 0;
        /* No slices; then as many as give each multiprocessor one block at most, two, and so on. */
        for (unsigned blocks = 0; blocks <= 2 * offers[i].blocks; blocks++) {
            double fill = blocks * SMS / tiles;
            unsigned slices = fill < 1 ? 1 : fill < SLICES_MAX ? (unsigned)fill : SLICES_MAX;
            if (slices > 1 && slices > most)
                slices = most > 1 ? (unsigned)most : 1;
            if (slices == before)
                continue;
            before = slices;
            double us = operands + time_of(offers[i], op, tiles, slabs, slices);
            if (us < least) {
                least = us;
                best = {i, slices};
            }
        }
    }
    return best;
}

/* What is done. Scratch memory holds the slices, then operands at a pitch of whole 16 bytes. */
struct plan {
    struct choice choice;
    gm_pitch pitch[2]; /* of a and b; of no matrices: the operand is taken as it lies */
    uint64_t at[2], scratch;
};

template <typename T> static struct plan plan_of(const struct gm_op *op)
{
    using menu = menu_of<T>;
    gm_product<T> p = gm_product_of<T>(op);
    struct plan plan = {};

    plan.choice = choose(menu::OFFERS, menu::COUNT, op, p);
    if (plan.choice.slices > 1)
        plan.scratch = gm_slices_bytes(op, plan.choice.slices);
    struct coming coming = coming_into(menu::OFFERS[plan.choice.offer], p);
    for (unsigned i = 0; i < 2 && plan.scratch < UINT64_MAX - 4 * PITCH_BYTES_MAX; i++) {
        gm_pitch pitch = coming.pitch[i];
        if (pitch.matrices == 0)
            continue;
        plan.pitch[i] = pitch;
        plan.at[i] = gm_pieces(plan.scratch, SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT;
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
        bool pitches_a = plan.pitch[0].matrices > 0, pitches_b = plan.pitch[1].matrices > 0;
        bool pitches = pitches_a || pitches_b;
        enum gm_status status = GM_OK;

        if (pitches_a)
            status = gm_pitch_operand<T>(exec, false, plan.pitch[0], scratch + plan.at[0], &p.a,
                                         &p.a.row, &p.a.col);
        if (status == GM_OK && pitches_b)
            status = gm_pitch_operand<T>(exec, pitches_a, plan.pitch[1], scratch + plan.at[1], &p.b,
                                         &p.b.col, &p.b.row);
        if (status != GM_OK || plan.choice.slices == 1)
            return status == GM_OK ? menu::run(exec, p, plan.choice, pitches) : status;
        status = menu::run(exec, gm_slice_of(p, scratch), plan.choice, pitches);
        return status == GM_OK ? gm_finish_slices(exec, p, scratch, plan.choice.slices) : status;
    });
}
