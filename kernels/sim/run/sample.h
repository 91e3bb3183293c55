/*
 * sample.h - which blocks of a grid stand for all of it: those at the ends of each dimension, where
 * bounds checks bite, and some in between, for all the others there.
 */
#ifndef GM_KERNELS_SIM_RUN_SAMPLE_H
#define GM_KERNELS_SIM_RUN_SAMPLE_H

#include "device.h"

struct gm_sim_pick {
    struct gm_sim_dim block;
    double weight; /* how many blocks it stands for */
};

#define GM_SIM_PICKS_MAX 1024u

/*
 * At most `most` blocks, but at least as many as the ends of the dimensions need; returns how many.
 * All ends of all dimensions are taken where `most` allows it, else those far from the origin. The
 * weights add up to the grid.
 */
unsigned gm_sim_pick_blocks(struct gm_sim_dim grid, uint64_t most,
                            struct gm_sim_pick ret[GM_SIM_PICKS_MAX]);

/* How many of a block's warps each is taken for: 1, or where only `few` are to run, 0 for most: the
 * first, which often has a part of its own, and one for all the others. */
void gm_sim_pick_warps(unsigned warps, bool few, double ret[]);

#endif
