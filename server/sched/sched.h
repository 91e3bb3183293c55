/*
 * sched.h - the bounded queue of one device, and the threads that run its jobs on streams.
 *
 * It knows neither HTTP nor CUDA: jobs come with callbacks, devices are behind backend.h.
 *
 * Order: fair_queue.h's, small jobs before large ones and round robin between clients. Jobs of one
 * client and one size class start in the order of their commits. An exclusive job starts only on an
 * idle device, and blocks others while it is first in the queue. gm_sched_run_here bypasses the
 * queue, because its jobs hold no stream, unless an exclusive job runs, or waits while no
 * stream is busy. A batch is the first job in the queue that may start, and jobs of its size class
 * with its batch_key, clients taking turns. Jobs that wait at the same moment are gathered so; none
 * waits for others to come. But one that reads the same matrix as a running launch waits for its
 * end, or until half a launch waits.
 */
#ifndef GM_SERVER_SCHED_SCHED_H
#define GM_SERVER_SCHED_SCHED_H

#include "kernels/backend.h"
#include "server/sched/fair_queue.h"

#include <stddef.h>
#include <stdint.h>

/*
 * A job: a task with what the scheduler needs to know of it. Embed it in whatever owns it.
 *
 * Its life, and who may touch it:
 *   reserve    a queue slot is counted, nothing is queued yet. May be refused, never waits.
 *   commit     QUEUED: the scheduler owns the job until done() is called. Cannot fail.
 *   (start)    RUNNING on a stream, alone or in a batch of jobs with the same batch_key; or on
 *              the thread that calls gm_sched_run_here or gm_sched_run_if_idle
 *   done()     the caller owns the job again; the scheduler never touches it after the call.
 * Every committed job gets exactly one done(), however it ends: finished, failed, timed out,
 * abandoned by its client, drained, or its device lost.
 */
struct gm_job {
    struct gm_task task;
    struct gm_fair_item slot; /* its queue slot; the owner sets client and cost_s */
    bool exclusive;           /* must run alone on the device */
    uint64_t batch_key;       /* gm_group_key: jobs with the same may share a launch; 0: none */
    unsigned batch_most;      /* gm_group_most: of such jobs in a launch; 0: batch_max */
    uint64_t bytes;           /* gm_group_bytes: what counts against batch_bytes */
    int64_t deadline_ns;      /* gm_now_ns() time, or GM_NEVER */
    /* The client's socket: the kernel is asked whether the client has closed it while the job
     * waits. 0: ask abandoned() instead. */
    int socket;
    /* Whether the client has disconnected. NULL: never. */
    bool (*abandoned)(const struct gm_job *job, bool running);
    /* Called at the end, with task.status and the members below set. */
    void (*done)(struct gm_job *job);

    int64_t queued_ns, started_ns, finished_ns; /* started_ns is 0 if it never ran */
    unsigned batch;                             /* number of jobs in its launch */
    int stream;                                 /* that it ran on; -1: none, gm_sched_run_here */
    bool concurrent;                            /* other jobs ran at the same time */
    bool last; /* alone in its launch, and none waited at its end */

    TAILQ_ENTRY(gm_job) link; /* for the scheduler: in the running list, or a list of ended jobs */
    enum gm_status stop_status; /* for the scheduler: why it was told to stop */
    double expected_s;          /* for the scheduler: expected time of the device */
    double forecast_s;  /* for the scheduler: expected from commit to end; 0: it did not wait */
    int64_t watched_ns; /* for the scheduler: when its client was checked last */
};

static inline struct gm_job *gm_job_of_slot(const struct gm_fair_item *slot)
{
    return (struct gm_job *)((char *)(uintptr_t)slot - offsetof(struct gm_job, slot));
}

TAILQ_HEAD(gm_job_list, gm_job);

/* Resets a job to its state before it is committed. */
void gm_job_reset(struct gm_job *job);
/* Tells a running job to stop, unless it was told already. It will end with this status. */
void gm_job_stop(struct gm_job *job, enum gm_status status);
/* Ends the job with `status` and an error sentence that says why. */
void gm_job_fail(struct gm_job *job, enum gm_status status);

/*
 * The scheduler. Lock rules:
 *  1. One mutex guards all of it but what jobs beside the streams count (gm_sched_run_here).
 *  2. backend->run, run_here and done() are called without the mutex.
 *  3. abandoned() is called with the mutex held: it must not block or call back.
 *  4. A job leaves the queue or the running list with the mutex held, before its done(). So every
 *     job in either is valid.
 */

