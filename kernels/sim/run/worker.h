/*
 * worker.h - the state of one host thread that simulates blocks, one after the other, and of the
 * threads of such a block. Shared by the files of this directory; each part of it has its owner.
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

/* ---- What a thread did: its accesses, and the steps between them. ---- */

/* Something a lane did: a step (the begin of a run of code without branches) or an access. */
struct gm_sim_event {
    uint32_t key; /* where: gm_sim_key */
    uint8_t kind; /* enum gm_access_kind, or GM_SIM_STEP */
    uint8_t bytes;
    uint16_t memory; /* which: a buffer's index, or GM_SIM_SHARED and beyond */
    uint64_t address;
};
#define GM_SIM_STEP GM_ACCESS_KINDS
#define GM_SIM_NOWHERE UINT32_MAX
#define GM_SIM_DYNAMIC 0x3FFFu /* the dynamic shared memory */
#define GM_SIM_SHARED 0x4000u  /* + index of the shared variable in gm_symbols */

/* Code addresses as distances from the program's beginning; one access of an odd size is several
 * pieces at one place. */
#define GM_SIM_PIECES 8u
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
/* A fiber's stack: a kernel's own arrays, and a little for what it calls here. */
#define GM_SIM_STACK_BYTES ((size_t)64 << 10)
/* What one lane may be ahead of its warp, in events: small enough for the cache. */
#define GM_SIM_LOG_EVENTS 64u
/* The first touch of a page takes as long as so many events. */
#define GM_SIM_PAGE_EVENTS 256u
#define GM_SIM_PAGES 16384u /* more than may be in memory at a time */

/* A page of global memory, by which block it was touched last, and how often the memory had been
 * given back then. */
struct gm_sim_page {
    uint64_t number;
    uint32_t block, given_back;
};

struct gm_sim_worker {
    const struct gm_sim_job *job;
    struct gm_sim_dim block; /* being run */
    unsigned threads, warps;
    double weight;      /* how many blocks this one stands for */
    double warp_weight; /* how many warps the one that runs stands for, of all those blocks */
    double warps_like[GM_SIM_THREADS_MAX / GM_WARP]; /* how many of the block's a warp stands for */
    unsigned alive; /* threads that have not ended, and are not absent */
    unsigned absent;

    struct gm_fiber scheduler;
    struct gm_sim_thread *current; /* NULL outside of kernels */
    struct gm_sim_thread thread[GM_SIM_THREADS_MAX];
    char *stacks;
    bool broken;  /* a fault was found: this block ends here */
    bool refused; /* the system did not start one of its fibers */
    struct gm_sim_fault fault;

    /* Shared memory. */
    char *dynamic;
    uintptr_t statics; /* this thread's copy of the shared variables begins here */

    struct gm_shadow shadow;
    struct gm_sim_touched touched; /* by its blocks of this launch */
    struct gm_tally tally;
    /* Of the last block: what its threads did, traced or not, and GM_SIM_PAGE_EVENTS for each page
     * that they touched. */
    uint64_t events;
    uint64_t look_at, next_look, thread_end; /* when to look whether to go on; when to leave */
    uint64_t page_events;                    /* of these, for pages */
    uint64_t launch_events;                  /* of all its blocks of this launch */
    bool cut;                                /* a thread of this launch was left before its end */
    bool late;                               /* the time was up */
    int64_t cpu_mark_ns;                     /* this thread's time that has been counted */
    uint32_t blocks;                         /* that were run */
    struct gm_sim_page page[GM_SIM_PAGES];   /* a hash table of those touched last */

    /* The lanes of the warp that runs. */
    struct gm_sim_event log[GM_WARP][GM_SIM_LOG_EVENTS];
    unsigned log_begin[GM_WARP], log_end[GM_WARP];

    uint16_t (*repeats)[GM_TALLY_PLACES]; /* by thread and place; NULL where all is traced */
    bool left_out; /* and so some writes to shared memory were not noted in this block */

    /* The first read of shared memory that nobody had written. It becomes a fault at the next
     * barrier, or before, when another thread writes there: then it was too early. */
    struct {
        struct gm_sim_thread *reader; /* NULL: none */
        uintptr_t at, pc;
        size_t bytes;
        uint64_t end; /* of waiting, in events of the block */
        char text[256];
    } unwritten;
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
/* Now and then, and where the running thread has had its events: does not return where nobody wants
 * the block, or the thread, any more. */
void gm_sim_look(struct gm_sim_worker *worker);
/* In a sample: adds the time that this host thread took to the request's. */
void gm_sim_count_time(struct gm_sim_worker *worker, bool begins);
/* A thread that is not to go on: it is left where it waits. */
void gm_sim_leave(struct gm_sim_worker *worker, struct gm_sim_thread *thread);
/* The same of any thread, by who finds its fault; returns. */
void gm_sim_fail_of(struct gm_sim_worker *worker, struct gm_sim_thread *thread, uintptr_t pc,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));
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
