/*
 * job.h - describes one launch to its workers: what they share, what stops it, which blocks to
 * sample.
 */
#ifndef GM_KERNELS_SIM_RUN_JOB_H
#define GM_KERNELS_SIM_RUN_JOB_H

#include "device.h"
#include "kernels/sim/watch/symbols.h"
#include "memory.h"

#include <stdatomic.h>

/* Shared variables of one kernel that are found fast; further ones take longer. */
#define GM_SIM_VARIABLES_MAX 16u

/* One launch, the same for all workers. */
struct gm_sim_job {
    const struct gm_sim_launch *launch;
    struct gm_sim_memory *memory;
    const struct gm_sim_touched *before; /* touched by launches that may still run */
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
    /* Limits of a sample; 0 or false: none. */
    uint32_t repeats_max;    /* traced executions of one place by one thread of one block */
    uint64_t probe_max;      /* events: a block beyond this is abandoned */
    uint64_t block_max;      /* events: a thread stops when its part is used up */
    bool few_warps;          /* some warps of a block stand for the others */
    _Atomic int64_t *cpu_ns; /* time of all host threads; NULL if not a sample */
};

/* The report of a check. */
struct gm_sim_fault {
    bool found;
    struct gm_sim_dim block, thread;
    uintptr_t pc;
    char text[256];
};

/*
 * sample.c: selects the blocks of a grid that stand for all of it: those at the ends of each
 * dimension, where bounds checks take effect, and some in between for the others.
 */

struct gm_sim_pick {
    struct gm_sim_dim block;
    double weight; /* blocks that it stands for */
};

#define GM_SIM_PICKS_MAX 1024u

/*
 * Selects at most `most` blocks, but at least as many as the ends of the dimensions need. Returns
 * their number. Takes all ends of all dimensions if `most` allows it, else those far from the
 * origin. The weights add up to the grid.
 */
unsigned gm_sim_pick_blocks(struct gm_sim_dim grid, uint64_t most,
                            struct gm_sim_pick ret[GM_SIM_PICKS_MAX]);

/* The weight of each warp of a block: 1, or if only `few` are to run, 0 for most. The first warp
 * runs, because it often has a part of its own, and one more for all the others. */
void gm_sim_pick_warps(unsigned warps, bool few, double ret[]);

#endif
