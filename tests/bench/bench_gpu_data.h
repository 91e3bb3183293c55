/*
 * bench_gpu_data.h - random operands made on the device, and results looked at there: on the host
 * both take longer than all that is timed.
 */
#ifndef GM_TESTS_BENCH_GPU_DATA_H
#define GM_TESTS_BENCH_GPU_DATA_H

#include "kernels/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A matrix whose data lies on the device: floats of -1 to 1, everything else of all bytes there
 * are. Whether all calls worked; so below. */
bool data_fill(const struct gm_matrix *matrix, uint64_t seed);
/* Whether a copy, transpose or flip, all on the device, put every element in its place. */
bool data_moved(const struct gm_op *op);
/* Whether two stretches of device memory hold the same bytes. */
bool data_same(const void *left, const void *right, uint64_t bytes);

#ifdef __cplusplus
}
#endif
#endif
