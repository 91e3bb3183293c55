#include "server/request/body/body.h"

#include "server/limits.h"
#include "server/request/body/internal.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum gm_status gm_body_take_operand(struct gm_body *b, unsigned index,
                                    const struct gm_matrix *matrix, void **ret_data,
                                    struct gm_error *err)
{
    struct gm_parsed *p = b->parsed;
    struct gm_allocator allocator;
    unsigned device;
    enum gm_status status = b->events.allocator(b->events.cls, &allocator, &device, err);

    if (status == GM_OK)
        status = gm_allocation_make(&p->memory[index], b->reservation, allocator,
                                    gm_matrix_bytes(matrix), err);
    if (status != GM_OK)
        return status;
    p->operand[index] = *matrix;
    p->operand[index].data = p->memory[index].buffer.data;
    p->present[index] = true;
    *ret_data = p->operand[index].data;
    return GM_OK;
}

enum gm_status gm_body_set_format(struct gm_body *b, const struct gm_codec *codec,
                                  struct gm_error *err)
{
    b->parsed->format = codec;
    return b->events.settled(b->events.cls, err);
}

/* Fails before the rest of the body is read. */
enum gm_status gm_body_check_operands(struct gm_body *b, struct gm_error *err)
{
    for (unsigned i = 0; i < gm_op_operands_min(b->op); i++)
        if (!b->parsed->present[i])
            return GM_OK;
    return b->events.operands(b->events.cls, err);
}

/* Whether an operand is in a region, or a named matrix: it is not in the body. */
static bool is_elsewhere(const struct gm_body *b, unsigned index)
{
    return b->parsed->from[index].region || b->parsed->ref[index].named;
}

/* The decoder's sink. */
static enum gm_status sink_operand(void *cls, unsigned index, const struct gm_matrix *matrix,
                                   void **ret_data, struct gm_error *err)
{
    struct gm_body *b = cls;

    if (is_elsewhere(b, index))
        return gm_fail(err, GM_EXTRA_OPERAND, "operand %c is in a %s, and in the body too",
                       'a' + (int)index, b->parsed->ref[index].named ? "named matrix" : "region");
    enum gm_status status = gm_body_take_operand(b, index, matrix, ret_data, err);

    return status == GM_OK ? gm_body_check_operands(b, err) : status;
}

/* Shapes as parameters are for bare elements: every other format states its own. */
static enum gm_status check_shapes(const struct gm_body *b, struct gm_error *err)
{
    bool any = false;

    for (unsigned i = 0; i < GM_OPERANDS_MAX; i++)
        any = any || (b->parsed->params.shape[i].ndim > 0 && !b->parsed->from[i].region);

    return b->in == &gm_codec_raw || !any
               ? GM_OK
               : gm_fail(err, GM_BAD_PARAMETER,
                         "shape is for application/octet-stream; %s states its own shapes",
                         b->in->media_type);
}

static enum gm_status sink_parameter(void *cls, const char *name, size_t name_len,
                                     const char *value, size_t value_len, struct gm_error *err)
{
    struct gm_body *b = cls;
    enum gm_status status =
        gm_params_set(&b->parsed->params, b->op, name, name_len, value, value_len, err);

    if (status == GM_OK)
        status = b->events.settled(b->events.cls,
                                   err); /* settled() may have changed the reply's format */
    if (status != GM_OK)
        return status;
    b->plan.dtype = b->parsed->params.dtype;
    b->plan.header = b->parsed->params.header;
    status = gm_body_check_regions(b, err);
    if (status == GM_OK)
        status = gm_body_take_refs(b, err);
    return status == GM_OK ? check_shapes(b, err) : status;
}

