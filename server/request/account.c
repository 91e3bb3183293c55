#include "server/request/account.h"

#include "kernels/device_facts.h"
#include "kernels/graph.h"
#include "proto/number/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The longest account has about 1.2 KB. */
#define GM_ACCOUNT_TEXT_MAX 4096

/* Length of a kernel's name in Server-Timing. Nine figures of up to 44 bytes stand beside it. */
#define GM_KERNEL_DESC_MAX 96
_Static_assert((GM_STAGE_COUNT + 1) * 44 + GM_KERNEL_DESC_MAX < GM_SERVER_TIMING_MAX,
               "all of Server-Timing fits");

/* Ratio of a result to its ceiling above which the ceiling is in doubt: measurements vary by
 * less. */
#define DOUBT 1.1

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
    account->started_ns = account->lap_start_ns = now_ns;
    for (unsigned i = 0; i < GM_STAGE_COUNT; i++)
        account->us[i] = -1;
    account->total_us = 0;
    account->spans = 0;
}

static void add_span(struct gm_account *account, enum gm_stage stage, int64_t start_ns,
                     int64_t end_ns)
{
    if (account->spans < GM_SPANS_MAX)
        account->span[account->spans++] = (struct gm_span){stage, start_ns, end_ns};
}

void gm_account_lap(struct gm_account *account, enum gm_stage stage, int64_t now_ns)
{
    double us = (double)(now_ns - account->lap_start_ns) * 1e-3;

    account->us[stage] = account->us[stage] < 0 ? us : account->us[stage] + us;
    add_span(account, stage, account->lap_start_ns, now_ns);
    account->lap_start_ns = now_ns;
}

void gm_account_end(struct gm_account *account, enum gm_stage stage, int64_t now_ns)
{
    gm_account_lap(account, stage, now_ns);
    account->total_us = (double)(now_ns - account->started_ns) * 1e-3;
}

void gm_account_ran(struct gm_account *account, const struct gm_times *times, int64_t started_ns,
                    int64_t finished_ns)
{
    int64_t at_ns = started_ns;

    gm_account_lap(account, GM_STAGE_QUEUE, started_ns);
    account->us[GM_STAGE_H2D] = times->h2d;
    account->us[GM_STAGE_PREPARE] = times->prepare;
    account->us[GM_STAGE_KERNEL] = times->kernel;
    account->us[GM_STAGE_D2H] = times->d2h;
    /* The device measures how long they took; they follow one another from the job's start. */
    for (unsigned i = GM_STAGE_H2D; i <= GM_STAGE_D2H; i++) {
        if (account->us[i] < 0)
            continue;
        int64_t end_ns = at_ns + (int64_t)(account->us[i] * 1e3);
        add_span(account, (enum gm_stage)i, at_ns, end_ns);
        at_ns = end_ns;
    }
    account->lap_start_ns = finished_ns;
}

/* Writes a measured figure with five digits; more would be noise. */
static void set_rate(struct gm_json_line *line, const char *name, double value)
{
    if (isfinite(value))
        gm_json_line_rounded(line, name, value, 5);
}

/* Writes a time in microseconds, with the clock's resolution of a nanosecond. */
static void set_time(struct gm_json_line *line, const char *name, double us)
{
    gm_json_line_decimal(line, name, llround(us * 1e3), 3);
}

static void set_count(struct gm_json_line *line, const char *name, double value)
{
    if (value < 0x1p63)
        gm_json_line_integer(line, name, (int64_t)value);
    else
        gm_json_line_real(line, name, value);
}

static void set_shapes(struct gm_json_line *line, const struct gm_op *op)
{
    static const char *const names[GM_OPERANDS_MAX] = {"a", "b", "c"};

    gm_json_line_open(line, "shapes", '{');
    for (unsigned i = 0; i < op->operands; i++)
        gm_json_line_shape(line, names[i], &op->operand[i]);
    gm_json_line_shape(line, "result", &op->result);
    gm_json_line_close(line, '{');
}

/* The same without an object: "kernel_us" among the other members. */
static void set_flat_times(struct gm_json_line *line, const struct gm_account *account)
{
    static const char *const names[GM_STAGE_COUNT] = {
#define X(name, text) [GM_STAGE_##name] = text "_us",
        GM_STAGE_LIST(X)
#undef X
    };

    for (unsigned i = 0; i < GM_STAGE_COUNT; i++)
        if (account->us[i] >= 0)
            set_time(line, names[i], account->us[i]);
    set_time(line, "total_us", account->total_us);
}

static void set_times(struct gm_json_line *line, const struct gm_account *account)
{
    gm_json_line_open(line, "us", '{');
    for (unsigned i = 0; i < GM_STAGE_COUNT; i++)
        if (account->us[i] >= 0)
            set_time(line, stage_names[i], account->us[i]);
    set_time(line, "total", account->total_us);
    gm_json_line_close(line, '{');
}

/* What was done in the time of the kernel: by all jobs of the batch. */
static struct gm_volume volume_of(const struct gm_account_job *job)
{
    return job->batch > 1 ? job->task->volume : gm_volume_of(job->task, job->facts);
}

