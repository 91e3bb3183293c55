/*
 * handle.c - GET and POST /v1/explain/{op}: reports how a kernel accesses memory.
 *
 * The operation is a job like any other, except that its task has a report: the simulator traces a
 * sample and keeps no result. Shapes are enough; elements in a body are ignored.
 */
#include "kernels/choose/choose.h"
#include "server/api/explain/explain.h"
#include "server/clock.h"
#include "server/limits.h"
#include "server/request/request.h"

#include <stdlib.h>
#include <string.h>

/* Checks that every element has an address. */
static enum gm_status check_span(const struct gm_op *op, struct gm_error *err)
{
    const uint64_t most = (uint64_t)GM_EXPLAIN_GIB_MAX << 30;
    uint64_t bytes = gm_matrix_bytes(&op->result);
    bool fits = true;

    for (unsigned i = 0; i < op->operands; i++)
        fits = fits && gm_size_add(bytes, gm_matrix_bytes(&op->operand[i]), &bytes);
    return fits && bytes <= most
               ? GM_OK
               : gm_fail(err, GM_COST_LIMIT,
                         "operands and result have more than %d GiB together, which is the limit",
                         GM_EXPLAIN_GIB_MAX);
}

/* The GPU whose limits and ceilings apply. */
static const struct gm_gpu *gpu_of(const struct gm_params *params,
                                   const struct gm_device_facts *facts)
{
    const struct gm_gpu *gpu = params->gpu ? params->gpu : facts->gpu;

    return gpu ? gpu : gm_gpu_at(0);
}

/* The device's facts with that GPU in its place: what a kernel can do there. */
static struct gm_device_facts facts_of(const struct gm_params *params,
                                       const struct gm_device_facts *facts)
{
    struct gm_device_facts on_gpu = *facts;

    on_gpu.gpu = gpu_of(params, facts);
    on_gpu.profile = gm_profile_for(on_gpu.gpu, facts);
    return on_gpu;
}

/* Selects the named kernel or, for auto, what auto takes on the GPU, if that can be traced; else
 * the next that can. */
static enum gm_status select_variant(struct gm_plan *plan, const struct gm_params *params,
                                     const struct gm_device_facts *on_gpu, struct gm_error *err)
{
    bool automatic = gm_params_take_auto(params);

    plan->automatic = NULL;
    plan->variant = NULL;
    if (automatic)
        plan->automatic =
            gm_select_for_gpu(&plan->op, on_gpu->gpu, plan->device->facts, &plan->variant);
    return plan->variant ? GM_OK
                         : gm_select(&plan->op, on_gpu, params->kernel, &plan->variant, err);
}

enum gm_status gm_handle_explain_plan(struct gm_plan *plan, const struct gm_plan_input *in,
                                      struct gm_error *err)
{
    const struct gm_params *params = &in->parsed->params;
    const struct gm_device *device = plan->device;
    const struct gm_device_facts on_gpu = facts_of(params, device->facts);
    enum gm_status status = check_span(&plan->op, err);

    if (status == GM_OK)
        status = select_variant(plan, params, &on_gpu, err);
    if (status == GM_OK)
        gm_set_tiles(&plan->op, &on_gpu);
    plan->against = NULL;
    if (status == GM_OK && *params->against)
        status = gm_select(&plan->op, &on_gpu, params->against, &plan->against, err);
    if (status != GM_OK)
        return status;
    /* The simulator holds the touched memory, at most this much. */
    _Static_assert(GM_EXPLAIN_MEMORY_BYTES == GM_REPORT_BYTES, "what is reserved is what is taken");
    _Static_assert(GM_EXPLAIN_CPU_MS == GM_REPORT_CPU_MS, "one limit");
    plan->scratch_bytes = device->backend->scratch_bytes(device->context, &plan->op, plan->variant);
    plan->bytes = plan->scratch_bytes < GM_EXPLAIN_MEMORY_BYTES && !plan->against &&
                          plan->report != GM_REPORT_SVG
                      ? plan->scratch_bytes
                      : GM_EXPLAIN_MEMORY_BYTES;
    return GM_OK;
}

/* Expected seconds of a worker's step, which only starts the next trace. */
#define STEP_S 1e-4

static void trace_next(struct gm_work *work);

static void job_done(struct gm_job *job)
{
    struct gm_request *r = gm_request_of_job(job);

    gm_request_learn_cost(r);
    if (job->task.status != GM_OK) {
        gm_request_fail(r, &job->task.error);
        gm_request_resume(r, GM_REQUEST_REPLY);
    } else if (job->task.report == &r->run.accesses &&
               (r->plan.against || r->plan.report == GM_REPORT_SVG)) {
        gm_request_to_worker(r, trace_next, STEP_S);
    } else {
        gm_request_resume(r, GM_REQUEST_RAN);
    }
}

