/*
 * config.h - chooses the tile config of matmul/batched.cu by a cost model.
 */
#ifndef GM_KERNELS_CUDA_MATMUL_BATCHED_CONFIG_H
#define GM_KERNELS_CUDA_MATMUL_BATCHED_CONFIG_H

#include "kernels/cuda/matmul/product.h"

#include <math.h>

/* A warp has LANES_M x LANES_N lanes. */
static constexpr unsigned LANES_M = 4, LANES_N = GM_WARP / LANES_M;

/* Limits of an H200, used on every device, so that choices are the same everywhere. */
static constexpr unsigned SM_BYTES = 233472;
static constexpr unsigned BLOCK_BYTES = SM_BYTES / 2 - 1024; /* two blocks per multiprocessor */
/* Bytes of operands, and of results, that cost a multiprocessor one cycle: fitted, not
 * bandwidths. */
static constexpr double LOADED_A_CYCLE = 140, STORED_A_CYCLE = 12;

/* The thread tile: TM x TN accumulators, VEC of them in neighbouring columns. Limits on warps:
 * WARPS of a block; AT_LEAST per multiprocessor, by __launch_bounds__; RESIDENT_WARPS by registers
 * (estimated). A warp tile with TM = 2, TN = 4, VEC = 2:
 *
 *     row 0 .. 3    y = 0 .. 3    columns 0 1   2 3   ..  14 15 | 16 17  18 19   ..
 *     row 4 .. 7    y = 0 .. 3      lane  x=0   x=1   ..   x=7  |  x=0    x=1    .. */
template <typename T, unsigned TM_, unsigned TN_, unsigned VEC_ = 1> struct thread_tile {
    using type = T;
    static constexpr unsigned TM = TM_, TN = TN_, VEC = VEC_;
    static constexpr unsigned WORDS = TM * TN * sizeof(T) / 4;
    static constexpr unsigned WARPS = WORDS <= 32 ? 16 : 8, AT_LEAST = WORDS <= 20 ? 32 : 16;
    /* Registers: accumulators, four steps of A's rows, one of B's columns. (nvcc takes more for f64
     * if two columns are read at once.) The bounds below leave some 20 for the rest. */
    static constexpr unsigned NEEDS = WORDS + (4 * TM + TN) * sizeof(T) / 4 + (VEC > 1 ? 2 : 0);
    static constexpr unsigned RESIDENT_WARPS = NEEDS <= 46   ? 32
                                               : NEEDS <= 57 ? 24
                                               : NEEDS <= 70 ? 20
                                                             : 16;
    static_assert(TN % VEC == 0, "a thread tile is whole vectors of columns");
};

/*
 *     a block: `many` = 2 matrices            or BM rows of a larger matrix (tiles = 3):
 *
 *     +---------+  warps: down x across       +---------+
 *     | w0 | w1 |  for each matrix            | w0 | w1 |  y = 0
 *     | w2 | w3 |                             +---------+
 *     +---------+                             |         |  y = 1
 *     | w4 | w5 |                             +---------+
 *     | w6 | w7 |                             |         |  y = 2
 *     +---------+                             +---------+
 *
 * Shared memory: room_a for rows of A, lda apart; then room_b per k-tile of B (one or two).
 */
struct batched_config {
    unsigned many, tiles, BM, down, across, lda, BK, room_a, room_b;
    unsigned steps; /* of K in one read of a row of A: 4, 2 or 1 */
    bool padded;    /* rows of A lie an odd number of vectors apart; else they are one span */
    uint64_t bytes;
    double cost; /* cycles */
};

/* Cost model: the cycles that a multiprocessor takes for all its blocks. Its four schedulers each
 * issue one instruction a cycle, and shared memory serves one wavefront. Loads and stores take
 * bandwidth. Each block waits most of its own time, and resident blocks share that time. The
 * weights are fitted to the times of all configs of 32 shapes on an H200 (f32), within a tenth. */
template <typename S>
static double estimate_cycles(const struct batched_config &c, const gm_product<typename S::type> &p,
                              unsigned warps)
{
    using T = typename S::type;
    double words = S::WORDS, k = (double)p.K, many = c.many; /* an f64 is two words: two cycles */
    double loads = (double)S::TM / c.steps + (double)S::TN / S::VEC;
    double issued = words + loads + S::TM / 2.0 + 2; /* instructions per step and warp */
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

static constexpr unsigned SEVERAL_BYTES_MAX = 40960; /* shared memory that several may fill */
static constexpr unsigned WHOLE_BYTES = 32768;       /* of B: up to this size it is one k-tile */
static constexpr unsigned K_TILE_ELEMENTS = 4096;    /* elements of B in a k-tile otherwise */

/* Room, in elements, for `elements` that may begin inside a vector, and for the `beyond` elements
 * that lanes beyond the last column read. */
static inline uint64_t span_room(uint64_t elements, unsigned vec, unsigned beyond)
{
    return (gm_ceil_div(elements, vec) + 1 + gm_ceil_div(beyond, vec)) * vec;
}

/* The config with at most `warps` warps and `limit` bytes of shared memory. cost is infinite if
 * there is none. All configs add the steps of K in the same order. */
template <typename S>
static struct batched_config config_with(const gm_product<typename S::type> &p, unsigned warps,
                                         uint64_t limit)
{
    using T = typename S::type;
    const unsigned vec = 16 / sizeof(T), m = (unsigned)p.M, n = (unsigned)p.N, k = (unsigned)p.K;
    const bool aligned = ((uintptr_t)p.b.data | (uintptr_t)p.result) % 16 == 0;
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

/* An unnamed namespace: the simulator compiles this file too. Candidates: f32<TM, TN, VEC>. */
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

    /* Calls fn(thread tile, config) with the cheapest config, if there is one. Returns it; its cost
     * is infinite if there is none. */
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
/* Fewer candidates, because elements of 8 bytes take twice the registers. */
template <>
struct candidates_of<double>
    : candidates<f64<4, 2>, f64<4, 3>, f64<4, 4>, f64<4, 5>, f64<4, 6>, f64<4, 7>, f64<4, 8>,
                 f64<4, 4, 2>, f64<4, 6, 2>, f64<4, 8, 2>> {
};
} // namespace

#endif
