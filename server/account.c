#include "server/account.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const stage_names[GM_STAGE_COUNT] = {
#define X(name, text) [GM_STAGE_##name] = text,
    GM_STAGE_LIST(X)
#undef X
};

const char *gm_stage_name(enum gm_stage stage)
{
    return stage_names[stage];
}

void gm_account_start(struct gm_account *account, int64_t now_ns)
{
    account->started_ns = account->mark_ns = now_ns;
    for (unsigned i = 0; i < GM_STAGE_COUNT; i++)
        account->us[i] = -1;
    account->total_us = 0;
}

static void add(struct gm_account *account, enum gm_stage stage, double us)
{
    account->us[stage] = account->us[stage] < 0 ? us : account->us[stage] + us;
}

void gm_account_lap(struct gm_account *account, enum gm_stage stage, int64_t now_ns)
{
    add(account, stage, (double)(now_ns - account->mark_ns) * 1e-3);
    account->mark_ns = now_ns;
}

void gm_account_end(struct gm_account *account, enum gm_stage stage, int64_t now_ns)
{
    gm_account_lap(account, stage, now_ns);
    account->total_us = (double)(now_ns - account->started_ns) * 1e-3;
}

void gm_account_ran(struct gm_account *account, const struct gm_times *times, int64_t started_ns,
                    int64_t finished_ns)
{
    gm_account_lap(account, GM_STAGE_QUEUE, started_ns);
    account->us[GM_STAGE_H2D] = times->h2d;
    account->us[GM_STAGE_PREPARE] = times->prepare;
    account->us[GM_STAGE_KERNEL] = times->kernel;
    account->us[GM_STAGE_D2H] = times->d2h;
    account->mark_ns = finished_ns;
}

/* A measured figure to five digits: more would be noise to read. */
static void set_rate(json_t *object, const char *name, double value)
{
    char text[32];

    if (!isfinite(value))
        return;
    snprintf(text, sizeof text, "%.5g", value);
    json_object_set_new(object, name, json_real(strtod(text, NULL)));
}

/* A time in microseconds, to the clock's nanosecond. */
static void set_time(json_t *object, const char *name, double us)
{
    json_object_set_new(object, name, json_real(round(us * 1e3) * 1e-3));
}

static void set_count(json_t *object, const char *name, double value)
{
    if (value < 0x1p63)
        json_object_set_new(object, name, json_integer((json_int_t)value));
    else
        json_object_set_new(object, name, json_real(value));
}

static json_t *shape_json(const struct gm_matrix *m)
{
    json_t *shape = json_array();

    if (m->stacked)
        json_array_append_new(shape, json_integer((json_int_t)m->batch));
    json_array_append_new(shape, json_integer((json_int_t)m->rows));
    json_array_append_new(shape, json_integer((json_int_t)m->cols));
    return shape;
}

static json_t *shapes_json(const struct gm_op *op)
{
    static const char *const names[GM_OPERANDS_MAX] = {"a", "b", "c"};
    json_t *shapes = json_object();

    for (unsigned i = 0; i < op->operands; i++)
        json_object_set_new(shapes, names[i], shape_json(&op->operand[i]));
    json_object_set_new(shapes, "result", shape_json(&op->result));
    return shapes;
}

static json_t *times_json(const struct gm_account *account)
{
    json_t *us = json_object();

    for (unsigned i = 0; i < GM_STAGE_COUNT; i++)
        if (account->us[i] >= 0)
            set_time(us, stage_names[i], account->us[i]);
    set_time(us, "total", account->total_us);
    return us;
}

/*
 * The roofline (Williams, Waterman, Patterson 2009): a kernel of a given arithmetic intensity
 * can reach the lesser of the arithmetic ceiling and intensity x copy bandwidth. Work without
 * arithmetic lies under the copy ceiling alone. What was not measured is left out.
 */
static void set_roofline(json_t *stats, const struct gm_op *op, const struct gm_device_facts *facts,
                         double gflops)
{
    double flops = gm_op_flops(op), bytes = (double)gm_op_bytes_min(op);
    double peak = facts->peak_gflops[op->result.dtype], memory = facts->copy_gbs;

    if (flops == 0) {
        json_object_set_new(stats, "bound", json_string("memory"));
        if (memory > 0)
            json_object_set_new(stats, "roof", json_string("dram"));
        return;
    }
    if (!(peak > 0) || !(memory > 0) || bytes == 0)
        return;
    double slope = flops / bytes * memory;
    bool compute = slope >= peak;
    double roof = compute ? peak : slope;
    json_object_set_new(stats, "bound", json_string(compute ? "compute" : "memory"));
    json_object_set_new(stats, "roof",
                        json_string(compute ? facts->peak_name[op->result.dtype] : "dram"));
    set_rate(stats, "roofline_gflops", roof);
    if (gflops > 0)
        set_rate(stats, "percent_of_roofline", 100 * gflops / roof);
}

