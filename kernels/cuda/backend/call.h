/*
 * call.h - wraps calls of the CUDA runtime, and classifies their errors.
 *
 * Calls of the backend go through GM_CALL, so that a test build (GM_CUDA_INJECT) can make any of
 * them fail; those that time or describe, and whose failure changes nothing, need not. Kernel files
 * call launches themselves; the outcome of a launch goes through gm_cuda_outcome.
 */
#ifndef GM_KERNELS_CUDA_BACKEND_CALL_H
#define GM_KERNELS_CUDA_BACKEND_CALL_H

#include "exec.h"

/*
 * Classifies an error: GM_OK; GM_DEVICE_MEMORY, which trimming the pools may cure; GM_INTERNAL if
 * only this call failed; GM_DEVICE_LOST if every later call of this process will fail too.
 */
enum gm_status gm_cuda_status(cudaError_t error);

/* The same, with "WHAT: out of memory (cudaErrorMemoryAllocation)" in *err. Clears the runtime's
 * last error, if it can be cleared. */
enum gm_status gm_cuda_check(cudaError_t error, const char *what, struct gm_error *err);

#if GM_CUDA_INJECT

/* Called before each call of `function`: cudaSuccess lets the call happen; any other value replaces
 * it. */
cudaError_t gm_cuda_inject(const char *function);

#define GM_CALL(function, ...)                                                                     \
    __extension__({                                                                                \
        cudaError_t injected_ = gm_cuda_inject(#function);                                         \
        injected_ == cudaSuccess ? function(__VA_ARGS__) : injected_;                              \
    })
/* For a call that releases something: it is made even if a test injects an error. */
#define GM_CALL_GIVE(function, ...)                                                                \
    __extension__({                                                                                \
        cudaError_t injected_ = gm_cuda_inject(#function);                                         \
        cudaError_t given_ = function(__VA_ARGS__);                                                \
        injected_ == cudaSuccess ? given_ : injected_;                                             \
    })
/* The outcome of a launch by a kernel file: `error`, or what a test injects. */
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
