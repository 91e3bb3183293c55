#include "server/body.h"

#include "server/accept.h"
#include "server/body_form.h"
#include "server/body_parts.h"
#include "server/handlers.h"
#include "server/limits.h"
#include "server/request_job.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum gm_status gm_body_take_operand(struct gm_request *r, unsigned index,
                                    const struct gm_matrix *matrix, void **ret_data,
                                    struct gm_error *err)
{
    enum gm_status status = GM_OK;

    if (!r->device)
        status = gm_request_pick_device(r, err);
    if (status != GM_OK)
        return status;
    const struct gm_source source = {r->device->backend, r->device->context};
    status =
        gm_block_get(&r->operand_block[index], &r->share, source, gm_matrix_bytes(matrix), err);
    if (status != GM_OK)
        return status;
    r->operand[index] = *matrix;
    r->operand[index].data = r->operand_block[index].slab.data;
    r->present[index] = true;
    *ret_data = r->operand[index].data;
    return GM_OK;
}

/* The decoder's sink. */
static enum gm_status sink_operand(void *cls, unsigned index, const struct gm_matrix *matrix,
                                   void **ret_data, struct gm_error *err)
{
    struct gm_request *r = cls;
    enum gm_status status = gm_body_take_operand(r, index, matrix, ret_data, err);

    if (status != GM_OK)
        return status;
    /* Better said now than after the rest of the body. */
    for (unsigned i = 0; i < gm_op_operands_min(r->route->op); i++)
        if (!r->present[i])
            return GM_OK;
    return r->route->plan(r, false, err);
}

/* Shapes as parameters are for bare elements: every other form has its own. */
static enum gm_status check_shapes(const struct gm_request *r, struct gm_error *err)
{
    bool any = r->params.has_shape[0] || r->params.has_shape[1] || r->params.has_shape[2];

    return r->body.in == &gm_codec_raw || !any
               ? GM_OK
               : gm_fail(err, GM_BAD_PARAMETER,
                         "shape is for application/octet-stream; %s states its own shapes",
                         r->body.in->media_type);
}

/* That of the request unless the client wants another, or one of a report's. */
enum gm_status gm_body_choose_reply(struct gm_request *r, const struct gm_codec *codec,
                                    struct gm_error *err)
{
    if (r->params.gpu && !r->route->traces)
        return gm_fail(err, GM_BAD_PARAMETER,
                       "%s does not take 'gpu', which is a parameter of /v1/explain",
                       r->route->path);
    if (r->route->reports > 0)
        return gm_report_choose(r->head.accept, r->params.format, r->route->reports, &r->report,
                                err);
    if (*r->params.format)
        return gm_fail(
            err, GM_BAD_PARAMETER,
            "%s does not take 'format', which is for reports: Accept chooses the form of a "
            "result",
            r->route->path);
    return gm_accept_choose(r->head.accept, codec, &r->out, err);
}

static enum gm_status sink_parameter(void *cls, const char *name, size_t name_len,
                                     const char *value, size_t value_len, struct gm_error *err)
{
    struct gm_request *r = cls;
    enum gm_status status =
        gm_params_set(&r->params, r->route->op, name, name_len, value, value_len, err);

    if (status == GM_OK)
        status = gm_body_choose_reply(r, r->body.in, err); /* that may have been about the format */
    if (status != GM_OK)
        return status;
    r->body.plan.dtype = r->params.dtype;
    return check_shapes(r, err);
}

/* The form is known: checks what goes with it, and opens its decoder. */
static enum gm_status set_form(struct gm_request *r, const struct gm_codec *codec,
                               struct gm_error *err)
{
    r->body.in = codec;
    enum gm_status status = gm_body_choose_reply(r, codec, err);
    if (status == GM_OK)
        status = check_shapes(r, err);
    if (status != GM_OK)
        return status;
    r->body.plan = (struct gm_decode_plan){
        .dtype = r->params.dtype,
        .operands_max = gm_op_operands_max(r->route->op),
        .body_bytes = r->head.content_length,
        .sink = {.operand = sink_operand, .parameter = sink_parameter, .cls = r},
    };
    for (unsigned i = 0; i < GM_OPERANDS_MAX; i++) {
        r->body.plan.has_shape[i] = r->params.has_shape[i];
        r->body.plan.shape[i] = r->params.shape[i];
    }
    return codec->open ? codec->open(&r->body.plan, &r->body.decoder, err) : GM_OK;
}

const char *gm_body_media_types(char buf[GM_MEDIA_TYPES_MAX])
{
    size_t len = strlen(gm_codec_media_types(buf));

    snprintf(buf + len, GM_MEDIA_TYPES_MAX - len, ", %s", GM_MULTIPART_TYPE);
    return buf;
}

enum gm_status gm_body_begin(struct gm_request *r, struct gm_error *err)
{
    const struct gm_request_head *h = &r->head;
    uint64_t limit = r->server->config.body_limit;

    if (h->content_encoding && strcasecmp(h->content_encoding, "identity") != 0)
        return gm_fail(err, GM_UNSUPPORTED_MEDIA_TYPE,
                       "Content-Encoding '%.40s' is not known; send the body as it is",
                       h->content_encoding);
    if (r->route->body == GM_BODY_NONE ||
        (r->route->body == GM_BODY_OPTIONAL && !h->chunked &&
         (h->content_length == GM_SIZE_UNKNOWN || h->content_length == 0)))
        return gm_body_choose_reply(r, &gm_codec_json, err);
    if (h->content_length == GM_SIZE_UNKNOWN && !h->chunked)
        return gm_fail(err, GM_LENGTH_REQUIRED,
                       "%s takes its matrices in the body, and there is none", r->route->path);
    if (h->content_length != GM_SIZE_UNKNOWN && h->content_length > limit)
        return gm_fail(err, GM_BODY_TOO_LARGE,
                       "the body has %llu bytes; the limit is %llu (--body-limit)",
                       (unsigned long long)h->content_length, (unsigned long long)limit);