struct gm_sched;

/*
 * Queue slots: a client may hold at most GM_SCHED_SHARE times as many as are free (dynamic
 * thresholds: Choudhury and Hahne, 1998). In a queue of more than four slots, one client leaves a
 * fifth to others, two leave a ninth. A client above that gets no new slots until the shares are
 * even.
 */
#define GM_SCHED_SHARE 4

/* The slots of all devices together. The request of each holds a connection, and there are fewer of
 * these than slots. So they are shared out in the same way: else the next client finds none. */
struct gm_sched_slots {
    _Atomic unsigned most;                         /* 0: any number */
    _Atomic unsigned taken, held[GM_FAIR_BUCKETS]; /* held: by client */
};

struct gm_sched_options {
    const struct gm_backend *backend;
    void *context;
    unsigned device;
    uint64_t queue_limit;
    struct gm_sched_slots *slots; /* NULL: connections are no limit */
    /* The ceilings are measured again after the device has been idle for measure_idle_ns, but at
     * least measure_again_ns after the last measurement. A new job stops it. 0: never. */
    int64_t measure_idle_ns, measure_again_ns;
    /* How long one stream's thread waits awake for the next job before it sleeps; 0: not at all. */
    int64_t awake_ns;
    /* Called once, from any thread and without locks, when the device is lost. */
    void (*lost)(void *cls);
    void *lost_cls;
};

struct gm_sched_load {
    uint64_t queued, running, capacity; /* capacity: queue slots */
    uint64_t busy_ns;                   /* time with at least one job running, since the start */
    double wait_s;                      /* expected time until a new job would start */
    bool lost;
};

/* Fails with GM_INTERNAL if a thread cannot be created. */
enum gm_status gm_sched_open(const struct gm_sched_options *options, struct gm_sched **ret,
                             struct gm_error *err);
/* Waits for jobs on streams, and fails queued ones with GM_DRAINING. Call when no thread is in
 * another function. NULL is fine. */
void gm_sched_close(struct gm_sched *sched);

/* Reserves a queue slot for a job of this client. Fails with GM_QUEUE_FULL, GM_DRAINING or
 * GM_DEVICE_LOST. */
enum gm_status gm_sched_reserve(struct gm_sched *sched, uint64_t client, struct gm_error *err);
/* The same for this job, whose slot and deadline are set. Fails with GM_QUEUE_FULL also if the job
 * is not expected to end before its deadline: it would hold memory, and be answered late. */
enum gm_status gm_sched_admit(struct gm_sched *sched, const struct gm_job *job,
                              struct gm_error *err);
/* Whether gm_sched_reserve would succeed now. Reserves nothing. */
enum gm_status gm_sched_check(struct gm_sched *sched, uint64_t client, struct gm_error *err);
/* Releases an unused slot. */
void gm_sched_unreserve(struct gm_sched *sched, uint64_t client);
/* Reserves a slot for the next job of a request that has had one already. Never refused, so that no
 * request fails halfway. The queue may exceed its limit by one job for each such request. */
void gm_sched_reserve_more(struct gm_sched *sched, uint64_t client);
/* Queues the job; uses up one reserved slot of its client. */
void gm_sched_commit(struct gm_sched *sched, struct gm_job *job);

/*
 * The same, if the device is idle and no other slot is reserved; but the calling thread runs the
 * job, on a stream and without done(). For jobs that end sooner than another thread would notice.
 * Else returns false, and the slot stays reserved.
 */
bool gm_sched_run_if_idle(struct gm_sched *sched, struct gm_job *job);
/*
 * Runs a job on the calling thread at once, without the queue and without done(). For jobs that
 * take less time than a handover to another thread. Needs no slot; nobody checks its deadline or
 * its client meanwhile. Returns false if this device cannot, or if an exclusive job runs, or waits
 * and no stream is busy.
 */
bool gm_sched_run_here(struct gm_sched *sched, struct gm_job *job);

/* Fails all queued jobs with `status`, and tells those on streams to stop with it. */
void gm_sched_fail_all(struct gm_sched *sched, enum gm_status status);

/* Seconds for Retry-After: the expected time of all jobs here; 1 to RETRY_AFTER_S_MAX. */
unsigned gm_sched_retry_after(struct gm_sched *sched);
struct gm_sched_load gm_sched_load(struct gm_sched *sched);
/* gm_sched_load's `lost`, without the mutex. */
bool gm_sched_is_lost(const struct gm_sched *sched);

#endif
