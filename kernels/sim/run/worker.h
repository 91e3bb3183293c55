/*
 * worker.h - holds the state of one host thread that simulates blocks, and of a block's threads.
 *
 * Blocks run one after the other. The files of the simulator share this state; each part has an
 * owner.
 *
 *   block.c    runs the threads of a block as fibers: barriers, faults
 *   warp.c     runs what the lanes of a warp do together
 *   hooks.c    is called by compiled kernels at each load, store and step; finds bad addresses
 *   shadow.c   knows who touched each byte last: races, reads of unwritten memory
 *   trace.c    turns the logs of the 32 lanes of a warp into the warp's requests
 *   tally.c    computes what requests cost; sums by place in the source
 *   dependent.c  compares what overlapping launches touch
 *
 * None of this is compiled with sanitizers, because it runs between the fibers.
 */
#ifndef GM_KERNELS_SIM_RUN_WORKER_H
#define GM_KERNELS_SIM_RUN_WORKER_H

#include "device.h"
#include "fiber.h"
#include "job.h"
#include "kernels/access.h"
#include "kernels/sim/watch/shadow.h"
#include "kernels/sim/watch/symbols.h"
#include "kernels/sim/watch/tally.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- A thread of a simulated block: a fiber, and what it waits for. ---- */

enum gm_sim_state {
    GM_SIM_READY,   /* can go on */
    GM_SIM_BARRIER, /* at a barrier of the block */
    GM_SIM_WARP,    /* at an operation of its warp */
    GM_SIM_DONE,
    GM_SIM_ABSENT /* in a sample: never begun, or stopped early; nobody waits for it */
};

struct gm_sim_thread {
    struct gm_fiber fiber;
    bool started; /* the fiber is alive, and waits for the next block */
    enum gm_sim_state state;
    struct gm_sim_dim idx;
    unsigned tid, warp;
    uint32_t synced;   /* time of its last barrier or warp operation */
    uintptr_t wait_pc; /* where it waits */
    enum gm_sim_warp_op op;
    unsigned mask, width;
    int lane;
    uint64_t value;        /* its input to the operation, then its result */
    bool waited;           /* for the primary, if the launch is dependent */
    uintptr_t stack_floor; /* lowest stack address allowed */
    /* Where UBSan's check saw an index beyond an array, or 0. The next access gives the address. */
    uintptr_t bad_pc;
    unsigned bad_line, bad_accesses;
    long long bad_index;
};

/* ---- What a thread did: its accesses, and the steps between them. ---- */

/* One event of a lane: a step (the beginning of a branchless stretch of code) or an access. */
struct gm_sim_event {
    uint32_t key; /* where: gm_sim_key */
    uint8_t kind; /* enum gm_access_kind, or GM_SIM_STEP */
    uint8_t bytes;
    uint16_t memory; /* index of a buffer, or GM_SIM_SHARED and beyond */
    uint64_t address;
};
#define GM_SIM_STEP GM_ACCESS_KINDS
#define GM_SIM_NOWHERE UINT32_MAX
#define GM_SIM_DYNAMIC 0x3FFFu /* the dynamic shared memory */
#define GM_SIM_SHARED 0x4000u  /* + index of the shared variable in gm_symbols */

/* A code address as its distance from the program's beginning. An access of an odd size is several
 * pieces at one address; the load of an asynchronous copy is the last piece. */
#define GM_SIM_PIECES 16u
#define GM_SIM_ASYNC (GM_SIM_PIECES - 1)
static inline uint32_t gm_sim_key(uintptr_t pc, unsigned piece)
{
    return (uint32_t)(pc - gm_symbols_base()) * GM_SIM_PIECES + piece;
}
static inline uintptr_t gm_sim_key_pc(uint32_t key)
{
    return gm_symbols_base() + key / GM_SIM_PIECES;
}

/* ---- A worker. ---- */

#define GM_SIM_THREADS_MAX 1024u /* of a block: CUDA's limit */
/* A fiber's stack: the kernel's local arrays, and some room for calls into the simulator. */
#define GM_SIM_STACK_BYTES ((size_t)64 << 10)
/* How far a lane may be ahead of its warp, in events: few enough for the cache. */
#define GM_SIM_LOG_EVENTS 64u
/* The first touch of a page takes as long as this many events. */
#define GM_SIM_PAGE_EVENTS 256u
#define GM_SIM_PAGES 16384u /* more than are in memory at a time */

/* A page of global memory: the round in which it was touched last, and the value of given_back
 * then. */
struct gm_sim_page {
    uint64_t number;
    uint32_t round, given_back;
};

