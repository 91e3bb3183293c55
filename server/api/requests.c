/*
 * requests.c - GET /v1/requests: the last accounts, with the start of each stage, as JSON and as
 * pictures.
 */
#include "server/clock.h"
#include "server/limits.h"
#include "server/request/request.h"
#include "server/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The longest account has about 1.2 KB, and its stages take 60 bytes each. */
#define RECORD_TEXT_MAX 3072
/* Time that writing one takes, for the workers' queue. */
#define RECORD_S 5e-6

/* What a request asks for. */
struct question {
    uint64_t since, limit;
    const char *id, *device, *op; /* NULL: any */
    uint64_t from_us, to_us;      /* of the daemon's clock; 0: not said */
};

static enum gm_status read_number(const char *name, const char *text, uint64_t least, uint64_t most,
                                  uint64_t *ret, struct gm_error *err)
{
    size_t digits = strspn(text, "0123456789");
    uint64_t value = strtoull(text, NULL, 10);

    if (digits == 0 || digits > 19 || text[digits] || value < least || value > most)
        return gm_fail(err, GM_BAD_PARAMETER,
                       "%s is '%.40s'; it must be a whole number from %llu to %llu", name, text,
                       (unsigned long long)least, (unsigned long long)most);
    *ret = value;
    return GM_OK;
}

static enum gm_status read_one(const char *name, const char *value, struct question *ret,
                               struct gm_error *err)
{
    /* Half of the clock's range, so that no sum of two overflows. */
    const uint64_t latest_us = INT64_MAX / 2000;

    if (strcmp(name, "since") == 0)
        return read_number(name, value, 0, INT64_MAX, &ret->since, err);
    if (strcmp(name, "limit") == 0)
        return read_number(name, value, 1, GM_RECENT_ACCOUNTS_MAX, &ret->limit, err);
    if (strcmp(name, "from_us") == 0)
        return read_number(name, value, 0, latest_us, &ret->from_us, err);
    if (strcmp(name, "to_us") == 0)
        return read_number(name, value, 1, latest_us, &ret->to_us, err);
    const char **text = strcmp(name, "id") == 0       ? &ret->id
                        : strcmp(name, "device") == 0 ? &ret->device
                        : strcmp(name, "op") == 0     ? &ret->op
                                                      : NULL;
    if (!text)
        return gm_fail(err, GM_UNKNOWN_PARAMETER,
                       "there is no parameter '%.40s'; there are since, limit, id, device, op, "
                       "from_us and to_us",
                       name);
    if (!*value)
        return gm_fail(err, GM_BAD_PARAMETER, "%s is empty", name);
    *text = value;
    return GM_OK;
}

static enum gm_status read_question(const struct gm_request_head *head, struct question *ret,
                                    struct gm_error *err)
{
    enum gm_status status = gm_head_check_queries(head, err);

    *ret = (struct question){.limit = 100};
    for (unsigned i = 0; i < head->queries && status == GM_OK; i++) {
        const char *name = head->query[i].name, *value = head->query[i].value;
        status = read_one(name ? name : "", value ? value : "", ret, err);
    }
    return status;
}

static double us_since_start(const struct gm_request *r, int64_t ns)
{
    return (double)(ns - r->server->started_ns) / 1e3;
}

static void write_stages(struct gm_json_line *line, const struct gm_request *r,
                         const struct gm_recent *recent)
{
    const struct gm_account *account = &recent->account;

    gm_json_line_open(line, "stages", '[');
    for (unsigned i = 0; i < account->spans; i++) {
        const struct gm_span *span = &account->span[i];
        gm_json_line_open(line, NULL, '{');
        gm_json_line_string(line, "stage", gm_stage_name(span->stage));
        gm_json_line_real(line, "start_us", us_since_start(r, span->start_ns));
        gm_json_line_real(line, "us", (double)(span->end_ns - span->start_ns) / 1e3);
        gm_json_line_close(line, '{');
    }
    gm_json_line_close(line, '[');
    if (recent->started_ns == 0)
        return;
    gm_json_line_open(line, "ran", '{');
    if (recent->stream >= 0)
        gm_json_line_integer(line, "stream", recent->stream);
    gm_json_line_real(line, "start_us", us_since_start(r, recent->started_ns));
    gm_json_line_real(line, "us", (double)(recent->finished_ns - recent->started_ns) / 1e3);
    gm_json_line_close(line, '{');
}

