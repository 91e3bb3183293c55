#include "server/sched/job.h"

#include "server/clock.h"

void gm_job_list_append(struct gm_job_list *list, struct gm_job *job)
{
    job->next = NULL;
    job->prev = list->tail;
    if (list->tail)
        list->tail->next = job;
    else
        list->head = job;
    list->tail = job;
}

void gm_job_list_remove(struct gm_job_list *list, struct gm_job *job)
{
    if (job->prev)
        job->prev->next = job->next;
    else
        list->head = job->next;
    if (job->next)
        job->next->prev = job->prev;
    else
        list->tail = job->prev;
    job->prev = job->next = NULL;
}

static const char *stop_reason(enum gm_status status)
{
    switch (status) {
    case GM_DEADLINE:
        return "the time for this request (--timeout, timeout_ms) passed before it was done";
    case GM_CANCELLED:
        return "the client went away";
    case GM_DRAINING:
        return "gemmd is shutting down and could not finish this in time";
    case GM_DEVICE_LOST:
        return "the device failed and gemmd is about to restart";
    default:
        return "stopped";
    }
}

void gm_job_stop(struct gm_job *job, enum gm_status status)
{
    if (job->stop_status == GM_OK)
        job->stop_status = status;
    atomic_store(&job->task.stop, true);
}

void gm_job_reset(struct gm_job *job)
{
    job->queued_ns = gm_now_ns();
    job->started_ns = job->finished_ns = 0;
    job->stop_status = GM_OK;
    job->batch = 0;
    job->concurrent = false;
    job->task.status = GM_OK;
    atomic_store(&job->task.stop, false);
}

void gm_job_fail(struct gm_job *job, enum gm_status status)
{
    job->task.status = gm_fail(&job->task.error, status, "%s", stop_reason(status));
    job->finished_ns = gm_now_ns();
}
