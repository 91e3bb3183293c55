/*
 * exec.h - holds what a CUDA kernel's host function runs with: a stream, and hooks of its launches.
 */
#ifndef GM_KERNELS_CUDA_BACKEND_EXEC_H
#define GM_KERNELS_CUDA_BACKEND_EXEC_H

#include "kernels/gpu.h"
#include "kernels/variant.h"

#include <cuda_runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gm_cublas; /* cublas.h */

struct gm_exec {
    cudaStream_t stream;
    const struct gm_gpu *gpu;
    void *scratch;
    unsigned more;        /* operations after the first, for a variant that groups */
    struct gm_kept *kept; /* of the task, for its next run */
    /* GM_BLOCK_TIMES_MAX, in pinned memory, and how many the launch fills; NULL: not asked for. */
    struct gm_block_time *block_times;
    unsigned blocks;
    void *blas; /* a cuBLAS handle on the stream, or NULL */
    const struct gm_cublas *blas_api;
    /* Called when the pass changes, to time preparing passes separately from the kernel; may be
     * NULL. */
    enum gm_status (*pass)(struct gm_exec *exec, enum gm_pass pass);
    /* Called before each launch, with the kernel, or NULL for a library's; may be NULL. */
    enum gm_status (*launching)(struct gm_exec *exec, const void *kernel);
    /* Called with the outcome of each launch. */
    enum gm_status (*launched)(struct gm_exec *exec, cudaError_t error, const void *kernel);
};

static inline cudaStream_t gm_cuda_stream(const struct gm_exec *exec)
{
    return exec->stream;
}
static inline enum gm_status gm_cuda_launching(struct gm_exec *exec, const void *kernel)
{
    return exec->launching ? exec->launching(exec, kernel) : GM_OK;
}
static inline enum gm_status gm_cuda_launched(struct gm_exec *exec, cudaError_t error,
                                              const void *kernel)
{
    return exec->launched(exec, error, kernel);
}
static inline void *gm_scratch(const struct gm_exec *exec)
{
    return exec->scratch;
}
static inline unsigned gm_op_count(const struct gm_exec *exec)
{
    return 1 + exec->more;
}
static inline struct gm_kept *gm_kept_of(const struct gm_exec *exec)
{
    return exec->kept;
}
static inline struct gm_block_time *gm_begin_block_times(struct gm_exec *exec, unsigned blocks)
{
    for (unsigned i = 0; exec->block_times && i < blocks; i++)
        exec->block_times[i].end_ns = 0;
    exec->blocks = exec->block_times ? blocks : 0;
    return exec->block_times;
}
static inline const struct gm_gpu *gm_gpu_of(const struct gm_exec *exec)
{
    return exec->gpu;
}
static inline enum gm_status gm_begin_pass(struct gm_exec *exec, enum gm_pass pass)
{
    return exec->pass ? exec->pass(exec, pass) : GM_OK;
}

#ifdef __cplusplus
}
#endif
#endif
