#include "tests/unit/tracing_backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PADDING 64

struct tracing_plan tracing_plan;

static struct gm_device_facts facts;

static enum gm_status tracing_open(const struct gm_backend_options *options, void **ret_context,
                                   struct gm_error *err)
{
    (void)options;
    (void)err;
    facts = (struct gm_device_facts){.kind = GM_DEVICE_SIM,
                                     .name = "tracing",
                                     .compute_units = 1,
                                     .streams = 1,
                                     .batch_max = 1,
                                     .gpu = gm_gpu_at(0)};
    *ret_context = &facts;
    return GM_OK;
}

static void tracing_close(void *context)
{
    (void)context;
}

static const struct gm_device_facts *tracing_describe(void *context, unsigned index)
{
    return index == 0 ? context : NULL;
}

static uint64_t tracing_buffer_cost(void *context, uint64_t bytes)
{
    (void)context;
    return bytes < UINT64_MAX / 2 ? (bytes + 2 * PADDING - 1) / PADDING * PADDING : UINT64_MAX;
}

static enum gm_status tracing_buffer_get(void *context, uint64_t bytes, struct gm_buffer *ret,
                                         struct gm_error *err)
{
    uint64_t capacity = tracing_buffer_cost(context, bytes);
    void *data = aligned_alloc(PADDING, capacity);

    if (!data)
        return gm_fail(err, GM_MEMORY_FULL, "no memory for a buffer");
    memset(data, 0, capacity); /* nothing computes the result, and JSON carries no NaN */
    atomic_fetch_add(&tracing_plan.buffers, 1);
    *ret = (struct gm_buffer){data, bytes, capacity};
    return GM_OK;
}

static void tracing_buffer_put(void *context, struct gm_buffer *buffer)
{
    (void)context;
    if (buffer->data)
        atomic_fetch_sub(&tracing_plan.buffers, 1);
    free(buffer->data);
    *buffer = (struct gm_buffer){0};
}

static uint64_t tracing_scratch_bytes(void *context, const struct gm_op *op,
                                      const struct gm_variant *variant)
{
    (void)context;
    (void)op;
    (void)variant;
    return tracing_plan.scratch;
}

/* One launch, and one site that loads along rows. */
static enum gm_status make_report(struct gm_access_report *report, struct gm_error *err)
{
    struct gm_launch_report *launch = calloc(1, sizeof *launch);
    struct gm_access_site *site = calloc(1, sizeof *site);

    if (!launch || !site) {
        free(launch);
        free(site);
        return gm_fail(err, GM_MEMORY_FULL, "no memory for the report");
    }
    *launch = (struct gm_launch_report){
        .kernel = "traced", .grid = {4, 1, 1}, .block = {256, 1, 1}, .blocks = 4, .traced = 4};
    site->line = 7;
    site->sums = (struct gm_access_sums){.requests = 32,
                                         .lanes = 1024,
                                         .bytes_useful = 4096,
                                         .bytes_moved = 4096,
                                         .units = 128,
                                         .units_ideal = 128,
                                         .passes = 32,
                                         .lines = 32,
                                         .first = 128};
    site->example.bytes = 4;
    site->example.active = UINT32_MAX;
    for (unsigned lane = 0; lane < GM_WARP; lane++)
        site->example.offset[lane] = 4 * lane;
    snprintf(site->memory, sizeof site->memory, "a");
    report->launch = launch;
    report->site = site;
    report->launches = report->sites = 1;
    report->totals.kind[GM_GLOBAL_LOAD] = site->sums;
    report->totals.blocks = 4;
    atomic_fetch_add(&tracing_plan.reports, 1);
    return GM_OK;
}

static enum gm_status run_one(struct gm_task *task)
{
    tracing_plan.op = task->op;
    tracing_plan.variant = task->variant;
    tracing_plan.wants_report = task->report != NULL;
    while (atomic_load(&tracing_plan.hold)) {
        if (atomic_load(&task->stop))
            return gm_fail(&task->error, GM_CANCELLED, "stopped");
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    /* What a failing simulator has put down by then is still the caller's to clear. */
    if (task->report) {
        enum gm_status status = make_report(task->report, &task->error);
        if (status != GM_OK)
            return status;
    } else {
        task->has_accesses = true;
    }
    return tracing_plan.status == GM_OK
               ? GM_OK
               : gm_fail(&task->error, tracing_plan.status, "line 7, block (1, 0, 0)");
}

static enum gm_status tracing_run(void *context, unsigned device, unsigned lane,
                                  struct gm_task *task[], unsigned n)
{
    (void)context;
    (void)device;
    (void)lane;
    (void)n;
    task[0]->times = (struct gm_times){-1, -1, -1, -1, -1};
    atomic_fetch_add(&tracing_plan.runs, 1);
    atomic_fetch_add(&tracing_plan.running, 1);
    task[0]->status = run_one(task[0]);
    atomic_fetch_sub(&tracing_plan.running, 1);
    return GM_OK;
}

const struct gm_backend tracing_backend = {
    .name = "sim",
    .open = tracing_open,
    .close = tracing_close,
    .describe = tracing_describe,
    .buffer_cost = tracing_buffer_cost,
    .buffer_get = tracing_buffer_get,
    .buffer_put = tracing_buffer_put,
    .scratch_bytes = tracing_scratch_bytes,
    .run = tracing_run,
};
