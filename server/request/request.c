/*
 * request.c - takes a request from one state to the next. The calls that a product goes through:
 *
 *     event thread      on_headers          http/http.c      the head is complete
 *                         gm_request_begin                   route, key, quota, parameters
 *                       on_piece            http/http.c      a piece of the body has come
 *                         gm_body_push      body/body.c      operands fill; each time more is known
 *                           gm_plan_make    plan.c           device, variant, memory, format
 *                       on_request          http/http.c      the body is complete
 *                         gm_request_advance                 decodes it; large texts on a worker
 *                           gm_handle_op    api/operate.c    plans with all operands
 *                             gm_sched_commit                queues it; the connection sleeps
 *     stream's thread   run                 kernels/backend.h, called by sched/streams.c
 *                         job_done          api/operate.c    wakes the connection
 *     event thread      gm_request_advance                   in state RAN
 *                         gm_handle_op_ran  api/operate.c    encodes result and account
 *                       send_reply          http/http.c
 *
 * A tiny job, and a small one of an idle GPU, run on the event thread, in gm_handle_op.
 */
#include "server/request/request.h"

#include "server/clock.h"
#include "server/limits.h"
#include "server/log.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gm_request *gm_request_of_work(struct gm_work *work)
{
    return (struct gm_request *)((char *)work - offsetof(struct gm_request, run.work));
}

enum gm_status gm_requests_open(struct gm_server *server, struct gm_error *err)
{
    for (unsigned i = 0; i < GM_REQUEST_LISTS; i++) {
        struct gm_request_list *list = &server->being_served[i];
        LIST_INIT(&list->requests);
        list->count = 0;
        if (pthread_mutex_init(&list->mutex, NULL) == 0)
            continue;
        while (i > 0)
            pthread_mutex_destroy(&server->being_served[--i].mutex);
        return gm_fail(err, GM_INTERNAL, "no locks for the requests");
    }
    return GM_OK;
}

void gm_requests_close(struct gm_server *server)
{
    for (unsigned i = 0; i < GM_REQUEST_LISTS; i++)
        pthread_mutex_destroy(&server->being_served[i].mutex);
}

uint64_t gm_requests_count(struct gm_server *server)
{
    uint64_t count = 0;

    for (unsigned i = 0; i < GM_REQUEST_LISTS; i++) {
        struct gm_request_list *list = &server->being_served[i];
        pthread_mutex_lock(&list->mutex);
        count += list->count;
        pthread_mutex_unlock(&list->mutex);
    }
    return count;
}

static struct gm_request_list *own_list(struct gm_server *server)
{
    int processor = sched_getcpu();

    return &server->being_served[processor > 0 ? (unsigned)processor % GM_REQUEST_LISTS : 0];
}

struct gm_request *gm_request_new(struct gm_server *server, struct gm_request_head *head,
                                  const struct gm_transport *transport, void *connection,
                                  int socket)
{
    struct gm_request *r = calloc(1, sizeof *r);

    if (!r) {
        gm_head_clear(head);
        return NULL;
    }
    r->server = server;
    r->connection.transport = transport;
    r->connection.handle = connection;
    r->connection.socket = socket;
    r->head = *head;
    r->body.head = &r->head;
    r->body.reservation = &r->reservation;
    r->body.parsed = &r->parsed;
    r->reservation.quota = &server->memory;
    r->reservation.client = head->client;
    r->reservation.in_steps = true;
    atomic_init(&r->references, 1);
    gm_account_start(&r->account, gm_now_ns());
    gm_request_id(&r->head, r->id);

    r->list = own_list(server);
    pthread_mutex_lock(&r->list->mutex);
    LIST_INSERT_HEAD(&r->list->requests, r, link);
    r->list->count++;
    pthread_mutex_unlock(&r->list->mutex);
    return r;
}

