/*
 * timeline.c - marks on a stream.
 *
 * The events belong to the lane and are used again by every task. When all of them are taken,
 * what they say is read first, which waits for the stream: no number of passes is too many.
 */
#include "timeline.h"

#include "call.h"

#include <string.h>

cudaError_t gm_timeline_open(struct gm_timeline *timeline, cudaStream_t stream)
{
    cudaError_t error = cudaSuccess;

    *timeline = (struct gm_timeline){.stream = stream};
    for (unsigned i = 0; i < GM_CUDA_MARKS && error == cudaSuccess; i++) {
        /* Who waits for an event sleeps: a spinning thread a lane would take the cores that
         * decode and encode. */
        error = GM_CALL(cudaEventCreateWithFlags, &timeline->mark[i].event, cudaEventBlockingSync);
        if (error != cudaSuccess)
            timeline->mark[i].event = NULL;
    }
    gm_timeline_reset(timeline);
    return error;
}

void gm_timeline_close(struct gm_timeline *timeline)
{
    for (unsigned i = 0; i < GM_CUDA_MARKS; i++) {
        if (timeline->mark[i].event)
            (void)GM_CALL_GIVE(cudaEventDestroy, timeline->mark[i].event);
    }
    memset(timeline, 0, sizeof(*timeline));
}

void gm_timeline_reset(struct gm_timeline *timeline)
{
    timeline->marks = 0;
    timeline->awaited = NULL;
}

/* Adds up what lies between the marks, which have all come to pass; the last begins the next. */
static cudaError_t read_marks(struct gm_timeline *timeline)
{
    unsigned last = timeline->marks - 1;
    cudaEvent_t first = timeline->mark[0].event;

    for (unsigned i = 0; i < last; i++) {
        double *us = timeline->mark[i].us;
        float ms = 0;
        if (!us)
            continue;
        cudaError_t error = GM_CALL(cudaEventElapsedTime, &ms, timeline->mark[i].event,
                                    timeline->mark[i + 1].event);
        if (error != cudaSuccess)
            return error;
        *us = (*us > 0 ? *us : 0) + 1e3 * (double)ms;
    }
    timeline->mark[0] = timeline->mark[last];
    timeline->mark[last].event = first;
    timeline->marks = 1;
    return cudaSuccess;
}

static cudaError_t wait_and_read(struct gm_timeline *timeline)
{
    cudaError_t error = GM_CALL(cudaEventSynchronize, timeline->mark[timeline->marks - 1].event);

    return error == cudaSuccess ? read_marks(timeline) : error;
}

cudaError_t gm_timeline_mark(struct gm_timeline *timeline, double *us)
{
    cudaError_t error = cudaSuccess;

    timeline->awaited = NULL;
    if (timeline->marks == GM_CUDA_MARKS)
        error = wait_and_read(timeline);
    if (error == cudaSuccess)
        error = GM_CALL(cudaEventRecord, timeline->mark[timeline->marks].event, timeline->stream);
    if (error == cudaSuccess)
        timeline->mark[timeline->marks++].us = us;
    return error;
}

void gm_timeline_await(struct gm_timeline *timeline, double *us)
{
    timeline->awaited = us;
}

cudaError_t gm_timeline_launching(struct gm_timeline *timeline)
{
    return timeline->awaited ? gm_timeline_mark(timeline, timeline->awaited) : cudaSuccess;
}

cudaError_t gm_timeline_wait(struct gm_timeline *timeline)
{
    cudaError_t error = gm_timeline_mark(timeline, NULL);

    return error == cudaSuccess ? wait_and_read(timeline) : error;
}
