/*
 * call.h - calls of the CUDA runtime, and what their errors mean for a task and for the device.
 *
 * Every call that the backend makes goes through GM_CALL, so that a test build (GM_CUDA_INJECT) can
 * make any of them fail. Kernels launch themselves: of those the outcome does.
 */
#ifndef GM_KERNELS_CUDA_BACKEND_CALL_H
#define GM_KERNELS_CUDA_BACKEND_CALL_H

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

#if GM_CUDA_INJECT

/* Asked once before each call of `function`: cudaSuccess lets it be made; anything else is its
 * outcome. */
cudaError_t gm_cuda_inject(const char *function);

#define GM_CALL(function, ...)                                                                     \
    __extension__({                                                                                \
        cudaError_t injected_ = gm_cuda_inject(#function);                                         \
        injected_ == cudaSuccess ? function(__VA_ARGS__) : injected_;                              \
    })
/* Of a call that gives something back: it is made all the same. */
#define GM_CALL_GIVE(function, ...)                                                                \
    __extension__({                                                                                \
        cudaError_t injected_ = gm_cuda_inject(#function);                                         \
        cudaError_t given_ = function(__VA_ARGS__);                                                \
        injected_ == cudaSuccess ? given_ : injected_;                                             \
    })
/* Of what a kernel's file has done: `error`, or what a test wants it to be. */
static inline cudaError_t gm_cuda_outcome(const char *function, cudaError_t error)
{
    cudaError_t injected = gm_cuda_inject(function);

    return injected == cudaSuccess ? error : injected;
}

#else

#define GM_CALL(function, ...) function(__VA_ARGS__)
#define GM_CALL_GIVE(function, ...) function(__VA_ARGS__)
static inline cudaError_t gm_cuda_outcome(const char *function, cudaError_t error)
{
    (void)function;
    return error;
}

#endif
#endif
