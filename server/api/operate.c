/*
 * operate.c - POST /v1/{op}: runs an operation as a job and replies with the result and its
 * account.
 */
#include "kernels/choose/choose.h"
#include "server/clock.h"
#include "server/limits.h"
#include "server/request/request.h"
#include "server/sched/cost.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Space for the account at the end of a text: at most about 1.2 KB, and under /v2 the client's id
 * of the request. */
#define STATS_TEXT_MAX 4096

static void encode_on_worker(struct gm_work *work)
{
    struct gm_request *r = gm_request_of_work(work);

    struct gm_error error;
    if (gm_request_still_wanted(r, &error) != GM_OK)
        gm_request_fail(r, &error);
    else
        gm_handle_op_ran(r);
    gm_request_resume(r, GM_REQUEST_REPLY);
}

/* Whether the result is written to a file before the reply. */
static bool waits_for_disk(const struct gm_request *r)
{
    return r->run.kept.named && *r->server->matrices.dir;
}

/* Bytes of the result that are copied before the reply: to its region, or where named matrices are.
 */
static uint64_t to_copy(const struct gm_request *r)
{
    bool adopts = r->run.kept.named && !r->plan.result_on_device;

    return r->plan.region_bytes + (adopts ? gm_matrix_to_adopt(&r->run.kept, &r->run.result) : 0);
}

/* Whether what follows the job takes an event thread too long. */
static bool is_long(const struct gm_request *r)
{
    return waits_for_disk(r) || r->plan.text_bytes + to_copy(r) > GM_TEXT_INLINE_BYTES_MAX;
}

static void job_done(struct gm_job *job)
{
    struct gm_request *r = gm_request_of_job(job);

    gm_request_learn_cost(r);
    if (job->task.status != GM_OK) {
        /* Fails here, because the event thread is not called again if the client has
         * disconnected. */
        gm_request_fail(r, &job->task.error);
        gm_request_resume(r, GM_REQUEST_REPLY);
    } else if (is_long(r)) {
        gm_request_to_worker(r, encode_on_worker,
                             gm_cost_text(r->plan.text_bytes) + gm_cost_copy(to_copy(r)));
    } else if (job->last && !gm_request_job_abandoned(job, true)) {
        /* This thread has nothing else to do, and is awake: the event thread is not. A client that
         * has left is the event thread's: nothing is kept for it. */
        gm_handle_op_ran(r);
        gm_request_resume(r, GM_REQUEST_REPLY);
    } else {
        gm_request_resume(r, GM_REQUEST_RAN);
    }
}

static void set_job(struct gm_request *r)
{
    struct gm_job *job = &r->run.job;
    uint64_t repeat = r->parsed.params.repeat;

    gm_request_set_job(r, job_done);
    job->task.repeat = repeat > 0 ? (unsigned)repeat : 1;
    job->exclusive = job->task.repeat > 1 && r->plan.device->facts->kind != GM_DEVICE_SIM;
    gm_request_set_slot(r);
}

/* Whether an event thread may do all of the request but the job. */
static bool brief(const struct gm_request *r)
{
    return !r->connection.suspended && !r->run.job.exclusive && !is_long(r);
}

/* Runs a tiny job of the CPU on this thread: to hand it to another would take longer. Returns false
 * if it is left for the queue. */
static bool ran_tiny(struct gm_request *r)
{
    if (!brief(r) || !r->plan.device->backend->run_here || !gm_cost_is_tiny(&r->run.job.task.op) ||
        !gm_params_take_auto(&r->parsed.params) ||
        !gm_sched_run_here(r->plan.device->sched, &r->run.job))
        return false;
    gm_request_charge_device(r);
    return true;
}

/* The same for an admitted job of an idle device, where no other request waits, by a kernel that
 * has run before (the first run loads it). While it runs the request counts as suspended, since
 * only its device can end it. */
