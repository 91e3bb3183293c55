/*
 * backend.c - is the sim backend: one device that simulates a GPU, to run and watch kernels.
 *
 * Each stream has its own host threads, one per core of the stream. The device has its own memory,
 * as a GPU does: operands are copied in and results out, so that each buffer has bounds. Times of
 * its kernels would mean nothing and are not reported; their memory accesses are.
 */
#include "kernels/backend.h"
#include "kernels/buffer_pool.h"
#include "kernels/cpu/backend/facts.h"
#include "kernels/cpu/backend/rearrange.h"
#include "kernels/graph.h"
#include "kernels/layout.h"
#include "kernels/sim/run/exec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Jobs of more than some seconds use at most one stream, shorter ones up to two, short ones all. So
 * short jobs need not wait for long ones, and the host's scheduler shares out its cores. */
#define STREAMS 3u

/* Host threads of a stream: each has stacks for a block of its own, and all three streams together
 * must not reach what a service may have of threads (1024 by deploy/gemmd.service). */
#define STREAM_THREADS_MAX 64u

/* Tasks of one launch: so many as there are buffers for their matrices. And their bytes: a launch
 * hears no stop of one task, and so must take little time. */
#define BATCH_MAX (GM_SIM_BUFFERS_MAX / (GM_OPERANDS_MAX + 1))
#define BATCH_BYTES ((uint64_t)64 << 10)

struct sim {
    struct gm_device_facts facts;
    struct gm_sim_machine machine[STREAMS];
    struct gm_buffer_pool *buffers;
};

static const char *const operand_names[GM_OPERANDS_MAX] = {"a", "b", "c"};

static double microseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

static void sim_close(void *context)
{
    struct sim *sim = context;

    if (!sim)
        return;
    for (unsigned i = 0; i < STREAMS; i++)
        gm_sim_machine_close(&sim->machine[i]);
    gm_buffer_pool_close(sim->buffers);
    free(sim);
}

static enum gm_status sim_open(const struct gm_backend_options *options, void **ret_context,
                               struct gm_error *err)
{
    struct sim *sim = calloc(1, sizeof(*sim));
    const struct gm_gpu *gpu = gm_gpu_at(0);
    unsigned cores = gm_cpu_cores();
    unsigned wanted = options->threads > 0 ? options->threads : cores;
    unsigned threads = wanted < STREAM_THREADS_MAX ? wanted : STREAM_THREADS_MAX;

    if (!sim)
        return gm_fail(err, GM_MEMORY_FULL, "no memory for the sim backend");
    sim->facts = (struct gm_device_facts){
        .kind = GM_DEVICE_SIM,
        .compute_units = gpu->sms,
        .streams = STREAMS,
        .graded_streams = true,
        .batch_max = BATCH_MAX,
        .batch_bytes = BATCH_BYTES,
        .memory_bytes = gm_cpu_memory(),
        .gpu = gpu,
        .has_kernel_times = false,
    };
    snprintf(sim->facts.name, sizeof(sim->facts.name), "simulated %s", gpu->name);
    snprintf(sim->facts.detail, sizeof(sim->facts.detail), "%u host threads", threads);
    uint64_t limit = options->memory_limit > 0 ? options->memory_limit : sim->facts.memory_bytes;
    enum gm_status status = GM_OK;
    for (unsigned i = 0; i < STREAMS && status == GM_OK; i++)
        status = gm_sim_machine_open(threads, gpu, &sim->machine[i], err);
    if (status == GM_OK)
        status = gm_buffer_pool_open_for(options, &gm_buffer_plain, limit, &sim->buffers, err);
    if (status != GM_OK) {
        sim_close(sim);
        return status;
    }
    *ret_context = sim;
    return GM_OK;
}

static const struct gm_device_facts *sim_describe(void *context, unsigned index)
{
    const struct sim *sim = context;

    return index == 0 ? &sim->facts : NULL;
}

/* It has no memory but the host's. */
static uint64_t sim_memory_used(void *context, unsigned device)
{
    (void)context;
    (void)device;
    return gm_cpu_memory_used();
}

static uint64_t sim_buffer_cost(void *context, uint64_t bytes)
{
    (void)context;
    return gm_buffer_pool_cost(bytes);
}

static enum gm_status sim_buffer_get(void *context, uint64_t bytes, struct gm_buffer *ret,
                                     struct gm_error *err)
{
    const struct sim *sim = context;

    return gm_buffer_pool_get(sim->buffers, bytes, ret, err);
}

static void sim_buffer_put(void *context, struct gm_buffer *buffer)
{
    const struct sim *sim = context;

    gm_buffer_pool_put(sim->buffers, buffer);
}

