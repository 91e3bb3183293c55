/*
 * cpu.c - is the CPU backend: one device, whose pool of threads has all cores.
 *
 * It runs one task at a time on all of them. Small tasks run at the same time, on their callers'
 * threads. Nothing is copied to or from the device: operands and result are in plain memory, and
 * h2d and d2h are not measured.
 */
#include "exec.h"
#include "facts.h"
#include "kernels/backend.h"
#include "kernels/buffer_pool.h"
#include "kernels/graph.h"
#include "kernels/layout.h"
#include "pool.h"
#include "rearrange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct cpu {
    struct gm_device_facts facts;
    struct gm_pool *pool;
    struct gm_single_thread_pool single;
    struct gm_buffer_pool *buffers;
    enum gm_isa isa;
};

static double microseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

static void cpu_close(void *context)
{
    struct cpu *cpu = context;

    if (!cpu)
        return;
    gm_buffer_pool_close(cpu->buffers);
    gm_single_thread_pool_close(&cpu->single);
    gm_pool_close(cpu->pool);
    free(cpu);
}

/* At the start a daemon waits for it; later it is idle, and more copies find the fastest. */
#define START_COPY_SECONDS 0.01
#define IDLE_COPY_SECONDS 0.08

static void measure(struct cpu *cpu, const atomic_bool *stop, double copy_seconds)
{
    struct gm_exec exec = {cpu->pool, stop, cpu->isa};
    struct gm_device_facts *facts = &cpu->facts, found = {0};

    gm_ceiling_arithmetic(&exec, &found);
    if (facts->looked_unix == 0) /* no other thread sees them yet, and they never change */
        memcpy(facts->peak_name, found.peak_name, sizeof(found.peak_name));
    found.copy_gbs = gm_ceiling_copy(&exec, facts->cache_bytes, facts->memory_bytes, copy_seconds);
    gm_facts_raise(facts, &found, time(NULL));
}

static void describe_build(struct cpu *cpu)
{
    char blas[64] = "no OpenBLAS";

#if GM_HAVE_OPENBLAS
    cpu->facts.tuned_blas = gm_openblas_open(cpu->isa, blas, sizeof(blas));
#endif
    snprintf(cpu->facts.detail, sizeof(cpu->facts.detail), "%s, %s", gm_isa_name(cpu->isa), blas);
}

static enum gm_status cpu_open(const struct gm_backend_options *options, void **ret_context,
                               struct gm_error *err)
{
    struct cpu *cpu = calloc(1, sizeof(*cpu));
    unsigned cores = gm_cpu_cores();
    unsigned wanted = options->threads > 0 ? options->threads : cores;
    unsigned threads = wanted < GM_THREADS_MAX ? wanted : GM_THREADS_MAX;
    enum gm_status status;

    if (!cpu)
        return gm_fail(err, GM_MEMORY_FULL, "no memory for the cpu backend");
    cpu->isa = gm_isa_best();
    cpu->facts = (struct gm_device_facts){
        .kind = GM_DEVICE_CPU,
        .compute_units = threads < cores ? threads : cores,
        .vector_bytes = gm_isa_vector_bytes(cpu->isa),
        .streams = 1,
        .batch_max = 1,
        .memory_bytes = gm_cpu_memory(),
        .cache_bytes = gm_cpu_cache(GM_CACHE_LEVELS),
        .own_cache_bytes = gm_cpu_cache(2),
        .has_kernel_times = true,
    };
    gm_cpu_model(cpu->facts.name, sizeof(cpu->facts.name));
    describe_build(cpu);

    uint64_t limit = options->memory_limit > 0 ? options->memory_limit : cpu->facts.memory_bytes;
    status = gm_pool_open(threads, GM_CPU_SCRATCH, &cpu->pool, err);
    if (status == GM_OK)
        status = gm_buffer_pool_open_for(options, &gm_buffer_plain, limit, &cpu->buffers, err);
    if (status != GM_OK)
        goto out;
    const atomic_bool never = false;
    measure(cpu, &never, START_COPY_SECONDS);
    *ret_context = cpu;
    cpu = NULL;
out:
    cpu_close(cpu);
    return status;
}