static void write_record(struct gm_json_line *line, const struct gm_request *r,
                         const struct gm_recent *recent)
{
    const struct gm_task task = {.op = recent->op,
                                 .variant = recent->variant,
                                 .repeat = recent->repeat,
                                 .times = recent->times,
                                 .volume = recent->volume,
                                 .has_accesses = recent->has_accesses,
                                 .accesses = recent->accesses};
    const struct gm_account_job job = {.id = recent->id,
                                       .device = recent->device,
                                       .placed = recent->placed,
                                       .op = &task.op,
                                       .task = &task,
                                       .facts = recent->facts,
                                       .batch = recent->batch,
                                       .concurrent = recent->concurrent};

    gm_json_line_open(line, NULL, '{');
    gm_json_line_integer(line, "number", (int64_t)recent->number);
    gm_json_line_string(line, "client", recent->client_name);
    gm_json_line_integer(line, "arrived_unix_us", recent->arrived_unix_us);
    gm_json_line_real(line, "arrived_us", us_since_start(r, recent->account.started_ns));
    write_stages(line, r, recent);
    gm_json_line_open(line, "account", '{');
    gm_account_members(line, &recent->account, &job, false);
    gm_json_line_close(line, '{');
    gm_json_line_close(line, '{');
}

static enum gm_status write_json(struct gm_request *r, const struct gm_recent *recent, size_t n,
                                 struct gm_error *err)
{
    const uint64_t size = (n + 1) * RECORD_TEXT_MAX;
    enum gm_status status =
        gm_allocation_make(&r->reply_text, &r->reservation, r->server->devices.host, size, err);

    if (status != GM_OK)
        return status;
    struct gm_json_line line = gm_json_line_begin(r->reply_text.buffer.data, size);
    gm_json_line_open(&line, NULL, '{');
    gm_json_line_real(&line, "now_us", us_since_start(r, gm_now_ns()));
    gm_json_line_open(&line, "requests", '[');
    for (size_t i = 0; i < n; i++)
        write_record(&line, r, &recent[i]);
    gm_json_line_close(&line, '[');
    gm_json_line_close(&line, '{');
    if (!gm_json_line_end(&line))
        return gm_fail(err, GM_INTERNAL, "the accounts are longer than they can be");
    *line.at++ = '\n'; /* in the place of its zero */
    r->reply.http = 200;
    r->reply.media_type = "application/json";
    r->reply.body = line.begin;
    r->reply.body_len = (uint64_t)(line.at - line.begin);
    return GM_OK;
}

static bool is_selective(const struct question *question)
{
    return question->id || question->device || question->op || question->from_us || question->to_us;
}

/* Whether it is one of those that are asked for, and was there within the time. */
static bool is_wanted(const struct gm_request *r, const struct question *question,
                      const struct gm_recent *recent)
{
    const double begun = us_since_start(r, recent->account.started_ns);
    const double ended = begun + recent->account.total_us;

    return (!question->id || strcmp(question->id, recent->id) == 0) &&
           (!question->device || strcmp(question->device, recent->device) == 0) &&
           (!question->op || strcmp(question->op, gm_op_name(recent->op.kind)) == 0) &&
           ended >= (double)question->from_us &&
           (question->to_us == 0 || begun <= (double)question->to_us);
}

/* A client's own, or with the role `read` all. Without keys everybody has all roles, and requests
 * are their address's all the same. ret: room for as many as are kept. */
