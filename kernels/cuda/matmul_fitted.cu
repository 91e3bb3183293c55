/*
 * matmul_fitted.cu - the tile, and slices of k, chosen so that all multiprocessors end together.
 *
 * The difference to matmul_pipelined: there a tile is 128 x 256, and a result of fewer tiles than
 * there are multiprocessors leaves the others idle; of a few more, nearly as many in the second
 * round. Here there are tiles of ten sizes, down to 16 x 32, and where even these are too few, k
 * is cut into slices, each a result of its own in scratch memory, which are added in their order
 * after (slices.h). Larger tiles use what they load more often; smaller ones and slices make more
 * blocks. What a choice would take is reckoned, from three measured numbers a tile:
 *
 *     rate   of the arithmetic ceiling, with as many blocks as a multiprocessor holds
 *     alone  of the ceiling, with one block: what its few threads can do
 *     start  what beginning and ending a tile takes, in steps of k
 *
 * as rounds of full multiprocessors, a last round as its fullest multiprocessor goes, and the
 * slices' way through memory. The least is taken. It is reckoned for the 132 multiprocessors of an
 * H200 wherever it runs: so slices, and with them the order of sums, are the same on every device.
 *
 * Cost: as pipelined for the large tiles; the smaller ones read shared memory for each 32, 16 or 8
 * multiply-adds. Slices are written and read once.
 *
 * When it wins: always but for the few shapes of matmul_small and matmul_skinny.
 */
#include "kernels/cuda/pipeline.h"
#include "kernels/cuda/slices.h"

#define SMS 132u
#define SLICES_MAX 256u
#define SLABS_LEAST 4u       /* of a slice */
#define ADDING_US 3.7        /* launching what adds the slices */
#define SLICE_BYTES_US 6.6e6 /* of slices, a microsecond: written, and read from the cache */
#define FLOPS_US 50.5e6      /* of f32, all multiprocessors */

struct offer {
    unsigned height, width, depth, blocks;
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
    static constexpr struct offer OFFER = {C::HEIGHT,    C::WIDTH,      C::DEPTH, BLOCKS,
                                           RATE / 100.0, ALONE / 100.0, START};
};

/* Without a name for the linker: the simulator has this file too. */
namespace
{
template <typename... O> struct menu {
    static constexpr struct offer OFFERS[] = {O::OFFER...};
    static constexpr unsigned COUNT = sizeof...(O);

    template <typename P>
    static enum gm_status run(struct gm_exec *exec, const P &p, struct choice choice)
    {
        enum gm_status status = GM_OK;
        unsigned i = 0;

        (void)((i++ == choice.offer &&
                (status = gm_run_pipelined<typename O::cut, O::FIXED>(exec, p, choice.slices),
                 true)) ||
               ...);
        return status;
    }
};

} // namespace

/* As measured on an H200. */
template <typename T> struct menu_of;
template <>
struct menu_of<float>
    : menu<offered<gm_cut<float, 8, 16, 8, 2, 4, 8, 4, 1, 3, 1>, true, 1, 103, 103, 47>,
           offered<gm_cut<float, 16, 8, 4, 4, 2, 8, 4, 1, 3, 1>, true, 1, 96, 96, 47>,
           offered<gm_cut<float, 8, 16, 8, 2, 2, 8, 4, 2, 5, 1>, true, 2, 94, 79, 42>,
           offered<gm_cut<float, 8, 8, 4, 2, 2, 8, 4, 3, 4, 0>, true, 3, 92, 73, 39>,
           offered<gm_cut<float, 4, 8, 4, 4, 1, 16, 3, 4, 12, 0>, true, 4, 86, 67, 48>,
           offered<gm_cut<float, 4, 8, 8, 1, 2, 16, 4, 6, 6, 0>, false, 8, 66, 17, 40>,
           offered<gm_cut<float, 4, 4, 4, 2, 1, 16, 4, 8, 0, 0>, true, 10, 60, 27, 50>,
           offered<gm_cut<float, 4, 4, 4, 1, 1, 16, 4, 8, 0, 0>, true, 16, 46, 8, 33>,
           offered<gm_cut<float, 4, 8, 4, 1, 1, 16, 4, 4, 0, 0>, false, 8, 50, 6, 40>,
           offered<gm_cut<float, 8, 4, 8, 1, 1, 16, 4, 4, 0, 0>, false, 8, 55, 6, 60>> {
};
template <>
struct menu_of<double>
    : menu<offered<gm_cut<double, 8, 8, 8, 2, 4, 8, 3, 1, 3, 1>, false, 1, 100, 100, 47>,
           offered<gm_cut<double, 4, 4, 4, 2, 2, 8, 4, 4, 3, 0>, false, 4, 90, 41, 48>,
           offered<gm_cut<double, 4, 4, 4, 1, 1, 16, 4, 8, 0, 0>, false, 8, 46, 8, 33>> {
};