static const struct gm_device_facts *cpu_describe(void *context, unsigned index)
{
    const struct cpu *cpu = context;

    return index == 0 ? &cpu->facts : NULL;
}

static uint64_t cpu_memory_used(void *context, unsigned device)
{
    (void)context;
    (void)device;
    return gm_cpu_memory_used();
}

static enum gm_status cpu_measure(void *context, unsigned device, unsigned stream,
                                  const atomic_bool *stop, struct gm_error *err)
{
    (void)device;
    (void)stream;
    (void)err;
    measure(context, stop, IDLE_COPY_SECONDS);
    return GM_OK;
}

static uint64_t cpu_buffer_cost(void *context, uint64_t bytes)
{
    (void)context;
    return gm_buffer_pool_cost(bytes);
}

static enum gm_status cpu_buffer_get(void *context, uint64_t bytes, struct gm_buffer *ret,
                                     struct gm_error *err)
{
    const struct cpu *cpu = context;

    return gm_buffer_pool_get(cpu->buffers, bytes, ret, err);
}

static void cpu_buffer_put(void *context, struct gm_buffer *buffer)
{
    const struct cpu *cpu = context;

    gm_buffer_pool_put(cpu->buffers, buffer);
}

static uint64_t cpu_scratch_bytes(void *context, const struct gm_op *op,
                                  const struct gm_variant *variant)
{
    uint64_t total = 0;

    (void)context;
    if (op->graph)
        return op->graph->temporary_bytes > 0 ? gm_buffer_pool_cost(op->graph->temporary_bytes) : 0;
    if (gm_matrix_elements(&op->result) == 0)
        return 0;
    for (unsigned i = 0; i < op->operands; i++) {
        if (gm_needs_prepare(op, variant, i) &&
            !gm_size_add(total, gm_buffer_pool_cost(gm_matrix_bytes(&op->operand[i])), &total))
            return UINT64_MAX;
    }
    return total;
}

/* Rearranges the operands that the variant cannot fold, into buffers. */
static enum gm_status prepare(struct cpu *cpu, struct gm_task *task, struct gm_exec *exec,
                              struct gm_op *op, struct gm_buffer buffer[GM_OPERANDS_MAX])
{
    double begin = microseconds();
    bool any = false;

    for (unsigned i = 0; i < op->operands; i++) {
        struct gm_matrix *x = &op->operand[i];
        if (!gm_needs_prepare(&task->op, task->variant, i))
            continue;
        any = true;
        enum gm_status status =
            gm_buffer_pool_get(cpu->buffers, gm_matrix_bytes(x), &buffer[i], &task->error);
        if (status != GM_OK)
            return status;
        status = gm_prepare(x, buffer[i].data, exec);
        if (status != GM_OK)
            return status;
    }
    if (any)
        task->times.prepare = microseconds() - begin;
    return GM_OK;
}

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return a < b ? -1 : a > b;
}

