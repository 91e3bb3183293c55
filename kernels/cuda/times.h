/*
 * times.h - the times of a batch as they are gathered, and what is made of repetitions.
 */
#ifndef GM_KERNELS_CUDA_TIMES_H
#define GM_KERNELS_CUDA_TIMES_H

#include "kernels/backend.h"

/* In microseconds; negative until measured. */
struct gm_cuda_times {
    double copy_in, rearrange, copy_out;
    unsigned runs;
    double *prepare, *kernel; /* of each run: the variant's passes */
    double one[2];            /* where they lie if there is one run */
};

/* Room for so many repetitions (0 counts as 1); false where there is no memory. */
bool gm_cuda_times_open(struct gm_cuda_times *ret, unsigned repeat);
void gm_cuda_times_close(struct gm_cuda_times *times);

/* How many runs to put on the stream before it is waited for, when the last group of that many has
 * just been read and ended with `run`: some milliseconds of work. */
unsigned gm_cuda_times_group(const struct gm_cuda_times *times, unsigned run, unsigned group);

/* The medians and the least, as the account wants them. Sorts the runs. */
struct gm_times gm_cuda_times_of(struct gm_cuda_times *times);

#endif
