/*
 * thread.h - a thread of a simulated block: a fiber, and what it waits for.
 */
#ifndef GM_KERNELS_SIM_RUN_THREAD_H
#define GM_KERNELS_SIM_RUN_THREAD_H

#include "device.h"
#include "fiber.h"

#include <stdbool.h>
#include <stdint.h>

enum gm_sim_state {
    GM_SIM_READY,   /* can go on */
    GM_SIM_BARRIER, /* at a barrier of the block */
    GM_SIM_WARP,    /* at an operation of its warp */
    GM_SIM_DONE,
    GM_SIM_ABSENT /* in a sample: never begun, or left where it was; nobody waits for it */
};

struct gm_sim_thread {
    struct gm_fiber fiber;
    bool started; /* the fiber is alive and waits for the next block */
    enum gm_sim_state state;
    struct gm_sim_dim idx;
    unsigned tid, warp;
    uint32_t synced;   /* clock of its last barrier or warp operation */
    uintptr_t wait_pc; /* where it waits */
    enum gm_sim_warp_op op;
    unsigned mask, width;
    int lane;
    uint64_t value;        /* what it gives to the operation, then what it gets */
    bool waited;           /* for the launch before, if its own is dependent */
    uintptr_t stack_floor; /* it must not go below */
    /* Where the compiler saw an index beyond its array, or 0; the access that follows tells the
     * address. */
    uintptr_t bad_pc;
    unsigned bad_line, bad_accesses;
    long long bad_index;
};

#endif
