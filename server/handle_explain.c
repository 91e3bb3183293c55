/*
 * handle_explain.c - GET and POST /v1/explain/{op}: how a kernel touches memory. The operation
 * becomes a job like any other, but for its task's report, for which the simulator traces a
 * sample; no result is kept. Shapes are enough; what a body says of elements is not looked at.
 */
#include "kernels/select.h"
#include "server/clock.h"
#include "server/explain.h"
#include "server/handlers.h"
#include "server/limits.h"
#include "server/request_job.h"

#include <stdlib.h>

#define SIDE_UNSAID 1024 /* rows and columns of an operand of which nothing is said */

/* Operands that no body gave, by their shapes alone. */
static enum gm_status set_shapes(struct gm_request *r, struct gm_error *err)
{
    const struct gm_shape unsaid = {.ndim = 2, .dim = {SIDE_UNSAID, SIDE_UNSAID}};
    enum gm_dtype dtype = r->params.dtype == GM_DTYPE_NONE ? GM_F32 : r->params.dtype;
    unsigned min = gm_op_operands_min(r->route->op), max = gm_op_operands_max(r->route->op);

    for (unsigned i = 0; i < max; i++) {
        bool said = r->params.has_shape[i];
        bool needed = i < min || (i == 2 && r->params.op.has_beta);
        if (!said && !needed)
            continue;
        enum gm_status status = gm_matrix_init(&r->operand[i], dtype, GM_ROW_MAJOR,
                                               said ? &r->params.shape[i] : &unsaid, err);
        if (status != GM_OK)
            return status;
        r->present[i] = true;
    }
    return GM_OK;
}

/* Whether there is an address for each element. */
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

enum gm_status gm_handle_explain_plan(struct gm_request *r, bool complete, struct gm_error *err)
{
    struct gm_op *op = &r->job.task.op;
    struct gm_op_options options = r->params.op;

    if (!complete)
        options.has_beta = r->present[2] && options.has_beta; /* c may still come */
    enum gm_status status = gm_op_init(op, r->route->op, &options, r->operand, r->present, err);
    if (status == GM_OK)
        status = check_span(op, err);
    if (status == GM_OK)
        status = gm_select(op, r->device->facts, r->params.kernel, &r->variant, err);
    if (status != GM_OK)
        return status;
    /* The simulator holds what it touches: of a large operation that is little. */
    uint64_t scratch = r->device->backend->scratch_bytes(r->device->context, op, r->variant);
    return gm_share_reserve(
        &r->share, scratch < GM_EXPLAIN_MEMORY_BYTES ? scratch : GM_EXPLAIN_MEMORY_BYTES, err);
}

static void job_done(struct gm_job *job)
{
    struct gm_request *r = gm_request_of_job(job);

    if (job->task.status != GM_OK) {
        gm_request_fail(r, &job->task.error);
        gm_request_resume(r, GM_REQUEST_REPLY);
    } else {
        gm_request_resume(r, GM_REQUEST_RAN);
    }
}

static enum gm_status admit(struct gm_request *r, struct gm_error *err)
{
    enum gm_status status = GM_OK;

    if (!r->device)
        status = gm_request_pick_device(r, err);
    if (status == GM_OK && !r->present[0] && !r->present[1] && !r->present[2])
        status = set_shapes(r, err);
    if (status == GM_OK)
        status = gm_handle_explain_plan(r, true, err);
    if (status == GM_OK)
        status = gm_request_still_wanted(r, err);
    return status == GM_OK ? gm_sched_reserve(r->device->sched, r->head.client, err) : status;
}

enum gm_progress gm_handle_explain(struct gm_request *r)
{
    struct gm_job *job = &r->job;
    struct gm_error error;

    if (admit(r, &error) != GM_OK)
        return gm_request_fail(r, &error);
    job->task.variant = r->variant;
    job->task.repeat = 1;
    job->task.report = &r->accesses;
    job->deadline_ns = r->deadline_ns;
    job->abandoned = gm_request_job_abandoned;
    job->done = job_done;
    gm_request_set_place(r);
    gm_request_suspend(r);
    r->state = GM_REQUEST_QUEUED;
    gm_sched_commit(r->device->sched, job);
    return GM_PENDING;
}

void gm_handle_explain_ran(struct gm_request *r)
{
    const struct gm_task *task = &r->job.task;
    const struct gm_device_facts *facts = r->device->facts;
    const struct gm_gpu *gpu = r->params.gpu ? r->params.gpu : facts->gpu;
    const struct gm_explain explain = {.id = r->id,
                                       .device = r->device->name,
                                       .op = &task->op,
                                       .variant = r->variant,
                                       .facts = facts,
                                       .gpu = gpu ? gpu : gm_gpu_at(0),
                                       .report = &r->accesses};
    char timing[GM_SERVER_TIMING_MAX];

    gm_account_ran(&r->account, &task->times, r->job.started_ns, r->job.finished_ns);
    gm_account_lap(&r->account, GM_STAGE_QUEUE, gm_now_ns());
    char *text = r->report == GM_REPORT_JSON  ? gm_explain_json(&explain)
                 : r->report == GM_REPORT_SVG ? gm_explain_svg(&explain)
                                              : gm_explain_text(&explain);
    if (!text) {
        struct gm_error error;
        gm_fail(&error, GM_MEMORY_FULL, "no memory for the report");
        gm_request_fail(r, &error);
        return;
    }
    gm_reply_text(&r->reply, 200, gm_report_media_type(r->report), text);
    gm_account_end(&r->account, GM_STAGE_ENCODE, gm_now_ns());
    gm_account_server_timing(&r->account, r->variant->name, timing);
    gm_reply_header(&r->reply, "Server-Timing", timing);
    gm_body_drop_operands(r);
    gm_access_report_clear(&r->accesses);
    gm_share_trim(&r->share, 0);
    r->state = GM_REQUEST_REPLY;
}