static double link_seconds(const struct gm_account_job *job, const struct gm_volume *volume)
{
    return gm_link_seconds(volume->link_in, volume->link_out, job->facts);
}

/*
 * The roofline (Williams, Waterman, Patterson 2009): a kernel of a given arithmetic intensity can
 * reach the lesser of the arithmetic ceiling and intensity x bandwidth: of a copy on the device, or
 * of the link, for a kernel that reads and writes the host's memory. Without arithmetic, only the
 * bandwidth applies. Figures that were not measured are omitted.
 */
static void set_roofline(struct gm_json_line *stats, const struct gm_account_job *job,
                         const struct gm_volume *volume, double gflops)
{
    struct gm_roof peak = gm_roof_of(job->task->variant, job->op, job->facts);
    double copy = gm_rate(&job->facts->copy_gbs), link_s = link_seconds(job, volume);
    double memory_s = link_s > 0 ? link_s : copy > 0 ? 1e-9 * volume->bytes / copy : 0;
    const char *memory = link_s > 0 ? "link" : "dram";

    if (volume->flops == 0) {
        gm_json_line_string(stats, "bound", "memory");
        if (copy > 0 || link_s > 0)
            gm_json_line_string(stats, "roof", memory);
        return;
    }
    if (!(peak.gflops > 0) || !(memory_s > 0))
        return;
    double slope = 1e-9 * volume->flops / memory_s;
    bool compute = slope >= peak.gflops;
    double roof = compute ? peak.gflops : slope;
    gm_json_line_string(stats, "bound", compute ? "compute" : "memory");
    gm_json_line_string(stats, "roof", compute ? peak.unit : memory);
    set_rate(stats, "roofline_gflops", roof);
    if (gflops > 0)
        set_rate(stats, "percent_of_roofline", 100 * gflops / roof);
}

/* Names the ceiling that the result exceeds by more than measurements vary. Such a ceiling is too
 * low, because the machine was busy when it was measured. Data that fits into a cache may exceed
 * the copy ceiling, because the copy's data does not fit. */
static void set_doubt(struct gm_json_line *stats, const struct gm_account_job *job, double gbs,
                      double gflops)
{
    const struct gm_device_facts *facts = job->facts;
    double copy = gm_rate(&facts->copy_gbs);
    double peak = gm_roof_of(job->task->variant, job->op, facts).gflops;
    bool cached = (double)gm_op_bytes_min(job->op) <= 2.0 * (double)facts->cache_bytes;

    if (copy > 0 && gbs > DOUBT * copy && !cached)
        gm_json_line_string(stats, "doubt", "copy_gbs");
    else if (peak > 0 && gflops > DOUBT * peak)
        gm_json_line_string(stats, "doubt", "roofline_gflops");
}

static void set_rates(struct gm_json_line *stats, const struct gm_account_job *job)
{
    struct gm_volume volume = volume_of(job);
    double kernel_s = job->facts->has_kernel_times ? job->task->times.kernel * 1e-6 : -1;
    double gflops = kernel_s > 0 ? volume.flops / kernel_s * 1e-9 : 0;
    double gbs = kernel_s > 0 ? volume.bytes / kernel_s * 1e-9 : 0;
    double copy = gm_rate(&job->facts->copy_gbs), link_s = link_seconds(job, &volume);

    set_count(stats, "bytes_min", volume.bytes);
    if (gbs > 0)
        set_rate(stats, "effective_gbs", gbs);
    if (copy > 0) {
        set_rate(stats, "copy_gbs", copy);
        if (gbs > 0)
            set_rate(stats, "percent_of_copy", 100 * gbs / copy);
    }
    if (link_s > 0 && kernel_s > 0)
        set_rate(stats, "percent_of_link", 100 * link_s / kernel_s);
    set_count(stats, "flops", volume.flops);
    if (gflops > 0)
        set_rate(stats, "gflops", gflops);
    if (volume.bytes > 0)
        set_rate(stats, "intensity", volume.flops / volume.bytes);
    if (job->op->kind == GM_OP_EVAL) /* kernels of several kinds have no roof in common */
        return;
    set_roofline(stats, job, &volume, gflops);
    set_doubt(stats, job, gbs, gflops);
}

static void set_accesses(struct gm_json_line *stats, const struct gm_op *op,
                         const struct gm_access_totals *totals)
{
    double units[2] = {0}, ideal[2] = {0}; /* global memory, shared memory */

    for (unsigned kind = 0; kind < GM_ACCESS_KINDS; kind++) {
        bool shared = gm_access_is_shared((enum gm_access_kind)kind);
        units[shared] += totals->kind[kind].units;
        ideal[shared] += totals->kind[kind].units_ideal;
    }
    set_count(stats, "global_sectors", units[0]);
    set_count(stats, "global_sectors_ideal", ideal[0]);
    set_count(stats, "global_sectors_min", gm_access_sectors_min(op));
    set_count(stats, "shared_wavefronts", units[1]);
    set_count(stats, "shared_wavefronts_ideal", ideal[1]);
    set_count(stats, "barriers", totals->barriers);
    set_count(stats, "blocks", totals->blocks);
    set_count(stats, "warps", totals->warps);
}