/* Frees everything but the reply. */
static void drop_all(struct gm_request *r)
{
    gm_body_drop_text(&r->body);
    gm_body_drop_operands(&r->body);
    if (r->run.state)
        r->route->drop(r);
    gm_region_leave(&r->parsed.into);
    gm_matrix_leave(&r->run.kept);
    gm_allocation_free(&r->run.result, &r->reservation);
    gm_allocation_free(&r->reply_text, &r->reservation);
    gm_access_report_clear(&r->run.accesses);
    gm_access_report_clear(&r->run.against);
    gm_graph_free(r->plan.op.graph);
    r->plan.op.graph = NULL;
    gm_reservation_trim(&r->reservation, 0);
}

/* Ends the job, and corrects the charge of a body that came in another length than was said. */
static void settle_quota(struct gm_request *r)
{
    struct gm_quota *quota = r->caller.quota;

    /* What was refused costs nothing: else a client that tries again stays out. */
    if (!r->charged.entered)
        return;
    if (!r->charged.counted)
        gm_quota_count(quota, r->body.received + r->charged.body_sent, r->charged.device_ns);
    r->charged.counted = true;
    if (r->charged.is_job)
        gm_quota_leave(quota);
    r->charged.is_job = false;
    if (!gm_quota_has_rates(quota))
        return;
    if (r->charged.body_charged > r->body.received)
        gm_quota_return_bytes(quota, r->charged.body_charged, r->body.received);
    else if (r->body.received > r->charged.body_charged)
        gm_quota_charge_bytes(quota, r->body.received - r->charged.body_charged, gm_now_ns());
    r->charged.body_charged = r->body.received;
}

void gm_request_finish(struct gm_request *r)
{
    char policy[GM_RATE_LIMIT_MAX], state[GM_RATE_LIMIT_MAX];
    bool head = strcmp(r->head.method, "HEAD") == 0;
    bool page =
        r->route && strcmp(r->route->method, "GET") == 0 && !(r->route->roles & GM_ROLE_PROBE);

    gm_access_headers(&r->server->access, &r->head, r->error.status, page, &r->reply);
    if (!r->caller.quota)
        return;
    r->charged.body_sent = head ? 0 : r->reply.body_len;
    settle_quota(r);
    if (!gm_quota_has_rates(r->caller.quota))
        return;
    if (r->charged.entered)
        gm_quota_charge_bytes(r->caller.quota, r->charged.body_sent, gm_now_ns());
    gm_quota_headers(r->caller.quota, gm_now_ns(), policy, state);
    if (*policy) {
        gm_reply_header(&r->reply, "RateLimit-Policy", policy);
        gm_reply_header(&r->reply, "RateLimit", state);
    }
}

void gm_request_unref(struct gm_request *r)
{
    struct gm_request_list *list = r->list;

    if (atomic_fetch_sub(&r->references, 1) > 1)
        return;
    drop_all(r);
    gm_reply_clear(&r->reply);
    settle_quota(r);
    gm_quota_unref(r->caller.quota);
    gm_head_clear(&r->head);

    pthread_mutex_lock(&list->mutex);
    LIST_REMOVE(r, link);
    list->count--;
    pthread_mutex_unlock(&list->mutex);
    free(r);
}

/* Whether the job's time went by while it ran: it would again. */
static bool is_too_long(const struct gm_job *job)
{
    int64_t until = job->finished_ns > 0 ? job->finished_ns : gm_now_ns();

    return job->started_ns > 0 && 2 * (until - job->started_ns) > job->deadline_ns - job->queued_ns;
}

/* Seconds for Retry-After: of a 503, when the queue will have drained at its present rate; of a
 * 429, when the quota allows it, or when other requests of the client may have ended. 0: waiting
 * does not help. */
