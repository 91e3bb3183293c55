/*
 * error.h - what an error of the CUDA runtime means for a task and for the device: one place.
 */
#ifndef GM_KERNELS_CUDA_ERROR_H
#define GM_KERNELS_CUDA_ERROR_H

#include "exec.h"

/*
 * GM_OK; GM_DEVICE_MEMORY, which trimming the pools may cure; GM_INTERNAL, where that call alone
 * failed and others will not; GM_DEVICE_LOST, where every later call of this process will fail
 * too.
 */
enum gm_status gm_cuda_status(cudaError_t error);

/* The same, with the sentence "WHAT: out of memory (cudaErrorMemoryAllocation)" in *err; and the
 * runtime no longer remembers the error, if it can forget it. */
enum gm_status gm_cuda_check(cudaError_t error, const char *what, struct gm_error *err);

#endif
