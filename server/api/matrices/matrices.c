/*
 * matrices.c - /v1/matrices: writes, reads, deletes and lists named matrices.
 */
#include "server/clock.h"
#include "server/request/request.h"
#include "server/sched/cost.h"
#include "server/text.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is written in the path behind /v1/matrices/. */
static const char *ref_of(const struct gm_request *r)
{
    return r->head.path + strlen("/v1/matrices/");
}

static enum gm_status fail_name(const char *name, struct gm_error *err)
{
    return gm_fail(err, GM_BAD_PARAMETER,
                   "'%.130s' is no name of a matrix: it has letters, digits and _, with no digit "
                   "first, 64 at most",
                   name);
}

/* The parameters that one of these routes takes; all are of the operation copy. */
static enum gm_status check_parameters(const struct gm_request *r, const char *const names[],
                                       unsigned n, struct gm_error *err)
{
    uint64_t allowed = 0, bit;

    for (unsigned i = 0; i < n; i++)
        if (gm_params_find(GM_OP_COPY, names[i], strlen(names[i]), &bit, err) == GM_OK)
            allowed |= bit;
    return gm_params_only(&r->parsed.params, allowed, "/v1/matrices", err);
}

/* Unix time as in HTTP's documents: 2026-01-31T12:00:00Z. */
static json_t *time_json(int64_t unix_time)
{
    time_t t = (time_t)unix_time;
    struct tm parts;
    char text[32] = "";

    if (gmtime_r(&t, &parts))
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return json_string(text);
}

static json_t *matrix_json(const struct gm_matrix_facts *f)
{
    const struct gm_matrix *x = &f->matrix;
    json_t *shape = x->stacked ? json_pack("[I, I, I]", (json_int_t)x->batch, (json_int_t)x->rows,
                                           (json_int_t)x->cols)
                               : json_pack("[I, I]", (json_int_t)x->rows, (json_int_t)x->cols);
    json_t *o = json_pack("{s:s, s:o, s:s, s:I, s:s, s:s, s:b, s:o, s:o}", "name", f->name, "shape",
                          shape, "dtype", gm_dtype_name(x->dtype), "bytes", (json_int_t)f->bytes,
                          "device", f->device, "etag", f->etag, "durable", f->durable, "created",
                          time_json(f->created), "used", time_json(f->used));

    if (*f->owner != '@')
        json_object_set_new(o, "owner", json_string(f->owner));
    if (*f->share)
        json_object_set_new(o, "share", json_string(f->share));
    if (f->expires > 0)
        json_object_set_new(o, "expires", time_json(f->expires));
    return o;
}

/* ---- PUT. ---- */

static const char *const put_takes[] = {"dtype", "shape", "header", "ttl", "share", "timeout_ms"};
#define PUT_TAKES (sizeof put_takes / sizeof *put_takes)

enum gm_status gm_handle_put_begin(struct gm_request *r, struct gm_error *err)
{
    const char *name = ref_of(r);
    const bool is_own = gm_matrix_name_ok(name, strlen(name));
    uint64_t bit;

    if (!is_own && *r->caller.name && gm_matrix_ref_ok(name, strlen(name)))
        return gm_fail(err, GM_FORBIDDEN,
                       "'%.130s' names an owner: a write is of the client's own, by its name alone",
                       name);
    if (!is_own)
        return fail_name(name, err);
    if (r->head.content_range) /* RFC 9110, section 14.5 */
        return gm_fail(err, GM_BAD_REQUEST,
                       "Content-Range: a PUT replaces the whole matrix, and no part of it");
    for (unsigned i = 0; i < r->head.queries && i < GM_QUERY_PARAMETERS_MAX; i++) {
        const char *parameter = r->head.query[i].name;
        size_t len = r->head.query[i].name_len;
        enum gm_status status = gm_params_find(GM_OP_COPY, parameter, len, &bit, err);
        if (status != GM_OK) /* and not what the operation copy has */
            return gm_fail(err, status,
                           "PUT has no parameter '%.*s'; it has dtype, shape, header, ttl, share "
                           "and timeout_ms",
                           (int)(len < 40 ? len : 40), parameter);
    }
    return GM_OK;
}

