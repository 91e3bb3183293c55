/*
 * cost_model.h - estimates the time of a product with a tile config, in microseconds.
 *
 * The estimate is the time of the busiest multiprocessor. It assumes the 132 multiprocessors of an
 * H200 on every device, so that choices, and with them the order of additions, are the same
 * everywhere.
 */
#ifndef GM_KERNELS_CUDA_MATMUL_MULTISTAGE_COST_MODEL_H
#define GM_KERNELS_CUDA_MATMUL_MULTISTAGE_COST_MODEL_H

#include "kernels/cuda/matmul/product.h"

#define GM_SM_SCHEDULERS 4u /* warp schedulers of a multiprocessor */
/* The unit of rates: 50.5 TFLOP/s, about what cuBLAS reaches in f32. f64 uses it too. */
#define GM_UNIT_FLOPS_US 50.5e6
/* Multiplies the extra time of a partial last round, whose blocks start one by one. */
#define GM_LAST_ROUND_FACTOR 1.8
#define GM_REDUCE_LAUNCH_US 1.5 /* launching the kernel that reduces the splits */
/* The extra share of `start` if the result's rows are not whole 16-byte vectors. */
#define GM_UNALIGNED_START 0.4
#define GM_SPLIT_BYTES_US 2.0e6 /* bytes of splits per us: written, then read */

/* A tile config as the cost model sees it. The last five members are fitted to times on an H200
 * (kernels/EXPERIMENTS.md). */
struct gm_candidate {
    unsigned BM, BN, BK, staged_max;
    unsigned warps;         /* of a block */
    unsigned blocks_per_sm; /* per multiprocessor */
    double rate_1_warp;     /* in GM_UNIT_FLOPS_US, with one warp per scheduler */
    double rate_2_warps;    /* with two */
    double rate_full;       /* with as many as fit */
    double start;           /* the fixed time of a tile, in steps of K */
    double scalar_b;        /* loading one element of B (gm_load_cost), in multiply-adds */
};

/* A product in tiles of a candidate. k_tiles: of the whole K. */
struct gm_workload {
    double tiles, result_bytes;
    uint64_t k_tiles;
    bool aligned; /* rows of the result are whole 16-byte vectors */
};

template <typename T>
static inline gm_workload gm_workload_of(const gm_candidate &candidate, const gm_product<T> &p)
{
    double matrices = (double)p.batch, m = (double)p.M, n = (double)p.N;

    return {
        matrices * (double)gm_ceil_div(p.M, candidate.BM) * (double)gm_ceil_div(p.N, candidate.BN),
        matrices * m * n * sizeof(T), gm_ceil_div(p.K, candidate.BK), p.N * sizeof(T) % 16 == 0};
}

/* Blocks on the busiest multiprocessor. A warp stays on its scheduler. So if a block has fewer
 * warps than there are schedulers, this is the number of blocks that would load all schedulers like
 * the busiest one. */
static inline double gm_busiest_sm_blocks(double blocks, unsigned warps)
{
    uint64_t busiest = gm_ceil_div((uint64_t)blocks, GM_H200_SMS);

    if (warps >= GM_SM_SCHEDULERS)
        return (double)busiest;
    return (double)gm_ceil_div(busiest * warps, GM_SM_SCHEDULERS) * GM_SM_SCHEDULERS / warps;
}

/* Warps per scheduler for that many blocks, as if all were resident. */
static inline double gm_scheduler_warps(const gm_candidate &candidate, double blocks)
{
    return blocks * candidate.warps / GM_SM_SCHEDULERS;
}

/* The rate with that many warps per scheduler, interpolated between the measured rates. */
static inline double gm_rate(const gm_candidate &candidate, double warps)
{
    double all = gm_scheduler_warps(candidate, candidate.blocks_per_sm);
    bool few = warps < 2, two_are_all = all <= 2;
    double from = few ? 1 : 2, to = few && !two_are_all ? 2 : all;
    double low = few ? candidate.rate_1_warp : candidate.rate_2_warps;
    double high = few && !two_are_all ? candidate.rate_2_warps : candidate.rate_full;

    if (warps >= all)
        return candidate.rate_full;
    return warps <= 1 ? candidate.rate_1_warp : low + (high - low) * (warps - from) / (to - from);
}

/* The time of that many blocks on a multiprocessor, relative to one block at GM_UNIT_FLOPS_US.
 * Blocks run in full rounds, and the rest in a round of its own. */
static inline double gm_rounds(const gm_candidate &candidate, double blocks)
{
    double left = (double)((uint64_t)blocks % candidate.blocks_per_sm);
    double full = 1 / candidate.rate_full;

    if (blocks <= candidate.blocks_per_sm)
        return blocks / gm_rate(candidate, gm_scheduler_warps(candidate, blocks));
    if (left == 0)
        return blocks * full;
    double own = 1 / gm_rate(candidate, gm_scheduler_warps(candidate, left));
    return blocks * full + left * GM_LAST_ROUND_FACTOR * (own - full);
}

/* us: the time if the loader transposes A and loads B by 16 bytes, as the rates were measured.
 * load_us: the extra time for each multiply-add that other loads cost per tile and step
 * (gm_load_cost). warps: per scheduler. */
struct gm_estimate {
    double us, load_us, warps;
};

static inline gm_estimate gm_estimate_of(const gm_candidate &candidate, const gm_workload &work,
                                         unsigned splits)
{
    double busiest = gm_busiest_sm_blocks(work.tiles * splits, candidate.warps);
    double steps = (double)(gm_ceil_div(work.k_tiles, splits) * candidate.BK);
    double start = work.aligned ? candidate.start : candidate.start * (1 + GM_UNALIGNED_START);
    double each = gm_rounds(candidate, busiest) * (2 * GM_H200_SMS / GM_UNIT_FLOPS_US);
    gm_estimate estimate = {each * candidate.BM * candidate.BN * (steps + start), each * steps,
                            gm_scheduler_warps(candidate, busiest)};

    if (splits > 1)
        estimate.us += GM_REDUCE_LAUNCH_US + work.result_bytes * splits / GM_SPLIT_BYTES_US;
    return estimate;
}

#endif
