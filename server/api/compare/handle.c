/*
 * handle.c - POST /v1/compare/{op}: runs the operation by every kernel that can run it.
 *
 * A comparison is a chain of jobs, one at a time. Each job queues like any other, so other requests
 * are served between them, and runs alone on the device. Between jobs a worker owns the request. It
 * makes the reference, checks results, and decides what runs next.
 *
 *   worker: reference -> job: first run -> worker: check -> job: time -> worker -> ... -> report
 *
 * A kernel that is too slow is stopped, one that fails is reported, and the others go on. What ends
 * a request ends the chain: its deadline, a client that goes away, a drain, a lost device.
 */
#include "server/api/compare/compare.h"
#include "server/clock.h"
#include "server/limits.h"
#include "server/sched/cost.h"

#include <math.h>
#include <stdio.h>

/* Part of the remaining time that kernels may use. The rest is for checks, for the queue, and for
 * the delay until a slow kernel is noticed. */
#define USABLE 0.9
#define STOP_S (2e-3 * GM_WATCH_MS)
/* Expected seconds of a worker's step: usually a check, at most a reference of
 * GM_REFERENCE_FLOPS_MAX. */
#define STEP_S 0.1

static void step(struct gm_work *work);

static enum gm_status admit(struct gm_request *r, struct gm_error *err)
{
    const struct gm_plan *plan = &r->plan;
    enum gm_status status = gm_request_plan(r, GM_PLAN_ALL_OPERANDS, err);

    if (status != GM_OK) /* perhaps because there are no operands, and then no device */
        return status;
    const struct gm_allocator allocator = gm_plan_allocator(plan);
    struct gm_compare *c = gm_compare_new(r, err);
    if (!c)
        return err->status;
    r->run.state = c;
    status =
        gm_allocation_make(&r->run.result, &r->reservation, allocator, plan->result_bytes, err);
    /* The reference does not use buffers. Its memory stays reserved but unallocated. */
    if (status == GM_OK && !plan->has_reference)
        status =
            gm_allocation_make(&c->expected, &r->reservation, allocator, plan->result_bytes, err);
    if (status == GM_OK)
        status = gm_request_still_wanted(r, err);
    if (status == GM_OK)
        status = gm_sched_reserve(plan->device->sched, r->head.client, err);
    c->slot = status == GM_OK;
    return status;
}

enum gm_progress gm_handle_compare(struct gm_request *r)
{
    struct gm_error error;

    if (admit(r, &error) != GM_OK)
        return gm_request_fail(r, &error);
    return gm_request_to_worker(r, step, STEP_S);
}

static double elapsed_s(const struct gm_job *job, int64_t now_ns)
{
    return (double)(now_ns - job->started_ns) * 1e-9;
}

static bool job_abandoned(const struct gm_job *job, bool running)
{
    const struct gm_compare *c = gm_compare_of(gm_request_of_job(job));

    return gm_request_job_abandoned(job, running) ||
           (running && elapsed_s(job, gm_now_ns()) > c->slice_s);
}

/* Whether the job's status ends the whole request, not only one row. */
static bool is_end(const struct gm_request *r)
{
    switch (r->run.job.task.status) {
    case GM_DEADLINE:
    case GM_DRAINING:
    case GM_DEVICE_LOST:
        return true;
    case GM_CANCELLED: /* unless the kernel was only too slow */
        return r->run.job.started_ns == 0 ||
               r->connection.transport->gone(r->connection.socket, true);
    default:
        return false;
    }
}

static void job_done(struct gm_job *job)
{
    struct gm_request *r = gm_request_of_job(job);

    gm_request_learn_cost(r);
    if (is_end(r)) {
        gm_request_fail(r, &job->task.error);
        gm_request_resume(r, GM_REQUEST_REPLY);
    } else {
        gm_request_to_worker(r, step, STEP_S);
    }
}

