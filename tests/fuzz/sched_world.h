/*
 * sched_world.h - what fuzz_sched.c does things to: a scheduler in front of a gate, and a model
 * that sees through callbacks what becomes of each job, and ends the program where that may not be.
 */
#ifndef GM_TESTS_FUZZ_SCHED_WORLD_H
#define GM_TESTS_FUZZ_SCHED_WORLD_H

#include "server/sched/sched.h"
#include "tests/fuzz/gate.h"

#define JOBS_MAX 48
#define EVENTS_MAX 120
#define CLIENTS 4

/* Where a job is, by what has been seen of it. */
enum place { UNUSED, QUEUED, RUNNING, RAN, DONE };

struct probe {
    struct gm_job job;
    struct world *world;
    enum place place;
    enum gm_status verdict; /* of its run */
    unsigned batch;         /* of its run */
    uint64_t failings;      /* calls of fail_all before it was committed */
    bool late;              /* has a deadline, which has passed or soon will */
    bool here;              /* ran on a caller's thread, out of turn */
    atomic_bool gone;       /* its client has left */
};

struct world {
    struct gate gate;
    struct gm_sched *sched;
    uint64_t limit, reserved[CLIENTS]; /* places, and those that each client has taken */
    unsigned jobs;
    struct probe probe[JOBS_MAX]; /* in the order of commit */

    bool lost, closing; /* a run was told to end so; close() was called */
    unsigned lost_calls;
    uint64_t failings; /* calls of fail_all */
    enum gm_status failed_with[EVENTS_MAX];
};

/* The gate's callbacks see the world. */
void world_init(struct world *world, unsigned streams, unsigned batch_max, uint64_t limit);
/* Closes the scheduler while jobs may run and wait; checks that all are done, and in order. */
void world_end(struct world *world);

/*
 * The next job, as if it were queued. kind: bits 0 and 1 the batch key, 2 exclusive, 3 and 4 the
 * deadline, 5 and 6 the client, 7 large.
 */
#define CLIENT_OF(kind) ((kind) >> 5 & 3)
struct probe *world_new_job(struct world *world, unsigned kind);

/* Waits until nothing changes any more, then compares the counts. */
void world_settle(struct world *world);
/* After that, by the model: whether there is a place for the client; and whether a job can run on a
 * caller's thread, which depends on whose turn it is where an exclusive one waits. */
bool world_has_place(struct world *world, unsigned client);
enum answer { NO, YES, EITHER };
enum answer world_can_run_here(struct world *world, bool exclusive);

#endif
