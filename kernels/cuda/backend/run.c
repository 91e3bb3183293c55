/*
 * run.c - runs tasks on a stream: copies operands in, computes, copies results out.
 *
 * All of it is put on the stream at once, and then waited for once. While this stream copies, the
 * kernels of other streams run, and the other way round. A batch goes stage by stage, so that the
 * time of a stage is one interval. Each task of a batch is told the times of all.
 *
 * A variant that groups needs one stage: its kernel computes all tasks in one launch, and reads and
 * writes their matrices where they are, in pinned memory of the host or in the device's. Its blocks
 * tell when they end. Where kernels are compared, events time it as they time others.
 *
 * Products of one row by the same matrix are run as one product (layout.h), whose rows a kernel
 * gathers from their operands, and another scatters to their results.
 *
 * Failures: a step of one task that fails (no memory, a refused launch) fails that task. A step
 * that lacks memory is tried again after the pools were trimmed. A failed event, wait or launch of
 * a group fails all tasks. This returns only when nothing on the stream touches the caller's
 * memory any more; if that cannot be reached, the device is lost.
 */
#include "call.h"
#include "device.h"
#include "kernels/layout.h"

#include <string.h>

/* What the host takes at most to launch a run with its passes and events: a call of cuBLAS, which
 * chooses a kernel first. */
#define LAUNCH_US 30.0

/* A task. Its matrices on the device are one allocation. */
struct slot {
    struct gm_task *task;
    struct gm_op op;
    struct gm_kept kept;
    char *memory;
    uint64_t operand_at[GM_OPERANDS_MAX], rearranged_at[GM_OPERANDS_MAX], result_at, scratch_at;
    uint64_t scratch_bytes, bytes;
};

struct batch {
    struct gm_cuda_stream *stream;
    unsigned n;
    struct gm_task **row; /* whose task each row of the one slot is, if it is gathered */
    unsigned rows;        /* 0: it is not */
    struct slot slot[GM_GROUP_MAX];
    struct gm_op group[GM_GROUP_MAX]; /* for a variant that groups: the operations due */
    struct gm_cuda_times times;
    unsigned run;          /* of the repetitions */
    unsigned blocks;       /* of the launch, each of which tells when it ends; 0: events time it */
    enum gm_status status; /* of what fails all of them */
    struct gm_error error;
};

typedef enum gm_status step_fn(struct batch *batch, struct slot *slot);

static bool add_room(uint64_t *total, uint64_t bytes, uint64_t *ret_at)
{
    uint64_t padded;

    *ret_at = *total;
    return gm_size_add(bytes, GM_DEVICE_ALIGNMENT - 1, &padded) &&
           gm_size_add(*total, padded & ~(GM_DEVICE_ALIGNMENT - 1), total);
}

/* Whether an operand, or the result (GM_OPERANDS_MAX), is in the device's memory already. */
static bool is_there(const struct slot *slot, unsigned index)
{
    return (slot->task->on_device & 1u << index) != 0;
}

/* Plans where each matrix lies in the task's memory. Returns false on overflow. */
static bool plan(struct slot *slot)
{
    const struct gm_op *op = &slot->task->op;
    bool fits = true;

    slot->bytes = 0;
    for (unsigned i = 0; i < op->operands; i++) {
        uint64_t bytes = gm_matrix_bytes(&op->operand[i]);
        if (gm_op_reads(op, i) && !is_there(slot, i))
            fits = fits && add_room(&slot->bytes, bytes, &slot->operand_at[i]);
        if (gm_needs_prepare(op, slot->task->variant, i))
            fits = fits && add_room(&slot->bytes, bytes, &slot->rearranged_at[i]);
    }
    slot->scratch_bytes = slot->task->variant->scratch(op);
    uint64_t result_bytes = is_there(slot, GM_OPERANDS_MAX) ? 0 : gm_matrix_bytes(&op->result);
    return fits && add_room(&slot->bytes, result_bytes, &slot->result_at) &&
           add_room(&slot->bytes, slot->scratch_bytes, &slot->scratch_at);
}

