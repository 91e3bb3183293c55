/*
 * offer.h - what a product takes by a cut (cut.h), reckoned from the cut's numbers.
 *
 * As the fullest multiprocessor goes. It is reckoned for the 132 of an H200 wherever it runs: so
 * choices, and with them the order of sums, are the same on every device.
 */
#ifndef GM_KERNELS_CUDA_OFFER_H
#define GM_KERNELS_CUDA_OFFER_H

#include "kernels/cuda/slices.h"

#define GM_OFFER_SMS 132u
#define GM_OFFER_SCHEDULERS 4u /* of a multiprocessor */
/* 50.5 TFLOP/s of f32, about what cuBLAS reaches: the unit of rates. */
#define GM_OFFER_FLOPS_US 50.5e6
#define GM_OFFER_ADDING_US 1.5 /* launching what adds the slices */
/* Of `start`, what ending takes more where the result's rows are no whole 16 bytes. */
#define GM_OFFER_UNEVEN 0.4
/* Of what blocks of the last round lose by being few: they begin when others end, not all at once.
 */
#define GM_OFFER_LEFT 1.8
#define GM_OFFER_SLICE_BYTES_US                                                                    \
    2.0e6 /* of slices, a microsecond: written, and read from the cache */

/*
 * A cut's numbers; the last five were fitted to times measured on an H200 (README.md, "The hunt
 * for SGEMM").
 *
 *     held   elements of the widest copies that pass through registers (feed.h)
 *     warps  of a block
 *     blocks that share a multiprocessor
 *     one    of GM_OFFER_FLOPS_US, with one warp for each scheduler: what its few threads can do
 *     two    with two
 *     rate   with all that fit, or more
 *     start  what beginning and ending a tile takes, in steps of k
 *     single what a tile's copy of one element of b costs (coming.h), in multiply-adds
 */
struct gm_offer {
    unsigned height, width, depth, held, warps, blocks;
    double one, two, rate, start, single;
};

/* Blocks of the fullest multiprocessor. A warp stays with one of its schedulers: where a block has
 * fewer warps than there are schedulers, as many blocks as fill the fullest of these everywhere. */
static inline double gm_fullest(double blocks, unsigned warps)
{
    uint64_t fullest = gm_pieces((uint64_t)blocks, GM_OFFER_SMS);

    if (warps >= GM_OFFER_SCHEDULERS)
        return (double)fullest;
    return (double)gm_pieces(fullest * warps, GM_OFFER_SCHEDULERS) * GM_OFFER_SCHEDULERS / warps;
}

/* Warps for each scheduler of so many blocks, one after the other if they do not fit: at least 1,
 * of the fullest multiprocessor. */
static inline double gm_offered_warps(const gm_offer &offer, double blocks)
{
    return blocks * offer.warps / GM_OFFER_SCHEDULERS;
}

/* Between those that were measured rates lie on lines. */
static inline double gm_offered_rate(const gm_offer &offer, double warps)
{
    double all = gm_offered_warps(offer, offer.blocks);
    bool few = warps < 2, two_are_all = all <= 2;
    double from = few ? 1 : 2, to = few && !two_are_all ? 2 : all;
    double low = few ? offer.one : offer.two, high = few && !two_are_all ? offer.two : offer.rate;

    if (warps >= all)
        return offer.rate;
    return warps <= 1 ? offer.one : low + (high - low) * (warps - from) / (to - from);
}

/* How long so many blocks of a multiprocessor take, for each of GM_OFFER_FLOPS_US of one of them:
 * as many at a time as fit, and what is left of them in a round of its own. */
static inline double gm_offered_rounds(const gm_offer &offer, double fullest)
{
    double left = (double)((uint64_t)fullest % offer.blocks), full = 1 / offer.rate;

    if (fullest <= offer.blocks)
        return fullest / gm_offered_rate(offer, gm_offered_warps(offer, fullest));
    if (left == 0)
        return fullest * full;
    double own = 1 / gm_offered_rate(offer, gm_offered_warps(offer, left));
    return fullest * full + left * GM_OFFER_LEFT * (own - full);
}

/* A product by a cut, and in slices: `tiles` of the result, `slabs` of k in all. */
struct gm_offered_work {
    double tiles, bytes; /* bytes: of the result */
    uint64_t slabs;
    bool even; /* its rows are whole 16 bytes */
};

template <typename T>
static inline gm_offered_work gm_offered_work_of(const gm_offer &offer, const gm_product<T> &p)
{
    double matrices = (double)p.batch, m = (double)p.m, n = (double)p.n;

    return {matrices * (double)gm_pieces(p.m, offer.height) * (double)gm_pieces(p.n, offer.width),
            matrices * m * n * sizeof(T), gm_pieces(p.k, offer.depth), p.n * sizeof(T) % 16 == 0};
}

/* What it takes, in microseconds: with operands that come as they did when rates were measured; and
 * more for each multiply-add that a step of a tile costs more, however they come (coming.h). */
struct gm_offered_time {
    double us, coming_us, warps; /* warps: for each scheduler */
};

/* f64 is reckoned at f32's speed too. */
static inline gm_offered_time gm_offered(const gm_offer &offer, const gm_offered_work &work,
                                         unsigned slices)
{
    double fullest = gm_fullest(work.tiles * slices, offer.warps);
    double steps = (double)(gm_pieces(work.slabs, slices) * offer.depth);
    double start = work.even ? offer.start : offer.start * (1 + GM_OFFER_UNEVEN);
    double each = gm_offered_rounds(offer, fullest) * (2 * GM_OFFER_SMS / GM_OFFER_FLOPS_US);
    gm_offered_time time = {each * offer.height * offer.width * (steps + start), each * steps,
                            gm_offered_warps(offer, fullest)};

    if (slices > 1)
        time.us += GM_OFFER_ADDING_US + work.bytes * slices / GM_OFFER_SLICE_BYTES_US;
    return time;
}

#endif
