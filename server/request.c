#include "server/request.h"

#include "server/body.h"
#include "server/clock.h"
#include "server/compare.h"
#include "server/handlers.h"
#include "server/limits.h"
#include "server/log.h"
#include "server/problem.h"
#include "server/request_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gm_request *gm_request_of_work(struct gm_work *work)
{
    return (struct gm_request *)((char *)work - offsetof(struct gm_request, work));
}

struct gm_request *gm_request_new(struct gm_server *server, const struct gm_request_head *head,
                                  const struct gm_carrier *carrier, void *connection, int socket)
{
    struct gm_request *r = calloc(1, sizeof *r);

    if (!r)
        return NULL;
    r->server = server;
    r->carrier = carrier;
    r->connection = connection;
    r->socket = socket;
    r->head = *head;
    r->share.budget = &server->budget;
    atomic_init(&r->references, 1);
    gm_account_start(&r->account, gm_now_ns());
    gm_request_id(&r->head, r->id);

    pthread_mutex_lock(&server->mutex);
    r->next = server->requests;
    if (r->next)
        r->next->prev = r;
    server->requests = r;
    server->request_count++;
    pthread_mutex_unlock(&server->mutex);
    return r;
}

/* Everything but the reply. */
static void drop_all(struct gm_request *r)
{
    gm_body_drop_text(r);
    gm_body_drop_operands(r);
    gm_compare_drop(r);
    gm_block_put(&r->result, &r->share);
    gm_block_put(&r->reply_text, &r->share);
    gm_access_report_clear(&r->accesses);
    gm_share_trim(&r->share, 0);
}

void gm_request_unref(struct gm_request *r)
{
    struct gm_server *server = r->server;

    if (atomic_fetch_sub(&r->references, 1) > 1)
        return;
    drop_all(r);
    gm_reply_clear(&r->reply);

    pthread_mutex_lock(&server->mutex);
    if (r->prev)
        r->prev->next = r->next;
    else
        server->requests = r->next;
    if (r->next)
        r->next->prev = r->prev;
    server->request_count--;
    pthread_mutex_unlock(&server->mutex);
    free(r);
}

/* 503 says when to come back: when the queue will have drained at its present rate. */
static unsigned retry_after(const struct gm_request *r, enum gm_status status)
{
    const struct gm_devices *devices = &r->server->devices;
    const struct gm_device *device = r->device ? r->device : &devices->device[0];

    return gm_status_http(status) == 503 ? gm_sched_retry_after(device->sched) : 0;
}

enum gm_progress gm_request_fail(struct gm_request *r, const struct gm_error *error)
{
    char types[GM_MEDIA_TYPES_MAX];

    r->error = *error;
    atomic_fetch_add_explicit(&r->server->stats.failed[error->status], 1, memory_order_relaxed);
    unsigned seconds = retry_after(r, error->status);
    drop_all(r);
    gm_problem(&r->reply, &r->error, r->id, seconds);
    if (error->status == GM_UNSUPPORTED_MEDIA_TYPE)
        gm_reply_header(&r->reply, "Accept", gm_body_media_types(types));
    if (error->status == GM_METHOD_NOT_ALLOWED)
        gm_reply_header(&r->reply, "Allow", r->allow);
    /* Where a body ends cannot be told, and what follows it on this connection cannot either. */
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
    if (r->head.queries > GM_QUERY_PARAMETERS_MAX)
        return gm_fail(err, GM_BAD_PARAMETER, "there are more than %d parameters",
                       GM_QUERY_PARAMETERS_MAX);
    for (unsigned i = 0; i < r->head.queries; i++) {
        enum gm_status status = gm_params_set(&r->params, r->route->op, r->head.query[i].name,
                                              r->head.query[i].name_len, r->head.query[i].value,
                                              r->head.query[i].value_len, err);
        if (status != GM_OK)
            return status;
    }
    return GM_OK;
}

/* Asked when the headers are there, and again when trailers are. */
static enum gm_status check_head(const struct gm_request *r, struct gm_error *err)
{
    if (r->head.bytes <= GM_HEAD_BYTES_MAX)
        return GM_OK;
    return gm_fail(err, GM_HEAD_TOO_LARGE,
                   "request line and headers, with trailers if there are any, take %llu bytes, and "
                   "%d is the limit; head_bytes_max of /v1/stats says how they are counted",
                   (unsigned long long)r->head.bytes, GM_HEAD_BYTES_MAX);
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
                       "HTTP/1.0 knows no chunked bodies: send HTTP/1.1, or a Content-Length");
    if (r->head.repeated)
        return gm_fail(err, GM_BAD_REQUEST, "%s is stated twice", r->head.repeated);
    status = gm_route_find(r->head.method, r->head.path, &r->route, r->allow, err);
    if (status != GM_OK)
        return status;
    bool large = r->head.content_lengths > 0 && r->head.content_length > GM_DISCARD_BYTES_MAX;
    if (r->route->body == GM_BODY_NONE && large)
        return gm_fail(err, GM_BODY_TOO_LARGE, "%s takes no body", r->route->path);
    if (!r->route->plan)
        return GM_OK;
    if (atomic_load(&r->server->phase) >= GM_PHASE_DRAINING)
        return gm_fail(err, GM_DRAINING, "gemmd is shutting down");
    status = read_query(r, err);
    if (status == GM_OK && *r->params.device)
        status = gm_request_pick_device(r, err);
    if (status == GM_OK)
        status = gm_body_begin(r, err);
    return status == GM_OK ? gm_request_check_queue(r, err) : status;
}