static double median(double *values, unsigned count)
{
    qsort(values, count, sizeof(*values), by_size);
    return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static enum gm_status run_kernel(struct gm_task *task, struct gm_exec *exec, const struct gm_op *op)
{
    unsigned repeat = task->repeat > 0 ? task->repeat : 1;
    double one, *times = repeat > 1 ? calloc(repeat, sizeof(*times)) : &one;
    enum gm_status status = GM_OK;

    if (!times)
        return gm_fail(&task->error, GM_DEVICE_MEMORY, "no memory for the times of %u repetitions",
                       repeat);
    for (unsigned i = 0; i < repeat && status == GM_OK; i++) {
        double begin = microseconds();
        status = task->variant->run[GM_DEVICE_CPU](op, exec);
        times[i] = microseconds() - begin;
    }
    if (status == GM_OK) {
        task->times.kernel = median(times, repeat);
        task->times.kernel_min = times[0];
    }
    if (repeat > 1)
        free(times);
    return status;
}

static enum gm_status run_step(const struct gm_graph_step *step, struct gm_exec *exec)
{
    if (gm_exec_stopped(exec))
        return GM_CANCELLED;
    if (gm_graph_step_is_empty(step))
        return GM_OK;
    return step->variant ? step->variant->run[GM_DEVICE_CPU](&step->op, exec)
                         : gm_cpu_elementwise(&step->program, exec);
}

/* Runs the steps one after another. The matrices of their operations are row-major, so there is
 * nothing to prepare. */
static enum gm_status run_graph(struct cpu *cpu, struct gm_task *task, struct gm_exec *exec)
{
    struct gm_graph *graph = task->op.graph;
    struct gm_buffer memory = {0};
    enum gm_status status = GM_OK;

    if (graph->temporary_bytes > 0)
        status = gm_buffer_pool_get(cpu->buffers, graph->temporary_bytes, &memory, &task->error);
    double begin = microseconds(); /* a kernel's time has no part in getting memory */
    graph->value[graph->result].matrix.data = task->op.result.data;
    for (unsigned i = 0; i < graph->steps && status == GM_OK; i++) {
        struct gm_graph_step *step = &graph->step[i];
        double step_begin = microseconds();
        gm_graph_place(graph, step, memory.data);
        status = run_step(step, exec);
        step->us = microseconds() - step_begin;
    }
    gm_buffer_pool_put(cpu->buffers, &memory);
    if (status == GM_OK)
        task->times.kernel = task->times.kernel_min = microseconds() - begin;
    return status;
}

static void run_task(struct cpu *cpu, struct gm_pool *pool, struct gm_task *task)
{
    struct gm_exec exec = {pool, &task->stop, cpu->isa};
    struct gm_buffer buffer[GM_OPERANDS_MAX] = {0};
    struct gm_op op = task->op;

    task->times = (struct gm_times){-1, -1, -1, -1, -1};
    task->status = gm_exec_stopped(&exec) ? GM_CANCELLED : GM_OK;
    /* An empty result needs no kernel. So kernels never see a size of 0, and no time is
     * measured. */
    if (task->status == GM_OK && op.graph) {
        if (gm_matrix_elements(&op.result) > 0)
            task->status = run_graph(cpu, task, &exec);
    } else if (task->status == GM_OK && gm_matrix_elements(&op.result) > 0) {
        task->status = prepare(cpu, task, &exec, &op, buffer);
        if (task->status == GM_OK)
            task->status = run_kernel(task, &exec, &op);
    }
    if (task->status == GM_CANCELLED)
        gm_fail(&task->error, GM_CANCELLED, "stopped before it was done");
    for (unsigned i = 0; i < GM_OPERANDS_MAX; i++)
        gm_buffer_pool_put(cpu->buffers, &buffer[i]);
}

static enum gm_status cpu_run(void *context, unsigned device, unsigned stream,
                              struct gm_task *task[], unsigned n)
{
    struct cpu *cpu = context;

    /* One device, one stream. */
    (void)device;
    (void)stream;
    for (unsigned i = 0; i < n; i++)
        run_task(cpu, cpu->pool, task[i]);
    return GM_OK;
}

static enum gm_status cpu_run_here(void *context, unsigned device, struct gm_task *task)
{
    struct cpu *cpu = context;
    struct gm_pool *pool;

    (void)device;
    task->times = (struct gm_times){-1, -1, -1, -1, -1};
    task->status = gm_single_thread_pool_take(&cpu->single, &pool, &task->error);
    if (task->status == GM_OK) {
        run_task(cpu, pool, task);
        gm_single_thread_pool_leave(&cpu->single, pool);
    }
    return GM_OK;
}

const struct gm_backend gm_backend_cpu = {
    .name = "cpu",
    .open = cpu_open,
    .close = cpu_close,
    .describe = cpu_describe,
    .memory_used = cpu_memory_used,
    .buffer_cost = cpu_buffer_cost,
    .buffer_get = cpu_buffer_get,
    .buffer_put = cpu_buffer_put,
    .scratch_bytes = cpu_scratch_bytes,
    .run = cpu_run,
    .measure = cpu_measure,
    .run_here = cpu_run_here,
};
