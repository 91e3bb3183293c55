/*
 * graph.c - runs the steps of a graph on a stream: copies the inputs in, computes, copies out.
 *
 * Everything that a graph needs is one allocation: inputs that are not on the device yet, the
 * temporary memory, and the result if it goes to the host. All steps are put on the stream at once;
 * between some of them the host waits, so that a stop is heard before the rest begins.
 */
#include "kernels/graph.h"
#include "call.h"
#include "device.h"

/* Work after which the host waits: some tens of milliseconds of a large GPU. */
#define WAIT_FLOPS 1e12
#define WAIT_BYTES 1e11

struct run {
    struct gm_cuda_stream *stream;
    struct gm_task *task;
    struct gm_graph *graph;
    char *memory;
    uint64_t bytes, result_at; /* the temporary memory comes first */
    double copy_in, prepare, copy_out;
};

static enum gm_status check(struct run *run, cudaError_t error, const char *what)
{
    return gm_cuda_check(error, what, &run->task->error);
}

/* Whether a value is an input that has to be copied. */
static bool is_copied(const struct run *run, unsigned index)
{
    const struct gm_graph_value *value = &run->graph->value[index];

    return index != run->graph->result && !value->temporary && !value->on_device &&
           value->matrix.data && gm_matrix_bytes(&value->matrix) > 0;
}

static bool add_room(uint64_t *total, uint64_t bytes)
{
    uint64_t padded;

    return gm_size_add(bytes, GM_DEVICE_ALIGNMENT - 1, &padded) &&
           gm_size_add(*total, padded & ~(GM_DEVICE_ALIGNMENT - 1), total);
}

static bool result_is_there(const struct run *run)
{
    return (run->task->on_device & GM_RESULT_ON_DEVICE) != 0;
}

static enum gm_status take_memory(struct run *run)
{
    const struct gm_device_facts *facts = &run->stream->device->facts;

    run->bytes = 0;
    bool fits = add_room(&run->bytes, run->graph->temporary_bytes);
    void *memory = NULL;

    for (unsigned i = 0; i < run->graph->values; i++)
        if (is_copied(run, i))
            fits = fits && add_room(&run->bytes, gm_matrix_bytes(&run->graph->value[i].matrix));
    run->result_at = run->bytes;
    if (!result_is_there(run))
        fits = fits && add_room(&run->bytes, gm_matrix_bytes(&run->task->op.result));
    if (!fits || run->bytes > facts->memory_bytes)
        return gm_fail(&run->task->error, GM_TOO_LARGE,
                       "%llu bytes of device memory are needed, and the device has %llu",
                       (unsigned long long)run->bytes, (unsigned long long)facts->memory_bytes);
    if (run->bytes == 0) /* all of it is there */
        return GM_OK;
    cudaError_t error = GM_CALL(cudaMallocAsync, &memory, run->bytes, run->stream->handle);
    if (error == cudaSuccess)
        run->memory = memory;
    return check(run, error, "device memory for an expression");
}

/* Whether a step that lacked memory may be tried again: what the pool keeps, and nobody uses, went
 * back to the driver. */
static bool trimmed(struct run *run, enum gm_status status)
{
    if (status != GM_DEVICE_MEMORY)
        return false;
    cudaError_t error = gm_timeline_wait(&run->stream->timeline);
    if (error == cudaSuccess)
        error = GM_CALL(cudaMemPoolTrimTo, run->stream->device->pool, 0);
    return check(run, error, "trimming the pool of device memory") == GM_OK;
}

/* The graph's inputs are on the device afterwards. */
static enum gm_status copy_in(struct run *run)
{
    struct gm_timeline *timeline = &run->stream->timeline;
    uint64_t at = 0;
    bool any = false;
    cudaError_t error = cudaSuccess;

    add_room(&at, run->graph->temporary_bytes);
    for (unsigned i = 0; i < run->graph->values && error == cudaSuccess; i++) {
        struct gm_matrix *matrix = &run->graph->value[i].matrix;
        void *there = run->memory + at;
        if (!is_copied(run, i))
            continue;
        if (!any)
            error = gm_timeline_record(timeline, &run->copy_in);
        any = true;
        if (error == cudaSuccess)
            error = GM_CALL(cudaMemcpyAsync, there, matrix->data, gm_matrix_bytes(matrix),
                            cudaMemcpyHostToDevice, run->stream->handle);
        matrix->data = there;
        add_room(&at, gm_matrix_bytes(matrix));
    }
    if (any && error == cudaSuccess)
        error = gm_timeline_record(timeline, NULL);
    return check(run, error, "the copy to the device");
}

static enum gm_status launch(struct run *run, struct gm_graph_step *step)
{
    struct gm_cuda_launch launch = gm_cuda_launch_on(run->stream, step->variant, &run->task->error);
    enum gm_status status = GM_OK;

    launch.exec.scratch = step->scratch_bytes > 0 ? run->memory + step->scratch_at : NULL;
    launch.prepare_us = &run->prepare;
    launch.kernel_us = &step->us;
    run->task->error.detail[0] = '\0';
    gm_timeline_await(&run->stream->timeline, launch.kernel_us);
    if (step->variant)
        status = gm_cuda_run_variant(&launch, &step->op);
    else
        status = gm_cuda_elementwise(&step->program, &launch.exec);
    if (status != GM_OK && run->task->error.detail[0] == '\0')
        gm_fail(&run->task->error, status, "kernel \"%s\" could not run",
                gm_graph_step_kernel(step));
    return status == GM_OK
               ? check(run, gm_timeline_record(&run->stream->timeline, NULL), "an event")
               : status;
}

