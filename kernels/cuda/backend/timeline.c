/*
 * timeline.c - records events on a stream, and reads the times between them.
 *
 * The events belong to the stream, and every task reuses them. When all are in use, their times are
 * read first, which waits for the stream. So the number of passes is not limited.
 */
#include "device.h"

#include "call.h"

#include <string.h>

cudaError_t gm_timeline_open(struct gm_timeline *timeline, cudaStream_t stream)
{
    cudaError_t error = cudaSuccess;

    *timeline = (struct gm_timeline){.stream = stream};
    for (unsigned i = 0; i < GM_TIMELINE_EVENTS && error == cudaSuccess; i++) {
        error = GM_CALL(cudaEventCreateWithFlags, &timeline->event[i].handle, cudaEventDefault);
        if (error != cudaSuccess)
            timeline->event[i].handle = NULL;
    }
    gm_timeline_reset(timeline);
    return error;
}

void gm_timeline_close(struct gm_timeline *timeline)
{
    for (unsigned i = 0; i < GM_TIMELINE_EVENTS; i++) {
        if (timeline->event[i].handle)
            (void)GM_CALL_GIVE(cudaEventDestroy, timeline->event[i].handle);
    }
    memset(timeline, 0, sizeof(*timeline));
}

void gm_timeline_reset(struct gm_timeline *timeline)
{
    timeline->events = 0;
    timeline->awaited = NULL;
}

/* Adds up the times between the events, which have all completed. The last event begins the next
 * interval. */
static cudaError_t read_events(struct gm_timeline *timeline)
{
    unsigned last = timeline->events - 1;
    cudaEvent_t first = timeline->event[0].handle;

    for (unsigned i = 0; i < last; i++) {
        double *us = timeline->event[i].us;
        float ms = 0;
        if (!us)
            continue;
        cudaError_t error = GM_CALL(cudaEventElapsedTime, &ms, timeline->event[i].handle,
                                    timeline->event[i + 1].handle);
        if (error != cudaSuccess)
            return error;
        *us = (*us > 0 ? *us : 0) + 1e3 * (double)ms;
    }
    timeline->event[0] = timeline->event[last];
    timeline->event[last].handle = first;
    timeline->events = 1;
    return cudaSuccess;
}

static cudaError_t wait_for(cudaEvent_t event)
{
    int64_t begun_ns = gm_cuda_now_ns();

    while (cudaEventQuery(event) == cudaErrorNotReady)
        gm_cuda_pause(gm_cuda_now_ns() - begun_ns);
    (void)cudaGetLastError(); /* "not ready" is no error of a later call */
    return GM_CALL(cudaEventSynchronize, event);
}

static cudaError_t wait_and_read(struct gm_timeline *timeline)
{
    cudaError_t error = wait_for(timeline->event[timeline->events - 1].handle);

    return error == cudaSuccess ? read_events(timeline) : error;
}

cudaError_t gm_timeline_record(struct gm_timeline *timeline, double *us)
{
    cudaError_t error = cudaSuccess;

    timeline->awaited = NULL;
    if (timeline->events == GM_TIMELINE_EVENTS)
        error = wait_and_read(timeline);
    if (error == cudaSuccess)
        error =
            GM_CALL(cudaEventRecord, timeline->event[timeline->events].handle, timeline->stream);
    if (error == cudaSuccess)
        timeline->event[timeline->events++].us = us;
    return error;
}

void gm_timeline_await(struct gm_timeline *timeline, double *us)
{
    timeline->awaited = us;
}

void gm_timeline_discard(struct gm_timeline *timeline, unsigned event)
{
    for (unsigned i = event; i < timeline->events; i++)
        timeline->event[i].us = NULL;
}

cudaError_t gm_timeline_launching(struct gm_timeline *timeline)
{
    return timeline->awaited ? gm_timeline_record(timeline, timeline->awaited) : cudaSuccess;
}

cudaError_t gm_timeline_wait(struct gm_timeline *timeline)
{
    cudaError_t error = gm_timeline_record(timeline, NULL);

    return error == cudaSuccess ? wait_and_read(timeline) : error;
}