/* Called when the format is known: checks what depends on it, and opens its decoder. */
static enum gm_status set_format(struct gm_body *b, const struct gm_codec *codec,
                                 struct gm_error *err)
{
    b->in = codec;
    enum gm_status status = gm_body_set_format(b, codec, err);
    if (status == GM_OK)
        status = check_shapes(b, err);
    if (status != GM_OK)
        return status;
    b->plan = (struct gm_decode_plan){
        .dtype = b->parsed->params.dtype,
        .header = b->parsed->params.header,
        .operands_max = gm_op_operands_max(b->op),
        .body_bytes = b->head->content_length,
        .sink = {.operand = sink_operand, .parameter = sink_parameter, .cls = b},
    };
    /* Operands that are elsewhere leave the body one contiguous range of the others. */
    while (b->plan.operand_first + 1 < b->plan.operands_max &&
           is_elsewhere(b, b->plan.operand_first))
        b->plan.operand_first++;
    for (unsigned i = b->plan.operand_first; i < GM_OPERANDS_MAX; i++) {
        if (is_elsewhere(b, i)) {
            b->plan.operands_max = i > b->plan.operand_first ? i : b->plan.operands_max;
            break;
        }
        b->plan.has_shape[i] = b->parsed->params.shape[i].ndim > 0;
        b->plan.shape[i] = b->parsed->params.shape[i];
    }
    return codec->open ? codec->open(&b->plan, &b->decoder, err) : GM_OK;
}

const char *gm_body_media_types(enum gm_body_kind kind, char buf[GM_MEDIA_TYPES_MAX])
{
    if (kind == GM_BODY_EVAL)
        strcpy(buf, gm_codec_json.media_type);
    else
        gm_codec_media_types(buf);
    size_t len = strlen(buf);
    snprintf(buf + len, GM_MEDIA_TYPES_MAX - len, ", %s", GM_MULTIPART_TYPE);
    return buf;
}

bool gm_body_is_encoded(const struct gm_request_head *head)
{
    return head->content_encoding && strcasecmp(head->content_encoding, "identity") != 0;
}

/* Finishes the checks of the headers if the body is not a matrix in one of our formats. */
static enum gm_status begin_other(struct gm_body *b, struct gm_error *err)
{
    const struct gm_request_head *h = b->head;
    uint64_t bytes = h->content_length == GM_SIZE_UNKNOWN ? 0 : h->content_length;

    if (b->kind == GM_BODY_DOCUMENT && bytes > GM_DOCUMENT_BYTES_MAX)
        return gm_fail(err, GM_BODY_TOO_LARGE, "%s takes a text of %d bytes at most", b->path,
                       GM_DOCUMENT_BYTES_MAX);
    enum gm_status status = gm_reservation_raise(b->reservation, bytes, err);
    if (status != GM_OK)
        return status;
    if (b->kind == GM_BODY_EVAL)
        return gm_expression_open(b, err);
    return b->kind == GM_BODY_INFER ? gm_infer_open(b, err) : GM_OK;
}

enum gm_status gm_body_begin(struct gm_body *b, struct gm_error *err)
{
    const struct gm_request_head *h = b->head;

    if (gm_body_is_encoded(h))
        return gm_fail(err, GM_UNSUPPORTED_MEDIA_TYPE,
                       "Content-Encoding '%.40s' is not known; send the body as it is",
                       h->content_encoding);
    if (b->kind == GM_BODY_NONE ||
        (b->kind == GM_BODY_OPTIONAL && !h->chunked &&
         (h->content_length == GM_SIZE_UNKNOWN || h->content_length == 0))) {
        enum gm_status set = gm_body_set_format(b, &gm_codec_json, err);
        return set == GM_OK ? gm_body_take_refs(b, err) : set;
    }
    enum gm_status status = b->kind == GM_BODY_INFER ? GM_OK : gm_body_take_regions(b, err);
    if (status != GM_OK || b->not_needed)
        return status;
    if (h->content_length == GM_SIZE_UNKNOWN && !h->chunked)
        return gm_fail(
            err, GM_LENGTH_REQUIRED,
            b->kind == GM_BODY_DOCUMENT ? "%s takes a description in the body, and there is none"
            : b->kind == GM_BODY_EVAL   ? "%s takes an expression in the body, and there is none"
                                        : "%s takes its matrices in the body, and there is none",
            b->path);
    if (h->content_length != GM_SIZE_UNKNOWN && h->content_length > b->limit)
        return gm_fail(err, GM_BODY_TOO_LARGE,
                       "the body has %llu bytes; the limit is %llu (--body-limit)",
                       (unsigned long long)h->content_length, (unsigned long long)b->limit);