static enum gm_status compute(struct run *run)
{
    struct gm_graph *graph = run->graph;
    double flops = 0, bytes = 0;
    enum gm_status status = GM_OK;

    for (unsigned i = 0; i < graph->steps && status == GM_OK; i++) {
        struct gm_graph_step *step = &graph->step[i];
        if (flops > WAIT_FLOPS || bytes > WAIT_BYTES) {
            status = check(run, gm_timeline_wait(&run->stream->timeline), "waiting for the device");
            flops = bytes = 0;
        }
        if (status == GM_OK && atomic_load(&run->task->stop))
            status = gm_fail(&run->task->error, GM_CANCELLED, "stopped before it was done");
        gm_graph_place(graph, step, run->memory);
        if (status == GM_OK && !gm_graph_step_is_empty(step)) {
            status = launch(run, step);
            if (trimmed(run, status))
                status = launch(run, step);
        }
        flops += gm_graph_step_flops(step);
        bytes += (double)gm_graph_step_bytes(step);
    }
    return status;
}

static enum gm_status copy_out(struct run *run)
{
    struct gm_timeline *timeline = &run->stream->timeline;
    const struct gm_matrix *result = &run->task->op.result;

    if (result_is_there(run))
        return GM_OK;
    cudaError_t error = gm_timeline_record(timeline, &run->copy_out);
    if (error == cudaSuccess)
        error = GM_CALL(cudaMemcpyAsync, result->data, run->memory + run->result_at,
                        gm_matrix_bytes(result), cudaMemcpyDeviceToHost, run->stream->handle);
    if (error == cudaSuccess)
        error = gm_timeline_record(timeline, NULL);
    return check(run, error, "the copy from the device");
}

/* Empties the stream, whatever has happened: the caller's memory is on it. */
static enum gm_status settle(struct run *run, enum gm_status status)
{
    struct gm_error reason = {.detail = ""};
    enum gm_status given = GM_OK;

    if (run->memory)
        given = gm_cuda_check(GM_CALL_GIVE(cudaFreeAsync, run->memory, run->stream->handle),
                              "giving device memory back", &reason);
    if (status == GM_OK && given == GM_OK)
        given = gm_cuda_check(gm_timeline_wait(&run->stream->timeline), "waiting for the device",
                              &reason);
    if (given != GM_OK && (status == GM_OK || given == GM_DEVICE_LOST)) {
        status = given;
        run->task->error = reason;
    }
    /* One that only seemed lost may still write into the caller's memory. */
    cudaError_t error =
        status == GM_OK ? cudaSuccess : GM_CALL(cudaStreamSynchronize, run->stream->handle);
    if (error != cudaSuccess && status != GM_DEVICE_LOST) {
        gm_cuda_check(error, "waiting for the device", &reason);
        status = gm_fail(&run->task->error, GM_DEVICE_LOST, "%s", reason.detail);
    }
    gm_timeline_reset(&run->stream->timeline);
    return status;
}

static double sum_of(const struct gm_graph *graph)
{
    double us = -1;

    for (unsigned i = 0; i < graph->steps; i++)
        if (graph->step[i].us >= 0)
            us = (us > 0 ? us : 0) + graph->step[i].us;
    return us;
}

enum gm_status gm_cuda_run_graph(struct gm_cuda_stream *stream, struct gm_task *task)
{
    struct gm_cuda_device *device = stream->device;
    struct run run = {.stream = stream,
                      .task = task,
                      .graph = task->op.graph,
                      .copy_in = -1,
                      .prepare = -1,
                      .copy_out = -1};
    enum gm_status status = GM_OK;

    task->times = (struct gm_times){-1, -1, -1, -1, -1};
    if (atomic_load(&device->lost))
        status =
            gm_fail(&task->error, GM_DEVICE_LOST, "cuda:%u has failed before", device->facts.index);
    else
        status = check(&run, GM_CALL(cudaSetDevice, device->ordinal), "the device");
    if (status == GM_OK && gm_matrix_elements(&task->op.result) > 0) {
        status = take_memory(&run);
        if (trimmed(&run, status))
            status = take_memory(&run);
        run.graph->value[run.graph->result].matrix.data =
            result_is_there(&run) ? task->op.result.data : run.memory + run.result_at;
        if (status == GM_OK)
            status = copy_in(&run);
        if (status == GM_OK)
            status = compute(&run);
        if (status == GM_OK)
            status = copy_out(&run);
        status = settle(&run, status);
    }
    task->status = status;
    if (status == GM_OK)
        task->times = (struct gm_times){.h2d = run.copy_in,
                                        .prepare = run.prepare,
                                        .kernel = sum_of(run.graph),
                                        .kernel_min = sum_of(run.graph),
                                        .d2h = run.copy_out};
    if (status == GM_DEVICE_LOST)
        atomic_store(&device->lost, true);
    return status == GM_DEVICE_LOST ? GM_DEVICE_LOST : GM_OK;
}