static enum gm_status take_memory(struct batch *batch, struct slot *slot)
{
    const struct gm_device_facts *facts = &batch->stream->device->facts;
    struct gm_error *err = &slot->task->error;
    void *memory;

    if (!plan(slot) || slot->bytes > facts->memory_bytes)
        return gm_fail(err, GM_TOO_LARGE,
                       "%llu bytes of device memory are needed, and the device has %llu",
                       (unsigned long long)slot->bytes, (unsigned long long)facts->memory_bytes);
    cudaError_t error =
        GM_CALL(cudaMallocAsync, &memory, slot->bytes > 0 ? slot->bytes : GM_DEVICE_ALIGNMENT,
                batch->stream->handle);
    if (error != cudaSuccess)
        return gm_cuda_check(error, "device memory for the matrices", err);
    slot->memory = memory;
    for (unsigned i = 0; i < slot->op.operands; i++)
        if (!is_there(slot, i))
            slot->op.operand[i].data =
                gm_op_reads(&slot->op, i) ? slot->memory + slot->operand_at[i] : NULL;
    if (!is_there(slot, GM_OPERANDS_MAX))
        slot->op.result.data = slot->memory + slot->result_at;
    return GM_OK;
}

/* Copies the rows of gathered products to the one on the device, or out of it to their results. */
static enum gm_status copy_rows(const struct batch *batch, const struct gm_op *all, bool out,
                                struct gm_error *err)
{
    const unsigned index = out ? GM_OPERANDS_MAX : 1 - gm_gather_matrix(&batch->row[0]->op);
    struct gm_cuda_launch launch = gm_cuda_launch_on(batch->stream, NULL, err);
    struct gm_rows rows = {.count = batch->rows, .dtype = all->result.dtype};

    for (unsigned i = 0; i < batch->rows; i++) {
        const struct gm_op *op = &batch->row[i]->op;
        rows.row[i] = (void *)(uintptr_t)(out ? op->result.data : op->operand[index].data);
    }
    rows.length = out ? all->result.cols : all->operand[0].cols;
    return out ? gm_cuda_scatter_rows(all->result.data, &rows, &launch.exec)
               : gm_cuda_gather_rows(&rows, (unsigned)all->operand[0].rows,
                                     (void *)(uintptr_t)all->operand[0].data, &launch.exec);
}

static enum gm_status copy_in(struct batch *batch, struct slot *slot)
{
    const struct gm_op *host = &slot->task->op;
    cudaError_t error = cudaSuccess;

    if (batch->rows > 0)
        return copy_rows(batch, &slot->op, false, &slot->task->error);
    for (unsigned i = 0; i < host->operands && error == cudaSuccess; i++) {
        uint64_t bytes = gm_matrix_bytes(&host->operand[i]);
        if (gm_op_reads(host, i) && bytes > 0 && !is_there(slot, i))
            error = GM_CALL(cudaMemcpyAsync, slot->op.operand[i].data, host->operand[i].data, bytes,
                            cudaMemcpyHostToDevice, batch->stream->handle);
    }
    return gm_cuda_check(error, "the copy to the device", &slot->task->error);
}

/* Whether some task has an operand to copy in, or a result to copy out. Where none has, there is no
 * such stage, and no time of it. */
static bool copies(const struct batch *batch, bool out)
{
    bool any = false;

    for (unsigned i = 0; i < batch->n; i++) {
        const struct slot *slot = &batch->slot[i];
        const struct gm_op *op = &slot->task->op;
        any = any || (out && !is_there(slot, GM_OPERANDS_MAX));
        for (unsigned k = 0; k < op->operands && !out; k++)
            any = any || (gm_op_reads(op, k) && !is_there(slot, k));
    }
    return any;
}