static bool ran_alone(struct gm_request *r)
{
    const struct gm_task *task = &r->run.job.task;
    unsigned none = 0;

    if (!brief(r) || !task->variant->groups ||
        !gm_cost_is_learnt(&r->plan.device->cost, task->variant) ||
        r->run.job.slot.cost_s * 1e6 > GM_INLINE_US_MAX ||
        !atomic_compare_exchange_strong(&r->server->suspended, &none, 1))
        return false;
    bool ran = gm_sched_run_if_idle(r->plan.device->sched, &r->run.job);
    atomic_fetch_sub(&r->server->suspended, 1);
    if (ran)
        gm_request_learn_cost(r);
    return ran;
}

/* Checks the least cost of repeated runs beforehand, because they hold the device alone. */
static enum gm_status check_cost(const struct gm_plan *plan, uint64_t repeat, struct gm_error *err)
{
    const struct gm_device_facts *facts = plan->device->facts;
    const struct gm_op *op = &plan->op;

    if (facts->kind == GM_DEVICE_SIM)
        return gm_cost_simulated(op, repeat > 1 ? repeat : 1, err);
    double seconds = gm_cost_seconds(op, facts);
    if (repeat <= 1 || seconds * (double)repeat <= GM_REPEAT_COST_S)
        return GM_OK;
    double runs = floor(GM_REPEAT_COST_S / seconds);
    return gm_fail(err, GM_COST_LIMIT,
                   "%llu runs would take at least %.0f seconds; at most %d may be taken, which is "
                   "repeat=%.0f",
                   (unsigned long long)repeat, seconds * (double)repeat, GM_REPEAT_COST_S,
                   runs < 1 ? 1 : runs);
}

/* Room for what a binary format writes before the elements. */
static uint64_t head_bytes(const struct gm_codec *codec)
{
    _Static_assert((GM_HEAD_MAX | STATS_TEXT_MAX) % GM_DEVICE_ALIGNMENT == 0, "so are elements");
    return codec->encode ? 0 : GM_HEAD_MAX + (codec->carries_stats ? STATS_TEXT_MAX : 0);
}

/* Whether the result fits into its region, beside the operands that are in shared memory. */
static enum gm_status check_region(const struct gm_parsed *parsed, uint64_t result_bytes,
                                   struct gm_error *err)
{
    struct gm_region_use into = parsed->into;

    if (into.bytes < result_bytes)
        return gm_fail(err, GM_BAD_SHAPE,
                       "the result has %llu bytes, and there is room for %llu in its region",
                       (unsigned long long)result_bytes, (unsigned long long)into.bytes);
    into.bytes = result_bytes;
    for (unsigned i = 0; i < GM_OPERANDS_MAX; i++)
        if (gm_region_overlap(&parsed->from[i], &into))
            return gm_fail(err, GM_BAD_PARAMETER,
                           "the result and operand %c have bytes of shared memory in common",
                           'a' + (int)i);
    return GM_OK;
}

/* Memory of the job and its reply, beside the operands, which are allocated already. */
enum gm_status gm_operation_memory(struct gm_plan *plan, const struct gm_plan_input *in,
                                   struct gm_error *err)
{
    const struct gm_parsed *parsed = in->parsed;
    const struct gm_allocator host = in->devices->host;
    const struct gm_region_use *into = &parsed->into;
    const struct gm_allocator allocator = gm_plan_allocator(plan);
    const struct gm_op *op = &plan->op;
    /* The result is written to memory of the device, which only the matrix it becomes counts. */
    bool stays = *parsed->params.keep && parsed->params.returns != GM_RETURN_RESULT &&
                 allocator.backend->device_get;
    uint64_t text = 0;

    uint64_t result_bytes = gm_matrix_bytes(&op->result);
    plan->direct = NULL;
    plan->region_bytes = 0;
    if (into->region) {
        enum gm_status status = check_region(parsed, result_bytes, err);
        if (status != GM_OK)
            return status;
        plan->direct =
            gm_region_direct(into, allocator, plan->device->facts->index, &plan->result_on_device);
        plan->region_bytes = plan->direct ? 0 : result_bytes;
    }
    plan->result_on_device = plan->direct && plan->result_on_device;
    plan->head_bytes = head_bytes(plan->codec);
    plan->result_bytes = plan->direct || stays ? 0 : plan->head_bytes + result_bytes;
    plan->scratch_bytes = allocator.backend->scratch_bytes(allocator.context, op, plan->variant);
    plan->text_bytes = 0;
    plan->bytes = gm_allocation_cost(allocator, plan->result_bytes);
    if (plan->codec->encode_bound) {
        enum gm_status status = plan->codec->encode_bound(&op->result, &plan->text_bytes, err);
        if (status != GM_OK)
            return status;
        plan->text_bytes += STATS_TEXT_MAX;
        text = gm_allocation_cost(host, plan->text_bytes);
    }
    if (!gm_size_add(plan->bytes, plan->scratch_bytes, &plan->bytes) ||
        !gm_size_add(plan->bytes, text, &plan->bytes))
        plan->bytes = UINT64_MAX;
    return GM_OK;
}

