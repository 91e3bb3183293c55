/*
 * offer.h - a cut (cut.h) by its numbers, and how long a multiprocessor takes for blocks of it.
 *
 * It is reckoned for the 132 multiprocessors of an H200 wherever it runs: so choices, and with them
 * the order of sums, are the same on every device.
 */
#ifndef GM_KERNELS_CUDA_OFFER_H
#define GM_KERNELS_CUDA_OFFER_H

#include "kernels/cuda/kernel.h"

#define GM_OFFER_SCHEDULERS 4u /* of a multiprocessor */
/* 50.5 TFLOP/s of f32, about what cuBLAS reaches: the unit of rates. */
#define GM_OFFER_FLOPS_US 50.5e6
/* Times what few blocks take longer than many: blocks of the last round begin one by one. */
#define GM_OFFER_LEFT 1.8

/*
 * A cut's numbers; the last five were fitted, but for one cut's, to times measured on an H200
 * (kernels/HUNT_MATMUL.md).
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
    uint64_t fullest = gm_ceil_div((uint64_t)blocks, GM_H200_SMS);

    if (warps >= GM_OFFER_SCHEDULERS)
        return (double)fullest;
    return (double)gm_ceil_div(fullest * warps, GM_OFFER_SCHEDULERS) * GM_OFFER_SCHEDULERS / warps;
}

/* Warps for each scheduler of so many blocks, one after the other if they do not fit. */
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

#endif
