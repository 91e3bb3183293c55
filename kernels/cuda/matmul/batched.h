/*
 * batched.h - chooses the tile config of matmul/batched.cu: how a stack's products are divided
 * among blocks, warps and shared memory.
 */
#ifndef GM_KERNELS_CUDA_MATMUL_BATCHED_H
#define GM_KERNELS_CUDA_MATMUL_BATCHED_H

#include "kernels/cuda/matmul/product.h"

#include <math.h>

#define LANES_M 4u /* of a warp, which has LANES_M x LANES_N times a thread's accumulators */
#define LANES_N (GM_WARP / LANES_M)

/* Of an H200, wherever it runs: so choices are the same on every device. */
#define SM_BYTES 233472u
#define BLOCK_BYTES (SM_BYTES / 2 - 1024) /* so that there are two */
/* Bytes of a multiprocessor's operands and results, for each cycle that they cost it beside all
 * else: fitted, no rates. */
#define LOADED_A_CYCLE 140.0
#define STORED_A_CYCLE 12.0

/* A thread's TM x TN accumulators, VEC of them in neighbouring columns; how many warps a block may
 * have; and how many a multiprocessor: AT_LEAST is what the kernel is compiled for, RESIDENT_WARPS
 * what its registers are estimated to allow. */
template <typename T, unsigned TM_, unsigned TN_, unsigned VEC_ = 1> struct thread_tile {
    using type = T;
    static constexpr unsigned TM = TM_, TN = TN_, VEC = VEC_;
    static constexpr unsigned WORDS = TM * TN * sizeof(T) / 4;
    static constexpr unsigned WARPS = WORDS <= 32 ? 16 : 8, AT_LEAST = WORDS <= 20 ? 32 : 16;
    /* Registers: the accumulators, four steps of a's rows and one of b's columns (of f64, of which
     * two are read at once, nvcc takes more). The bounds below leave some 20 for all else. */
    static constexpr unsigned NEEDS = WORDS + (4 * TM + TN) * sizeof(T) / 4 + (VEC > 1 ? 2 : 0);
    static constexpr unsigned RESIDENT_WARPS = NEEDS <= 46   ? 32
                                               : NEEDS <= 57 ? 24
                                               : NEEDS <= 70 ? 20
                                                             : 16;
    static_assert(TN % VEC == 0, "a thread tile is whole vectors of columns");
};

/*
 *     a block: `many` = 2 matrices            or, of a larger one, BM rows (tiles = 3):
 *
 *     +---------+  warps: down x across       +---------+
 *     | w0 | w1 |  for each matrix            | w0 | w1 |  y = 0
 *     | w2 | w3 |                             +---------+
 *     +---------+                             |         |  y = 1
 *     | w4 | w5 |                             +---------+
 *     | w6 | w7 |                             |         |  y = 2
 *     +---------+                             +---------+
 *
 * A block: `many` matrices whole, or rows [y * BM, + BM) of one. Its warps: for each
 * matrix `down` x `across`. Shared memory: `room_a` for a's rows, which are `lda` apart; then
 * one or two k-tiles of b, `BK` steps of k each. */
struct batched_config {
    unsigned many, tiles, BM, down, across, lda, BK, room_a, room_b;
    unsigned steps; /* of k that lie together where a row's part begins: 4, 2 or 1 */
    bool padded;    /* rows of a lie an odd number of 16 bytes apart; else they are one span */
    uint64_t bytes;
    double cost; /* cycles */
};

/* Cost model: cycles that a multiprocessor takes for all its blocks. Its four schedulers issue an
 * instruction each a cycle, and shared memory serves one wavefront; loads and stores take
 * bandwidth; and each block waits for most of its own, a time that resident blocks share. How much
 * of each is fitted to the times of all configs of 32 shapes on an H200 (f32), within a tenth. */