    if (b->kind == GM_BODY_INFER || b->kind == GM_BODY_DOCUMENT || b->kind == GM_BODY_EVAL)
        return begin_other(b, err);
    const struct gm_codec *codec = NULL;
    bool parts = gm_multipart_is(h->content_type);
    unsigned needed = 0;
    for (unsigned i = 0; i < gm_op_operands_min(b->op); i++)
        needed += !b->parsed->present[i];
    if (!parts)
        status = gm_body_format_by_type(h->content_type, &codec, err);
    if (status == GM_OK)
        status = gm_body_format_check_operands(codec, needed, err);
    if (status != GM_OK)
        return status;
    /* In every format, the body or the operands made from it take this much memory. */
    if (h->content_length != GM_SIZE_UNKNOWN)
        status = gm_reservation_raise(b->reservation, h->content_length, err);
    if (status != GM_OK)
        return status;
    if (parts)
        return gm_parts_open(b, err);
    /* Even without the format, an impossible Accept is an error. */
    return codec ? set_format(b, codec, err) : gm_body_set_format(b, &gm_codec_json, err);
}

/* Makes room for `more` bytes of text: the whole stated length at once, otherwise by doubling. */
static enum gm_status grow_text(struct gm_body *b, uint64_t more, struct gm_error *err)
{
    struct gm_allocation larger = {0};
    uint64_t bytes = b->text_len + more;

    if (b->text.backend && bytes <= b->text.buffer.bytes)
        return GM_OK;
    if (bytes < 2 * b->text.buffer.bytes)
        bytes = 2 * b->text.buffer.bytes;
    uint64_t whole = b->infer ? gm_infer_text_bytes(b) : b->in ? b->head->content_length : 0;
    if (whole != GM_SIZE_UNKNOWN && bytes < whole)
        bytes = whole;
    /* Some of the parts to come may not be text. */
    uint64_t remaining = b->parts ? gm_body_remaining(b) : GM_SIZE_UNKNOWN;
    if (remaining != GM_SIZE_UNKNOWN && bytes > b->text_len + more + remaining)
        bytes = b->text_len + more + remaining;
    enum gm_status status = gm_allocation_make(&larger, b->reservation, b->host, bytes, err);
    if (status != GM_OK)
        return status;
    if (b->text_len > 0)
        memcpy(larger.buffer.data, b->text.buffer.data, b->text_len);
    gm_allocation_free(&b->text, b->reservation);
    b->text = larger;
    return GM_OK;
}

enum gm_status gm_body_add_text(struct gm_body *b, const void *bytes, uint64_t len,
                                struct gm_error *err)
{
    enum gm_status status = grow_text(b, len, err);

    if (status == GM_OK && len > 0) {
        memcpy((char *)b->text.buffer.data + b->text_len, bytes, len);
        b->text_len += len;
    }
    return status;
}

/* Tries to detect the format from the first bytes, which are in the text buffer. `all`: no more
 * will come. */
static enum gm_status sniff(struct gm_body *b, bool all, struct gm_error *err)
{
    const char *text = b->text.buffer.data;

    const struct gm_codec *codec = NULL;
    enum gm_status status =
        gm_body_format_by_first_bytes(text, b->text_len, all, &b->space_len, &codec, err);

    if (status != GM_OK || !codec)
        return status;
    status = set_format(b, codec, err);
    if (status == GM_OK && codec->push) {
        status = codec->push(b->decoder, text, b->text_len, err);
        gm_body_drop_text(b);
    }
    return status;
}

unsigned gm_body_places(const struct gm_body *b, struct iovec place[GM_OPERANDS_MAX])
{
    bool streams = b->kind != GM_BODY_EVAL && b->kind != GM_BODY_DOCUMENT && !b->parts && !b->infer;

    return streams && !b->head->chunked && b->decoder && b->in->places
               ? b->in->places(b->decoder, place)
               : 0;
}

