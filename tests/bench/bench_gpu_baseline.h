/*
 * bench_gpu_baseline.h - what kernels are compared with beside each other: CUDA's own copy, a
 * launch of nothing; and the clocks that the device runs at.
 */
#ifndef GM_TESTS_BENCH_GPU_BASELINE_H
#define GM_TESTS_BENCH_GPU_BASELINE_H

#include "tests/gpu/device.h"

/* Enqueues op, whose data lies on the device; false where it fails. */
typedef bool baseline_fn(struct device *device, const struct gm_op *op);

/* cudaMemcpyAsync from device to device: copies alone. */
baseline_fn baseline_memcpy;
/* A kernel that does nothing, whatever the operation. */
baseline_fn baseline_nothing;

/* baseline_nothing.cu */
cudaError_t baseline_launch_nothing(cudaStream_t stream);

/* In MHz, as they are now and at most; 0 where NVIDIA's management library is not there. */
struct baseline_clocks {
    unsigned sm, sm_max, memory, memory_max;
};
struct baseline_clocks baseline_read_clocks(void);

#endif