/* There is nothing to run: the operand becomes the matrix. */
enum gm_status gm_handle_put_plan(struct gm_plan *plan, const struct gm_plan_input *in,
                                  struct gm_error *err)
{
    (void)in;
    (void)err;
    plan->bytes = 0;
    return GM_OK;
}

static enum gm_status put(struct gm_request *r, bool *ret_created, struct gm_error *err)
{
    const struct gm_matrix_caller caller = gm_request_matrix_caller(r);
    const struct gm_matrix_terms terms = gm_request_matrix_terms(r);
    const struct gm_conditions conditions = gm_request_conditions(r);
    struct gm_parsed *p = &r->parsed;
    bool on_device;
    void *data;
    enum gm_status status = check_parameters(r, put_takes, PUT_TAKES, err);

    if (status == GM_OK)
        status = gm_request_plan(r, GM_PLAN_ALL_OPERANDS, err);
    if (status == GM_OK)
        status = gm_matrix_make(&r->server->matrices, &caller, ref_of(r), &terms, &conditions,
                                &p->operand[0], &r->run.kept, err);
    if (status == GM_OK)
        status =
            gm_matrix_adopt(&r->run.kept, &p->memory[0], &r->reservation, p->operand[0].data, err);
    if (status == GM_OK) /* to the device, if there is room there */
        status = gm_matrix_data(&r->run.kept, r->plan.home, &data, &on_device, err);
    return status == GM_OK ? gm_request_publish(r, ret_created, err) : status;
}

static void put_and_reply(struct gm_request *r)
{
    struct gm_error error;
    bool created;

    if (put(r, &created, &error) != GM_OK) {
        gm_request_fail(r, &error);
        return;
    }
    struct gm_matrix_facts facts = gm_matrix_facts_of(&r->run.kept);
    char *text = gm_document_text(matrix_json(&facts), JSON_COMPACT);
    gm_body_drop_operands(&r->body);
    gm_request_reply(r, "application/json", text);
    if (text && created)
        r->reply.http = 201;
}

static void put_on_worker(struct gm_work *work)
{
    struct gm_request *r = gm_request_of_work(work);

    put_and_reply(r);
    gm_request_resume(r, GM_REQUEST_REPLY);
}

enum gm_progress gm_handle_put(struct gm_request *r)
{
    uint64_t bytes = gm_matrix_bytes(&r->parsed.operand[0]);

    /* A worker decodes a large text, and may wait for a disk, and for the copy to a device. */
    if (!r->connection.suspended && (bytes > GM_TEXT_INLINE_BYTES_MAX || *r->server->matrices.dir))
        return gm_request_to_worker(r, put_on_worker, gm_cost_copy(bytes));
    put_and_reply(r);
    return GM_READY;
}

/* ---- GET. ---- */

/* One dimension of what is read. */
static enum gm_status check_range(const struct gm_range *range, const char *name, uint64_t size,
                                  uint64_t *ret_from, uint64_t *ret_count, struct gm_error *err)
{
    uint64_t to = !range->stated || range->to == UINT64_MAX ? size : range->to;

    if (to > size || range->from > to)
        return gm_fail(err, GM_BAD_PARAMETER,
                       "%s asks for %llu to %llu, and the matrix has %llu, counted from 0", name,
                       (unsigned long long)range->from, (unsigned long long)to,
                       (unsigned long long)size);
    *ret_from = range->from;
    *ret_count = to - range->from;
    return GM_OK;
}

