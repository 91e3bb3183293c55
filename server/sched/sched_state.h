/*
 * sched_state.h - what the parts of the scheduler share: sched.c (the public functions),
 * streams.c (threads that run jobs), watch.c (the thread that ends those nobody waits
 * for). For them alone.
 */
#ifndef GM_SERVER_SCHED_SCHED_STATE_H
#define GM_SERVER_SCHED_SCHED_STATE_H

#include "server/sched/sched.h"

#include <pthread.h>

struct gm_sched {
    struct gm_sched_options options;
    const struct gm_device_facts *facts;
    unsigned streams, batch_max;

    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t work;   /* a job may be startable, or closing */
    pthread_cond_t timer;  /* there is something to watch, or closing */
    struct gm_fair_queue queue;
    struct gm_job_list running;
    uint64_t reserved; /* slots: reserved + queue.waiting <= queue_limit, but for reserve_more */
    uint64_t held[GM_FAIR_BUCKETS]; /* how many of these are whose */
    uint64_t running_count;
    uint64_t starts; /* launches so far: tells whether another began during one */
    bool *stream_busy;
    unsigned streams_free;
    bool exclusive_running, lost, closing;
    bool timer_asleep; /* there was nothing to watch: wake it */
    double service_s;  /* mean time a job holds a stream */
    double backlog_s;  /* what those that wait, or run on streams, are expected to take */

    int64_t idle_from_ns;     /* when the last job ended */
    int64_t busy_from_ns;     /* while jobs run: up to when busy_ns has counted */
    uint64_t busy_ns;         /* how long jobs were running, however many at once */
    int64_t measured_ns;      /* when the ceilings were measured last; 0: not since the start */
    atomic_bool measure_stop; /* told to whoever measures */

    unsigned streams_ready;   /* threads that run, by their own count */
    unsigned streams_created; /* threads to join; the opener's alone */
    pthread_t timer_thread;
    bool timer_started;
    pthread_t *stream_thread;
};

/* With the mutex held. */

/* Whether the job whose turn it is may start now. */
bool gm_sched_startable(const struct gm_sched *sched);
/* Has left the queue: its slot is free. */
void gm_sched_free_slot(struct gm_sched *sched, uint64_t client);
/* Takes a waiting job out, to `list`, to be ended with gm_sched_end. */
void gm_sched_drop(struct gm_sched *sched, struct gm_job *job, struct gm_job_list *list);
/* Counts the device as busy until then, where that was not counted yet. */
void gm_sched_count_busy(struct gm_sched *sched, int64_t until_ns);
/* All that wait. */
void gm_sched_drop_all(struct gm_sched *sched, struct gm_job_list *list);
/* Runs the job on this thread, beside the streams. The mutex is released meanwhile. */
void gm_sched_run_beside(struct gm_sched *sched, struct gm_job *job);

/* Without it. */

/* done() for each, failed with `status`. */
void gm_sched_end(struct gm_job_list *list, enum gm_status status);

/* The threads: of a stream, and of the watch. */
void *gm_sched_stream_main(void *sched);
void *gm_sched_watch_main(void *sched);

#endif
