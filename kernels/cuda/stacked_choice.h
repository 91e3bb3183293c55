/*
 * stacked_choice.h - the choice of matmul_stack.cu: of all cuts the one that takes least.
 */
#ifndef GM_KERNELS_CUDA_STACKED_CHOICE_H
#define GM_KERNELS_CUDA_STACKED_CHOICE_H

#include "kernels/cuda/stacked.h"

#include <math.h>

#define MANY_BYTES 40960u   /* of shared memory, that several matrices may fill */
#define WHOLE_BYTES 32768u  /* of b, up to which it comes whole */
#define SLAB_ELEMENTS 4096u /* of b, else */

/* Elements of one slab in shared memory: pieces of 16 bytes, wherever in one it begins, and what
 * lanes beyond the last column read. */
static inline uint64_t slab_of(uint64_t elements, unsigned run, unsigned beyond)
{
    return (gm_ceil_div(elements, run) + 1 + gm_ceil_div(beyond, run)) * run;
}

/* With at most so many warps, and bytes of shared memory. cost is infinite where it cannot be done
 * so. The order of a sum's steps is that of k in all of them. */
template <typename S>
static struct part cut_by(const gm_product<typename S::type> &p, unsigned warps, uint64_t limit)
{
    using T = typename S::type;
    const unsigned run = 16 / sizeof(T), m = (unsigned)p.m, n = (unsigned)p.n, k = (unsigned)p.k;
    const uint64_t aligned = ((uintptr_t)p.b.data | (uintptr_t)p.result) % 16 == 0;
    struct part c = {};
    unsigned all = (unsigned)gm_ceil_div(m, LANES_DOWN * S::ROWS);

    c.cost = HUGE_VAL;
    c.across = (unsigned)gm_ceil_div(n, LANES_ACROSS * S::COLS);
    if (m == 0 || c.across == 0 || c.across > warps || n % S::SIDE_BY_SIDE != 0 ||
        (S::SIDE_BY_SIDE > 1 && (p.b.col != 1 || !aligned)))
        return c;
    c.tiles = (unsigned)gm_ceil_div(all, warps / c.across);
    c.down = (unsigned)gm_ceil_div(all, c.tiles);
    c.height = c.tiles == 1 ? m : c.down * LANES_DOWN * S::ROWS;
    c.padded = k % run == 0 || p.a.col != 1;
    c.pitch = c.padded ? (unsigned)(gm_ceil_div(k, run) | 1) * run : k;
    c.steps = c.padded ? run : k % 2 == 0 && run == 4 && (uintptr_t)p.a.data % 16 == 0 ? 2 : 1;
    /* a multiple of 8, at least 8 */
    c.depth =
        (uint64_t)k * n * sizeof(T) <= WHOLE_BYTES ? k : 8 * (SLAB_ELEMENTS / n / 8 + (n > 512));
    c.many = c.tiles == 1 && c.depth == k ? warps / (c.down * c.across) : 1;
    c.many = c.many < p.batch ? c.many : (unsigned)p.batch;
    for (;; c.many--) {
        unsigned beyond = c.across * LANES_ACROSS * S::COLS - n;
        c.slab = (unsigned)slab_of((uint64_t)c.many * c.depth * n, run, beyond);
        c.elements_a = (unsigned)slab_of((uint64_t)c.many * c.height * c.pitch, run, 0);
        c.bytes = (c.elements_a + (uint64_t)c.slab * (c.depth < k ? 2 : 1)) * sizeof(T);
        if (c.many == 1 || c.bytes <= MANY_BYTES)
            break;
    }
    if (c.bytes <= limit)
        c.cost = cycles_of<S>(c, p, c.many * c.down * c.across);
    return c;
}

/* Without a name for the linker: the simulator has this file too. */
namespace
{
template <typename... S> struct offers {
    template <typename ONE, typename P>
    static void consider(const P &p, uint64_t limit, unsigned index, struct part *best,
                         unsigned *chosen)
    {
        for (unsigned warps = ONE::WARPS; warps >= ONE::WARPS / 4; warps /= 2) {
            struct part c = cut_by<ONE>(p, warps, limit);
            if (c.cost < best->cost) {
                *best = c;
                *chosen = index;
            }
        }
    }

    /* fn(sums, part) with the best, if there is one. Returns it; its cost is infinite if not. */
    template <typename P, typename F>
    static struct part choose(const P &p, const struct gm_gpu *gpu, F fn)
    {
        uint64_t limit = gpu->shared_per_block < BLOCK_BYTES ? gpu->shared_per_block : BLOCK_BYTES;
        unsigned chosen = sizeof...(S), i = 0;
        struct part best = {};

        best.cost = HUGE_VAL;
        (consider<S>(p, limit, i++, &best, &chosen), ...);
        i = 0;
        ((i++ == chosen ? fn(S(), best) : void()), ...);
        return best;
    }
};

template <typename T> struct offers_of;
template <>
struct offers_of<float>
    : offers<sums<float, 4, 2>, sums<float, 4, 3>, sums<float, 4, 4>, sums<float, 4, 5>,
             sums<float, 4, 6>, sums<float, 4, 7>, sums<float, 4, 8>, sums<float, 5, 3>,
             sums<float, 5, 4>, sums<float, 5, 5>, sums<float, 5, 6>, sums<float, 5, 7>,
             sums<float, 5, 8>, sums<float, 5, 9>, sums<float, 6, 3>, sums<float, 6, 4>,
             sums<float, 6, 5>, sums<float, 6, 6>, sums<float, 6, 7>, sums<float, 6, 8>,
             sums<float, 6, 9>, sums<float, 8, 3>, sums<float, 8, 4>, sums<float, 8, 5>,
             sums<float, 8, 6>, sums<float, 8, 7>, sums<float, 8, 8>, sums<float, 4, 4, 2>,
             sums<float, 4, 6, 2>, sums<float, 4, 8, 2>, sums<float, 4, 4, 4>, sums<float, 4, 8, 4>,
             sums<float, 5, 4, 2>, sums<float, 5, 6, 2>, sums<float, 5, 8, 2>, sums<float, 5, 4, 4>,
             sums<float, 5, 8, 4>, sums<float, 6, 4, 2>, sums<float, 6, 6, 2>, sums<float, 6, 8, 2>,
             sums<float, 6, 4, 4>, sums<float, 6, 8, 4>, sums<float, 8, 4, 2>, sums<float, 8, 6, 2>,
             sums<float, 8, 8, 2>, sums<float, 8, 4, 4>, sums<float, 8, 8, 4>> {
};
/* Fewer, for elements of 8 bytes take twice the registers. */
template <>
struct offers_of<double>
    : offers<sums<double, 4, 2>, sums<double, 4, 3>, sums<double, 4, 4>, sums<double, 4, 5>,
             sums<double, 4, 6>, sums<double, 4, 7>, sums<double, 4, 8>, sums<double, 4, 4, 2>,
             sums<double, 4, 6, 2>, sums<double, 4, 8, 2>> {
};
} // namespace

#endif