/* Copies a part of each matrix of a stack; `part` has its shape and room. */
static void copy_part(const struct gm_matrix *whole, uint64_t row, uint64_t col,
                      const struct gm_matrix *part)
{
    uint64_t size = gm_dtype_size(whole->dtype);
    struct gm_steps from = gm_steps_of(whole), to = gm_steps_of(part);
    const char *in = whole->data;
    char *out = part->data;

    if (part->rows == whole->rows && part->cols == whole->cols && whole->layout == part->layout) {
        if (gm_matrix_bytes(part) > 0)
            memcpy(out, in, gm_matrix_bytes(part));
        return;
    }
    for (uint64_t k = 0; k < part->batch; k++) {
        for (uint64_t i = 0; i < part->rows; i++) {
            const char *line = in + k * from.batch + (row + i) * from.row + col * from.col;
            char *target = out + k * to.batch + i * to.row;
            if (from.col == size)
                memcpy(target, line, part->cols * size);
            for (uint64_t j = 0; from.col != size && j < part->cols; j++)
                memcpy(target + j * size, line + j * from.col, size);
        }
    }
}

static enum gm_status encode_text(struct gm_request *r, const struct gm_matrix *part,
                                  struct gm_error *err)
{
    const struct gm_encode_options options = {.nonfinite_null = r->parsed.params.nonfinite_null};
    const struct gm_codec *codec = r->plan.codec;
    uint64_t bound = 0, len = 0;
    enum gm_status status = codec->encode_bound(part, &bound, err);

    if (status == GM_OK)
        status = gm_allocation_make(&r->reply_text, &r->reservation, r->server->devices.host,
                                    bound + 2, err);
    char *text = status == GM_OK ? r->reply_text.buffer.data : NULL;
    if (status == GM_OK)
        status = codec->encode(part, &options, text, bound, &len, err);
    if (status != GM_OK)
        return status;
    if (codec->carries_stats) { /* an object that is left open */
        text[len++] = '}';
        text[len++] = '\n';
    }
    r->reply.body = text;
    r->reply.body_len = len;
    return GM_OK;
}

/* Makes the part that the parameters say, row-major, in a buffer with room for a head before it. */
static enum gm_status take_part(struct gm_request *r, struct gm_matrix *part, struct gm_error *err)
{
    struct gm_matrix whole = *gm_matrix_of(&r->run.kept);
    const struct gm_params *params = &r->parsed.params;
    uint64_t row = 0, col = 0, room = 0;
    bool on_device;
    enum gm_status status = check_range(&params->rows, "rows", whole.rows, &row, &part->rows, err);

    part->dtype = whole.dtype;
    part->layout = GM_ROW_MAJOR;
    part->stacked = whole.stacked;
    part->batch = whole.batch;
    if (status == GM_OK)
        status = check_range(&params->cols, "cols", whole.cols, &col, &part->cols, err);
    if (status == GM_OK && !gm_size_add(gm_matrix_bytes(part), GM_HEAD_MAX, &room))
        status = gm_fail(err, GM_TOO_LARGE, "the matrix is too large to be sent");
    if (status == GM_OK)
        status =
            gm_allocation_make(&r->run.result, &r->reservation, r->server->devices.host, room, err);
    if (status == GM_OK)
        status = gm_matrix_data(&r->run.kept, NULL, &whole.data, &on_device, err);
    if (status != GM_OK)
        return status;
    part->data = (char *)r->run.result.buffer.data + GM_HEAD_MAX;
    copy_part(&whole, row, col, part);
    return GM_OK;
}

static enum gm_status get(struct gm_request *r, struct gm_error *err)
{
    struct gm_matrix part = {0};
    char text[GM_SHAPE_TEXT_MAX];
    size_t len;
    enum gm_status status = take_part(r, &part, err);

