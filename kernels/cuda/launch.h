/*
 * launch.h - what a kernel's host function runs with on a lane: the outcome of its launches, and
 * when its passes begin.
 */
#ifndef GM_KERNELS_CUDA_LAUNCH_H
#define GM_KERNELS_CUDA_LAUNCH_H

#include "device.h"

struct gm_cuda_launch {
    struct gm_exec exec; /* the first member: kernels hand back a pointer to it */
    struct gm_cuda_lane *lane;
    const struct gm_variant *variant; /* NULL where none is run */
    double *prepare_us, *kernel_us;   /* what its passes count as */
    struct gm_error *error;
};

/* Nothing is timed until prepare_us and kernel_us are set. */
struct gm_cuda_launch gm_cuda_launch_on(struct gm_cuda_lane *lane, const struct gm_variant *variant,
                                        struct gm_error *err);

/* "kernel \"padded\" of transpose (_Z16transpose_padded...)": what the lane launched last. */
#define GM_CUDA_KERNEL_TEXT 256
const char *gm_cuda_kernel_text(const struct gm_cuda_lane *lane, const struct gm_variant *variant,
                                char buf[GM_CUDA_KERNEL_TEXT]);

#endif