static enum gm_status rearrange(struct batch *batch, struct slot *slot)
{
    struct gm_error *err = &slot->task->error;
    struct gm_cuda_launch launch = gm_cuda_launch_on(batch->stream, NULL, err);
    struct gm_timeline *timeline = &batch->stream->timeline;
    enum gm_status status = GM_OK;

    for (unsigned i = 0; i < slot->op.operands && status == GM_OK; i++) {
        struct gm_matrix *x = &slot->op.operand[i];
        if (!gm_needs_prepare(&slot->op, slot->task->variant, i))
            continue;
        gm_timeline_await(timeline, &batch->times.rearrange);
        status = gm_cuda_rearrange(x, slot->memory + slot->rearranged_at[i], &launch.exec);
        if (status == GM_OK)
            status = gm_cuda_check(gm_timeline_record(timeline, NULL), "an event", err);
        if (status == GM_OK) {
            x->data = slot->memory + slot->rearranged_at[i];
            x->layout = GM_ROW_MAJOR;
        }
    }
    return status;
}

/* Whether somebody wants the device's time alone, as a comparison of variants does. */
static bool is_compared(const struct batch *batch)
{
    const struct gm_task *task = batch->slot[0].task;

    return task->repeat > 1 || task->head_start;
}

/* Launches the variant on op[0] to op[count - 1]. */
static enum gm_status launch(struct batch *batch, const struct gm_op *op, unsigned count,
                             void *scratch, struct gm_kept *kept, struct gm_error *err)
{
    const struct gm_variant *variant = batch->slot[0].task->variant;
    struct gm_cuda_launch launch = gm_cuda_launch_on(batch->stream, variant, err);

    err->detail[0] = '\0';
    launch.exec.more = count - 1;
    launch.exec.scratch = scratch;
    launch.exec.kept = kept;
    launch.prepare_us = &batch->times.prepare[batch->run];
    launch.kernel_us = &batch->times.kernel[batch->run];
    if (variant->groups && !is_compared(batch))
        launch.exec.block_times = batch->stream->block_times;
    else
        gm_timeline_await(&batch->stream->timeline, launch.kernel_us);
    enum gm_status status = gm_cuda_run_variant(&launch, op);
    batch->blocks = status == GM_OK ? launch.exec.blocks : 0;
    if (status != GM_OK && err->detail[0] == '\0')
        gm_fail(err, status, "kernel \"%s\" could not run", variant->name);
    return status;
}

static enum gm_status compute(struct batch *batch, struct slot *slot)
{
    return launch(batch, &slot->op, 1,
                  slot->scratch_bytes > 0 ? slot->memory + slot->scratch_at : NULL, &slot->kept,
                  &slot->task->error);
}

static enum gm_status copy_out(struct batch *batch, struct slot *slot)
{
    const struct gm_matrix *result = &slot->task->op.result;

    if (is_there(slot, GM_OPERANDS_MAX))
        return GM_OK;
    if (batch->rows > 0)
        return copy_rows(batch, &slot->op, true, &slot->task->error);
    cudaError_t error =
        GM_CALL(cudaMemcpyAsync, result->data, slot->op.result.data, gm_matrix_bytes(result),
                cudaMemcpyDeviceToHost, batch->stream->handle);

    return gm_cuda_check(error, "the copy from the device", &slot->task->error);
}

/* Records an error that fails all tasks. The first one is kept, or the loss of the device. */
static void fail_all(struct batch *batch, cudaError_t error, const char *what)
{
    struct gm_error reason;
    enum gm_status status = gm_cuda_check(error, what, &reason);

    if (status != GM_OK && (batch->status == GM_OK || status == GM_DEVICE_LOST)) {
        batch->status = status;
        batch->error = reason;
    }
}

/* Returns to the driver what the pool keeps and nobody uses. */
static bool trim(struct batch *batch)
{
    cudaError_t error =
        gm_timeline_wait(&batch->stream->timeline); /* this stream's uses it no more */

    if (error == cudaSuccess)
        error = GM_CALL(cudaMemPoolTrimTo, batch->stream->device->pool, 0);
    fail_all(batch, error, "trimming the pool of device memory");
    return error == cudaSuccess;
}

