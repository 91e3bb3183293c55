/*
 * launch.c - records a kernel's launches on its stream, and their outcomes.
 *
 * CUDA loads a kernel's code on first use, which takes the host 1 to 50 ms. So this asks for the
 * code before it records the event from which the kernel is timed. It cannot ask for a library's
 * code. So where a library's call was long, it is made again, and its kernel timed then.
 */
#include "device.h"

#include "call.h"
#include "kernels/device_facts.h"

#include <stdio.h>

/* A library's call that takes longer has loaded code, which takes at least a millisecond, or has
 * waited for another call that does. */
#define LIBRARY_LOADS_US 500.0

static struct gm_cuda_launch *launch_of(struct gm_exec *exec)
{
    return (struct gm_cuda_launch *)exec;
}

static enum gm_status check(struct gm_cuda_launch *launch, cudaError_t error)
{
    char text[GM_CUDA_KERNEL_TEXT];

    return error == cudaSuccess
               ? GM_OK
               : gm_cuda_check(error, gm_cuda_kernel_text(launch->stream, launch->variant, text),
                               launch->error);
}

static enum gm_status pass_begins(struct gm_exec *exec, enum gm_pass pass)
{
    struct gm_cuda_launch *launch = launch_of(exec);
    cudaError_t error = gm_timeline_record(&launch->stream->timeline, NULL);

    gm_timeline_await(&launch->stream->timeline,
                      pass == GM_PASS_PREPARES ? launch->prepare_us : launch->kernel_us);
    return check(launch, error);
}

static cudaError_t load(struct gm_cuda_stream *stream, const void *kernel)
{
    struct cudaFuncAttributes attributes;
    const char *name;

    stream->kernel = NULL;
    stream->kernel_name[0] = '\0';
    if (!kernel)
        return cudaSuccess;
    cudaError_t error = GM_CALL(cudaFuncGetAttributes, &attributes, kernel);
    if (error != cudaSuccess)
        return error;
    if (GM_CALL(cudaFuncGetName, &name, kernel) == cudaSuccess)
        snprintf(stream->kernel_name, sizeof(stream->kernel_name), "%s", name);
    else
        (void)GM_CALL(cudaGetLastError); /* no name is available: continues without one */
    stream->kernel = kernel;
    return cudaSuccess;
}

static enum gm_status launch_begins(struct gm_exec *exec, const void *kernel)
{
    struct gm_cuda_launch *launch = launch_of(exec);
    cudaError_t error = cudaSuccess;

    if (!kernel || kernel != launch->stream->kernel)
        error = load(launch->stream, kernel);
    if (error == cudaSuccess)
        error = gm_timeline_launching(&launch->stream->timeline);
    if (error == cudaSuccess && launch->event < 0)
        launch->event = (int)launch->stream->timeline.events - 1;
    launch->library_begun_ns = kernel ? 0 : gm_cuda_now_ns();
    return check(launch, error);
}

static enum gm_status was_launched(struct gm_exec *exec, cudaError_t error, const void *kernel)
{
    struct gm_cuda_launch *launch = launch_of(exec);

    if (!kernel)
        launch->library_ns += gm_cuda_now_ns() - launch->library_begun_ns;
    error = gm_cuda_outcome("cudaLaunchKernel", error);
    if (error != cudaSuccess &&
        launch->event >= 0) /* it does not count: perhaps it is tried again */
        gm_timeline_discard(&launch->stream->timeline, (unsigned)launch->event);
    return check(launch, error);
}

struct gm_cuda_launch gm_cuda_launch_on(struct gm_cuda_stream *stream,
                                        const struct gm_variant *variant, struct gm_error *err)
{
    return (struct gm_cuda_launch){.exec = {.stream = stream->handle,
                                            .gpu = &stream->device->gpu,
                                            .blas = stream->blas,
                                            .blas_api = stream->device->blas,
                                            .pass = pass_begins,
                                            .launching = launch_begins,
                                            .launched = was_launched},
                                   .stream = stream,
                                   .variant = variant,
                                   .event = -1,
                                   .error = err};
}

/* Whether a library has loaded code, and running its kernel again takes less time than that. */
static bool has_loaded(const struct gm_cuda_launch *launch, const struct gm_op *op)
{
    const struct gm_device_facts *facts = &launch->stream->device->facts;
    double library_us = 1e-3 * (double)launch->library_ns;
    double math_us = 1e-3 * gm_op_flops(op) / gm_roof_of(launch->variant, op, facts).gflops;
    double dram_us = 1e-3 * (double)gm_op_bytes_min(op) / gm_rate(&facts->copy_gbs);

    return library_us > LIBRARY_LOADS_US && !(math_us > library_us) && !(dram_us > library_us);
}

enum gm_status gm_cuda_run_variant(struct gm_cuda_launch *launch, const struct gm_op *op)
{
    struct gm_timeline *timeline = &launch->stream->timeline;
    gm_kernel_fn *run = launch->variant->run[GM_DEVICE_CUDA];
    enum gm_status status = run(op, &launch->exec);

    if (status != GM_OK || launch->library_ns == 0 || !has_loaded(launch, op))
        return status;
    gm_timeline_discard(timeline, (unsigned)launch->event);
    gm_timeline_await(timeline, launch->kernel_us);
    return run(op, &launch->exec);
}

const char *gm_cuda_kernel_text(const struct gm_cuda_stream *stream,
                                const struct gm_variant *variant, char buf[GM_CUDA_KERNEL_TEXT])
{
    const char *name = stream->kernel_name;

    snprintf(buf, GM_CUDA_KERNEL_TEXT, "kernel%s%s%s%s%s%s%s", variant ? " \"" : "",
             variant ? variant->name : "", variant ? "\" of " : "",
             variant ? gm_op_name(variant->op) : "", *name ? " (" : "", name, *name ? ")" : "");
    return buf;
}
