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
#define GM_OFFER_ADDING_US 1.0 /* launching what adds the slices */
#define GM_OFFER_SLICE_BYTES_US                                                                    \
    2.5e6 /* of slices, a microsecond: written, and read from the cache */

/*
 * A cut's numbers; the last three were fitted to times measured on an H200 (those of f64 before
 * gm_fullest knew of schedulers).
 *
 *     held   elements of the widest copies that pass through registers (feed.h)
 *     warps  of a block
 *     blocks that share a multiprocessor
 *     rate   of GM_OFFER_FLOPS_US, with so many blocks or more
 *     alone  of GM_OFFER_FLOPS_US, with one block: what its few threads can do. The same as rate
 *            where it never matters
 *     start  what beginning and ending a tile takes, in steps of k
 */
struct gm_offer {
    unsigned height, width, depth, held, warps, blocks;
    double rate, alone, start;
};

static inline double gm_offered_tiles(const gm_offer &offer, const struct gm_op *op)
{
    return (double)op->result.batch * (double)gm_pieces(gm_op_m(op), offer.height) *
           (double)gm_pieces(gm_op_n(op), offer.width);
}

/* Blocks of the fullest multiprocessor. A warp stays with one of its schedulers: where a block has
 * fewer warps than there are schedulers, as many blocks as fill the fullest of these everywhere. */
static inline double gm_fullest(uint64_t blocks, unsigned warps)
{
    uint64_t fullest = gm_pieces(blocks, GM_OFFER_SMS);

    if (warps >= GM_OFFER_SCHEDULERS)
        return (double)fullest;
    return (double)gm_pieces(fullest * warps, GM_OFFER_SCHEDULERS) * GM_OFFER_SCHEDULERS / warps;
}

/* What so many tiles take, in microseconds. f64 is reckoned at f32's speed too. */
static inline double gm_offered_time(const gm_offer &offer, const struct gm_op *op, double tiles,
                                     uint64_t slabs_in_all, unsigned slices)
{
    double slabs = (double)gm_pieces(slabs_in_all, slices);
    double flops = 2.0 * offer.height * offer.width * (slabs * offer.depth + offer.start);
    double fullest = gm_fullest((uint64_t)(tiles * slices), offer.warps);
    double rate = fullest * offer.alone, us;

    if (fullest > offer.blocks || rate > offer.rate)
        rate = offer.rate;
    us = fullest / rate * flops / (GM_OFFER_FLOPS_US / GM_OFFER_SMS);
    if (slices > 1)
        us += GM_OFFER_ADDING_US + (double)gm_slices_bytes(op, slices) / GM_OFFER_SLICE_BYTES_US;
    return us;
}

#endif