static size_t copy_visible(struct gm_request *r, const struct question *question,
                           struct gm_recent *ret)
{
    bool all = *r->caller.name && (r->caller.roles & GM_ROLE_READ);
    size_t n =
        gm_recents_copy(&r->server->recents, all ? NULL : &r->head.client, question->since, ret,
                        is_selective(question) ? GM_RECENT_ACCOUNTS_MAX : question->limit);
    size_t wanted = 0;

    if (!is_selective(question))
        return n;
    for (size_t i = 0; i < n; i++)
        if (is_wanted(r, question, &ret[i]))
            ret[wanted++] = ret[i];
    size_t most = wanted < question->limit ? wanted : question->limit;
    memmove(ret, &ret[wanted - most], most * sizeof *ret);
    return most;
}

/* Its memory is the request's, as that of a text is. */
static enum gm_status write_picture(struct gm_request *r, char *text, struct gm_error *err)
{
    size_t len = text ? strlen(text) : 0;
    enum gm_status status = text ? gm_allocation_make(&r->reply_text, &r->reservation,
                                                      r->server->devices.host, len, err)
                                 : gm_fail(err, GM_MEMORY_FULL, "no memory for this picture");

    if (status == GM_OK) {
        memcpy(r->reply_text.buffer.data, text, len);
        r->reply.http = 200;
        r->reply.media_type = "image/svg+xml";
        r->reply.body = r->reply_text.buffer.data;
        r->reply.body_len = len;
    }
    free(text);
    return status;
}

typedef char *drawing(const struct gm_recent *recent, size_t n, const struct gm_window *window);

/* NULL: no picture is asked for. */
static drawing *drawing_of(const char *path)
{
    if (strstr(path, "/roofline.svg"))
        return gm_requests_roofline_svg;
    if (strstr(path, "/streams.svg"))
        return gm_requests_streams_svg;
    if (strstr(path, "/live.svg"))
        return gm_requests_live_svg;
    return strstr(path, "/waterfall.svg") ? gm_requests_waterfall_svg : NULL;
}

static struct gm_window window_of(const struct gm_request *r, const struct question *question)
{
    const int64_t start = r->server->started_ns, now = gm_now_ns();

    return (struct gm_window){
        .from_ns = question->from_us ? start + (int64_t)question->from_us * 1000 : 0,
        .to_ns = question->to_us ? start + (int64_t)question->to_us * 1000 : 0,
        .now_ns = now,
    };
}

static enum gm_status write_reply(struct gm_request *r, const struct question *question,
                                  struct gm_error *err)
{
    struct gm_recent *recent =
        calloc(is_selective(question) ? GM_RECENT_ACCOUNTS_MAX : question->limit, sizeof *recent);
    enum gm_status status = GM_OK;

    if (!recent)
        return gm_fail(err, GM_MEMORY_FULL, "no memory for the accounts");
    size_t n = copy_visible(r, question, recent);
    drawing *draw = drawing_of(r->route->path);
    const struct gm_window window = window_of(r, question);
    if (draw)
        status = write_picture(r, draw(recent, n, &window), err);
    else
        status = write_json(r, recent, n, err);
    free(recent);
    return status;
}

static void write_on_worker(struct gm_work *work)
{
    struct gm_request *r = gm_request_of_work(work);
    struct question question;
    struct gm_error error;
    enum gm_status status = gm_request_still_wanted(r, &error);

    if (status == GM_OK)
        status = read_question(&r->head, &question, &error);
    if (status == GM_OK)
        status = write_reply(r, &question, &error);
    if (status != GM_OK)
        gm_request_fail(r, &error);
    gm_request_resume(r, GM_REQUEST_REPLY);
}

/* A thousand accounts take milliseconds to write, for which an event thread's other connections
 * would have to wait. */
enum gm_progress gm_handle_requests(struct gm_request *r)
{
    struct question question;
    struct gm_error error;

    if (read_question(&r->head, &question, &error) != GM_OK)
        return gm_request_fail(r, &error);
    return gm_request_to_worker(
        r, write_on_worker,
        (double)(is_selective(&question) ? GM_RECENT_ACCOUNTS_MAX : question.limit) * RECORD_S);
}