static bool is_due(struct gm_task *task)
{
    if (task->status == GM_OK && atomic_load(&task->stop))
        task->status = gm_fail(&task->error, GM_CANCELLED, "stopped before it was done");
    return task->status == GM_OK && gm_matrix_elements(&task->op.result) > 0;
}

/* Runs one step of each task that is still due. The work that it puts on the stream counts as *us;
 * if that is NULL, the step itself says what counts. */
static void each(struct batch *batch, step_fn *step, double *us)
{
    struct gm_timeline *timeline = &batch->stream->timeline;
    bool recorded = false;

    for (unsigned i = 0; i < batch->n && batch->status == GM_OK; i++) {
        struct slot *slot = &batch->slot[i];
        struct gm_task *task = slot->task;
        if (!is_due(task))
            continue;
        if (us && !recorded)
            fail_all(batch, gm_timeline_record(timeline, us), "an event");
        recorded = true;
        if (batch->status != GM_OK)
            return;
        task->status = step(batch, slot);
        if (task->status == GM_DEVICE_MEMORY && trim(batch)) {
            if (us)
                fail_all(batch, gm_timeline_record(timeline, us), "an event");
            task->status = step(batch, slot);
        }
        if (task->status == GM_DEVICE_LOST) {
            batch->status = GM_DEVICE_LOST;
            batch->error = task->error;
        }
    }
    if (us && recorded && batch->status == GM_OK)
        fail_all(batch, gm_timeline_record(timeline, NULL), "an event");
}

/* Says in words what ended the device. Whose kernel it was is known only if it ran alone. */
static void describe_loss(struct batch *batch)
{
    const struct gm_cuda_device *device = batch->stream->device;
    struct gm_error reason = batch->error;
    char text[GM_CUDA_KERNEL_TEXT];

    gm_fail(&batch->error, GM_DEVICE_LOST, "cuda:%u has failed while it had %s to run: %s",
            device->facts.index,
            gm_cuda_kernel_text(batch->stream, batch->slot[0].task->variant, text), reason.detail);
}

static void wait_for(struct batch *batch)
{
    const struct gm_cuda_stream *stream = batch->stream;

    if (batch->status != GM_OK)
        return;
    fail_all(batch,
             batch->blocks > 0 ? gm_block_times_wait(stream, batch->blocks, batch->times.kernel)
                               : gm_timeline_wait(&batch->stream->timeline),
             "waiting for the device");
}

/* Computes all tasks that are due in one launch. The variant is asked again whether it accepts
 * each: one task must not harm the others. */
static void compute_group(struct batch *batch)
{
    const struct gm_variant *variant = batch->slot[0].task->variant;
    unsigned count = 0;

    for (unsigned i = 0; i < batch->n; i++) {
        struct gm_task *task = batch->slot[i].task;
        if (!is_due(task))
            continue;
        task->status = variant->accepts(&task->op, &batch->stream->device->facts, &task->error);
        if (task->status == GM_OK)
            batch->group[count++] = task->op;
    }
    if (count == 0)
        return;
    batch->status = launch(batch, batch->group, count, NULL, &batch->slot[0].kept, &batch->error);
    if (batch->status != GM_DEVICE_MEMORY)
        return;
    batch->status = GM_OK;
    if (trim(batch))
        batch->status =
            launch(batch, batch->group, count, NULL, &batch->slot[0].kept, &batch->error);
}

/* Lets the host get ahead of the device by so many runs. */
static void head_start(struct batch *batch, unsigned runs)
{
    const struct gm_cuda_device *device = batch->stream->device;

    if (is_compared(batch) && batch->status == GM_OK)
        fail_all(batch,
                 GM_CALL(gm_cuda_head_start, batch->stream->handle, LAUNCH_US * runs * batch->n,
                         gm_gpu_ghz(&device->gpu)),
                 "a head start");
}

