/*
 * timeline.h - what a stream does when: events between its stages, from which their times are
 * read. A mark says to whose time that counts which goes on from there to the next mark.
 */
#ifndef GM_KERNELS_CUDA_TIMELINE_H
#define GM_KERNELS_CUDA_TIMELINE_H

#include "exec.h"

#define GM_CUDA_MARKS 64u

struct gm_timeline {
    cudaStream_t stream;
    unsigned marks;
    struct {
        cudaEvent_t event;
        double *us; /* NULL: nobody's */
    } mark[GM_CUDA_MARKS];
    /* What the next launch begins: the mark waits for it, so that what the host does before, as
     * loading the kernel's code, is not taken for the kernel's time. */
    double *awaited;
};

/* On the current device. gm_timeline_close of one that is all zero, or half open, is fine. */
cudaError_t gm_timeline_open(struct gm_timeline *timeline, cudaStream_t stream);
void gm_timeline_close(struct gm_timeline *timeline);

/* Forgets all marks, which point to what may be gone. */
void gm_timeline_reset(struct gm_timeline *timeline);

/* What goes on from now, or from the next launch, counts as *us, in microseconds, which is
 * negative until some was read. */
cudaError_t gm_timeline_mark(struct gm_timeline *timeline, double *us);
void gm_timeline_await(struct gm_timeline *timeline, double *us);
/* Called before each launch. */
cudaError_t gm_timeline_launching(struct gm_timeline *timeline);

/* Waits, asleep, for all that is on the stream, and reads the times. */
cudaError_t gm_timeline_wait(struct gm_timeline *timeline);

#endif