static void set_rates(json_t *stats, const struct gm_account_job *job)
{
    const struct gm_op *op = job->op;
    double bytes = (double)gm_op_bytes_min(op) * job->batch;
    double flops = gm_op_flops(op) * job->batch;
    double kernel_s = job->facts->times_kernels ? job->task->times.kernel * 1e-6 : -1;
    double gflops = kernel_s > 0 ? flops / kernel_s * 1e-9 : 0;
    double gbs = kernel_s > 0 ? bytes / kernel_s * 1e-9 : 0;

    set_count(stats, "bytes_min", bytes);
    if (gbs > 0)
        set_rate(stats, "effective_gbs", gbs);
    if (job->facts->copy_gbs > 0) {
        set_rate(stats, "copy_gbs", job->facts->copy_gbs);
        if (gbs > 0)
            set_rate(stats, "percent_of_copy", 100 * gbs / job->facts->copy_gbs);
    }
    set_count(stats, "flops", flops);
    if (gflops > 0)
        set_rate(stats, "gflops", gflops);
    if (bytes > 0)
        set_rate(stats, "intensity", flops / bytes);
    set_roofline(stats, op, job->facts, gflops);
}

static void set_accesses(json_t *stats, const struct gm_op *op,
                         const struct gm_access_totals *totals)
{
    json_t *accesses = json_object();
    double units[2] = {0}, ideal[2] = {0}; /* of global memory, of shared */

    for (unsigned kind = 0; kind < GM_ACCESS_KINDS; kind++) {
        bool shared = gm_access_is_shared((enum gm_access_kind)kind);
        units[shared] += totals->kind[kind].units;
        ideal[shared] += totals->kind[kind].units_ideal;
    }
    set_count(accesses, "global_sectors", units[0]);
    set_count(accesses, "global_sectors_ideal", ideal[0]);
    set_count(accesses, "global_sectors_min", gm_access_sectors_min(op));
    set_count(accesses, "shared_wavefronts", units[1]);
    set_count(accesses, "shared_wavefronts_ideal", ideal[1]);
    set_count(accesses, "barriers", totals->barriers);
    set_count(accesses, "blocks", totals->blocks);
    set_count(accesses, "warps", totals->warps);
    json_object_set_new(stats, "accesses", accesses);
}

char *gm_account_json(struct gm_account *account, const struct gm_account_job *job, int64_t now_ns)
{
    json_t *stats = json_object();
    const struct gm_task *task = job->task;

    account->total_us = (double)(now_ns - account->started_ns) * 1e-3;
    json_object_set_new(stats, "id", json_string(job->id));
    json_object_set_new(stats, "op", json_string(gm_op_name(job->op->kind)));
    json_object_set_new(stats, "kernel", json_string(task->variant->name));
    json_object_set_new(stats, "device", json_string(job->device));
    json_object_set_new(stats, "dtype", json_string(gm_dtype_name(job->op->result.dtype)));
    json_object_set_new(stats, "shapes", shapes_json(job->op));
    json_object_set_new(stats, "us", times_json(account));
    json_object_set_new(stats, "batch", json_integer(job->batch));
    if (job->concurrent)
        json_object_set_new(stats, "concurrent", json_true());
    if (task->repeat > 1 && task->times.kernel >= 0) {
        json_object_set_new(stats, "repeat", json_integer(task->repeat));
        set_time(stats, "kernel_us_min", task->times.kernel_min);
        set_time(stats, "kernel_us_median", task->times.kernel);
    }
    set_rates(stats, job);
    if (task->has_accesses)
        set_accesses(stats, job->op, &task->accesses);
    char *text = json_dumps(stats, JSON_COMPACT | JSON_REAL_PRECISION(12));
    json_decref(stats);
    return text;
}

void gm_account_server_timing(const struct gm_account *account, const char *kernel,
                              char out[GM_SERVER_TIMING_MAX])
{
    size_t at = 0;

    for (unsigned i = 0; i < GM_STAGE_COUNT; i++) {
        if (account->us[i] < 0)
            continue;
        at += (size_t)snprintf(out + at, GM_SERVER_TIMING_MAX - at, "%s;dur=%.6f", stage_names[i],
                               account->us[i] * 1e-3);
        if (i == GM_STAGE_KERNEL)
            at += (size_t)snprintf(out + at, GM_SERVER_TIMING_MAX - at, ";desc=\"%s\"", kernel);
        at += (size_t)snprintf(out + at, GM_SERVER_TIMING_MAX - at, ", ");
    }
    snprintf(out + at, GM_SERVER_TIMING_MAX - at, "total;dur=%.6f", account->total_us * 1e-3);
}