static unsigned retry_after(const struct gm_request *r, enum gm_status status)
{
    const struct gm_devices *devices = &r->server->devices;
    const struct gm_device *device = r->plan.device ? r->plan.device : &devices->device[0];

    if (status == GM_QUOTA_EXCEEDED)
        return r->charged.wait_s > 0 ? r->charged.wait_s : 1;
    if (status == GM_DEADLINE && is_too_long(&r->run.job))
        return 0;
    return gm_status_http(status) == 503 ? gm_sched_retry_after(device->sched) : 0;
}

enum gm_progress gm_request_fail(struct gm_request *r, const struct gm_error *error)
{
    char types[GM_MEDIA_TYPES_MAX];

    r->error = *error;
    atomic_fetch_add_explicit(&r->server->stats.failed[error->status], 1, memory_order_relaxed);
    unsigned seconds = retry_after(r, error->status);
    drop_all(r);
    gm_reply_error(&r->reply, &r->error, r->head.path, r->id, seconds);
    if (error->status == GM_UNSUPPORTED_MEDIA_TYPE && gm_body_is_encoded(&r->head))
        gm_reply_header(&r->reply, "Accept-Encoding", "identity");
    else if (error->status == GM_UNSUPPORTED_MEDIA_TYPE)
        gm_reply_header(&r->reply, "Accept", gm_body_media_types(r->body.kind, types));
    if (error->status == GM_METHOD_NOT_ALLOWED)
        gm_reply_header(&r->reply, "Allow", r->allow);
    /* The end of the body is unknown, so nothing more can be read from this connection. */
    r->reply.close = error->status == GM_BAD_LENGTH;
    r->state = GM_REQUEST_REPLY;
    return GM_READY;
}

enum gm_progress gm_request_reply(struct gm_request *r, const char *media_type, char *text)
{
    struct gm_error error;

    if (!text) {
        gm_fail(&error, GM_MEMORY_FULL, "no memory for the text of this answer");
        return gm_request_fail(r, &error);
    }
    gm_reply_text(&r->reply, 200, media_type, text);
    r->state = GM_REQUEST_REPLY;
    return GM_READY;
}

static enum gm_status read_query(struct gm_request *r, struct gm_error *err)
{
    enum gm_status status = gm_head_check_queries(&r->head, err);

    for (unsigned i = 0; i < r->head.queries && status == GM_OK; i++)
        status = gm_params_set(&r->parsed.params, r->route->op, r->head.query[i].name,
                               r->head.query[i].name_len, r->head.query[i].value,
                               r->head.query[i].value_len, err);
    return status;
}

/* Checks the size of the head. Called when the headers are complete, and again after trailers. */
static enum gm_status check_head(const struct gm_request *r, struct gm_error *err)
{
    if (r->head.bytes <= GM_HEAD_BYTES_MAX)
        return GM_OK;
    return gm_fail(err, GM_HEAD_TOO_LARGE,
                   "request line and headers, with trailers if there are any, take %llu bytes, and "
                   "%d is the limit; head_bytes_max of /v1/stats says how they are counted",
                   (unsigned long long)r->head.bytes, GM_HEAD_BYTES_MAX);
}

enum gm_status gm_request_plan(struct gm_request *r, enum gm_plan_operands operands,
                               struct gm_error *err)
{
    const struct gm_plan_input input = {.route = r->route,
                                        .head = &r->head,
                                        .parsed = &r->parsed,
                                        .devices = &r->server->devices,
                                        .operands = operands};
    enum gm_status status = gm_plan_make(&r->plan, &input, err);

    return status == GM_OK && operands != GM_PLAN_NO_OPERANDS
               ? gm_reservation_raise(&r->reservation, r->plan.bytes, err)
               : status;
}

/* Events of the body's reader. */

static enum gm_status on_settled(void *cls, struct gm_error *err)
{
    return gm_request_plan(cls, GM_PLAN_NO_OPERANDS, err);
}

static enum gm_status on_operands(void *cls, struct gm_error *err)
{
    return gm_request_plan(cls, GM_PLAN_NEEDED_OPERANDS, err);
}

