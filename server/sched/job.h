/*
 * job.h - a task with what a scheduler needs to know of it, and lists of such. Embedded in
 * whatever it is done for.
 */
#ifndef GM_SERVER_SCHED_JOB_H
#define GM_SERVER_SCHED_JOB_H

#include "kernels/backend.h"
#include "server/sched/fair_queue.h"

#include <stddef.h>
#include <stdint.h>

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

    struct gm_job *prev, *next; /* the scheduler's: in the running list, or one of ended jobs */
    enum gm_status stop_status; /* the scheduler's: why it was told to stop */
    double expected_s;          /* the scheduler's: its estimate */
};

static inline struct gm_job *gm_job_of_slot(const struct gm_fair_item *slot)
{
    return (struct gm_job *)((char *)(uintptr_t)slot - offsetof(struct gm_job, slot));
}

struct gm_job_list {
    struct gm_job *head, *tail;
};

void gm_job_list_append(struct gm_job_list *list, struct gm_job *job);
void gm_job_list_remove(struct gm_job_list *list, struct gm_job *job);

/* As it is when it is handed over: nothing has happened to it yet. */
void gm_job_reset(struct gm_job *job);
/* Tells a running job to stop, if nobody has: it will end with this status. */
void gm_job_stop(struct gm_job *job, enum gm_status status);
/* The job ends with `status` and a sentence that says why. */
void gm_job_fail(struct gm_job *job, enum gm_status status);

#endif