/* The steps of an expression. */
static void set_steps(struct gm_json_line *stats, const struct gm_graph *graph)
{
    gm_json_line_open(stats, "steps", '[');
    for (unsigned i = 0; i < graph->steps; i++) {
        const struct gm_graph_step *step = &graph->step[i];
        gm_json_line_open(stats, NULL, '{');
        gm_json_line_string(stats, "op", gm_graph_step_op(step));
        gm_json_line_string(stats, "kernel", gm_graph_step_kernel(step));
        gm_json_line_shape(stats, "shape", &graph->value[step->result].matrix);
        if (step->us >= 0)
            set_time(stats, "us", step->us);
        gm_json_line_close(stats, '{');
    }
    gm_json_line_close(stats, '[');
}

/* `flat`: numbers, strings and true alone, no objects. */
static void set_members(struct gm_json_line *stats, const struct gm_account *account,
                        const struct gm_account_job *job, bool flat)
{
    const struct gm_task *task = job->task;

    gm_json_line_string(stats, "id", job->id);
    gm_json_line_string(stats, "op", gm_op_name(job->op->kind));
    gm_json_line_string(stats, "kernel", task->variant->name);
    gm_json_line_string(stats, "device", job->device);
    if (job->placed)
        gm_json_line_string(stats, "placed", job->placed);
    gm_json_line_string(stats, "dtype", gm_dtype_name(job->op->result.dtype));
    if (flat) {
        set_flat_times(stats, account);
    } else {
        set_shapes(stats, job->op);
        set_times(stats, account);
    }
    gm_json_line_integer(stats, "batch", job->batch);
    if (job->concurrent)
        gm_json_line_true(stats, "concurrent");
    if (task->repeat > 1 && task->times.kernel >= 0) {
        gm_json_line_integer(stats, "repeat", task->repeat);
        set_time(stats, "kernel_us_min", task->times.kernel_min);
        set_time(stats, "kernel_us_median", task->times.kernel);
    }
    set_rates(stats, job);
    if (job->op->graph && !flat)
        set_steps(stats, job->op->graph);
    if (!task->has_accesses)
        return;
    if (!flat)
        gm_json_line_open(stats, "accesses", '{');
    set_accesses(stats, job->op, &task->accesses);
    if (!flat)
        gm_json_line_close(stats, '{');
}

void gm_account_members(struct gm_json_line *line, const struct gm_account *account,
                        const struct gm_account_job *job, bool flat)
{
    set_members(line, account, job, flat);
}

char *gm_account_json(struct gm_account *account, const struct gm_account_job *job, int64_t now_ns)
{
    char *text = malloc(GM_ACCOUNT_TEXT_MAX);

    account->total_us = (double)(now_ns - account->started_ns) * 1e-3;
    if (!text)
        return NULL;
    struct gm_json_line line = gm_json_line_begin(text, GM_ACCOUNT_TEXT_MAX), *stats = &line;
    gm_json_line_open(stats, NULL, '{');
    set_members(stats, account, job, false);
    gm_json_line_close(stats, '{');
    if (gm_json_line_end(stats))
        return text;
    free(text);
    return NULL;
}

/* "stage;dur=1.234567": milliseconds, to the nanosecond. */
static size_t put_dur(char *out, const char *stage, double us)
{
    uint64_t ns = (uint64_t)llround(us * 1e3), ms = ns / 1000000, fraction = ns % 1000000;
    size_t len = strlen(stage);
    char *at = out + len + 5;

    memcpy(out, stage, len);
    memcpy(out + len, ";dur=", 5);
    at = gm_number_writer_of(GM_U64)(at, &ms);
    *at = '.';
    for (unsigned place = 6; place > 0; place--, fraction /= 10)
        at[place] = (char)('0' + fraction % 10);
    return (size_t)(at + 7 - out);
}

/* ";desc="KERNEL"", cut where it is too long. */
static size_t put_desc(char *out, const char *kernel)
{
    static const char before[] = ";desc=\"";
    size_t len = strnlen(kernel, GM_KERNEL_DESC_MAX - 10), at = sizeof before - 1;

    memcpy(out, before, at);
    memcpy(out + at, kernel, len);
    out[at + len] = '"';
    return at + len + 1;
}

void gm_account_server_timing(const struct gm_account *account, const char *kernel,
                              char out[GM_SERVER_TIMING_MAX])
{
    char *at = out;

    for (unsigned i = 0; i < GM_STAGE_COUNT; i++) {
        if (account->us[i] < 0)
            continue;
        at += put_dur(at, stage_names[i], account->us[i]);
        if (i == GM_STAGE_KERNEL)
            at += put_desc(at, kernel);
        *at++ = ',';
        *at++ = ' ';
    }
    at += put_dur(at, "total", account->total_us);
    *at = '\0';
}