/* The same for a graph: all of its matrices have memory of the device. */
static uint64_t graph_bytes(const struct gm_graph *graph)
{
    uint64_t total = gm_sim_memory_cost(graph->temporary_bytes);

    for (unsigned i = 0; i < graph->values; i++) {
        const struct gm_graph_value *value = &graph->value[i];
        uint64_t bytes = value->temporary ? 0 : gm_matrix_bytes(&value->matrix);
        if (!gm_size_add(total, gm_sim_memory_cost(bytes), &total))
            return UINT64_MAX;
    }
    return total;
}

/* Bytes for the device's copies of operands and result, and for the variant's scratch memory. */
static uint64_t sim_scratch_bytes(void *context, const struct gm_op *op,
                                  const struct gm_variant *variant)
{
    uint64_t total = gm_sim_memory_cost(gm_matrix_bytes(&op->result));

    (void)context;
    if (op->graph)
        return graph_bytes(op->graph);
    if (!gm_size_add(total, gm_sim_memory_cost(variant->scratch(op)), &total))
        return UINT64_MAX;
    for (unsigned i = 0; i < op->operands; i++)
        if (!gm_size_add(total, gm_sim_memory_cost(gm_matrix_bytes(&op->operand[i])), &total))
            return UINT64_MAX;
    return total;
}

/* Copies the operands to the device, row-major if the variant needs that. */
static enum gm_status copy_in(struct gm_task *task, struct gm_exec *exec, struct gm_op *op)
{
    double begin = microseconds(), prepared = 0;

    for (unsigned i = 0; i < op->operands; i++) {
        struct gm_matrix *x = &op->operand[i];
        const void *host = x->data;
        enum gm_status status = gm_sim_memory_add(
            &exec->memory, operand_names[i], gm_matrix_bytes(x), false, &x->data, &task->error);
        if (status != GM_OK)
            return status;
        if (gm_needs_prepare(&task->op, task->variant, i)) {
            double now = microseconds();
            struct gm_matrix rearranged = *x;
            rearranged.data = (void *)(uintptr_t)host;
            if (host && (status = gm_rearrange(&rearranged, x->data, exec->machine->pool,
                                               exec->stop)) != GM_OK)
                return status;
            x->layout = GM_ROW_MAJOR;
            prepared += microseconds() - now;
        } else if (host) {
            memcpy(x->data, host, gm_matrix_bytes(x));
        }
    }
    task->times.h2d = microseconds() - begin - prepared;
    if (prepared > 0)
        task->times.prepare = prepared;
    return GM_OK;
}

/* Memory for what the kernel writes. */
static enum gm_status add_result(struct gm_task *task, struct gm_exec *exec, struct gm_op *op)
{
    uint64_t scratch = task->variant->scratch(op);
    enum gm_status status = gm_sim_memory_add(&exec->memory, "result", gm_matrix_bytes(&op->result),
                                              true, &op->result.data, &task->error);

    if (status == GM_OK && scratch > 0)
        status = gm_sim_memory_add(&exec->memory, "scratch", scratch, true, &exec->scratch,
                                   &task->error);
    if (status != GM_OK)
        return status;
    /* Device memory is not zero either: this shows what a kernel does not write. */
    if (!exec->sampling) {
        memset(op->result.data, 0xFF, gm_matrix_bytes(&op->result));
        if (scratch > 0)
            memset(exec->scratch, 0xFF, scratch);
    }
    return GM_OK;
}

static enum gm_status run_kernel(struct gm_task *task, struct gm_exec *exec, struct gm_op *op)
{
    enum gm_status status = add_result(task, exec, op);

    return status == GM_OK ? task->variant->run[GM_DEVICE_SIM](op, exec) : status;
}

static enum gm_status copy_out(struct gm_task *task, struct gm_exec *exec, const struct gm_op *op)
{
    double begin = microseconds();

    if (task->report)
        return gm_sim_report(exec, task->report, &task->error);
    memcpy(task->op.result.data, op->result.data, gm_matrix_bytes(&op->result));
    task->accesses = gm_sim_totals(exec, GM_PASS_COMPUTES);
    task->has_accesses = true;
    task->times.d2h = microseconds() - begin;
    return GM_OK;
}

static bool has_data(const struct gm_op *op)
{
    bool has = false;

    for (unsigned i = 0; i < op->operands; i++)
        has |= op->operand[i].data != NULL;
    return has;
}

/* M, N and K of the small shapes: the first are no multiples of tile sizes; the second are for
 * variants that need rows of whole 16 bytes. */
static const uint64_t ragged[][3] = {{37, 41, 35}, {48, 80, 112}};