enum gm_status gm_body_push(struct gm_body *b, const void *bytes, size_t len, struct gm_error *err)
{
    if (b->received > b->limit)
        return gm_fail(err, GM_BODY_TOO_LARGE,
                       "the body has more than %llu bytes, which is the limit (--body-limit)",
                       (unsigned long long)b->limit);
    if (b->kind == GM_BODY_EVAL)
        return gm_expression_push(b, bytes, len, err);
    if (b->parts)
        return gm_parts_push(b, bytes, len, err);
    if (b->infer)
        return gm_infer_push(b, bytes, len, err);
    if (b->kind == GM_BODY_DOCUMENT && b->received > GM_DOCUMENT_BYTES_MAX)
        return gm_fail(err, GM_BODY_TOO_LARGE, "%s takes a text of %d bytes at most", b->path,
                       GM_DOCUMENT_BYTES_MAX);
    if (b->kind == GM_BODY_DOCUMENT)
        return gm_body_add_text(b, bytes, len, err);
    if (b->in && b->in->push)
        return b->in->push(b->decoder, bytes, len, err);
    enum gm_status status = gm_body_add_text(b, bytes, len, err);
    return status == GM_OK && !b->in ? sniff(b, false, err) : status;
}

enum gm_status gm_body_end(struct gm_body *b, struct gm_error *err)
{
    if (b->kind == GM_BODY_EVAL)
        return gm_expression_end(b, err);
    if (b->parts)
        return gm_parts_end(b, err);
    if (b->infer)
        return gm_infer_end(b, err);
    if (b->not_needed)
        return GM_OK;
    if (b->kind == GM_BODY_DOCUMENT)
        return gm_body_add_text(b, "", 0, err); /* the text may be empty, but has memory */
    if (b->in)
        return GM_OK;
    if (b->text_len == 0)
        return gm_fail(err, GM_MISSING_OPERAND, "the body is empty: %s takes its matrices there",
                       b->path);
    return sniff(b, true, err);
}

static enum gm_status decode(struct gm_body *b, struct gm_error *err)
{
    if (b->not_needed)
        return GM_OK;
    if (b->kind == GM_BODY_EVAL)
        return gm_expression_decode(b, err);
    if (b->parts)
        return gm_parts_decode(b, err);
    if (b->infer)
        return gm_infer_decode(b, err);
    if (b->kind == GM_BODY_DOCUMENT)
        return GM_OK;
    if (b->in->finish)
        return b->in->finish(b->decoder, err);
    enum gm_status status = grow_text(b, 0, err); /* allocates, even if the text is empty */
    if (status == GM_OK)
        status = b->in->decode(b->text.buffer.data, b->text_len, &b->plan, err);
    gm_body_drop_text(b);
    return status;
}

enum gm_status gm_body_decode(struct gm_body *b, struct gm_error *err)
{
    enum gm_status status = decode(b, err);

    if (status == GM_OK && b->kind != GM_BODY_DOCUMENT)
        status = gm_body_read_regions(b, err);
    return status == GM_OK ? gm_body_read_refs(b, err) : status;
}

uint64_t gm_body_remaining(const struct gm_body *b)
{
    const struct gm_request_head *h = b->head;

    if (h->chunked > 0 || h->content_lengths > 1 || h->content_length_bad)
        return GM_SIZE_UNKNOWN;
    if (h->content_lengths == 0 || h->content_length <= b->received)
        return 0;
    return h->content_length - b->received;
}

void gm_body_drop_text(struct gm_body *b)
{
    gm_allocation_free(&b->text, b->reservation);
    b->text_len = 0;
}

void gm_body_drop_operands(struct gm_body *b)
{
    for (unsigned i = 0; i < GM_OPERANDS_MAX; i++) {
        gm_allocation_free(&b->parsed->memory[i], b->reservation);
        gm_region_leave(&b->parsed->from[i]);
        gm_matrix_leave(&b->parsed->ref[i]);
    }
    if (b->decoder)
        b->in->close(b->decoder);
    b->decoder = NULL;
    gm_parts_close(b->parts);
    b->parts = NULL;
    gm_infer_close(b->infer);
    b->infer = NULL;
    gm_expression_close(b->parsed->expression, b->reservation);
    b->parsed->expression = NULL;
}