template <typename S>
static double estimate_cycles(const struct batched_config &c, const gm_product<typename S::type> &p,
                              unsigned warps)
{
    using T = typename S::type;
    double words = S::WORDS, k = (double)p.K, many = c.many; /* f64: two cycles each */
    double loads = (double)S::TM / c.steps + (double)S::TN / S::VEC;
    double issued = words + loads + S::TM / 2.0 + 2; /* of a step of a warp */
    double waves = S::TM / (c.steps > 1 ? 2.0 : 1.0) + S::TN / (S::VEC > 1 ? 2.0 : 1.0);
    double busy = issued / 4 > waves ? issued / 4 : waves;
    double alone = 0.7 * issued + 1.75 * loads + 22;

    double blocks = (double)gm_ceil_div(gm_ceil_div(p.batch, c.many) * c.tiles, GM_H200_SMS);
    double fit = (double)(SM_BYTES / (c.bytes + 1024)), by_warps = S::RESIDENT_WARPS / warps;
    double resident = fit < by_warps ? fit : by_warps;
    double together = blocks < resident ? blocks : resident;
    double loaded = many * (c.BM * k + k * (double)p.N) * sizeof(T);
    double stored = many * c.BM * (double)p.N * sizeof(T);

    return blocks * (k * warps * busy + loaded / LOADED_A_CYCLE + stored / STORED_A_CYCLE +
                     (k * alone + 64 * words) / together);
}

#define SEVERAL_BYTES_MAX 40960u /* of shared memory, that several matrices may fill */
#define WHOLE_BYTES 32768u       /* of b, up to which it comes whole */
#define K_TILE_ELEMENTS 4096u    /* of b, else */

/* Elements of one k-tile in shared memory: vectors of 16 bytes, wherever in one it begins, and what
 * lanes beyond the last column read. */
static inline uint64_t span_room(uint64_t elements, unsigned vec, unsigned beyond)
{
    return (gm_ceil_div(elements, vec) + 1 + gm_ceil_div(beyond, vec)) * vec;
}

/* With at most so many warps, and bytes of shared memory. cost is infinite where it cannot be done
 * so. The order of a sum's steps is that of k in all of them. */
template <typename S>
static struct batched_config config_with(const gm_product<typename S::type> &p, unsigned warps,
                                         uint64_t limit)
{
    using T = typename S::type;
    const unsigned vec = 16 / sizeof(T), m = (unsigned)p.M, n = (unsigned)p.N, k = (unsigned)p.K;
    const uint64_t aligned = ((uintptr_t)p.b.data | (uintptr_t)p.result) % 16 == 0;
    struct batched_config c = {};
    unsigned all = (unsigned)gm_ceil_div(m, LANES_M * S::TM);

    c.cost = HUGE_VAL;
    c.across = (unsigned)gm_ceil_div(n, LANES_N * S::TN);
    if (m == 0 || c.across == 0 || c.across > warps || n % S::VEC != 0 ||
        (S::VEC > 1 && (p.b.col != 1 || !aligned)))
        return c;
    c.tiles = (unsigned)gm_ceil_div(all, warps / c.across);
    c.down = (unsigned)gm_ceil_div(all, c.tiles);
    c.BM = c.tiles == 1 ? m : c.down * LANES_M * S::TM;
    c.padded = k % vec == 0 || p.a.col != 1;
    c.lda = c.padded ? (unsigned)(gm_ceil_div(k, vec) | 1) * vec : k;
    c.steps = c.padded ? vec : k % 2 == 0 && vec == 4 && (uintptr_t)p.a.data % 16 == 0 ? 2 : 1;
    /* a multiple of 8, at least 8 */
    c.BK =
        (uint64_t)k * n * sizeof(T) <= WHOLE_BYTES ? k : 8 * (K_TILE_ELEMENTS / n / 8 + (n > 512));
    c.many = c.tiles == 1 && c.BK == k ? warps / (c.down * c.across) : 1;
    c.many = c.many < p.batch ? c.many : (unsigned)p.batch;
    for (;; c.many--) {
        unsigned beyond = c.across * LANES_N * S::TN - n;
        c.room_b = (unsigned)span_room((uint64_t)c.many * c.BK * n, vec, beyond);
        c.room_a = (unsigned)span_room((uint64_t)c.many * c.BM * c.lda, vec, 0);
        c.bytes = (c.room_a + (uint64_t)c.room_b * (c.BK < k ? 2 : 1)) * sizeof(T);
        if (c.many == 1 || c.bytes <= SEVERAL_BYTES_MAX)
            break;
    }
    if (c.bytes <= limit)
        c.cost = estimate_cycles<S>(c, p, c.many * c.down * c.across);
    return c;
}

