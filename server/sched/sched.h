/*
 * sched.h - the bounded queue in front of one device, and the threads that feed its streams.
 * It knows neither HTTP nor CUDA: jobs come with callbacks, devices behind backend.h.
 *
 * Order: fair_queue.h's, small before large and client by client. Jobs of one client and one size
 * start in the order in which they were committed. One that is exclusive starts when nothing
 * runs; while it is its turn nothing else starts. Jobs that gm_sched_run_here takes have no turn:
 * they hold no stream that others wait for. A batch is the job whose turn it is and those of
 * its key that are next in turn.
 *
 * Places: a client may hold at most GM_SCHED_SHARE times as many as are free (dynamic thresholds:
 * Choudhury and Hahne, 1998). So one alone leaves a fifth of a queue of more than four places to
 * others, two leave a ninth, and whoever holds more gets no new ones until the shares are even.
 *
 * A job's life, and who may touch it:
 *   reserve    a slot is counted; nothing is queued yet. May be refused, never waits.
 *   commit     QUEUED: the scheduler's, until done() is called. Cannot fail.
 *   (start)    RUNNING on a stream, alone or in a batch of jobs with the same batch_key; or on
 *              the thread that calls gm_sched_run_here, which is all of such a job's life
 *   done()     the job is its owner's again; the scheduler never touches it after the call.
 * Every committed job gets exactly one done(), whatever happens: finished, failed, out of time,
 * abandoned by its client, drained, device lost.
 *
 * Lock rules. 1. One mutex guards all of the scheduler. 2. backend->run, run_here and done() are
 * called without it. 3. abandoned() is called with it: it must not block or call back. 4. Jobs
 * leave the queue or the running list under it, before their done(), so a job that is in either is
 * valid.
 */
#ifndef GM_SERVER_SCHED_SCHED_H
#define GM_SERVER_SCHED_SCHED_H

#include "kernels/backend.h"
#include "server/sched/fair_queue.h"

#include <stddef.h>
#include <stdint.h>

/*
 * A job: a task with what a scheduler needs to know of it, and lists of such. Embedded in
 * whatever it is done for.
 */

struct gm_job {
    struct gm_task task;
    struct gm_fair_item slot; /* in the queue; its client and cost_s are the owner's to set */
    bool exclusive;           /* wants the device for itself */
    uint64_t batch_key;       /* jobs with the same key are alike and may share a launch; 0: none */
    int64_t deadline_ns;      /* gm_now_ns() time, or GM_NEVER */
    /* Its client's, for the kernel to say whether that has closed it while the job waits; 0: ask
     * abandoned() instead. */
    int socket;
    /* Whether the client has gone. NULL: never. */
    bool (*abandoned)(const struct gm_job *job, bool running);
    /* task.status and what follows are set. */
    void (*done)(struct gm_job *job);

    int64_t queued_ns, started_ns, finished_ns; /* started_ns is 0 if it never ran */
    unsigned batch;                             /* jobs in its launch */
    bool concurrent;                            /* others ran meanwhile */

    TAILQ_ENTRY(gm_job) link;   /* the scheduler's: in the running list, or one of ended jobs */
    enum gm_status stop_status; /* the scheduler's: why it was told to stop */
    double expected_s;          /* the scheduler's: its estimate */
};

static inline struct gm_job *gm_job_of_slot(const struct gm_fair_item *slot)
{
    return (struct gm_job *)((char *)(uintptr_t)slot - offsetof(struct gm_job, slot));
}

TAILQ_HEAD(gm_job_list, gm_job);

/* As it is when it is handed over: nothing has happened to it yet. */
void gm_job_reset(struct gm_job *job);
/* Tells a running job to stop, if nobody has: it will end with this status. */
void gm_job_stop(struct gm_job *job, enum gm_status status);
/* The job ends with `status` and a sentence that says why. */
void gm_job_fail(struct gm_job *job, enum gm_status status);

/* ---- The scheduler. ---- */

struct gm_sched;

#define GM_SCHED_SHARE 4

struct gm_sched_options {
    const struct gm_backend *backend;
    void *context;
    unsigned device;
    uint64_t queue_limit;
    /* The ceilings are measured again when the device has had nothing to do for so long, and then
     * no sooner than so long after: each new job stops it. 0: never. */
    int64_t measure_idle_ns, measure_again_ns;
    /* Called once, from any thread and without locks, when the device is lost. */
    void (*lost)(void *cls);
    void *lost_cls;
};

struct gm_sched_load {
    uint64_t queued, running, capacity; /* capacity: of the queue */
    uint64_t busy_ns; /* how long jobs were running in all, however many at once; never falls */
    bool lost;
};

/* GM_INTERNAL if threads cannot be had. */
enum gm_status gm_sched_open(const struct gm_sched_options *options, struct gm_sched **ret,
                             struct gm_error *err);
/* Waits for what runs and fails what is queued with GM_DRAINING. NULL is fine. */
void gm_sched_close(struct gm_sched *sched);

/* A slot in the queue for a job of this client, or GM_QUEUE_FULL, GM_DRAINING, GM_DEVICE_LOST. */
enum gm_status gm_sched_reserve(struct gm_sched *sched, uint64_t client, struct gm_error *err);
/* Whether there is one now. */
enum gm_status gm_sched_check(struct gm_sched *sched, uint64_t client, struct gm_error *err);
/* Gives it back unused. */
void gm_sched_unreserve(struct gm_sched *sched, uint64_t client);
/* A slot for the next job of a request that has had one: what is half done is not refused, though
 * the queue then be longer than its limit by a job for each such request. */
void gm_sched_reserve_more(struct gm_sched *sched, uint64_t client);
/* Uses up a slot of the job's client. */
void gm_sched_commit(struct gm_sched *sched, struct gm_job *job);

/*
 * For jobs smaller than a handover: runs the job on the calling thread, beside all that runs and
 * waits, without calling done(). It needs no slot, and nobody is woken to watch its deadline and
 * its client, which it does not live to see. false: not on this device, or not now, when a job has
 * it for itself or is about to.
 */
bool gm_sched_run_here(struct gm_sched *sched, struct gm_job *job);

/* Fails all that is queued with `status`, and tells what runs to stop with it. */
void gm_sched_fail_all(struct gm_sched *sched, enum gm_status status);

/* Seconds after which to try again: what all jobs here will take; 1 to RETRY_AFTER_S_MAX. */
unsigned gm_sched_retry_after(struct gm_sched *sched);
struct gm_sched_load gm_sched_load(struct gm_sched *sched);

#endif
