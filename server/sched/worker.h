/*
 * worker.h - threads that decode and encode large texts, which take too long for an event thread.
 *
 * Only suspended, admitted requests wait here. So the number of connections bounds the queue, and
 * it never refuses work. The order is that of fair_queue.h: a text of two megabytes does not wait
 * for every text of a hundred.
 */
#ifndef GM_SERVER_SCHED_WORKER_H
#define GM_SERVER_SCHED_WORKER_H

#include "proto/status.h"
#include "server/sched/fair_queue.h"

/* A piece of work; embed it in whatever owns it. Must stay valid until run() is called. */
struct gm_work {
    void (*run)(struct gm_work *work);
    struct gm_fair_item slot; /* the owner sets client and cost_s */
};

struct gm_workers;

enum gm_status gm_workers_open(unsigned threads, struct gm_workers **ret, struct gm_error *err);
/* Runs all queued work, then ends the threads. NULL is fine. */
void gm_workers_close(struct gm_workers *workers);
/* Queues the work to run on one of the threads. */
void gm_workers_add(struct gm_workers *workers, struct gm_work *work);

#endif