/* With `repeat`, the kernel runs several times without the host in between, so that each run is
 * timed as the device alone runs it. A stop is heard between such series, which grow as long as
 * they are short. */
static void compute_all(struct batch *batch)
{
    bool groups = batch->slot[0].task->variant->groups;
    unsigned group = 1, left = 1;

    head_start(batch, 1);
    for (batch->run = 0; batch->run < batch->times.runs && batch->status == GM_OK; batch->run++) {
        if (groups)
            compute_group(batch);
        else
            each(batch, compute, NULL);
        if (batch->status != GM_OK || batch->times.runs == 1 || --left > 0)
            continue;
        wait_for(batch);
        group = gm_cuda_times_group(&batch->times, batch->run, group);
        left = group;
        /* The host needs no more of a head start where runs are longer than launches. */
        if (batch->run + 1 < batch->times.runs)
            head_start(batch, batch->times.kernel[batch->run] > LAUNCH_US ? 1 : group);
    }
}

/* Empties the stream, whatever has happened. */
static void settle(struct batch *batch)
{
    for (unsigned i = 0; i < batch->n; i++) {
        struct slot *slot = &batch->slot[i];
        if (slot->memory)
            fail_all(batch, GM_CALL_GIVE(cudaFreeAsync, slot->memory, batch->stream->handle),
                     "giving device memory back");
    }
    wait_for(batch);
    if (batch->status != GM_OK) {
        /* A lost device answers at once. One that only seemed lost may still write into the
         * caller's memory, which somebody else gets next. */
        struct gm_error reason = {.detail = "nothing is known of what it still does"};
        cudaError_t error = GM_CALL(cudaStreamSynchronize, batch->stream->handle);
        if (error != cudaSuccess && batch->status != GM_DEVICE_LOST) {
            gm_cuda_check(error, "waiting for the device", &reason);
            batch->status = GM_DEVICE_LOST;
            batch->error = reason;
        }
    }
    gm_timeline_reset(&batch->stream->timeline);
    if (batch->status == GM_DEVICE_LOST)
        describe_loss(batch);
}

static void begin(struct batch *batch, struct gm_task *task[])
{
    struct gm_cuda_device *device = batch->stream->device;

    for (unsigned i = 0; i < batch->n; i++) {
        batch->slot[i] = (struct slot){.task = task[i], .op = task[i]->op};
        task[i]->times = (struct gm_times){-1, -1, -1, -1, -1};
        task[i]->status = GM_OK;
    }
    if (atomic_load(&device->lost))
        batch->status = gm_fail(&batch->error, GM_DEVICE_LOST, "cuda:%u has failed before",
                                device->facts.index);
    else if (!gm_cuda_times_open(&batch->times, task[0]->repeat))
        batch->status = gm_fail(&batch->error, GM_DEVICE_MEMORY,
                                "no memory for the times of %u repetitions", task[0]->repeat);
    else
        fail_all(batch, GM_CALL(cudaSetDevice, device->ordinal), "the device");
}

/* row: whose tasks the rows of task[0] are, if it is gathered. */
static enum gm_status run(struct gm_cuda_stream *stream, struct gm_task *task[], unsigned n,
                          struct gm_task *row[], unsigned rows)
{
    struct batch batch = {.stream = stream, .n = n, .row = row, .rows = rows};