    gm_matrix_leave(&r->run.kept); /* a slow client keeps the copy alone */
    if (status == GM_OK && r->plan.codec->encode) {
        status = encode_text(r, &part, err);
        gm_allocation_free(&r->run.result, &r->reservation);
    } else if (status == GM_OK) {
        char *head = r->run.result.buffer.data;
        status = r->plan.codec->head(&part, head, &len, err);
        if (status == GM_OK) {
            r->reply.body = memmove(head + GM_HEAD_MAX - len, head, len);
            r->reply.body_len = len + gm_matrix_bytes(&part);
        }
    }
    if (status != GM_OK)
        return status;
    gm_reply_header(&r->reply, "Gemmd-Shape", gm_matrix_shape_text(&part, text));
    gm_reply_header(&r->reply, "Gemmd-Dtype", gm_dtype_name(part.dtype));
    r->reply.http = 200;
    r->reply.media_type = r->plan.codec->media_type;
    r->state = GM_REQUEST_REPLY;
    return GM_OK;
}

static void get_and_reply(struct gm_request *r)
{
    struct gm_error error;
    enum gm_status status = gm_request_still_wanted(r, &error);

    if (status == GM_OK)
        status = get(r, &error);
    if (status != GM_OK)
        gm_request_fail(r, &error);
}

static void get_on_worker(struct gm_work *work)
{
    struct gm_request *r = gm_request_of_work(work);

    get_and_reply(r);
    gm_request_resume(r, GM_REQUEST_REPLY);
}

/* Takes the matrix, and compares its tag with If-Match and If-None-Match. *ret_same: the client has
 * it. The tag of what is sent names its format, since bytes differ from one to the next. */
static enum gm_status take(struct gm_request *r, bool *ret_same, struct gm_error *err)
{
    static const char *const takes[] = {"rows", "cols", "nonfinite", "timeout_ms"};
    const struct gm_matrix_caller caller = gm_request_matrix_caller(r);
    const struct gm_conditions conditions = {.if_match = r->head.if_match};
    char tag[GM_ETAG_MAX + 16], quoted[GM_ETAG_MAX + 20];
    enum gm_status status = check_parameters(r, takes, sizeof takes / sizeof *takes, err);

    if (status == GM_OK)
        status = gm_matrix_take(&r->server->matrices, &caller, ref_of(r), &r->run.kept, err);
    if (status != GM_OK)
        return status;
    struct gm_matrix_facts facts = gm_matrix_facts_of(&r->run.kept);
    r->caller.acted_as_admin = caller.admin && gm_matrix_is_of_other(ref_of(r), caller.owner);
    status = gm_etag_check(&conditions, facts.etag, err);
    if (status != GM_OK)
        return status;
    snprintf(tag, sizeof tag, "%s-%s", facts.etag, r->plan.codec->name);
    snprintf(quoted, sizeof quoted, "\"%s\"", tag);
    gm_reply_header(&r->reply, "ETag", quoted);
    gm_reply_header(&r->reply, "Vary", "Accept");
    *ret_same = gm_etag_listed(r->head.if_none_match, tag);
    return GM_OK;
}

enum gm_progress gm_handle_get(struct gm_request *r)
{
    struct gm_error error;
    bool same = false;

    if (take(r, &same, &error) != GM_OK)
        return gm_request_fail(r, &error);
    if (same) {
        gm_request_reply(r, r->plan.codec->media_type, strdup(""));
        if (r->reply.http == 200)
            r->reply.http = 304;
        return GM_READY;
    }
    uint64_t bytes = gm_matrix_bytes(gm_matrix_of(&r->run.kept));
    if (bytes > GM_TEXT_INLINE_BYTES_MAX)
        return gm_request_to_worker(r, get_on_worker, gm_cost_copy(bytes) + gm_cost_text(bytes));
    get_and_reply(r);
    return GM_READY;
}

/* ---- DELETE and the list. ---- */

static void delete_and_reply(struct gm_request *r)
{
    const struct gm_matrix_caller caller = gm_request_matrix_caller(r);
    const struct gm_conditions conditions = gm_request_conditions(r);
    struct gm_error error;

    if (gm_matrix_delete(&r->server->matrices, &caller, ref_of(r), &conditions, &error) != GM_OK) {
        gm_request_fail(r, &error);
        return;
    }
    r->caller.acted_as_admin = caller.admin && gm_matrix_is_of_other(ref_of(r), caller.owner);
    gm_request_reply(r, "application/json", strdup(""));
    if (r->reply.http == 200)
        r->reply.http = 204;
}

