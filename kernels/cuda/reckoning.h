/*
 * reckoning.h - what a product takes by a cut, in microseconds, as its fullest multiprocessor goes.
 */
#ifndef GM_KERNELS_CUDA_RECKONING_H
#define GM_KERNELS_CUDA_RECKONING_H

#include "kernels/cuda/offer.h"
#include "kernels/cuda/product.h"

#define GM_OFFER_ADDING_US 1.5 /* launching what adds the slices */
/* Of `start`, what ending takes more where the result's rows are no whole 16 bytes. */
#define GM_OFFER_UNEVEN 0.4
#define GM_OFFER_SLICE_BYTES_US                                                                    \
    2.0e6 /* of slices, a microsecond: written, and read from the cache */

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

    return {matrices * (double)gm_ceil_div(p.m, offer.height) *
                (double)gm_ceil_div(p.n, offer.width),
            matrices * m * n * sizeof(T), gm_ceil_div(p.k, offer.depth), p.n * sizeof(T) % 16 == 0};
}

/* us: microseconds with a turned on its way and b by 16 bytes, as when rates were measured;
 * coming_us: more, for each multiply-add that a step of a tile costs more as operands do come
 * (gm_coming_step). */
struct gm_offered_time {
    double us, coming_us, warps; /* warps: for each scheduler */
};

/* f64 is reckoned at f32's speed too. */
static inline gm_offered_time gm_offered(const gm_offer &offer, const gm_offered_work &work,
                                         unsigned slices)
{
    double fullest = gm_fullest(work.tiles * slices, offer.warps);
    double steps = (double)(gm_ceil_div(work.slabs, slices) * offer.depth);
    double start = work.even ? offer.start : offer.start * (1 + GM_OFFER_UNEVEN);
    double each = gm_offered_rounds(offer, fullest) * (2 * GM_H200_SMS / GM_OFFER_FLOPS_US);
    gm_offered_time time = {each * offer.height * offer.width * (steps + start), each * steps,
                            gm_offered_warps(offer, fullest)};

    if (slices > 1)
        time.us += GM_OFFER_ADDING_US + work.bytes * slices / GM_OFFER_SLICE_BYTES_US;
    return time;
}

#endif
