#include "tests/unit/faulty_backend.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct faulty_plan faulty_plan;

struct faulty {
    void *cpu;
    struct gm_device_facts facts;
    pthread_mutex_t mutex; /* the cpu backend runs one task at a time */
    atomic_uint sharing;   /* runs that share the rate */
    atomic_bool lost;
};

static void faulty_close(void *context)
{
    struct faulty *f = context;

    if (!f)
        return;
    gm_backend_cpu.close(f->cpu);
    pthread_mutex_destroy(&f->mutex);
    free(f);
}

static enum gm_status faulty_open(const struct gm_backend_options *options, void **ret_context,
                                  struct gm_error *err)
{
    struct faulty *f = calloc(1, sizeof *f);

    if (!f)
        return gm_fail(err, GM_MEMORY_FULL, "no memory for the faulty backend");
    pthread_mutex_init(&f->mutex, NULL);
    enum gm_status status = gm_backend_cpu.open(options, &f->cpu, err);
    if (status != GM_OK) {
        faulty_close(f);
        return status;
    }
    f->facts = *gm_backend_cpu.describe(f->cpu, 0);
    snprintf(f->facts.name, sizeof f->facts.name, "faulty");
    f->facts.streams = faulty_plan.streams > 0 ? faulty_plan.streams : 1;
    f->facts.has_kernel_times = !faulty_plan.counts;
    *ret_context = f;
    return GM_OK;
}

static const struct gm_device_facts *faulty_describe(void *context, unsigned index)
{
    const struct faulty *f = context;

    return index == 0 ? &f->facts : NULL;
}

static uint64_t faulty_buffer_cost(void *context, uint64_t bytes)
{
    const struct faulty *f = context;

    return gm_backend_cpu.buffer_cost(f->cpu, bytes);
}

static enum gm_status faulty_buffer_get(void *context, uint64_t bytes, struct gm_buffer *ret,
                                        struct gm_error *err)
{
    const struct faulty *f = context;

    if (atomic_fetch_add(&faulty_plan.buffers, 1) + 1 == atomic_load(&faulty_plan.buffer_at))
        return gm_fail(err, GM_MEMORY_FULL, "no buffer, as the test wants it");
    return gm_backend_cpu.buffer_get(f->cpu, bytes, ret, err);
}

static void faulty_buffer_put(void *context, struct gm_buffer *buffer)
{
    const struct faulty *f = context;

    gm_backend_cpu.buffer_put(f->cpu, buffer);
}

static uint64_t faulty_scratch_bytes(void *context, const struct gm_op *op,
                                     const struct gm_variant *variant)
{
    const struct faulty *f = context;

    return gm_backend_cpu.scratch_bytes(f->cpu, op, variant);
}

/* It works on the host's memory itself. A handle of its own memory is an address. */
static enum gm_status faulty_import(void *context, struct gm_foreign *foreign, struct gm_error *err)
{
    (void)context;
    if (faulty_plan.no_imports || foreign->device > 0)
        return gm_fail(err, GM_BAD_PARAMETER, "no import, as the test wants it");
    if (foreign->handle)
        memcpy(&foreign->data, foreign->handle, sizeof foreign->data);
    atomic_fetch_add(&faulty_plan.imported, 1);
    return GM_OK;
}

static void faulty_release(void *context, struct gm_foreign *foreign)
{
    (void)context;
    (void)foreign;
    atomic_fetch_sub(&faulty_plan.imported, 1);
}

/* Sleeps while it is held; a run after the one that loses the device, until that is so. false if
 * the task is told to stop meanwhile. */