    const struct gm_codec *codec = NULL;
    bool parts = gm_multipart_is(h->content_type);
    enum gm_status status = GM_OK;
    if (!parts)
        status = gm_body_form_by_type(h->content_type, &codec, err);
    if (status == GM_OK)
        status = gm_body_form_check_operands(codec, gm_op_operands_min(r->route->op), err);
    if (status != GM_OK)
        return status;
    /* Whatever the form: the body itself, or what is made of it, will take this much. */
    if (h->content_length != GM_SIZE_UNKNOWN)
        status = gm_share_reserve(&r->share, h->content_length, err);
    if (status != GM_OK)
        return status;
    if (parts)
        return gm_parts_open(r, err);
    /* Not knowing the form yet, Accept can still be known to be impossible. */
    return codec ? set_form(r, codec, err) : gm_body_choose_reply(r, &gm_codec_json, err);
}

/* Makes room for `more` bytes of text: for all of a stated length at once, else by doubling. */
static enum gm_status grow_text(struct gm_request *r, uint64_t more, struct gm_error *err)
{
    struct gm_block larger = {0};
    uint64_t bytes = r->body.text_len + more;

    if (r->body.text.backend && bytes <= r->body.text.slab.bytes)
        return GM_OK;
    if (bytes < 2 * r->body.text.slab.bytes)
        bytes = 2 * r->body.text.slab.bytes;
    if (r->body.in && r->head.content_length != GM_SIZE_UNKNOWN && bytes < r->head.content_length)
        bytes = r->head.content_length;
    /* Of parts that come one after the other only some may be text. */
    uint64_t remaining = r->body.parts ? gm_request_remaining(r) : GM_SIZE_UNKNOWN;
    if (remaining != GM_SIZE_UNKNOWN && bytes > r->body.text_len + more + remaining)
        bytes = r->body.text_len + more + remaining;
    enum gm_status status = gm_block_get(&larger, &r->share, r->server->devices.host, bytes, err);
    if (status != GM_OK)
        return status;
    if (r->body.text_len > 0)
        memcpy(larger.slab.data, r->body.text.slab.data, r->body.text_len);
    gm_block_put(&r->body.text, &r->share);
    r->body.text = larger;
    return GM_OK;
}

enum gm_status gm_body_add_text(struct gm_request *r, const void *bytes, uint64_t len,
                                struct gm_error *err)
{
    enum gm_status status = grow_text(r, len, err);

    if (status == GM_OK && len > 0) {
        memcpy((char *)r->body.text.slab.data + r->body.text_len, bytes, len);
        r->body.text_len += len;
    }
    return status;
}

/* The first bytes are in the text buffer: a form may follow from them. `all`: no more will come. */
static enum gm_status sniff(struct gm_request *r, bool all, struct gm_error *err)
{
    const char *text = r->body.text.slab.data;

    const struct gm_codec *codec = NULL;
    enum gm_status status =
        gm_body_form_by_first_bytes(text, r->body.text_len, all, &r->body.space_len, &codec, err);

    if (status != GM_OK || !codec)
        return status;
    status = set_form(r, codec, err);
    if (status == GM_OK && codec->push) {
        status = codec->push(r->body.decoder, text, r->body.text_len, err);
        gm_body_drop_text(r);
    }
    return status;
}

enum gm_status gm_body_push(struct gm_request *r, const void *bytes, size_t len,
                            struct gm_error *err)
{
    if (r->received > r->server->config.body_limit)
        return gm_fail(err, GM_BODY_TOO_LARGE,
                       "the body has more than %llu bytes, which is the limit (--body-limit)",
                       (unsigned long long)r->server->config.body_limit);
    if (r->body.parts)
        return gm_parts_push(r, bytes, len, err);
    if (r->body.in && r->body.in->push)
        return r->body.in->push(r->body.decoder, bytes, len, err);
    enum gm_status status = gm_body_add_text(r, bytes, len, err);
    return status == GM_OK && !r->body.in ? sniff(r, false, err) : status;
}

enum gm_status gm_body_end(struct gm_request *r, struct gm_error *err)
{
    if (r->body.parts)
        return gm_parts_end(r, err);
    if (r->body.in)
        return GM_OK;
    if (r->body.text_len == 0)
        return gm_fail(err, GM_MISSING_OPERAND, "the body is empty: %s takes its matrices there",
                       r->route->path);
    return sniff(r, true, err);
}

enum gm_status gm_body_decode(struct gm_request *r, struct gm_error *err)
{
    if (r->body.parts)
        return gm_parts_decode(r, err);
    if (r->body.in->finish)
        return r->body.in->finish(r->body.decoder, err);
    enum gm_status status = grow_text(r, 0, err); /* there may be no text at all */
    if (status == GM_OK)
        status = r->body.in->decode(r->body.text.slab.data, r->body.text_len, &r->body.plan, err);
    gm_body_drop_text(r);
    return status;
}

void gm_body_drop_text(struct gm_request *r)
{
    gm_block_put(&r->body.text, &r->share);
    r->body.text_len = 0;
}

void gm_body_drop_operands(struct gm_request *r)
{
    for (unsigned i = 0; i < GM_OPERANDS_MAX; i++)
        gm_block_put(&r->operand_block[i], &r->share);
    if (r->body.decoder)
        r->body.in->close(r->body.decoder);
    r->body.decoder = NULL;
    gm_parts_close(r->body.parts);
    r->body.parts = NULL;
}