struct gm_sim_worker {
    const struct gm_sim_job *job;
    struct gm_sim_dim block; /* the running block */
    bool alone;              /* the next block is not compared with it */
    unsigned threads, warps;
    double weight;      /* blocks that the running one stands for */
    double warp_weight; /* warps, of all blocks, that the running warp stands for */
    double warps_like[GM_SIM_THREADS_MAX / GM_WARP]; /* warps of the block that each stands for */
    uint32_t loading;       /* bit i: warp i of the running block has loaded from global memory */
    unsigned absent, alive; /* alive: threads that have not ended and are not absent */

    struct gm_fiber scheduler;
    struct gm_sim_thread *current; /* NULL outside of kernels */
    struct gm_sim_thread thread[GM_SIM_THREADS_MAX];
    char *stacks;
    bool broken;  /* a fault was found: the block ends here */
    bool refused; /* the system refused to start a fiber */
    struct gm_sim_fault fault;

    /* Shared memory. */
    char *dynamic;
    uintptr_t statics; /* beginning of this thread's copy of the shared variables */

    struct gm_shadow shadow;
    struct gm_sim_touched touched; /* by its blocks in this launch */
    struct gm_tally tally;
    struct gm_tally_seen seen; /* by the running block */
    /* Events of the last block: what its threads did, traced or not, and GM_SIM_PAGE_EVENTS per
     * page that they touched. */
    uint64_t events;
    uint64_t look_at, next_look, thread_end; /* event counts: when to check, when to stop */
    uint64_t page_events;                    /* of `events`, those for pages */
    uint64_t launch_events;                  /* of all its blocks in this launch */
    bool cut;                                /* a thread of this launch was stopped early */
    bool late;                               /* the time limit was reached */
    int64_t cpu_mark_ns;                     /* this thread's CPU time up to the last count */
    uint32_t round; /* starts with each block, and when a block has touched as many pages as may be
                     * in memory: those of earlier rounds count as new */
    struct gm_sim_page page[GM_SIM_PAGES]; /* a hash table of the last touched pages */

    /* Logs of the lanes of the running warp. */
    struct gm_sim_event log[GM_WARP][GM_SIM_LOG_EVENTS];
    unsigned log_begin[GM_WARP], log_end[GM_WARP];

    uint16_t (*repeats)[GM_TALLY_PLACES]; /* by thread and place; NULL if everything is traced */
    bool left_out; /* some writes to shared memory were not recorded in this block */

    /* The first read of unwritten shared memory. It becomes a fault at the next barrier, or earlier
     * if another thread writes there: then the read was too early. */
    struct {
        struct gm_sim_thread *reader; /* NULL: none */
        uintptr_t at, pc;
        size_t bytes;
        uint64_t end; /* how long it waits, in events of the block */
        char text[256];
    } unwritten;
};

/* NULL if this host thread simulates nothing. */
extern _Thread_local struct gm_sim_worker *gm_sim_worker;

/* GM_MEMORY_FULL, with nothing to free. */
enum gm_status gm_sim_worker_open(struct gm_sim_worker **ret, struct gm_error *err);
void gm_sim_worker_close(struct gm_sim_worker *worker);

/* block.c: runs one block of worker->job. Returns false after a fault or a stop. */
bool gm_sim_block_run(struct gm_sim_worker *worker, struct gm_sim_dim block, double weight);
/* Ends the running block with a fault; does not return. */
_Noreturn void gm_sim_fail(struct gm_sim_worker *worker, uintptr_t pc, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Called now and then, and when the running thread has used up its events. Does not return if the
 * block, or the thread, is no longer wanted. */
void gm_sim_look(struct gm_sim_worker *worker);
/* In a sample: adds this host thread's CPU time to the request's. */
void gm_sim_count_time(struct gm_sim_worker *worker, bool begins);
/* Abandons a thread where it waits. */
void gm_sim_leave(struct gm_sim_worker *worker, struct gm_sim_thread *thread);
/* The same for any thread, called by another one; returns. */
void gm_sim_fail_of(struct gm_sim_worker *worker, struct gm_sim_thread *thread, uintptr_t pc,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Call before a thread waits or ends: reports an index beyond an array that no access followed. */
void gm_sim_check_index(struct gm_sim_worker *worker);
/* Suspends the running thread until it is scheduled again. */
void gm_sim_yield(struct gm_sim_worker *worker);

/* warp.c: all lanes of the warp wait or have ended. Resumes those that wait for nobody else;
 * returns false if there are none. */
bool gm_sim_release_warp(struct gm_sim_worker *worker, struct gm_sim_thread *warp, unsigned lanes);

/* trace.c: turns the logs of the lanes from `first` on into requests, as far as they are
 * complete. */
void gm_sim_trace(struct gm_sim_worker *worker, unsigned first, unsigned lanes);

#endif
