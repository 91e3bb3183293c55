/*
 * coming.h - how operands come into tiles (ways.h): as they lie, or copied first (pitch.h); and
 * what that costs, in microseconds, beyond coming as they did when rates (offer.h) were measured: a
 * turned on its way, b by 16 bytes.
 */
#ifndef GM_KERNELS_CUDA_COMING_H
#define GM_KERNELS_CUDA_COMING_H

#include "kernels/cuda/offer.h"
#include "kernels/cuda/pitch.h"

/* An operand that does not come by 16 bytes costs a microsecond more for each so many copies: of 4
 * or 8 bytes, asynchronous; of those through registers (feed.h), and of b's that are turned; of a's
 * that are turned. */
#define GM_COPIES_US 0.8e6
#define GM_HELD_US 1.3e6
#define GM_TURNED_A_US 5.3e6
#define GM_PITCHING_US 3.0                     /* launching what copies an operand first */
#define GM_PITCH_BYTES_US 1.3e6                /* of the operand */
#define GM_PITCH_BYTES_MAX ((uint64_t)1 << 29) /* more is a few hundredths of the whole time */

struct gm_coming {
    gm_pitch pitch[2]; /* copied first; of no matrices: taken as it lies */
    double us;
};

/* All tiles in a row, or column, of the result want the same part of an operand. Where none gets it
 * by 16 bytes, it is copied first if that costs less. b's copy comes first: only with a b that
 * comes by 16 bytes is a better off copied than turned on its way, since there are kernels of their
 * own that turn a and hold b's copies, and none for a by 16 bytes with b by less (gm_by_ways). */
template <typename T>
static inline gm_coming gm_coming_into(const gm_offer &offer, const gm_product<T> &p)
{
    gm_coming coming = {};
    gm_way way[] = {gm_unpitched_way<T>(&p.a, p.a.row, p.a.col),
                    gm_unpitched_way<T>(&p.b, p.b.col, p.b.row)};
    bool turned[] = {way[0] == GM_WAY_TURNED, way[1] == GM_WAY_TURNED};
    bool held = turned[0] && gm_wide<T>(way[1]) <= offer.held;
    double rate[] = {turned[0] ? GM_TURNED_A_US : GM_COPIES_US,
                     turned[1] || held ? GM_HELD_US : GM_COPIES_US};

    for (unsigned i = 2; i-- > 0;) {
        if (way[i] == GM_WAY_VECTORS || (i == 0 && turned[0] && way[1] != GM_WAY_VECTORS))
            continue;
        uint64_t tiles = i == 0 ? gm_pieces(p.n, offer.width) : gm_pieces(p.m, offer.height);
        gm_pitch pitch = gm_pitch_of<T>(i == 0 ? &p.a : &p.b, p.batch, p.k, i == 0 ? p.m : p.n);
        double bytes =
            (double)pitch.matrices * (double)pitch.steps * (double)pitch.pitch * sizeof(T);
        double elements = (double)tiles * (double)p.batch * (double)p.k * (double)pitch.span;
        double each = elements / gm_wide<T>(way[i]) / rate[i];
        double once = GM_PITCHING_US + bytes / GM_PITCH_BYTES_US;
        bool copied = bytes <= GM_PITCH_BYTES_MAX && once <= each;

        if (copied) {
            way[i] = GM_WAY_VECTORS;
            coming.pitch[i] = pitch;
        }
        if (i == 1 || !turned[0])
            coming.us += copied ? once : each;
    }
    return coming;
}

#endif
