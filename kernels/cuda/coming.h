/*
 * coming.h - how operands come into tiles (ways.h): as they lie, or copied first (pitch.h); and
 * what that costs, beyond coming as they did when rates (offer.h) were measured: a turned on its
 * way, b by 16 bytes.
 *
 * All tiles in a row, or column, of the result want the same part of an operand, each by copies of
 * its own. Where these are small, the operand may be better off copied once, to rows that all get
 * by 16 bytes.
 */
#ifndef GM_KERNELS_CUDA_COMING_H
#define GM_KERNELS_CUDA_COMING_H

#include "kernels/cuda/offer.h"
#include "kernels/cuda/pitch.h"

/*
 * What a tile's copy into shared memory costs, as multiply-adds of the tile, fitted with the menu's
 * numbers (offer.h), which have that of a single element of b.
 *
 *     OF_B          a copy of b of 8 bytes, or one that turns an element
 *     HELD          more for one of b through registers (feed.h), divided by the warps of a
 *                   scheduler, since only others hide that it is waited for
 *     OF_BOTH       of both of these, what part an element costs where a and b come by elements
 *     OF_A          a copy of a of less than 16 bytes, where nothing is held
 *     ELEMENT_OF_A  each element of a that comes by 16 bytes: less than one that is turned
 */
#define GM_COPY_OF_B 8.5
#define GM_COPY_HELD 4.0
#define GM_COPY_OF_BOTH 0.5
#define GM_COPY_OF_A 7.3
#define GM_ELEMENT_OF_A (-3.5)
/* Rows of a from which on it is copied: fewer leave the tiles that win empty. */
#define GM_PITCHED_ROWS 64u
#define GM_PITCHING_US 1.5                     /* launching what copies an operand first */
#define GM_PITCH_BYTES_US 2.1e6                /* of the operand */
#define GM_PITCH_BYTES_MAX ((uint64_t)1 << 29) /* more is a few hundredths of the whole time */

/* A way for both: of each operand how it is copied into tiles; before that, to a pitch, or (of no
 * matrices) not; and how long copying to a pitch takes. */
struct gm_coming {
    gm_way way[2];
    gm_pitch pitch[2];
    double us;
};

/* How operands come of which those are copied first. False where that is no way: what comes by 16
 * bytes as it lies is not copied; nor is an a of few rows, or unless b comes by 16 bytes, since
 * there are kernels of their own that turn a and hold b's copies, and none for a by 16 bytes with b
 * by less (gm_by_ways). */
template <typename T>
static inline bool gm_coming_of(const gm_product<T> &p, bool copied_a, bool copied_b,
                                gm_coming *ret)
{
    const uint64_t span[] = {p.m, p.n};
    const struct gm_view *view[] = {&p.a, &p.b};
    const bool copied[] = {copied_a, copied_b};
    gm_coming coming = {
        {gm_unpitched_way<T>(&p.a, p.a.row, p.a.col), gm_unpitched_way<T>(&p.b, p.b.col, p.b.row)},
        {},
        0};

    for (unsigned i = 0; i < 2; i++) {
        if (!copied[i])
            continue;
        gm_pitch pitch = gm_pitch_of<T>(view[i], p.batch, p.k, span[i]);
        double bytes =
            (double)pitch.matrices * (double)pitch.steps * (double)pitch.pitch * sizeof(T);
        if (coming.way[i] == GM_WAY_VECTORS || bytes > GM_PITCH_BYTES_MAX)
            return false;
        coming.way[i] = GM_WAY_VECTORS;
        coming.pitch[i] = pitch;
        coming.us += GM_PITCHING_US + bytes / GM_PITCH_BYTES_US;
    }
    if (copied_a && (coming.way[1] != GM_WAY_VECTORS || p.m < GM_PITCHED_ROWS))
        return false;
    *ret = coming;
    return true;
}

/* What a tile's copies cost in a step of k, in multiply-adds, with so many warps for each
 * scheduler. */
template <typename T>
static inline double gm_coming_step(const gm_offer &offer, const gm_coming &coming, double warps)
{
    gm_way a = coming.way[0], b = coming.way[1];
    bool held = a == GM_WAY_TURNED && b != GM_WAY_TURNED && gm_wide<T>(b) <= offer.held;
    double each_a = 0, each_b = 0;

    if (offer.held > 0 && gm_both_by_elements(a, b))
        return GM_COPY_OF_BOTH * (offer.height + offer.width) *
               (offer.single + GM_COPY_HELD / warps);
    if (a != GM_WAY_TURNED)
        each_a = a == GM_WAY_VECTORS ? GM_ELEMENT_OF_A : GM_COPY_OF_A / gm_wide<T>(a);
    if (b != GM_WAY_VECTORS)
        each_b = (held                   ? offer.single + GM_COPY_HELD / warps
                  : b == GM_WAY_ELEMENTS ? offer.single
                                         : GM_COPY_OF_B) /
                 gm_wide<T>(b);
    return offer.height * each_a + offer.width * each_b;
}

#endif
