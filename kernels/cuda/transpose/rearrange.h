/*
 * rearrange.h - copies a column-major matrix to row-major, on the device.
 */
#ifndef GM_KERNELS_CUDA_TRANSPOSE_REARRANGE_H
#define GM_KERNELS_CUDA_TRANSPOSE_REARRANGE_H

#include "kernels/variant.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes the elements of x row-major to `data`, which has room for them. Both are in device memory;
 * x is unchanged. */
enum gm_status gm_cuda_rearrange(const struct gm_matrix *x, void *data, struct gm_exec *exec);
/* The same in the simulator. */
enum gm_status gm_sim_rearrange(const struct gm_matrix *x, void *data, struct gm_exec *exec);

#ifdef __cplusplus
}
#endif
#endif