enum gm_status gm_handle_op_plan(struct gm_plan *plan, const struct gm_plan_input *in,
                                 struct gm_error *err)
{
    const struct gm_params *params = &in->parsed->params;
    enum gm_status status = gm_choose(plan->device->choices, &plan->op, plan->device->facts,
                                      params->kernel, &plan->variant, err);

    if (status == GM_OK)
        status = check_cost(plan, params->repeat, err);
    return status == GM_OK ? gm_operation_memory(plan, in, err) : status;
}

/* Makes the named matrix that the result becomes. On a device, it has its memory from now on; else
 * it takes over the result's buffer, which the reply may be sent from too. */
static enum gm_status make_kept(struct gm_request *r, struct gm_error *err)
{
    const struct gm_params *params = &r->parsed.params;
    struct gm_plan *plan = &r->plan;

    if (!*params->keep)
        return params->ttl_s == 0 && !*params->share
                   ? GM_OK
                   : gm_fail(err, GM_BAD_PARAMETER,
                             "ttl and share are of a result that is kept: add keep=NAME");
    if (r->parsed.into.region)
        return gm_fail(err, GM_BAD_PARAMETER,
                       "the result goes into a region, or is kept: not both");
    const struct gm_matrix_caller caller = gm_request_matrix_caller(r);
    const struct gm_matrix_terms terms = gm_request_matrix_terms(r);
    const struct gm_conditions conditions = gm_request_conditions(r);
    enum gm_status status = gm_matrix_make(&r->server->matrices, &caller, params->keep, &terms,
                                           &conditions, &plan->op.result, &r->run.kept, err);
    if (status != GM_OK || plan->result_bytes > 0)
        return status;
    plan->direct = gm_matrix_place(&r->run.kept, plan->device);
    plan->result_on_device = plan->direct != NULL;
    if (!plan->direct) /* there is no room: it goes to the host, as that of others does */
        plan->result_bytes = plan->head_bytes + gm_matrix_bytes(&plan->op.result);
    return GM_OK;
}

static enum gm_status admit(struct gm_request *r, struct gm_error *err)
{
    enum gm_status status = gm_request_plan(r, GM_PLAN_ALL_OPERANDS, err);

    if (status == GM_OK)
        status = make_kept(r, err);
    if (status == GM_OK)
        status = gm_allocation_make(&r->run.result, &r->reservation, gm_plan_allocator(&r->plan),
                                    r->plan.result_bytes, err);
    return status == GM_OK ? gm_request_still_wanted(r, err) : status;
}

enum gm_progress gm_handle_op(struct gm_request *r)
{
    struct gm_error error;

    if (admit(r, &error) != GM_OK)
        return gm_request_fail(r, &error);
    set_job(r);
    bool ran = ran_tiny(r);
    if (!ran) {
        if (gm_sched_admit(r->plan.device->sched, &r->run.job, &error) != GM_OK)
            return gm_request_fail(r, &error);
        ran = ran_alone(r);
    }
    if (ran) {
        gm_stats_add(&r->server->stats, GM_COUNT_RAN_INLINE, 1);
        gm_handle_op_ran(r);
        return GM_READY;
    }
    gm_request_suspend(r);
    r->state = GM_REQUEST_QUEUED;
    gm_sched_commit(r->plan.device->sched, &r->run.job);
    return GM_PENDING;
}

/* The account as the end of a text, in the syntax of the route's protocol. */
struct ending {
    const char *before, *after;
    char *text;
    size_t head_len; /* of a binary reply: what is before its elements */
};