/* No name for the linker: the simulator compiles this file too. */
namespace
{
template <typename... S> struct candidates {
    template <typename ONE, typename P>
    static void consider(const P &p, uint64_t limit, unsigned index, struct batched_config *best,
                         unsigned *chosen)
    {
        for (unsigned warps = ONE::WARPS; warps >= ONE::WARPS / 4; warps /= 2) {
            struct batched_config c = config_with<ONE>(p, warps, limit);
            if (c.cost < best->cost) {
                *best = c;
                *chosen = index;
            }
        }
    }

    /* fn(thread tile, config) with the best, if there is one. Returns it; its cost is infinite if
     * not. */
    template <typename P, typename F>
    static struct batched_config choose(const P &p, const struct gm_gpu *gpu, F fn)
    {
        uint64_t limit = gpu->shared_per_block < BLOCK_BYTES ? gpu->shared_per_block : BLOCK_BYTES;
        unsigned chosen = sizeof...(S), i = 0;
        struct batched_config best = {};

        best.cost = HUGE_VAL;
        (consider<S>(p, limit, i++, &best, &chosen), ...);
        i = 0;
        ((i++ == chosen ? fn(S(), best) : void()), ...);
        return best;
    }
};

template <unsigned TM, unsigned TN, unsigned VEC = 1> using f32 = thread_tile<float, TM, TN, VEC>;
template <unsigned TM, unsigned TN, unsigned VEC = 1> using f64 = thread_tile<double, TM, TN, VEC>;

template <typename T> struct candidates_of;
template <>
struct candidates_of<float>
    : candidates<f32<4, 2>, f32<4, 3>, f32<4, 4>, f32<4, 5>, f32<4, 6>, f32<4, 7>, f32<4, 8>,
                 f32<5, 3>, f32<5, 4>, f32<5, 5>, f32<5, 6>, f32<5, 7>, f32<5, 8>, f32<5, 9>,
                 f32<6, 3>, f32<6, 4>, f32<6, 5>, f32<6, 6>, f32<6, 7>, f32<6, 8>, f32<6, 9>,
                 f32<8, 3>, f32<8, 4>, f32<8, 5>, f32<8, 6>, f32<8, 7>, f32<8, 8>, f32<4, 4, 2>,
                 f32<4, 6, 2>, f32<4, 8, 2>, f32<4, 4, 4>, f32<4, 8, 4>, f32<5, 4, 2>, f32<5, 6, 2>,
                 f32<5, 8, 2>, f32<5, 4, 4>, f32<5, 8, 4>, f32<6, 4, 2>, f32<6, 6, 2>, f32<6, 8, 2>,
                 f32<6, 4, 4>, f32<6, 8, 4>, f32<8, 4, 2>, f32<8, 6, 2>, f32<8, 8, 2>, f32<8, 4, 4>,
                 f32<8, 8, 4>> {
};
/* Fewer, for elements of 8 bytes take twice the registers. */
template <>
struct candidates_of<double>
    : candidates<f64<4, 2>, f64<4, 3>, f64<4, 4>, f64<4, 5>, f64<4, 6>, f64<4, 7>, f64<4, 8>,
                 f64<4, 4, 2>, f64<4, 6, 2>, f64<4, 8, 2>> {
};
} // namespace

#endif
