#include "server/body.h"

#include "server/accept.h"
#include "server/handlers.h"
#include "server/limits.h"
#include "server/request_job.h"

#include <string.h>
#include <strings.h>

/* What curl sends when it is told nothing: as good as no type. */
#define CURL_DEFAULT_TYPE "application/x-www-form-urlencoded"

/* Enough of a body to see how it begins, behind any white space. */
#define SNIFF_BYTES 16

/* The decoder's sink. */
static enum gm_status sink_operand(void *cls, unsigned index, const struct gm_matrix *matrix,
                                   void **ret_data, struct gm_error *err)
{
    struct gm_request *r = cls;
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

/* The reply's form: that of the request unless the client wants another, or one of a report's. */
static enum gm_status choose_form(struct gm_request *r, const struct gm_codec *codec,
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
        status = choose_form(r, r->body.in, err); /* that may have been about the format */
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
    enum gm_status status = choose_form(r, codec, err);
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

/* The length of the media type alone, without its parameters; 0 if the body's form is not said. */
static size_t stated_type_len(const struct gm_request_head *head)
{
    size_t len = head->content_type ? strcspn(head->content_type, "; \t") : 0;
    bool curl = len == strlen(CURL_DEFAULT_TYPE) &&
                strncasecmp(head->content_type, CURL_DEFAULT_TYPE, len) == 0;

    return curl ? 0 : len;
}

static enum gm_status fail_unsupported(const struct gm_request *r, struct gm_error *err)
{
    char types[GM_MEDIA_TYPES_MAX];

    if (stated_type_len(&r->head) > 0)
        return gm_fail(err, GM_UNSUPPORTED_MEDIA_TYPE,
                       "Content-Type '%.80s' is not known; this takes %s (bare elements, with "
                       "?shape=RxC&dtype=f32)",
                       r->head.content_type, gm_codec_media_types(types));
    return gm_fail(
        err, GM_UNSUPPORTED_MEDIA_TYPE,
        "the body begins neither like NPY nor like JSON, and no Content-Type says what it "
        "is: for bare elements add -H 'Content-Type: application/octet-stream' and "
        "?shape=RxC&dtype=f32");
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
        return choose_form(r, &gm_codec_json, err);
    if (h->content_length == GM_SIZE_UNKNOWN && !h->chunked)
        return gm_fail(err, GM_LENGTH_REQUIRED,
                       "%s takes its matrices in the body, and there is none", r->route->path);
    if (h->content_length != GM_SIZE_UNKNOWN && h->content_length > limit)
        return gm_fail(err, GM_BODY_TOO_LARGE,
                       "the body has %llu bytes; the limit is %llu (--body-limit)",
                       (unsigned long long)h->content_length, (unsigned long long)limit);

    const struct gm_codec *codec = NULL;
    size_t type_len = stated_type_len(h);
    if (type_len > 0) {
        codec = gm_codec_by_media_type(h->content_type, type_len);
        if (!codec)
            return fail_unsupported(r, err);
    }
    /* Whatever the form: the body itself, or what is made of it, will take this much. */
    enum gm_status status = GM_OK;
    if (h->content_length != GM_SIZE_UNKNOWN)
        status = gm_share_reserve(&r->share, h->content_length, err);
    if (status != GM_OK)
        return status;
    /* Not knowing the form yet, Accept can still be known to be impossible. */
    return codec ? set_form(r, codec, err) : choose_form(r, &gm_codec_json, err);
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
    enum gm_status status = gm_block_get(&larger, &r->share, r->server->devices.host, bytes, err);
    if (status != GM_OK)
        return status;
    if (r->body.text_len > 0)
        memcpy(larger.slab.data, r->body.text.slab.data, r->body.text_len);
    gm_block_put(&r->body.text, &r->share);
    r->body.text = larger;
    return GM_OK;
}

static enum gm_status add_text(struct gm_request *r, const void *bytes, size_t len,
                               struct gm_error *err)
{
    enum gm_status status = grow_text(r, len, err);

    if (status == GM_OK && len > 0) {
        memcpy((char *)r->body.text.slab.data + r->body.text_len, bytes, len);
        r->body.text_len += len;
    }
    return status;
}

/*
 * The first bytes are in the text buffer: a form may follow from them. `all`: no more will come.
 * White space is passed over once: a body may consist of little else and come in small pieces.
 */
static enum gm_status sniff(struct gm_request *r, bool all, struct gm_error *err)
{
    const char *text = r->body.text.slab.data;

    while (r->body.space_len < r->body.text_len && memchr(" \t\r\n", text[r->body.space_len], 4))
        r->body.space_len++;
    uint64_t len = r->body.text_len - r->body.space_len;
    const struct gm_codec *codec = gm_codec_by_first_bytes(text + r->body.space_len, len);
    if (!codec && !all && len < SNIFF_BYTES)
        return GM_OK;
    if (!codec)
        return fail_unsupported(r, err);
    enum gm_status status = set_form(r, codec, err);
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
    if (r->body.in && r->body.in->push)
        return r->body.in->push(r->body.decoder, bytes, len, err);
    enum gm_status status = add_text(r, bytes, len, err);
    return status == GM_OK && !r->body.in ? sniff(r, false, err) : status;
}

enum gm_status gm_body_end(struct gm_request *r, struct gm_error *err)
{
    if (r->body.in)
        return GM_OK;
    if (r->body.text_len == 0)
        return gm_fail(err, GM_MISSING_OPERAND, "the body is empty: %s takes its matrices there",
                       r->route->path);
    return sniff(r, true, err);
}

enum gm_status gm_body_decode(struct gm_request *r, struct gm_error *err)
{
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
}