enum gm_status gm_request_pick_device(struct gm_request *r, struct gm_error *err)
{
    const struct gm_plan_input input = {
        .route = r->route, .parsed = &r->parsed, .devices = &r->server->devices};

    return gm_plan_device(&r->plan, &input, err);
}

static enum gm_status on_region(void *cls, const struct gm_region_part *part,
                                struct gm_region_use *ret, struct gm_error *err)
{
    struct gm_request *r = cls;

    return gm_region_take(&r->server->regions, r->head.client, part, ret, err);
}

static enum gm_status on_allocator(void *cls, struct gm_allocator *ret, unsigned *ret_device,
                                   struct gm_error *err)
{
    struct gm_request *r = cls;
    enum gm_status status = gm_request_pick_device(r, err);

    if (status != GM_OK)
        return status;
    *ret = gm_plan_operand_allocator(&r->plan);
    *ret_device = r->plan.home->facts->index;
    return GM_OK;
}

static enum gm_status begin_body(struct gm_request *r, struct gm_error *err)
{
    struct gm_body *body = &r->body;

    body->kind = r->route->body;
    body->op = r->route->op;
    body->path = r->route->path;
    body->limit = r->server->config.body_limit;
    body->host = r->server->devices.host;
    body->events = (struct gm_body_events){
        on_settled, on_allocator, on_region, gm_request_ref, gm_request_ref_data, on_operands, r};
    return gm_body_begin(body, err);
}

/* Checks early, on the headers, whether the device has a slot for the job. After the body would be
 * late. All parameters must be known by then. */
static enum gm_status check_queue(struct gm_request *r, struct gm_error *err)
{
    const struct gm_codec *in = r->body.in;

    /* In other formats the body may name another device, and a small job may need no slot. */
    if (!in || !in->push || r->head.content_length <= GM_INLINE_BYTES_MAX)
        return GM_OK;
    enum gm_status status = gm_request_pick_device(r, err);
    return status == GM_OK ? gm_sched_check(r->plan.device->sched, r->head.client, err) : status;
}

/* Answers a preflight request; what it is about comes with another one. */
static enum gm_status reply_preflight(struct gm_request *r, struct gm_error *err)
{
    gm_reply_text(&r->reply, 204, "text/plain", strdup(""));
    return r->reply.failed ? gm_fail(err, GM_MEMORY_FULL, "no memory for this answer") : GM_OK;
}

/* Finds the route, and lets the request in or not. Who has no key does not learn what routes there
 * are. */
static enum gm_status admit(struct gm_request *r, struct gm_error *err)
{
    struct gm_access *access = &r->server->access;
    struct gm_error unknown;
    enum gm_status status = gm_access_check_browser(access, &r->head, err);

    if (status != GM_OK)
        return status;
    if (gm_access_is_preflight(access, &r->head))
        return reply_preflight(r, err);
    enum gm_status found =
        gm_route_find(r->head.method, r->head.path, &r->route, r->allow, &unknown);
    unsigned roles = found == GM_OK ? r->route->roles : GM_ROLES_ANY;
    status = gm_access_identify(access, &r->head, roles, &r->caller, err);
    if (*r->caller.name) /* the client is the key, wherever it comes from */
        r->head.client = r->caller.quota->client;
    r->reservation.client = r->head.client;
    r->reservation.client_quota = r->caller.quota;
    if (status == GM_OK && found != GM_OK) {
        *err = unknown;
        status = found;
    }
    if (status != GM_OK || (roles & GM_ROLES_UNCOUNTED))
        return status;
    uint64_t body = r->head.content_lengths > 0 ? r->head.content_length : 0;
    bool job = r->route->ran || r->route->drop; /* it runs one, or several in turns */
    status = gm_quota_enter(r->caller.quota, body, job, gm_now_ns(), &r->charged.wait_s, err);
    if (status != GM_OK)
        return status;
    r->charged.entered = true;
    r->charged.is_job = job;
    r->charged.body_charged = body;
    return GM_OK;
}