static bool hold(const struct faulty *f, const struct gm_task *task, unsigned number)
{
    bool after = faulty_plan.lose_at > 0 && number > faulty_plan.lose_at;

    while (after ? !atomic_load(&f->lost) : atomic_load(&faulty_plan.hold)) {
        if (atomic_load(&task->stop))
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return true;
}

static enum gm_status fail_task(struct gm_task *task, enum gm_status status)
{
    task->times = (struct gm_times){-1, -1, -1, -1, -1};
    task->status = gm_fail(&task->error, status, "the device was told to fail");
    return status == GM_DEVICE_LOST ? GM_DEVICE_LOST : GM_OK;
}

/* Later runs need more sectors. */
static void count_accesses(struct gm_task *task, unsigned number)
{
    task->times = (struct gm_times){-1, -1, -1, -1, -1};
    memset(&task->accesses, 0, sizeof task->accesses);
    task->accesses.kind[GM_GLOBAL_LOAD].units = 100 * number;
    task->accesses.kind[GM_GLOBAL_STORE].units = 10;
    task->accesses.kind[GM_SHARED_LOAD].units = 4;
    task->accesses.kind[GM_SHARED_LOAD].units_ideal = 2;
    task->accesses.barriers = 7;
    task->has_accesses = true;
}

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#define STEP_S 500e-6

/* Takes the time of all runs of a task at the plan's rate, from then_s on, without a processor;
 * less if the task is told to stop. */
static void take_time(struct faulty *f, struct gm_task *task, double then_s)
{
    double once_s = gm_op_flops(&task->op) / (1e9 * faulty_plan.gflops);
    double left_s = once_s * (task->repeat > 1 ? task->repeat : 1);

    atomic_fetch_add(&f->sharing, 1);
    while (left_s > 0 && !atomic_load(&task->stop)) {
        unsigned sharing = atomic_load(&f->sharing);
        double step_s = left_s * sharing < STEP_S ? left_s * sharing : STEP_S;
        nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * step_s)}, NULL);
        double passed_s = now_s() - then_s;
        left_s -= passed_s / sharing;
        then_s += passed_s;
    }
    atomic_fetch_sub(&f->sharing, 1);
    if (left_s > 0)
        task->status = gm_fail(&task->error, GM_CANCELLED, "the run was told to stop");
    task->times.kernel = 1e6 * once_s;
}

/* Runs a task once on the cpu backend, in the time of all its runs. */
static enum gm_status run_timed(struct faulty *f, struct gm_task *task)
{
    unsigned repeat = task->repeat;

    task->repeat = 1;
    pthread_mutex_lock(&f->mutex);
    double begun_s = now_s();
    enum gm_status status = gm_backend_cpu.run(f->cpu, 0, 0, &task, 1);
    pthread_mutex_unlock(&f->mutex);
    task->repeat = repeat;
    if (status == GM_OK && task->status == GM_OK)
        take_time(f, task, begun_s);
    return status;
}

/* batch_max is the cpu backend's: one task. */
static enum gm_status run_one(struct faulty *f, struct gm_task *task)
{
    unsigned number = atomic_fetch_add(&faulty_plan.runs, 1) + 1;

    if (number <= FAULTY_RUNS_MAX) {
        faulty_plan.run[number - 1].variant = task->variant;
        faulty_plan.run[number - 1].repeat = task->repeat;
        faulty_plan.run[number - 1].on_device = task->on_device;
        faulty_plan.run[number - 1].operand = task->op.operand[0].data;
        faulty_plan.run[number - 1].result = task->op.result.data;
    }
    while (number == faulty_plan.hang_at)
        pause();
    while (number == faulty_plan.stall_at && !atomic_load(&task->stop))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    if (!hold(f, task, number))
        return fail_task(task, GM_CANCELLED);
    if (number == faulty_plan.lose_at)
        atomic_store(&f->lost, true);
    if (atomic_load(&f->lost))
        return fail_task(task, GM_DEVICE_LOST);
    if (number == faulty_plan.memory_at)
        return fail_task(task, GM_DEVICE_MEMORY);
    if (faulty_plan.gflops > 0)
        return run_timed(f, task);
    pthread_mutex_lock(&f->mutex);
    enum gm_status status = gm_backend_cpu.run(f->cpu, 0, 0, &task, 1);
    pthread_mutex_unlock(&f->mutex);
    if (number == faulty_plan.wrong_at && task->status == GM_OK)
        *(unsigned char *)task->op.result.data ^= 0x40;
    if (faulty_plan.counts && task->status == GM_OK)
        count_accesses(task, number);
    return status;
}

static enum gm_status faulty_run(void *context, unsigned device, unsigned stream,
                                 struct gm_task *task[], unsigned n)
{
    (void)device;
    (void)stream;
    (void)n;
    atomic_fetch_add(&faulty_plan.running, 1);
    enum gm_status status = run_one(context, task[0]);
    atomic_fetch_sub(&faulty_plan.running, 1);
    return status;
}

static enum gm_status faulty_run_here(void *context, unsigned device, struct gm_task *task)
{
    return faulty_run(context, device, 0, &task, 1);
}

const struct gm_backend faulty_backend = {
    .name = "fake",
    .open = faulty_open,
    .close = faulty_close,
    .describe = faulty_describe,
    .buffer_cost = faulty_buffer_cost,
    .buffer_get = faulty_buffer_get,
    .buffer_put = faulty_buffer_put,
    .import = faulty_import,
    .release = faulty_release,
    .scratch_bytes = faulty_scratch_bytes,
    .run = faulty_run,
    .run_here = faulty_run_here,
};
