/*
 * job.h - what the workers of one launch have in common, and what stops it.
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

#endif