/* Runs the kernel at c->at `repeat` times. The scheduler owns the request afterwards. */
static void run(struct gm_request *r, unsigned repeat)
{
    struct gm_compare *c = gm_compare_of(r);
    struct gm_job *job = &r->run.job;
    double left_s = (double)(r->run.deadline_ns - gm_now_ns()) * 1e-9;

    c->slice_s = fmin(GM_COMPARE_RUN_S, (left_s - STOP_S) * USABLE / (c->count - c->at));
    gm_request_set_job(r, job_done);
    job->task.op = *gm_compare_op(c, &c->row[c->at]);
    job->task.op.result.data = r->run.result.buffer.data;
    job->task.variant = c->row[c->at].variant;
    job->task.repeat = repeat;
    job->task.has_accesses = false;
    job->exclusive =
        r->plan.device->facts->kind != GM_DEVICE_SIM; /* the simulator's times mean nothing */
    job->abandoned = job_abandoned;
    gm_request_set_slot(r);
    if (!c->slot)
        gm_sched_reserve_more(r->plan.device->sched, r->head.client);
    c->slot = false;
    r->state = GM_REQUEST_QUEUED;
    gm_sched_commit(r->plan.device->sched, job);
}

/* Number of runs to time for a kernel that took `us`: as requested, but within its time limit. */
static unsigned runs_to_time(const struct gm_request *r, double us)
{
    double most_s = gm_compare_of(r)->slice_s;

    if (r->parsed.params.repeat == 0)
        most_s = fmin(most_s, GM_COMPARE_TIMING_MS * 1e-3);
    double runs = us > 0 ? floor(most_s * 1e6 / us) : gm_compare_of(r)->repeat;
    return (unsigned)fmin(gm_compare_of(r)->repeat, runs);
}

static void take_times(struct gm_compare_row *row, const struct gm_task *task, unsigned runs)
{
    if (task->times.kernel < 0)
        return;
    row->runs = runs;
    row->us_median = task->times.kernel;
    row->us_min = runs > 1 ? task->times.kernel_min : task->times.kernel;
    row->us_prepare = task->times.prepare;
}

static void take_failure(const struct gm_request *r, struct gm_compare_row *row)
{
    const struct gm_job *job = &r->run.job;
    bool simulated = r->plan.device->facts->kind == GM_DEVICE_SIM;

    row->failure = job->task.error;
    if (job->task.status == GM_CANCELLED)
        gm_fail(&row->failure, GM_COST_LIMIT, "it was stopped after %.2g seconds%s%s",
                elapsed_s(job, job->finished_ns),
                simulated ? "; what it would do at any size is traced by /v1/explain/" : "",
                simulated ? gm_op_name(gm_compare_of(r)->op.kind) : "");
}

/* Checks the result of a kernel's first run, and records its time. Returns how often to time the
 * kernel. */
static unsigned take_first_run(struct gm_request *r, struct gm_compare_row *row)
{
    const struct gm_task *task = &r->run.job.task;

    gm_compare_check(gm_compare_of(r), row, &r->run.result);
    row->has_accesses = task->has_accesses;
    row->accesses = task->accesses;
    if (row->verdict == GM_VERDICT_WRONG || !r->plan.device->facts->has_kernel_times)
        return 0;
    take_times(row, task, 1);
    unsigned runs = row->runs > 0 ? runs_to_time(r, row->us_median) : 0;
    return runs > 1 ? runs : 0;
}

/* Handles a finished job. Returns how often to run the same kernel again; 0: no more. */
static unsigned take_result(struct gm_request *r)
{
    struct gm_compare *c = gm_compare_of(r);
    struct gm_compare_row *row = &c->row[c->at];
    const struct gm_job *job = &r->run.job;
    bool was_timing = c->timing;

    c->timing = false;
    if (job->task.status != GM_OK) {
        /* Too slow to be timed again: the time of its first run stands. */
        if (!was_timing || job->task.status != GM_CANCELLED)
            take_failure(r, row);
        return 0;
    }
    gm_stats_add(&r->server->stats, GM_COUNT_KERNEL_BYTES, gm_op_bytes_min(&job->task.op));
    gm_stats_add(&r->server->stats, GM_COUNT_KERNEL_FLOPS, (uint64_t)gm_op_flops(&job->task.op));
    if (!was_timing)
        return take_first_run(r, row);
    take_times(row, &job->task, job->task.repeat);
    return 0;
}

