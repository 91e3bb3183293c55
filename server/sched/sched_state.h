/*
 * sched_state.h - the scheduler's internal state, shared by its four source files.
 *
 * sched.c has the public functions, streams.c the threads that run jobs, beside.c the jobs that run
 * beside these, watch.c the thread that ends jobs whose client or time has gone. Only they include
 * it.
 */
#ifndef GM_SERVER_SCHED_SCHED_STATE_H
#define GM_SERVER_SCHED_SCHED_STATE_H

#include "server/sched/cost.h"
#include "server/sched/sched.h"

#include <pthread.h>

struct gm_sched {
    struct gm_sched_options options;
    const struct gm_device_facts *facts;
    unsigned streams, batch_max;

    pthread_mutex_t mutex; /* guards all below, but where it says otherwise */
    pthread_cond_t work;   /* signals that a job may be startable, or closing */
    pthread_cond_t timer;  /* signals jobs to watch, closing, or that all streams are ready */
    struct gm_fair_queue queue;
    struct gm_job_list running;
    uint64_t reserved; /* reserved slots: reserved + queue.waiting <= queue_limit, except after
                          reserve_more */
    uint64_t held[GM_FAIR_BUCKETS]; /* slots, waiting jobs included, by client */
    bool *stream_busy;
    unsigned streams_free;
    bool exclusive_running, closing;
    uint64_t exclusive_waiting; /* such jobs in the queue */
    atomic_bool lost;           /* may also be read without the mutex */
    bool timer_asleep;          /* the watch thread waits without a time-out: wake it */
    bool awake;        /* a thread without a job is awake, and takes the next one unsignalled */
    atomic_uint wakes; /* counts what a thread that is awake must look at: commits, and the end */
    double service_s;  /* mean time that a job holds a stream, in seconds */
    double waiting_s;  /* expected_s of all jobs that wait */
    struct gm_forecast forecast; /* when jobs will end */

    int64_t measured_ns;      /* last measurement of the ceilings; 0: only the one at start */
    atomic_bool measure_stop; /* tells the measuring thread to stop */

    /* What jobs beside the streams change without the mutex: beside.c. */
    _Alignas(64) _Atomic uint64_t begun; /* launches so far, and how many jobs run beside streams */
    _Atomic int64_t busy_from_ns;        /* while jobs run: up to when busy_ns has counted */
    _Atomic uint64_t busy_ns;            /* time with at least one job running */
    _Atomic int64_t idle_from_ns;        /* when the last job ended */

    /* What such jobs read. Written with the mutex held. */
    _Alignas(64) atomic_bool bypass_closed; /* a job runs alone, or will, or no more may run */
    _Atomic uint64_t running_count;         /* jobs in `running` */

    unsigned streams_ready;   /* threads that have reported that they run */
    unsigned streams_created; /* threads to join; for gm_sched_open and gm_sched_close only */
    pthread_t timer_thread;
    bool timer_started;
    pthread_t *stream_thread;
};

/* State at the start of a launch. */
struct gm_launch {
    int64_t begun_ns;
    uint32_t begun; /* launches, this one included */
    bool others;    /* other jobs were running */
};

/* To call with the mutex held: */

/* Whether a job in the queue may start now. */
bool gm_sched_startable(const struct gm_sched *sched);
/* Has a thread look at the queue: the one that is awake, or one that is woken. */
void gm_sched_wake(struct gm_sched *sched);
/* Has all stream threads look at it. */
void gm_sched_wake_all(struct gm_sched *sched);
/* Puts a job that was reset into the queue, and has it watched. Its slot is reserved no more. */
void gm_sched_enqueue(struct gm_sched *sched, struct gm_job *job);
/* Frees the slot of a job that has been taken from the queue. */
void gm_sched_leave_queue(struct gm_sched *sched, const struct gm_job *job);
/* Moves a waiting job to `list`, for gm_sched_end. */
void gm_sched_drop(struct gm_sched *sched, struct gm_job *job, struct gm_job_list *list);
/* Learns from when a job ended, or missed its deadline, how late jobs are. */
void gm_sched_learn(struct gm_sched *sched, const struct gm_job *job, int64_t ended_ns);
/* Moves all waiting jobs to `list`. */
void gm_sched_drop_all(struct gm_sched *sched, struct gm_job_list *list);
/* Closes the bypass of jobs beside the streams, or opens it. Call when what it depends on has
 * changed: an exclusive job waits or runs, streams run jobs, the device is lost, the scheduler is
 * closing. */
void gm_sched_set_bypass(struct gm_sched *sched);

/* To call without it, or with it: */

/* Jobs that run beside the streams now. */
uint64_t gm_sched_beside(const struct gm_sched *sched);
/* Call before jobs are counted as running: if none runs, the time until now was not busy. */
void gm_sched_begins(struct gm_sched *sched, int64_t now_ns);
/* Begins a launch of `own` jobs, which are counted already. */
struct gm_launch gm_sched_launch(struct gm_sched *sched, int64_t begun_ns, uint64_t own);
/* Whether other jobs ran at its beginning, or have run since. */
bool gm_sched_was_concurrent(const struct gm_sched *sched, const struct gm_launch *launch);
/* Counts the device as busy until then, unless that was counted already. */
void gm_sched_count_busy(struct gm_sched *sched, int64_t until_ns);

/* To call without it: */

/* The device is lost: fails all waiting jobs, unless that was done. */
void gm_sched_lose(struct gm_sched *sched, const struct gm_error *error);
/* Fails each job with `status` and calls its done(). */
void gm_sched_end(struct gm_job_list *list, enum gm_status status);

/* Thread functions: of a stream, and of the watch. */
void *gm_sched_stream_main(void *sched);
void *gm_sched_watch_main(void *sched);

#endif