/* Shrinks the operation to these sides, without data. Returns false if it would not get smaller. */
static bool shrink(const struct gm_op *op, const uint64_t sides[3], struct gm_op *ret)
{
    bool smaller = false;
    struct gm_shape shape;

    *ret = *op;
    for (unsigned i = 0; i < op->operands; i++) {
        struct gm_matrix *x = &ret->operand[i];
        bool product = op->kind == GM_OP_MATMUL, transposed = i == 0 ? op->transa : op->transb;
        uint64_t rows = product && i == 1 ? sides[2] : sides[0];
        uint64_t cols = product && i == 0 ? sides[2] : sides[1];
        if (product && i < 2 && transposed) {
            uint64_t other = rows;
            rows = cols;
            cols = other;
        }
        smaller |= x->rows > rows || x->cols > cols || x->batch > 3;
        x->rows = x->rows < rows ? x->rows : rows;
        x->cols = x->cols < cols ? x->cols : cols;
        x->batch = x->batch < 3 ? x->batch : 3;
        x->data = NULL;
    }
    return smaller && gm_op_shape(ret, &shape, NULL) == GM_OK &&
           gm_matrix_init(&ret->result, op->result.dtype, GM_ROW_MAJOR, &shape, NULL) == GM_OK;
}

/*
 * Runs the whole kernel of a report on a small ragged shape first. Most reports are of shapes that
 * tiles divide, and of only some blocks, where a fault at an edge could hide.
 */
static enum gm_status run_ragged(struct gm_sim_machine *machine,
                                 const struct gm_device_facts *facts, struct gm_task *task)
{
    struct gm_task small = {.variant = task->variant, .repeat = 1};
    struct gm_exec exec = {
        .machine = machine, .gpu = task->gpu, .stop = &task->stop, .error = &small.error};
    struct gm_device_facts on = *facts;
    char text[2][GM_SHAPE_TEXT_MAX];
    unsigned i = 0;

    on.gpu = task->gpu ? task->gpu : facts->gpu;
    while (i < 2 && (!shrink(&task->op, ragged[i], &small.op) ||
                     gm_variant_check(task->variant, &small.op, &on, NULL) != GM_OK))
        i++;
    if (i == 2 || gm_matrix_elements(&small.op.result) == 0)
        return GM_OK;
    struct gm_op op = small.op;
    enum gm_status status = copy_in(&small, &exec, &op);
    if (status == GM_OK)
        status = run_kernel(&small, &exec, &op);
    gm_sim_exec_clear(&exec);
    if (status != GM_KERNEL_FAULT)
        task->error = small.error;
    else
        gm_fail(&task->error, status, "%s (on %s%s%s)", small.error.detail,
                gm_matrix_shape_text(&op.operand[0], text[0]), op.operands > 1 ? " and " : "",
                op.operands > 1 ? gm_matrix_shape_text(&op.operand[1], text[1]) : "");
    return status;
}

/* Whether the task is to be computed: an empty result needs no kernel. So kernels never see a size
 * of 0. */
static bool begin(struct gm_task *task)
{
    task->times = (struct gm_times){-1, -1, -1, -1, -1};
    task->has_accesses = false;
    task->status = GM_OK;
    if (atomic_load(&task->stop))
        task->status = gm_fail(&task->error, GM_CANCELLED, "stopped before it was done");
    return task->status == GM_OK && (task->report || gm_matrix_elements(&task->op.result) > 0);
}

/* Memory for the inputs of a graph, with their content, for its temporary values and its result. */
static enum gm_status place_graph(struct gm_task *task, struct gm_exec *exec, void **ret_memory)
{
    struct gm_graph *graph = task->op.graph;
    enum gm_status status = GM_OK;
    char name[12];

    for (unsigned i = 0; i < graph->values && status == GM_OK; i++) {
        struct gm_matrix *x = &graph->value[i].matrix;
        const void *host = x->data;
        bool is_result = i == graph->result;
        if (graph->value[i].temporary || (!is_result && !host))
            continue;
        snprintf(name, sizeof(name), "%s %u", is_result ? "result" : "input", i % 100);
        status = gm_sim_memory_add(&exec->memory, name, gm_matrix_bytes(x), is_result, &x->data,
                                   &task->error);
        if (status == GM_OK && is_result)
            memset(x->data, 0xFF, gm_matrix_bytes(x));
        else if (status == GM_OK)
            memcpy(x->data, host, gm_matrix_bytes(x));
    }
    if (status == GM_OK && graph->temporary_bytes > 0)
        status = gm_sim_memory_add(&exec->memory, "temporary", graph->temporary_bytes, true,
                                   ret_memory, &task->error);
    if (status == GM_OK && graph->temporary_bytes > 0)
        memset(*ret_memory, 0xFF, graph->temporary_bytes);
    return status;
}