static double tiles_of(const struct offer &offer, const struct gm_op *op)
{
    return (double)op->result.batch * (double)gm_pieces(gm_op_m(op), offer.height) *
           (double)gm_pieces(gm_op_n(op), offer.width);
}

/* What it would take, in microseconds of f32. */
static double time_of(const struct offer &offer, const struct gm_op *op, unsigned slices)
{
    uint64_t k = gm_op_reads(op, 0) ? gm_op_k(op) : 0;
    double blocks = tiles_of(offer, op) * slices;
    double slabs = (double)gm_pieces(gm_pieces(k, offer.depth), slices);
    double flops = 2.0 * offer.height * offer.width * (slabs * offer.depth + offer.start);
    double resident = (double)SMS * offer.blocks, full = (double)(uint64_t)(blocks / resident);
    double rest = blocks - full * resident, rounds = full * offer.blocks / offer.rate, us;

    if (rest > 0) {
        double fullest = (double)gm_pieces((uint64_t)rest, SMS), rate = fullest * offer.alone;
        rounds += fullest / (rate < offer.rate ? rate : offer.rate);
    }
    us = rounds * flops / (FLOPS_US / SMS);
    if (slices > 1)
        us += ADDING_US + (double)gm_slices_bytes(op, slices) / SLICE_BYTES_US;
    return us;
}

static struct choice choose(const struct offer *offers, unsigned count, const struct gm_op *op)
{
    uint64_t k = gm_op_reads(op, 0) ? gm_op_k(op) : 0;
    struct choice best = {0, 1};
    double least = time_of(offers[0], op, 1);

    for (unsigned i = 0; i < count; i++) {
        double tiles = tiles_of(offers[i], op);
        uint64_t slabs = gm_pieces(k, offers[i].depth);
        /* As few slices as fill each multiprocessor with one block, with two, and so on. */
        for (unsigned blocks = 0; blocks <= 2 * offers[i].blocks; blocks++) {
            double fill = blocks * SMS / tiles;
            unsigned slices = fill < 1 ? 1 : fill < SLICES_MAX ? (unsigned)fill : SLICES_MAX;
            if (slices > 1 && slabs / slices < SLABS_LEAST)
                break;
            double us = time_of(offers[i], op, slices);
            if (us < least) {
                least = us;
                best = {i, slices};
            }
        }
    }
    return best;
}

template <typename F> static enum gm_status by_menu(const struct gm_op *op, F fn)
{
    return op->result.dtype == GM_F64 ? fn(gm_tag<double>()) : fn(gm_tag<float>());
}

GM_ROW_FUNCTION uint64_t gm_fitted_scratch(const struct gm_op *op)
{
    uint64_t bytes = 0;

    (void)by_menu(op, [&](auto tag) {
        using menu = menu_of<typename decltype(tag)::type>;
        struct choice choice = choose(menu::OFFERS, menu::COUNT, op);
        bytes = choice.slices > 1 ? gm_slices_bytes(op, choice.slices) : 0;
        return GM_OK;
    });
    return bytes;
}

extern "C" enum gm_status GM_ENTRY(matmul_fitted)(const struct gm_op *op, struct gm_exec *exec)
{
    return by_menu(op, [&](auto tag) {
        using T = typename decltype(tag)::type;
        using menu = menu_of<T>;
        gm_product<T> p = gm_product_of<T>(op);
        struct choice choice = choose(menu::OFFERS, menu::COUNT, op);

        if (choice.slices == 1)
            return menu::run(exec, p, choice);
        enum gm_status status = menu::run(exec, gm_slice_of(p, gm_scratch(exec)), choice);
        return status == GM_OK ? gm_finish_slices(exec, p, gm_scratch(exec), choice.slices)
                               : status;
    });
}