static bool infers(const struct gm_request *r)
{
    return r->route->body == GM_BODY_INFER;
}

/* Call after the text was written, because the account includes the time of that. */
static enum gm_status make_ending(struct gm_request *r, const struct gm_account_job *job,
                                  struct ending *ret, struct gm_error *err)
{
    int64_t now = gm_now_ns();

    gm_account_lap(&r->account, GM_STAGE_ENCODE, now);
    ret->before = infers(r) ? "," : ",\"stats\":";
    ret->after = infers(r) ? "}" : "}\n";
    ret->text = infers(r) ? gm_infer_account(r, job, now) : gm_account_json(&r->account, job, now);
    if (ret->text && strlen(ret->text) + 16 <= STATS_TEXT_MAX)
        return GM_OK;
    return gm_fail(err, GM_MEMORY_FULL, "no memory for the account");
}

static uint64_t append_ending(char *text, uint64_t len, const struct ending *ending)
{
    const char *end =
        stpcpy(stpcpy(stpcpy(text + len, ending->before), ending->text), ending->after);

    return (uint64_t)(end - text);
}

static enum gm_status encode_text(struct gm_request *r, const struct gm_account_job *job,
                                  struct ending *ending, struct gm_error *err)
{
    const struct gm_encode_options options = {.nonfinite_null = r->parsed.params.nonfinite_null};
    uint64_t len;
    enum gm_status status = gm_allocation_make(&r->reply_text, &r->reservation,
                                               r->server->devices.host, r->plan.text_bytes, err);

    if (status == GM_OK)
        status =
            r->plan.codec->encode(&r->run.job.task.op.result, &options, r->reply_text.buffer.data,
                                  r->plan.text_bytes - STATS_TEXT_MAX, &len, err);
    if (status != GM_OK)
        return status;
    gm_allocation_free(&r->run.result, &r->reservation);
    status = make_ending(r, job, ending, err);
    if (status != GM_OK)
        return status;
    if (r->plan.codec->carries_stats)
        len = append_ending(r->reply_text.buffer.data, len, ending);
    r->reply.body = r->reply_text.buffer.data;
    r->reply.body_len = len;
    return GM_OK;
}

/* Writes the head into the room before the elements, so that both are sent as one. */
static enum gm_status encode_binary(struct gm_request *r, const struct gm_account_job *job,
                                    struct ending *ending, struct gm_error *err)
{
    const struct gm_matrix *result = &r->run.job.task.op.result;
    char *elements = result->data, *room = elements - r->plan.head_bytes;
    size_t len;
    enum gm_status status = r->plan.codec->head(result, room, &len, err);

    if (status == GM_OK)
        status = make_ending(r, job, ending, err);
    if (status != GM_OK)
        return status;
    if (r->plan.codec->carries_stats)
        len = append_ending(room, len, ending);
    ending->head_len = len;
    r->reply.body = memmove(elements - len, room, len);
    r->reply.body_len = len + gm_matrix_bytes(result);
    return GM_OK;
}

/* Headers of a result, and of its account if the text does not carry it. */
static void set_headers(struct gm_request *r, const struct ending *ending)
{
    const struct gm_matrix *result = &r->run.job.task.op.result;
    char timing[GM_SERVER_TIMING_MAX], text[GM_SHAPE_TEXT_MAX];

    if (!r->plan.codec->carries_stats) { /* such a format may lack shape and type too */
        gm_reply_header(&r->reply, "Gemmd-Shape", gm_matrix_shape_text(result, text));
        gm_reply_header(&r->reply, "Gemmd-Dtype", gm_dtype_name(result->dtype));
    }
    if (ending->head_len > 0 && infers(r)) {
        snprintf(text, sizeof text, "%zu", ending->head_len);
        gm_reply_header(&r->reply, "Inference-Header-Content-Length", text);
    }
    gm_account_server_timing(&r->account, r->plan.variant->name, timing);
    gm_reply_header(&r->reply, "Server-Timing", timing);
    if (!infers(r))
        gm_reply_header(&r->reply, "Gemmd-Stats", ending->text);
}

