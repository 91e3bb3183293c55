/*
 * bench_gpu_yardstick.h - what kernels are compared with beside each other: CUDA's own copy, a
 * launch of nothing; and the clocks that the device runs at.
 */
#ifndef GM_TESTS_BENCH_GPU_YARDSTICK_H
#define GM_TESTS_BENCH_GPU_YARDSTICK_H

#include "tests/gpu/device.h"

/* Enqueues op, whose data lies on the device; false where it fails. */
typedef bool yardstick_fn(struct device *device, const struct gm_op *op);

/* cudaMemcpyAsync from device to device: copies alone. */
yardstick_fn yardstick_memcpy;
/* A kernel that does nothing, whatever the operation. */
yardstick_fn yardstick_nothing;

/* yardstick_nothing.cu */
cudaError_t yardstick_launch_nothing(cudaStream_t stream);

/* In MHz, as they are now and at most; 0 where NVIDIA's management library is not there. */
struct yardstick_clocks {
    unsigned sm, sm_max, memory, memory_max;
};
struct yardstick_clocks yardstick_read_clocks(void);

#endif
