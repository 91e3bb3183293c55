/*
 * job.h - one launch: what its workers have in common, what stops it, and, in a sample, which
 * blocks stand for all.
 */
#ifndef GM_KERNELS_SIM_RUN_JOB_H
#define GM_KERNELS_SIM_RUN_JOB_H

#include "device.h"
#include "kernels/sim/watch/symbols.h"
#include "memory.h"

#include <stdatomic.h>

/* Shared variables of one kernel that are found at once; more take longer. */
#define GM_SIM_VARIABLES_MAX 16u

/* One launch, the same for all workers. */
struct gm_sim_job {
    const struct gm_sim_launch *launch;
    struct gm_sim_memory *memory;
    const struct gm_sim_touched *before; /* by launches that may still run */
    struct gm_symbols *symbols;
    const struct gm_sim_function *kernel;
    /* The kernel's own shared variables: where they begin and end, and their numbers. */
    unsigned variables;
    struct gm_sim_variable {
        size_t begin, end;
        unsigned index;
    } variable[GM_SIM_VARIABLES_MAX];
    uint64_t shared_static; /* bytes */
    const atomic_bool *stop;
    /* Of a sample; 0 or false: no limit. */
    uint32_t repeats_max;    /* of one place, by one thread of one block, that are traced */
    uint64_t probe_max;      /* events: a block that goes beyond this is given up */
    uint64_t block_max;      /* events: threads are left when they have had their part of them */
    bool few_warps;          /* some of a block's warps stand for the others */
    _Atomic int64_t *cpu_ns; /* the time that all host threads took; NULL where this is no sample */
};

/* What a check found. */
struct gm_sim_fault {
    bool found;
    struct gm_sim_dim block, thread;
    uintptr_t pc;
    char text[256];
};

/*
 * sample.c: which blocks of a grid stand for all of it: those at the ends of each dimension, where
 * bounds checks bite, and some in between, for all the others there.
 */

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
