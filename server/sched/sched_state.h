/*
 * sched_state.h - the scheduler's internal state, shared by its three source files.
 *
 * sched.c has the public functions, streams.c the threads that run jobs, watch.c the thread that
 * ends jobs whose client or time has gone. Only they include it.
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

    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t work;   /* signals that a job may be startable, or closing */
    pthread_cond_t timer;  /* signals that there are jobs to watch, or closing */
    struct gm_fair_queue queue;
    struct gm_job_list running;
    uint64_t reserved; /* reserved slots: reserved + queue.waiting <= queue_limit, except after
                          reserve_more */
    uint64_t held[GM_FAIR_BUCKETS]; /* slots, waiting jobs included, by client */
    uint64_t running_count;
    uint64_t starts; /* launches so far; shows whether another one began during a launch */
    bool *stream_busy;
    unsigned streams_free;
    bool exclusive_running, closing;
    atomic_bool lost;  /* may also be read without the mutex */
    bool timer_asleep; /* the watch thread waits without a time-out: wake it */
    bool awake;        /* a thread without a job is awake, and takes the next one unsignalled */
    atomic_uint calls; /* counts what a thread that is awake must look at: commits, and the end */
    double service_s;  /* mean time that a job holds a stream, in seconds */
    double waiting_s;  /* expected_s of all jobs that wait */
    struct gm_forecast forecast; /* when jobs will end */

    int64_t idle_from_ns;     /* when the last job ended */
    int64_t busy_from_ns;     /* while jobs run: up to when busy_ns has counted */
    uint64_t busy_ns;         /* time with at least one job running */
    int64_t measured_ns;      /* last measurement of the ceilings; 0: only the one at start */
    atomic_bool measure_stop; /* tells the measuring thread to stop */

    unsigned streams_ready;   /* threads that have reported that they run */
    unsigned streams_created; /* threads to join; for gm_sched_open and gm_sched_close only */
    pthread_t timer_thread;
    bool timer_started;
    pthread_t *stream_thread;
};

/* To call with the mutex held: */

/* Whether a job in the queue may start now. */
bool gm_sched_startable(const struct gm_sched *sched);
/* Has a thread look at the queue: the one that is awake, or one that is woken. */
void gm_sched_call(struct gm_sched *sched);
/* Frees the slot of a job that has been taken from the queue. */
void gm_sched_leave_queue(struct gm_sched *sched, const struct gm_job *job);
/* Moves a waiting job to `list`, for gm_sched_end. */
void gm_sched_drop(struct gm_sched *sched, struct gm_job *job, struct gm_job_list *list);
/* Learns from when a job ended, or missed its deadline, how late jobs are. */
void gm_sched_learn(struct gm_sched *sched, const struct gm_job *job, int64_t ended_ns);
/* Counts the device as busy until then, unless that was counted already. */
void gm_sched_count_busy(struct gm_sched *sched, int64_t until_ns);
/* Moves all waiting jobs to `list`. */
void gm_sched_drop_all(struct gm_sched *sched, struct gm_job_list *list);
/* Runs the job on the calling thread, beside the streams. Releases the mutex while it runs. */
void gm_sched_run_beside(struct gm_sched *sched, struct gm_job *job);

/* To call without it: */

/* Fails each job with `status` and calls its done(). */
void gm_sched_end(struct gm_job_list *list, enum gm_status status);

/* Thread functions: of a stream, and of the watch. */
void *gm_sched_stream_main(void *sched);
void *gm_sched_watch_main(void *sched);

#endif