/* Keeps the account for /v1/requests. */
static void remember(struct gm_request *r, const struct gm_account_job *job)
{
    const struct gm_task *task = job->task;
    const int64_t ago_ns = gm_now_ns() - r->account.started_ns;
    struct timespec now;
    struct gm_recent recent = {.client = r->head.client,
                               .account = r->account,
                               .device = job->device,
                               .placed = job->placed,
                               .facts = job->facts,
                               .op = *job->op,
                               .variant = task->variant,
                               .times = task->times,
                               .volume = task->volume,
                               .has_accesses = task->has_accesses,
                               .accesses = task->accesses,
                               .repeat = task->repeat,
                               .batch = job->batch,
                               .concurrent = job->concurrent,
                               .stream = r->run.job.stream,
                               .started_ns = r->run.job.started_ns,
                               .finished_ns = r->run.job.finished_ns};

    for (unsigned i = 0; i < GM_OPERANDS_MAX; i++)
        recent.op.operand[i].data = NULL;
    recent.op.result.data = NULL;
    recent.op.graph = NULL;
    clock_gettime(CLOCK_REALTIME, &now);
    recent.arrived_unix_us = now.tv_sec * 1000000 + (now.tv_nsec - ago_ns) / 1000;
    strcpy(recent.id, r->id);
    strcpy(recent.client_name, *r->caller.name ? r->caller.name : r->head.address);
    gm_recents_add(&r->server->recents, &recent);
}

static enum gm_status make_reply(struct gm_request *r, struct gm_error *err)
{
    const struct gm_account_job job = {.id = r->id,
                                       .device = r->plan.device->name,
                                       .placed = gm_placed_name(r->plan.placed),
                                       .op = &r->run.job.task.op,
                                       .task = &r->run.job.task,
                                       .facts = r->plan.device->facts,
                                       .batch = r->run.job.batch,
                                       .concurrent = r->run.job.concurrent};
    struct ending ending = {0};
    enum gm_status status = GM_OK;
    bool created;

    if (r->parsed.into.region)
        status = r->plan.direct ? gm_region_check(&r->parsed.into, err)
                                : gm_region_write(&r->parsed.into, job.op->result.data,
                                                  r->plan.region_bytes, err);
    gm_region_leave(&r->parsed.into);
    if (status == GM_OK && r->run.kept.named && !r->plan.result_on_device)
        status = gm_matrix_adopt(&r->run.kept, &r->run.result, &r->reservation,
                                 r->run.job.task.op.result.data, err);
    if (status != GM_OK)
        return status;
    status = r->plan.codec->encode ? encode_text(r, &job, &ending, err)
                                   : encode_binary(r, &job, &ending, err);

    if (status == GM_OK && r->run.kept.named) /* last, so that no failure leaves it there */
        status = gm_request_publish(r, &created, err);
    if (status == GM_OK)
        set_headers(r, &ending);
    free(ending.text);
    if (status != GM_OK)
        return status;
    r->reply.http = 200;
    r->reply.media_type = r->plan.codec->media_type;
    gm_stats_account(&r->server->stats, r->route->op, &r->account);
    remember(r, &job);
    gm_stats_add(&r->server->stats, GM_COUNT_KERNEL_BYTES, gm_op_bytes_min(&r->run.job.task.op));
    gm_stats_add(&r->server->stats, GM_COUNT_KERNEL_FLOPS,
                 (uint64_t)gm_op_flops(&r->run.job.task.op));
    return GM_OK;
}

void gm_handle_op_ran(struct gm_request *r)
{
    struct gm_task *task = &r->run.job.task;
    struct gm_error error;
    enum gm_status status = task->status;

    if (status != GM_OK) {
        gm_request_fail(r, &task->error);
        return;
    }
    gm_account_ran(&r->account, &task->times, r->run.job.started_ns, r->run.job.finished_ns);
    gm_body_drop_operands(&r->body);
    gm_reservation_trim(&r->reservation,
                        gm_allocation_cost(r->server->devices.host, r->plan.text_bytes));
    gm_account_lap(&r->account, GM_STAGE_QUEUE, gm_now_ns());
    status = make_reply(r, &error);
    if (status != GM_OK)
        gm_request_fail(r, &error);
    r->state = GM_REQUEST_REPLY;
}
