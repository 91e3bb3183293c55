/*
 * stacked.h - a cut of a stack's products among blocks, warps and shared memory, and how long it
 * takes: what matmul_stack.cu chooses among.
 */
#ifndef GM_KERNELS_CUDA_STACKED_H
#define GM_KERNELS_CUDA_STACKED_H

#include "kernels/cuda/product.h"

#define LANES_DOWN 4u /* of a warp, which has LANES_DOWN x LANES_ACROSS times a thread's sums */
#define LANES_ACROSS (GM_WARP / LANES_DOWN)

/* Of an H200, wherever it runs. */
#define SMS 132u
#define SM_BYTES 233472u
#define BLOCK_BYTES (SM_BYTES / 2 - 1024) /* so that there are two */
#define START 2500.0                      /* cycles until a block's first step */
#define BYTES_A_CYCLE 60.0 /* of operands, to one multiprocessor, beside what it computes */

/* A thread's sums, of which SIDE_BY_SIDE are in neighbouring columns; and how many warps a block
 * may have, and a multiprocessor, with their registers. */
template <typename T, unsigned ROWS_, unsigned COLS_, unsigned SIDE_BY_SIDE_ = 1> struct sums {
    using type = T;
    static constexpr unsigned ROWS = ROWS_, COLS = COLS_, SIDE_BY_SIDE = SIDE_BY_SIDE_;
    static constexpr unsigned WORDS = ROWS * COLS * sizeof(T) / 4;
    static constexpr unsigned WARPS = WORDS <= 32 ? 16 : 8, RESIDENT = WORDS <= 20 ? 32 : 16;
    static_assert(COLS % SIDE_BY_SIDE == 0, "whole vectors of columns");
};

/* A block: `many` matrices whole, or rows [y * height, + height) of one. Its warps: for each
 * matrix `down` x `across`. Shared memory: `rows` elements for a's rows, which are `pitch` apart;
 * then one or two slabs of b, `depth` steps of k each. */
struct part {
    unsigned many, tiles, height, down, across, pitch, depth, rows, slab;
    unsigned steps; /* of k that lie together where a row's part begins: 4, 2 or 1 */
    bool padded;    /* rows of a lie an odd number of 16 bytes apart; else they are one run */
    uint64_t bytes;
    double cost; /* cycles */
};

/* Cycles that a multiprocessor takes for all its blocks. A step of k of a warp takes so many
 * instructions, of which four warps issue one each, and wavefronts of shared memory; a warp alone
 * waits for most of its own. */
template <typename S>
static double cycles_of(const struct part &c, const gm_product<typename S::type> &p, unsigned warps)
{
    double loads = (double)S::ROWS / c.steps + (double)S::COLS / S::SIDE_BY_SIDE;
    double issued = S::ROWS * S::COLS + loads + S::ROWS / 2.0 + 2;
    double waves = S::ROWS / (c.steps > 1 ? 2.0 : 1.0);
    waves += S::COLS / (S::SIDE_BY_SIDE > 1 ? 2.0 : 1.0);
    double busy = issued / 4 > waves ? issued / 4 + waves / 4 : waves + issued / 16;
    double alone = 1.5 * issued + 40;

    double blocks = (double)gm_pieces(gm_pieces(p.batch, c.many) * c.tiles, SMS);
    double fit = (double)(SM_BYTES / (c.bytes + 1024)), by_warps = S::RESIDENT / warps;
    double resident = fit < by_warps ? fit : by_warps;
    double together = blocks < resident ? blocks : resident, step = together * warps * busy;
    double loaded = (double)c.many * c.height * p.k + (double)c.many * p.k * p.n;
    double ends = (4.0 * S::ROWS * S::COLS + 150) / 4 * warps * together;
    double cycles = (double)p.k * (step > alone ? step : alone) + ends + START;

    return blocks / together * cycles + blocks * loaded * sizeof(typename S::type) / BYTES_A_CYCLE;
}

#endif