static void delete_on_worker(struct gm_work *work)
{
    struct gm_request *r = gm_request_of_work(work);

    delete_and_reply(r);
    gm_request_resume(r, GM_REQUEST_REPLY);
}

enum gm_progress gm_handle_delete(struct gm_request *r)
{
    struct gm_error error;

    if (r->head.queries > 0) { /* of rows, say, as if others stayed */
        gm_fail(&error, GM_UNKNOWN_PARAMETER, "DELETE has no parameters: all of the matrix goes");
        return gm_request_fail(r, &error);
    }
    if (*r->server->matrices.dir)
        return gm_request_to_worker(r, delete_on_worker, gm_cost_copy(0));
    delete_and_reply(r);
    return GM_READY;
}

/* Where the list goes on: ?after=N of the page before. */
static enum gm_status after_of(const struct gm_request *r, unsigned *ret, struct gm_error *err)
{
    enum gm_status status = gm_head_check_queries(&r->head, err);

    *ret = 0;
    for (unsigned i = 0; i < r->head.queries && status == GM_OK; i++) {
        const char *value = r->head.query[i].value;
        size_t len = r->head.query[i].value_len;
        if (r->head.query[i].name_len != 5 || memcmp(r->head.query[i].name, "after", 5) != 0)
            return gm_fail(err, GM_UNKNOWN_PARAMETER, "the list takes 'after' alone");
        if (len == 0 || len > 6 || strspn(value, "0123456789") != len)
            return gm_fail(err, GM_BAD_PARAMETER,
                           "after is '%.40s'; it is what the page before says as next", value);
        *ret = (unsigned)strtoul(value, NULL, 10);
        if (*ret >= GM_MATRICES_TABLE)
            return gm_fail(err, GM_BAD_PARAMETER, "after is %u; it is below %d", *ret,
                           GM_MATRICES_TABLE);
    }
    return status;
}

static int by_name(const void *a, const void *b)
{
    const struct gm_matrix_facts *one = a, *other = b;
    int owners = strcmp(one->owner, other->owner);

    return owners ? owners : strcmp(one->name, other->name);
}

enum gm_progress gm_handle_matrices(struct gm_request *r)
{
    const struct gm_matrix_caller caller = gm_request_matrix_caller(r);
    struct gm_matrices_usage usage = gm_matrices_usage(&r->server->matrices);
    struct gm_error error;
    unsigned after, count, next;
    char path[64];

    if (after_of(r, &after, &error) != GM_OK)
        return gm_request_fail(r, &error);
    struct gm_matrix_facts *facts =
        gm_matrix_list(&r->server->matrices, &caller, after, GM_MATRICES_LISTED_MAX, &count, &next);
    if (!facts)
        return gm_request_reply(r, "application/json", NULL);
    qsort(facts, count, sizeof *facts, by_name);
    json_t *list = json_array(), *o = json_object();
    for (unsigned i = 0; i < count; i++) {
        json_array_append_new(list, matrix_json(&facts[i]));
        r->caller.acted_as_admin |= caller.admin && strcmp(facts[i].owner, caller.owner) != 0;
    }
    free(facts);
    json_object_set_new(o, "matrices", list);
    json_object_set_new(o, "limit_bytes", json_integer((json_int_t)r->server->matrices.limit));
    json_object_set_new(o, "used_bytes", json_integer((json_int_t)usage.bytes));
    snprintf(path, sizeof path, "/v1/matrices?after=%u", next);
    if (next > 0)
        json_object_set_new(o, "next", json_string(path));
    return gm_request_reply(r, "application/json", gm_document_text(o, JSON_COMPACT));
}
