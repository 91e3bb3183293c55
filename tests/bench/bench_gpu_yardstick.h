/*
 * bench_gpu_yardstick.h - what kernels are compared with: NVIDIA's own copy, and cuBLAS where it is
 * installed; and the clocks that the device runs at.
 */
#ifndef GM_TESTS_BENCH_GPU_YARDSTICK_H
#define GM_TESTS_BENCH_GPU_YARDSTICK_H

#include "tests/gpu/device.h"

/* Enqueues op, whose data lies on the device; false where it is none of the yardstick's or fails.
 */
typedef bool yardstick_fn(struct device *device, const struct gm_op *op);

/* cudaMemcpyAsync from device to device: copies. */
yardstick_fn yardstick_memcpy;

/* cublasSgemm: f32 products of single matrices, row-major. cuBLAS is opened at run time; false
 * where there is none. */
bool yardstick_open_cublas(struct device *device);
yardstick_fn yardstick_cublas;

/* In MHz, as they are now and at most; 0 where NVIDIA's management library is not there. */
struct yardstick_clocks {
    unsigned sm, sm_max, memory, memory_max;
};
struct yardstick_clocks yardstick_read_clocks(void);

#endif
