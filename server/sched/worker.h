/*
 * worker.h - a few threads for work that is too long for an event thread and not for a device:
 * decoding and encoding large texts. Requests wait here only while suspended and already
 * admitted, so the queue is bounded by the connections and never refuses. Its order is that of
 * fair_queue.h: a text of two megabytes does not wait for all those of a hundred.
 */
#ifndef GM_SERVER_SCHED_WORKER_H
#define GM_SERVER_SCHED_WORKER_H

#include "proto/status.h"
#include "server/sched/fair_queue.h"

/* Embedded in what is to be worked on; valid until run() is called. */
struct gm_work {
    void (*run)(struct gm_work *work);
    struct gm_fair_item slot; /* client and cost_s are the owner's to set */
};

struct gm_workers;

enum gm_status gm_workers_open(unsigned threads, struct gm_workers **ret, struct gm_error *err);
/* Runs what is still queued, then ends the threads. NULL is fine. */
void gm_workers_close(struct gm_workers *workers);
/* Each runs on one of the threads, in its turn. */
void gm_workers_add(struct gm_workers *workers, struct gm_work *work);

#endif