    begin(&batch, task);
    if (batch.status == GM_OK) {
        bool in_place = task[0]->variant->groups;
        if (!in_place) {
            each(&batch, take_memory, NULL);
            if (copies(&batch, false))
                each(&batch, copy_in, &batch.times.copy_in);
            each(&batch, rearrange, NULL);
        }
        compute_all(&batch);
        if (!in_place && copies(&batch, true))
            each(&batch, copy_out, &batch.times.copy_out);
        settle(&batch);
    }
    if (batch.status == GM_DEVICE_LOST)
        atomic_store(&stream->device->lost, true);
    for (unsigned i = 0; i < n; i++) {
        if (batch.status == GM_DEVICE_LOST || (batch.status != GM_OK && task[i]->status == GM_OK)) {
            task[i]->status = batch.status;
            task[i]->error = batch.error;
        } else if (task[i]->status == GM_OK && gm_matrix_elements(&task[i]->op.result) > 0) {
            task[i]->times = gm_cuda_times_of(&batch.times);
        }
    }
    gm_volume_share(task, n, &stream->device->facts);
    gm_cuda_times_close(&batch.times);
    return batch.status == GM_DEVICE_LOST ? GM_DEVICE_LOST : GM_OK;
}

/* Runs products of one row by the same matrix as one. Where there is no memory for that, one after
 * the other. */
static enum gm_status run_rows(struct gm_cuda_stream *stream, struct gm_task *row[], unsigned rows)
{
    struct gm_task all = {
        .variant = row[0]->variant, .repeat = 1, .on_device = 1u << 1 /* the matrix */};
    enum gm_status status = GM_OK;

    gm_gather_op(&row[0]->op, gm_gather_padded(rows), &all.op);
    if (rows > 1)
        status = run(stream, (struct gm_task *[]){&all}, 1, row, rows);
    bool together = rows > 1 && (all.status != GM_DEVICE_MEMORY || status != GM_OK);
    for (unsigned i = 0; i < rows; i++) {
        if (!together) {
            status = run(stream, &row[i], 1, NULL, 0);
            continue;
        }
        row[i]->status = all.status;
        row[i]->error = all.error;
        row[i]->times = all.times;
    }
    if (together)
        gm_volume_share(row, rows, &stream->device->facts);
    return status;
}

/* One of the tasks lost the device: all have its status, and its reason. */
static void lose_all(struct gm_task *task[], unsigned n)
{
    const struct gm_task *first = NULL;

    for (unsigned i = 0; i < n && !first; i++)
        first = task[i]->status == GM_DEVICE_LOST ? task[i] : NULL;
    for (unsigned i = 0; i < n && first; i++) {
        if (task[i] == first)
            continue;
        task[i]->status = first->status;
        task[i]->error = first->error;
    }
}

/* Those of one key by hash may have different matrices all the same: they are run one after the
 * other. */
static enum gm_status run_gathered(struct gm_cuda_stream *stream, struct gm_task *task[],
                                   unsigned n)
{
    struct gm_task *row[GM_GATHERED_MAX], *other[GM_GROUP_MAX];
    unsigned rows = 0, others = 0;
    enum gm_status status = GM_OK;

    for (unsigned i = 0; i < n; i++) {
        task[i]->times = (struct gm_times){-1, -1, -1, -1, -1};
        task[i]->status = GM_OK;
        if (!is_due(task[i]))
            continue;
        if (rows == 0 || (rows < GM_GATHERED_MAX && gm_gather_alike(&row[0]->op, &task[i]->op)))
            row[rows++] = task[i];
        else
            other[others++] = task[i];
    }
    if (rows > 0)
        status = run_rows(stream, row, rows);
    for (unsigned i = 0; i < others; i++)
        status = run(stream, &other[i], 1, NULL, 0);
    if (status == GM_DEVICE_LOST)
        lose_all(task, n);
    return status;
}

enum gm_status gm_cuda_run(struct gm_cuda_stream *stream, struct gm_task *task[], unsigned n)
{
    if (task[0]->op.graph)
        return gm_cuda_run_graph(stream, task[0]);
    /* Tasks with a head start are timed each by itself, whatever their matrices are. */
    if (n > 1 && !task[0]->head_start && gm_group_matrix(task[0]) < GM_OPERANDS_MAX)
        return run_gathered(stream, task, n);
    return run(stream, task, n, NULL, 0);
}