/* A failure while the body is coming: the reply waits until what remains has been dropped. */
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
}

void gm_request_give_up(struct gm_request *r, const char *why)
{
    struct gm_error error;

    if (r->state != GM_REQUEST_BODY)
        return;
    gm_fail(&error, GM_UPLOAD_TIMEOUT, "%llu bytes of the body have come, and %s",
            (unsigned long long)r->received, why);
    discard(r, &error);
}

uint64_t gm_request_remaining(const struct gm_request *r)
{
    const struct gm_request_head *h = &r->head;

    if (h->chunked > 0 || h->content_lengths > 1 || h->content_length_bad)
        return GM_SIZE_UNKNOWN;
    if (h->content_lengths == 0 || h->content_length <= r->received)
        return 0;
    return h->content_length - r->received;
}

enum gm_status gm_request_still_wanted(const struct gm_request *r, struct gm_error *err)
{
    if (atomic_load(&r->server->phase) == GM_PHASE_ENDING)
        return gm_fail(err, GM_DRAINING, "gemmd is shutting down");
    if (gm_now_ns() >= r->deadline_ns)
        return gm_fail(
            err, GM_DEADLINE,
            "the time for this request (--timeout, timeout_ms) passed before it was done");
    if (r->suspended && r->carrier->gone(r->socket, false))
        return gm_fail(err, GM_CANCELLED, "the client went away");
    return GM_OK;
}

/* A piece of a body that is still wanted. */
static enum gm_status take_piece(struct gm_request *r, const void *bytes, size_t len,
                                 struct gm_error *err)
{
    if (atomic_load_explicit(&r->server->phase, memory_order_relaxed) == GM_PHASE_ENDING)
        return gm_fail(err, GM_DRAINING, "gemmd is shutting down");
    if (r->route->body != GM_BODY_NONE)
        return gm_body_push(r, bytes, len, err);
    return r->received <= GM_DISCARD_BYTES_MAX
               ? GM_OK
               : gm_fail(err, GM_BODY_TOO_LARGE, "%s takes no body", r->route->path);
}

void gm_request_push(struct gm_request *r, const void *bytes, size_t len)
{
    struct gm_error error;

    r->received += len;
    gm_stats_add(&r->server->stats, GM_COUNT_REQUEST_BODY_BYTES, len);
    if (r->state == GM_REQUEST_DISCARD)
        r->discarded += len;
    else if (take_piece(r, bytes, len, &error) != GM_OK)
        discard(r, &error);
}

/* The time for an answer runs from the end of the body. */
static void set_deadline(struct gm_request *r)
{
    uint64_t timeout_ms = r->server->config.timeout_ms;

    if (r->params.timeout_ms > 0 && r->params.timeout_ms < timeout_ms)
        timeout_ms = r->params.timeout_ms;
    r->deadline_ns = r->body_end_ns + (int64_t)timeout_ms * 1000000;
}

/* The operands are complete, if all went well: on with the operation. */
static enum gm_progress decode_and_handle(struct gm_request *r)
{
    struct gm_error error;
    enum gm_status status = gm_request_still_wanted(r, &error);

    if (status == GM_OK)
        status = gm_body_decode(r, &error);
    gm_account_lap(&r->account, GM_STAGE_DECODE, gm_now_ns());
    set_deadline(r); /* the body may have said more of it */
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

    r->body_end_ns = gm_now_ns();
    gm_account_lap(&r->account, GM_STAGE_RECEIVE, r->body_end_ns);
    set_deadline(r);
    if (check_head(r, &error) != GM_OK)
        return gm_request_fail(r, &error);
    if (r->route->body == GM_BODY_NONE || (r->route->body == GM_BODY_OPTIONAL && r->received == 0))
        return r->route->handle(r);
    if (gm_body_end(r, &error) != GM_OK)
        return gm_request_fail(r, &error);
    if (r->body.text_len > GM_TEXT_INLINE_BYTES_MAX)
        return gm_request_to_worker(r, decode_on_worker, gm_cost_text(r->body.text_len));
    return decode_and_handle(r);
}

enum gm_progress gm_request_advance(struct gm_request *r)
{
    switch (r->state) {
    case GM_REQUEST_BODY:
        return complete_body(r);
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
    if (r->suspended)
        return;
    r->suspended = true;
    atomic_fetch_add(&r->server->suspended, 1);
    r->carrier->suspend(r->connection);
}

enum gm_progress gm_request_to_worker(struct gm_request *r, void (*run)(struct gm_work *work),
                                      double cost_s)
{
    gm_request_suspend(r);
    r->state = GM_REQUEST_WORK;
    r->work.run = run;
    r->work.place.client = r->head.client;
    r->work.place.cost_s = cost_s;
    gm_workers_add(r->server->workers, &r->work);
    return GM_PENDING;
}

void gm_request_resume(struct gm_request *r, enum gm_request_state state)
{
    struct gm_server *server = r->server;

    r->state = state;
    r->suspended = false;
    r->carrier->resume(r->connection); /* from here on the request may be gone */
    atomic_fetch_sub(&server->suspended, 1);
}
