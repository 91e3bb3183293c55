/*
 * worker.h - the state of one host thread that simulates blocks, one after the other. Shared by
 * the files of this directory; each part of it has its owner.
 *
 *   block.c    runs the threads of a block as fibers: barriers, faults
 *   warp.c     what the lanes of a warp do together
 *   hooks.c    what compiled kernels call at each load, store and step; finds bad addresses
 *   shadow.c   who touched which byte last: races, reads of what nobody wrote
 *   trace.c    joins what the 32 lanes of a warp did into the warp's requests
 *   tally.c    what a request costs; sums by place in the source
 *   dependent.c  what launches touch that overlap
 *
 * None of this is compiled with sanitizers: it works between the fibers.
 */
#ifndef GM_KERNELS_SIM_WORKER_H
#define GM_KERNELS_SIM_WORKER_H

#include "event.h"
#include "fiber.h"
#include "job.h"
#include "shadow.h"
#include "tally.h"

#define GM_SIM_THREADS_MAX 1024u /* of a block: CUDA's limit */
/* A fiber's stack: a kernel's own arrays, and a little for what it calls here. */
#define GM_SIM_STACK_BYTES ((size_t)64 << 10)
/* What one lane may be ahead of its warp, in events: small enough for the cache. */
#define GM_SIM_LOG_EVENTS 64u

enum gm_sim_state {
    GM_SIM_READY,   /* can go on */
    GM_SIM_BARRIER, /* at a barrier of the block */
    GM_SIM_WARP,    /* at an operation of its warp */
    GM_SIM_DONE
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

struct gm_sim_worker {
    const struct gm_sim_job *job;
    struct gm_sim_dim block; /* being run */
    unsigned threads, warps;
    double weight; /* how many blocks this one stands for */

    struct gm_fiber scheduler;
    struct gm_sim_thread *current; /* NULL outside of kernels */
    struct gm_sim_thread thread[GM_SIM_THREADS_MAX];
    char *stacks;
    bool broken; /* a fault was found: this block ends here */
    struct gm_sim_fault fault;

    /* Shared memory. */
    char *dynamic;
    uintptr_t statics; /* this thread's copy of the shared variables begins here */

    struct gm_shadow shadow;
    struct gm_sim_touched touched; /* by its blocks of this launch */
    struct gm_tally tally;
    uint64_t events; /* of the last block, traced or not: its cost */

    /* The lanes of the warp that runs. */
    struct gm_sim_event log[GM_WARP][GM_SIM_LOG_EVENTS];
    unsigned log_begin[GM_WARP], log_end[GM_WARP];

    uint16_t (*repeats)[GM_TALLY_PLACES]; /* by thread and place; NULL where all is traced */
    bool left_out; /* and so some writes to shared memory were not noted in this block */
};

/* NULL where this host thread simulates nothing. */
extern _Thread_local struct gm_sim_worker *gm_sim_worker;

/* GM_MEMORY_FULL, with nothing to free. */
enum gm_status gm_sim_worker_open(struct gm_sim_worker **ret, struct gm_error *err);
void gm_sim_worker_close(struct gm_sim_worker *worker);

/* block.c: runs one block of worker->job; false if a fault was found or it was told to stop. */
bool gm_sim_block_run(struct gm_sim_worker *worker, struct gm_sim_dim block, double weight);
/* Ends the running block with a fault; does not return. */
_Noreturn void gm_sim_fail(struct gm_sim_worker *worker, uintptr_t pc, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same without a fault, where nobody wants the block any more. */
void gm_sim_check_stop(struct gm_sim_worker *worker);
/* The same, of a thread that waits, by who finds that it does so in vain; returns. */
void gm_sim_fail_waiting(struct gm_sim_worker *worker, struct gm_sim_thread *thread,
                         const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Before a thread waits or ends: it is a fault if it computed an index beyond an array. */
void gm_sim_check_index(struct gm_sim_worker *worker);
/* Stops the running thread, until it is its turn again. */
void gm_sim_yield(struct gm_sim_worker *worker);

/* warp.c: all lanes of the warp wait or have ended. Lets those go that wait for nobody else; false
 * if there are none. */
bool gm_sim_release_warp(struct gm_sim_worker *worker, struct gm_sim_thread *warp, unsigned lanes);

/* trace.c: turns the logs of the lanes from `first` on into requests, as far as they go. */
void gm_sim_trace(struct gm_sim_worker *worker, unsigned first, unsigned lanes);

#endif
