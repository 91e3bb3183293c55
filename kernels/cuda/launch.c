/*
 * launch.c - a kernel's launches as its lane sees them.
 *
 * CUDA loads the code of a kernel when it is first asked for, which takes the host a millisecond
 * or so. It is asked for before the mark on the stream from which the kernel's time runs.
 */
#include "launch.h"

#include "call.h"
#include "error.h"

#include <stdio.h>

static struct gm_cuda_launch *launch_of(struct gm_exec *exec)
{
    return (struct gm_cuda_launch *)exec;
}

static enum gm_status check(struct gm_cuda_launch *launch, cudaError_t error)
{
    char text[GM_CUDA_KERNEL_TEXT];

    return error == cudaSuccess
               ? GM_OK
               : gm_cuda_check(error, gm_cuda_kernel_text(launch->lane, launch->variant, text),
                               launch->error);
}

static enum gm_status pass_begins(struct gm_exec *exec, enum gm_pass pass)
{
    struct gm_cuda_launch *launch = launch_of(exec);
    cudaError_t error = gm_timeline_mark(&launch->lane->timeline, NULL);

    gm_timeline_await(&launch->lane->timeline,
                      pass == GM_PASS_PREPARES ? launch->prepare_us : launch->kernel_us);
    return check(launch, error);
}

static cudaError_t load(struct gm_cuda_lane *lane, const void *kernel)
{
    struct cudaFuncAttributes attributes;
    const char *name;

    lane->kernel = NULL;
    lane->kernel_name[0] = '\0';
    if (!kernel)
        return cudaSuccess;
    cudaError_t error = GM_CALL(cudaFuncGetAttributes, &attributes, kernel);
    if (error != cudaSuccess)
        return error;
    if (GM_CALL(cudaFuncGetName, &name, kernel) == cudaSuccess)
        snprintf(lane->kernel_name, sizeof(lane->kernel_name), "%s", name);
    else
        (void)GM_CALL(cudaGetLastError); /* it has none to be told, and goes without */
    lane->kernel = kernel;
    return cudaSuccess;
}

static enum gm_status launch_begins(struct gm_exec *exec, const void *kernel)
{
    struct gm_cuda_launch *launch = launch_of(exec);
    cudaError_t error = cudaSuccess;

    if (!kernel || kernel != launch->lane->kernel)
        error = load(launch->lane, kernel);
    return check(launch,
                 error == cudaSuccess ? gm_timeline_launching(&launch->lane->timeline) : error);
}

static enum gm_status was_launched(struct gm_exec *exec, cudaError_t error, const void *kernel)
{
    (void)kernel;
    return check(launch_of(exec), gm_cuda_outcome("cudaLaunchKernel", error));
}

struct gm_cuda_launch gm_cuda_launch_on(struct gm_cuda_lane *lane, const struct gm_variant *variant,
                                        struct gm_error *err)
{
    return (struct gm_cuda_launch){.exec = {.stream = lane->stream,
                                            .gpu = &lane->device->gpu,
                                            .blas = lane->blas,
                                            .blas_api = lane->device->blas,
                                            .pass = pass_begins,
                                            .launching = launch_begins,
                                            .launched = was_launched},
                                   .lane = lane,
                                   .variant = variant,
                                   .error = err};
}

const char *gm_cuda_kernel_text(const struct gm_cuda_lane *lane, const struct gm_variant *variant,
                                char buf[GM_CUDA_KERNEL_TEXT])
{
    const char *name = lane->kernel_name;

    snprintf(buf, GM_CUDA_KERNEL_TEXT, "kernel%s%s%s%s%s%s%s", variant ? " \"" : "",
             variant ? variant->name : "", variant ? "\" of " : "",
             variant ? gm_op_name(variant->op) : "", *name ? " (" : "", name, *name ? ")" : "");
    return buf;
}