static enum gm_status run_step(struct gm_graph_step *step, struct gm_exec *exec, char *memory)
{
    exec->scratch = step->scratch_bytes > 0 ? memory + step->scratch_at : NULL;
    if (gm_graph_step_is_empty(step))
        return GM_OK;
    return step->variant ? step->variant->run[GM_DEVICE_SIM](&step->op, exec)
                         : gm_sim_elementwise(&step->program, exec);
}

static enum gm_status run_graph(struct gm_task *task, struct gm_exec *exec)
{
    struct gm_graph *graph = task->op.graph;
    void *memory = NULL;
    enum gm_status status = place_graph(task, exec, &memory);

    for (unsigned i = 0; i < graph->steps && status == GM_OK; i++) {
        gm_graph_place(graph, &graph->step[i], memory);
        status = run_step(&graph->step[i], exec, memory);
        exec->pass = GM_PASS_COMPUTES;
    }
    if (status == GM_OK)
        memcpy(task->op.result.data, graph->value[graph->result].matrix.data,
               gm_matrix_bytes(&task->op.result));
    return status;
}

static void run_task(struct gm_sim_machine *machine, const struct gm_device_facts *facts,
                     struct gm_task *task)
{
    struct gm_exec exec = {
        .machine = machine, .gpu = task->gpu, .stop = &task->stop, .error = &task->error};
    struct gm_op op = task->op;

    if (!begin(task))
        return;
    if (task->report) {
        gm_sim_exec_sample(&exec, has_data(&op));
        task->status = run_ragged(machine, facts, task);
    }
    if (op.graph) {
        task->status = run_graph(task, &exec);
    } else if (task->status == GM_OK && gm_matrix_elements(&op.result) > 0) {
        task->status = copy_in(task, &exec, &op);
        if (task->status == GM_OK)
            task->status = run_kernel(task, &exec, &op);
        if (task->status == GM_OK)
            task->status = copy_out(task, &exec, &op);
    }
    if (task->status == GM_CANCELLED)
        gm_fail(&task->error, GM_CANCELLED, "stopped before it was done");
    gm_sim_exec_clear(&exec);
}

/* Runs tasks of a variant that groups in one launch. If the launch fails, each is run by itself, so
 * that a fault is reported for the task that has it. */
static void run_group(struct gm_sim_machine *machine, const struct gm_device_facts *facts,
                      struct gm_task *task[], unsigned n)
{
    const atomic_bool never = false;
    struct gm_error error = {.detail = ""};
    struct gm_exec exec = {.machine = machine, .stop = &never, .error = &error};
    struct gm_task *due[BATCH_MAX];
    struct gm_op op[BATCH_MAX];
    unsigned count = 0;

    for (unsigned i = 0; i < n; i++) {
        struct gm_task *of = task[i];
        if (!begin(of))
            continue;
        op[count] = of->op;
        of->status = gm_variant_check(of->variant, &of->op, facts, &of->error);
        if (of->status == GM_OK)
            of->status = copy_in(of, &exec, &op[count]);
        if (of->status == GM_OK)
            of->status = add_result(of, &exec, &op[count]);
        if (of->status == GM_OK)
            due[count++] = of;
    }
    exec.more = count - 1;
    bool alone = count > 0 && task[0]->variant->run[GM_DEVICE_SIM](op, &exec) != GM_OK;
    for (unsigned i = 0; i < count; i++)
        memcpy(due[i]->op.result.data, op[i].result.data, gm_matrix_bytes(&op[i].result));
    gm_sim_exec_clear(&exec);
    for (unsigned i = 0; i < count && alone; i++)
        run_task(machine, facts, due[i]);
}

static enum gm_status sim_run(void *context, unsigned device, unsigned stream,
                              struct gm_task *task[], unsigned n)
{
    struct sim *sim = context;

    (void)device; /* there is one */
    if (n == 1)
        run_task(&sim->machine[stream], &sim->facts, task[0]);
    else
        run_group(&sim->machine[stream], &sim->facts, task, n);
    gm_volume_share(task, n, &sim->facts);
    return GM_OK;
}

const struct gm_backend gm_backend_sim = {
    .name = "sim",
    .open = sim_open,
    .close = sim_close,
    .describe = sim_describe,
    .memory_used = sim_memory_used,
    .buffer_cost = sim_buffer_cost,
    .buffer_get = sim_buffer_get,
    .buffer_put = sim_buffer_put,
    .scratch_bytes = sim_scratch_bytes,
    .run = sim_run,
};