static enum gm_status begin(struct gm_request *r, struct gm_error *err)
{
    enum gm_status status = check_head(r, err);

    if (status != GM_OK)
        return status;
    if (r->head.content_length_bad || r->head.content_lengths + r->head.chunked > 1)
        return gm_fail(err, GM_BAD_LENGTH,
                       "Content-Length must be stated once, as a number, and not beside chunked");
    if (r->head.http_1_0 && r->head.chunked > 0)
        return gm_fail(err, GM_BAD_LENGTH,
                       "HTTP/1.0 has no chunked bodies: send HTTP/1.1, or a Content-Length");
    if (r->head.no_memory)
        return gm_fail(err, GM_MEMORY_FULL, "no memory for the request's head");
    if (r->head.repeated)
        return gm_fail(err, GM_BAD_REQUEST, "%s is stated twice", r->head.repeated);
    status = admit(r, err);
    if (status != GM_OK || r->reply.http)
        return status;
    bool large = r->head.content_lengths > 0 && r->head.content_length > GM_DISCARD_BYTES_MAX;
    if (r->route->body == GM_BODY_NONE && large)
        return gm_fail(err, GM_BODY_TOO_LARGE, "%s takes no body", r->route->path);
    if (!r->route->plan && r->route->body == GM_BODY_NONE)
        return GM_OK;
    if (atomic_load(&r->server->phase) >= GM_PHASE_DRAINING)
        return gm_fail(err, GM_DRAINING, "gemmd is shutting down");
    status = r->route->begin ? r->route->begin(r, err) : GM_OK;
    if (status == GM_OK && r->route->plan)
        status = read_query(r, err);
    if (status == GM_OK && *r->parsed.params.device)
        status = gm_request_pick_device(r, err);
    if (status == GM_OK)
        status = begin_body(r, err);
    return status == GM_OK ? check_queue(r, err) : status;
}

/* Handles an error during the body: the reply waits until the rest has been dropped. */
static void discard(struct gm_request *r, const struct gm_error *error)
{
    gm_request_fail(r, error);
    r->state = GM_REQUEST_DISCARD;
}

void gm_request_begin(struct gm_request *r)
{
    struct gm_error error;

    r->state = GM_REQUEST_BODY;
    if (begin(r, &error) != GM_OK)
        discard(r, &error);
    else if (r->reply.http)
        r->state = GM_REQUEST_DISCARD; /* the answer needs no body */
}

void gm_request_give_up(struct gm_request *r, const char *why)
{
    struct gm_error error;

    if (r->state != GM_REQUEST_BODY)
        return;
    gm_fail(&error, GM_UPLOAD_TIMEOUT, "%llu bytes of the body have come, and %s",
            (unsigned long long)r->body.received, why);
    discard(r, &error);
}

enum gm_status gm_request_still_wanted(const struct gm_request *r, struct gm_error *err)
{
    if (atomic_load(&r->server->phase) == GM_PHASE_ENDING)
        return gm_fail(err, GM_DRAINING, "gemmd is shutting down");
    if (gm_now_ns() >= r->run.deadline_ns)
        return gm_fail(
            err, GM_DEADLINE,
            "the time for this request (--timeout, timeout_ms) passed before it was done");
    if (r->connection.suspended && r->connection.transport->gone(r->connection.socket, false))
        return gm_fail(err, GM_CANCELLED, "the client went away");
    return GM_OK;
}

/* Reads a piece of a body that is still wanted. */
static enum gm_status take_piece(struct gm_request *r, const void *bytes, size_t len,
                                 struct gm_error *err)
{
    if (atomic_load_explicit(&r->server->phase, memory_order_relaxed) == GM_PHASE_ENDING)
        return gm_fail(err, GM_DRAINING, "gemmd is shutting down");
    if (r->route->body != GM_BODY_NONE)
        return gm_body_push(&r->body, bytes, len, err);
    return r->body.received <= GM_DISCARD_BYTES_MAX
               ? GM_OK
               : gm_fail(err, GM_BODY_TOO_LARGE, "%s takes no body", r->route->path);
}