/* Queues the trace of a variant; a slot is reserved. The scheduler owns the request afterwards. */
static void trace(struct gm_request *r, const struct gm_variant *variant,
                  struct gm_access_report *report)
{
    struct gm_job *job = &r->run.job;

    gm_request_set_job(r, job_done);
    for (unsigned i = 0; i < job->task.op.operands; i++)
        job->task.op.operand[i].data = NULL; /* elements in the body are ignored */
    job->task.variant = variant;
    job->task.report = report;
    job->task.gpu = gpu_of(&r->parsed.params, r->plan.device->facts);
    gm_request_set_slot(r);
    gm_request_suspend(r);
    r->state = GM_REQUEST_QUEUED;
    gm_sched_commit(r->plan.device->sched, job);
}

static struct gm_explain explain_of(struct gm_request *r)
{
    const struct gm_device_facts facts = facts_of(&r->parsed.params, r->plan.device->facts);

    return (struct gm_explain){.id = r->id,
                               .device = r->plan.device->name,
                               .op = &r->run.job.task.op,
                               .variant = r->plan.variant,
                               .facts = facts,
                               .gpu = facts.gpu,
                               .report = &r->run.accesses,
                               .automatic = r->plan.automatic};
}

/* A drawing has the cured kernel beside it. */
static const struct gm_variant *cured(struct gm_request *r)
{
    const struct gm_explain explain = explain_of(r);

    return gm_explain_cured(&explain);
}

static void trace_next(struct gm_work *work)
{
    struct gm_request *r = gm_request_of_work(work);
    struct gm_error error;

    if (gm_request_still_wanted(r, &error) != GM_OK) {
        gm_request_fail(r, &error);
        gm_request_resume(r, GM_REQUEST_REPLY);
        return;
    }
    if (!r->plan.against)
        r->plan.against = cured(r);
    if (!r->plan.against) {
        gm_request_resume(r, GM_REQUEST_RAN);
        return;
    }
    gm_account_lap(&r->account, GM_STAGE_QUEUE, r->run.job.started_ns);
    r->account.lap_start_ns = r->run.job.finished_ns;
    gm_sched_reserve_more(r->plan.device->sched, r->head.client);
    trace(r, r->plan.against, &r->run.against);
}

static enum gm_status admit(struct gm_request *r, struct gm_error *err)
{
    enum gm_status status = gm_request_plan(r, GM_PLAN_ALL_OPERANDS, err);

    if (status == GM_OK)
        status = gm_request_still_wanted(r, err);
    return status == GM_OK ? gm_sched_reserve(r->plan.device->sched, r->head.client, err) : status;
}

enum gm_progress gm_handle_explain(struct gm_request *r)
{
    struct gm_error error;

    if (admit(r, &error) != GM_OK)
        return gm_request_fail(r, &error);
    trace(r, r->plan.variant, &r->run.accesses);
    return GM_PENDING;
}

static char *report_text(struct gm_request *r)
{
    struct gm_explain explain = explain_of(r), against = explain;

    against.variant = r->plan.against;
    against.report = &r->run.against;
    against.automatic = NULL;
    explain.against = r->plan.against ? &against : NULL;
    return r->plan.report == GM_REPORT_JSON  ? gm_explain_json(&explain)
           : r->plan.report == GM_REPORT_SVG ? gm_explain_svg(&explain)
                                             : gm_explain_text(&explain);
}

void gm_handle_explain_ran(struct gm_request *r)
{
    char timing[GM_SERVER_TIMING_MAX];

    gm_account_ran(&r->account, &r->run.job.task.times, r->run.job.started_ns,
                   r->run.job.finished_ns);
    gm_account_lap(&r->account, GM_STAGE_QUEUE, gm_now_ns());
    char *text = report_text(r);
    if (!text) {
        struct gm_error error;
        gm_fail(&error, GM_MEMORY_FULL, "no memory for the report");
        gm_request_fail(r, &error);
        return;
    }
    gm_reply_text(&r->reply, 200, gm_report_media_type(r->plan.report), text);
    gm_account_end(&r->account, GM_STAGE_ENCODE, gm_now_ns());
    gm_account_server_timing(&r->account, r->plan.variant->name, timing);
    gm_reply_header(&r->reply, "Server-Timing", timing);
    gm_body_drop_operands(&r->body);
    gm_access_report_clear(&r->run.accesses);
    gm_access_report_clear(&r->run.against);
    gm_reservation_trim(&r->reservation, 0);
    r->state = GM_REQUEST_REPLY;
}