static void write_timing(const struct gm_request *r, char out[GM_SERVER_TIMING_MAX])
{
    const struct gm_account *a = &r->account;
    const struct {
        const char *name;
        double us;
    } part[] = {{"receive", a->us[GM_STAGE_RECEIVE]},  {"decode", a->us[GM_STAGE_DECODE]},
                {"queue", a->us[GM_STAGE_QUEUE]},      {"runs", gm_compare_of(r)->us_runs},
                {"check", gm_compare_of(r)->us_check}, {"total", a->total_us}};
    size_t at = 0;

    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        at += (size_t)snprintf(out + at, GM_SERVER_TIMING_MAX - at, "%s%s;dur=%.6f", i ? ", " : "",
                               part[i].name, part[i].us * 1e-3);
}

static enum gm_status report(struct gm_request *r, struct gm_error *err)
{
    char timing[GM_SERVER_TIMING_MAX];

    gm_compare_sort(gm_compare_of(r));
    r->account.total_us = (double)(gm_now_ns() - r->account.started_ns) * 1e-3;
    write_timing(r, timing);
    char *text = r->plan.report == GM_REPORT_JSON  ? gm_compare_json(r)
                 : r->plan.report == GM_REPORT_SVG ? gm_compare_svg(r)
                                                   : gm_compare_text(r);
    if (!text)
        return gm_fail(err, GM_MEMORY_FULL, "no memory for the report");
    gm_body_drop_operands(&r->body);
    gm_allocation_free(&r->run.result, &r->reservation);
    gm_handle_compare_drop(r);
    gm_reservation_trim(&r->reservation, 0);
    gm_reply_text(&r->reply, 200, gm_report_media_type(r->plan.report), text);
    gm_reply_header(&r->reply, "Server-Timing", timing);
    return GM_OK;
}

/* Adds the time since the request was last on a worker to the account. */
static void account_for_job(struct gm_request *r, int64_t now_ns)
{
    if (gm_compare_of(r)->begun) {
        gm_account_lap(&r->account, GM_STAGE_QUEUE, r->run.job.started_ns);
        gm_compare_of(r)->us_runs +=
            (double)(r->run.job.finished_ns - r->run.job.started_ns) * 1e-3;
        r->account.lap_start_ns = r->run.job.finished_ns;
    }
    gm_account_lap(&r->account, GM_STAGE_QUEUE, now_ns);
}

/* A worker's step: handles the finished job, and starts the next one. */
static void step(struct gm_work *work)
{
    struct gm_request *r = gm_request_of_work(work);
    struct gm_compare *c = gm_compare_of(r);
    struct gm_error error;
    unsigned runs = 0;
    enum gm_status status = gm_request_still_wanted(r, &error);

    account_for_job(r, gm_now_ns());
    if (status == GM_OK && !c->begun)
        status = gm_compare_make_reference(c, &error);
    else if (status == GM_OK)
        runs = take_result(r);
    if (status == GM_OK && runs == 0 && c->begun)
        c->at++;
    while (status == GM_OK && c->at < c->count && c->row[c->at].failure.status != GM_OK)
        c->at++; /* skip rows that cannot run */
    c->begun = true;
    c->timing = runs > 0;
    bool more = status == GM_OK && c->at < c->count;
    if (more && !c->timing)
        gm_compare_poison(c, &c->row[c->at], r->run.result.buffer.data);
    int64_t now = gm_now_ns();
    c->us_check += (double)(now - r->account.lap_start_ns) * 1e-3;
    r->account.lap_start_ns = now;
    if (more) {
        run(r, c->timing ? runs : 1);
        return;
    }
    if (status == GM_OK)
        status = report(r, &error);
    if (status != GM_OK)
        gm_request_fail(r, &error);
    gm_request_resume(r, GM_REQUEST_REPLY);
}