unsigned gm_request_places(const struct gm_request *r, struct iovec place[GM_OPERANDS_MAX])
{
    return r->state == GM_REQUEST_BODY && r->route->body != GM_BODY_NONE
               ? gm_body_places(&r->body, place)
               : 0;
}

void gm_request_push(struct gm_request *r, const void *bytes, size_t len)
{
    struct gm_error error;

    r->body.received += len;
    gm_stats_add(&r->server->stats, GM_COUNT_REQUEST_BODY_BYTES, len);
    if (r->state == GM_REQUEST_DISCARD)
        r->discarded += len;
    else if (take_piece(r, bytes, len, &error) != GM_OK)
        discard(r, &error);
}

/* The time limit starts at the end of the body. */
static void set_deadline(struct gm_request *r)
{
    uint64_t timeout_ms = r->server->config.timeout_ms;

    if (r->parsed.params.timeout_ms > 0 && r->parsed.params.timeout_ms < timeout_ms)
        timeout_ms = r->parsed.params.timeout_ms;
    r->run.deadline_ns = r->run.body_end_ns + (int64_t)timeout_ms * 1000000;
}

/* Decodes the operands, and goes on with the operation if all went well. */
static enum gm_progress decode_and_handle(struct gm_request *r)
{
    struct gm_error error;
    enum gm_status status = gm_request_still_wanted(r, &error);

    if (status == GM_OK)
        status = gm_body_decode(&r->body, &error);
    gm_account_lap(&r->account, GM_STAGE_DECODE, gm_now_ns());
    set_deadline(r); /* the body may have stated timeout_ms */
    return status == GM_OK ? r->route->handle(r) : gm_request_fail(r, &error);
}

static void decode_on_worker(struct gm_work *work)
{
    struct gm_request *r = gm_request_of_work(work);

    gm_account_lap(&r->account, GM_STAGE_QUEUE, gm_now_ns());
    if (decode_and_handle(r) == GM_READY)
        gm_request_resume(r, GM_REQUEST_REPLY);
}

static enum gm_progress complete_body(struct gm_request *r)
{
    struct gm_error error;

    r->run.body_end_ns = gm_now_ns();
    gm_account_lap(&r->account, GM_STAGE_RECEIVE, r->run.body_end_ns);
    set_deadline(r);
    if (check_head(r, &error) != GM_OK)
        return gm_request_fail(r, &error);
    if (r->route->body == GM_BODY_NONE ||
        (r->route->body == GM_BODY_OPTIONAL && r->body.received == 0))
        return r->route->handle(r);
    if (gm_body_end(&r->body, &error) != GM_OK)
        return gm_request_fail(r, &error);
    if (r->body.text_len + r->body.region_bytes > GM_TEXT_INLINE_BYTES_MAX)
        return gm_request_to_worker(r, decode_on_worker,
                                    gm_cost_text(r->body.text_len) +
                                        gm_cost_copy(r->body.region_bytes));
    return decode_and_handle(r);
}

enum gm_progress gm_request_advance(struct gm_request *r)
{
    switch (r->state) {
    case GM_REQUEST_BODY:
        if (complete_body(r) != GM_READY)
            return GM_PENDING;
        r->state = GM_REQUEST_REPLY;
        break;
    case GM_REQUEST_RAN:
        r->route->ran(r);
        break;
    case GM_REQUEST_DISCARD:
        r->state = GM_REQUEST_REPLY;
        break;
    case GM_REQUEST_REPLY:
        break;
    case GM_REQUEST_WORK: /* a suspended connection's handler is not called */
    case GM_REQUEST_QUEUED:
        return GM_PENDING;
    }
    return GM_READY;
}

