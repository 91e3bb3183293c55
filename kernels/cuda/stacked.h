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
#define SM_BYTES 233472u
#define BLOCK_BYTES (SM_BYTES / 2 - 1024) /* so that there are two */
/* Bytes of a multiprocessor's operands and results, for each cycle that they cost it beside all
 * else: fitted, no rates. */
#define LOADED_A_CYCLE 140.0
#define STORED_A_CYCLE 12.0

/* A thread's sums, of which SIDE_BY_SIDE are in neighbouring columns; how many warps a block may
 * have; and how many a multiprocessor: AT_LEAST is what the kernel is compiled for, RESIDENT_WARPS
 * what its registers are reckoned to allow. */
template <typename T, unsigned ROWS_, unsigned COLS_, unsigned SIDE_BY_SIDE_ = 1> struct sums {
    using type = T;
    static constexpr unsigned ROWS = ROWS_, COLS = COLS_, SIDE_BY_SIDE = SIDE_BY_SIDE_;
    static constexpr unsigned WORDS = ROWS * COLS * sizeof(T) / 4;
    static constexpr unsigned WARPS = WORDS <= 32 ? 16 : 8, AT_LEAST = WORDS <= 20 ? 32 : 16;
    /* Registers: the sums, four steps of a's rows and one of b's columns (of f64, of which two are
     * read at once, nvcc takes more). The bounds below leave some 20 for all else. */
    static constexpr unsigned NEEDS =
        WORDS + (4 * ROWS + COLS) * sizeof(T) / 4 + (SIDE_BY_SIDE > 1 ? 2 : 0);
    static constexpr unsigned RESIDENT_WARPS = NEEDS <= 46   ? 32
                                               : NEEDS <= 57 ? 24
                                               : NEEDS <= 70 ? 20
                                                             : 16;
    static_assert(COLS % SIDE_BY_SIDE == 0, "whole vectors of columns");
};

/* A block: `many` matrices whole, or rows [y * height, + height) of one. Its warps: for each
 * matrix `down` x `across`. Shared memory: `elements_a` for a's rows, which are `pitch` apart; then
 * one or two slabs of b, `depth` steps of k each. */
struct part {
    unsigned many, tiles, height, down, across, pitch, depth, elements_a, slab;
    unsigned steps; /* of k that lie together where a row's part begins: 4, 2 or 1 */
    bool padded;    /* rows of a lie an odd number of 16 bytes apart; else they are one run */
    uint64_t bytes;
    double cost; /* cycles */
};

/* Cycles that a multiprocessor takes for all its blocks. They compute by turns, four warps an
 * instruction each, or a wavefront of shared memory; what they load and store passes through; and
 * each waits for most of its own loads and stores, a time that blocks which are resident share. How
 * much of each is fitted to the times of all cuts of 32 shapes on an H200 (f32), within a tenth. */
template <typename S>
static double cycles_of(const struct part &c, const gm_product<typename S::type> &p, unsigned warps)
{
    using T = typename S::type;
    double sums = S::WORDS, k = (double)p.k, many = c.many; /* of f64 each takes two turns */
    double loads = (double)S::ROWS / c.steps + (double)S::COLS / S::SIDE_BY_SIDE;
    double issued = sums + loads + S::ROWS / 2.0 + 2; /* of a step of a warp */
    double waves =
        S::ROWS / (c.steps > 1 ? 2.0 : 1.0) + S::COLS / (S::SIDE_BY_SIDE > 1 ? 2.0 : 1.0);
    double busy = issued / 4 > waves ? issued / 4 : waves;
    double alone = 0.7 * issued + 1.75 * loads + 22;

    double blocks = (double)gm_ceil_div(gm_ceil_div(p.batch, c.many) * c.tiles, GM_H200_SMS);
    double fit = (double)(SM_BYTES / (c.bytes + 1024)), by_warps = S::RESIDENT_WARPS / warps;
    double resident = fit < by_warps ? fit : by_warps;
    double together = blocks < resident ? blocks : resident;
    double loaded = many * (c.height * k + k * (double)p.n) * sizeof(T);
    double stored = many * c.height * (double)p.n * sizeof(T);

    return blocks * (k * warps * busy + loaded / LOADED_A_CYCLE + stored / STORED_A_CYCLE +
                     (k * alone + 64 * sums) / together);
}

#endif