void gm_request_suspend(struct gm_request *r)
{
    if (r->connection.suspended)
        return;
    r->connection.suspended = true;
    atomic_fetch_add(&r->server->suspended, 1);
    r->connection.transport->suspend(r->connection.handle);
}

enum gm_progress gm_request_to_worker(struct gm_request *r, void (*run)(struct gm_work *work),
                                      double cost_s)
{
    gm_request_suspend(r);
    r->state = GM_REQUEST_WORK;
    r->run.work.run = run;
    r->run.work.slot.client = r->head.client;
    r->run.work.slot.cost_s = cost_s;
    gm_workers_add(r->server->workers, &r->run.work);
    return GM_PENDING;
}

void gm_request_resume(struct gm_request *r, enum gm_request_state state)
{
    struct gm_server *server = r->server;

    r->state = state;
    r->connection.suspended = false;
    r->connection.transport->resume(
        r->connection.handle); /* the request may be freed from here on */
    atomic_fetch_sub(&server->suspended, 1);
}

/* Between a request and its job. */

struct gm_request *gm_request_of_job(const struct gm_job *job)
{
    return (struct gm_request *)((char *)(uintptr_t)job - offsetof(struct gm_request, run.job));
}

bool gm_request_job_abandoned(const struct gm_job *job, bool running)
{
    const struct gm_request *r = gm_request_of_job(job);

    /* A client that has closed its sending half may still read. But that looks like a disconnect,
     * and queue slots are scarce, so a job that only waits counts as abandoned. */
    return r->connection.transport->gone(r->connection.socket, running);
}

/* The result's elements in its buffer. */
static void *elements(const struct gm_request *r)
{
    return (char *)r->run.result.buffer.data + r->plan.head_bytes;
}

void gm_request_set_job(struct gm_request *r, void (*done)(struct gm_job *job))
{
    struct gm_job *job = &r->run.job;

    job->task.op = r->plan.op;
    job->task.op.result.data = r->plan.direct ? r->plan.direct : elements(r);
    job->task.on_device = r->plan.result_on_device ? GM_RESULT_ON_DEVICE : 0;
    for (unsigned i = 0; i < GM_OPERANDS_MAX; i++)
        job->task.on_device |= r->parsed.on_device[i] ? 1u << i : 0;
    job->task.variant = r->plan.variant;
    job->task.repeat = 1;
    job->deadline_ns = r->run.deadline_ns;
    job->abandoned = gm_request_job_abandoned;
    job->done = done;
}

void gm_request_set_slot(struct gm_request *r)
{
    struct gm_job *job = &r->run.job;

    job->batch_key = gm_group_key(&job->task);
    job->batch_most = gm_group_most(&job->task);
    job->bytes = gm_group_bytes(&job->task);
    job->slot.client = r->head.client;
    job->slot.cost_s = gm_cost_expected(&r->plan.device->cost, &job->task, r->plan.device->facts);
    job->socket = r->connection.transport->pollable ? r->connection.socket : 0;
}

void gm_request_charge_device(struct gm_request *r)
{
    const struct gm_job *job = &r->run.job;

    if (job->started_ns == 0)
        return;
    int64_t took_ns = (job->finished_ns - job->started_ns) / (job->batch > 1 ? job->batch : 1);
    r->charged.device_ns += took_ns;
    gm_quota_charge_device(r->caller.quota, took_ns, job->finished_ns);
}

void gm_request_learn_cost(struct gm_request *r)
{
    const struct gm_job *job = &r->run.job;
    enum gm_status status = job->task.status;

    gm_request_charge_device(r);
    bool stopped = status == GM_CANCELLED || status == GM_DEADLINE;

    if (status == GM_OK || (stopped && job->started_ns > 0))
        gm_cost_learn(&r->plan.device->cost, &job->task, r->plan.device->facts,
                      (double)(job->finished_ns - job->started_ns) * 1e-9, stopped);
}
