/*
 * infer.c - reads an inference request: JSON, and the binary tensors after it.
 *
 * The JSON is collected. If binary tensors follow, it is decoded at once, because it says where
 * they go; they are then streamed into the operands. Else it is decoded at the end, like any text.
 */
#include "proto/kserve/kserve.h"
#include "server/request/body/internal.h"

#include <stdlib.h>
#include <string.h>

struct gm_infer {
    uint64_t text_bytes; /* length of the JSON; GM_SIZE_UNKNOWN: the whole body */
    bool read;           /* the JSON is decoded, and operands have memory */
    struct gm_kserve_request request;
    void *data[GM_OPERANDS_MAX];
    /* Binary tensors received: this many of request.order, and bytes of the next. */
    unsigned next;
    uint64_t have;
};

_Static_assert(GM_INFER_ID_MAX == sizeof((struct gm_kserve_request *)0)->id, "ids are kept whole");

static enum gm_status parse_header(const struct gm_body *b, uint64_t *ret, struct gm_error *err)
{
    const char *text = b->head->infer_header;
    uint64_t whole = b->head->content_length; /* larger than any length where it is not known */
    uint64_t bytes = 0;

    if (!text) {
        *ret = whole;
        return GM_OK;
    }
    size_t digits = strspn(text, "0123456789");
    bool ok = digits > 0 && digits < 20 && !text[digits];
    if (ok)
        bytes = strtoull(text, NULL, 10);
    if (ok && bytes == 0)
        return gm_fail(err, GM_BAD_REQUEST,
                       "Inference-Header-Content-Length is 0, for a body of bare elements: their "
                       "shape must be stated here, so send the JSON too, or use /v1/%s",
                       gm_op_name(b->op));
    if (!ok || bytes > whole)
        return gm_fail(err, GM_BAD_REQUEST,
                       "Inference-Header-Content-Length is '%.40s'; it is the number of bytes of "
                       "JSON that the body begins with, and no more than the body has",
                       text);
    if (bytes > b->limit)
        return gm_fail(err, GM_BODY_TOO_LARGE,
                       "Inference-Header-Content-Length is %llu; the limit of a body is %llu "
                       "(--body-limit)",
                       (unsigned long long)bytes, (unsigned long long)b->limit);
    *ret = bytes;
    return GM_OK;
}

/* Fails if the JSON is so long that it would delay the event thread. Called as soon as its length
 * is known. */
static enum gm_status check_head_bytes(uint64_t bytes, struct gm_error *err)
{
    return bytes <= GM_INFER_HEAD_BYTES_MAX
               ? GM_OK
               : gm_fail(err, GM_BODY_TOO_LARGE,
                         "the JSON before binary tensors has %llu bytes, and %d is the limit: send "
                         "all large inputs as binary",
                         (unsigned long long)bytes, GM_INFER_HEAD_BYTES_MAX);
}

/* Tensors name their regions and matrices themselves. */
static enum gm_status check_places(const struct gm_params *params, struct gm_error *err)
{
    for (unsigned i = 0; i <= GM_RESULT_REGION; i++)
        if (*params->region[i] || (i < GM_OPERANDS_MAX && *params->ref[i]))
            return gm_fail(err, GM_BAD_PARAMETER,
                           "inputs and outputs of an inference request name regions and matrices "
                           "in parameters of their own");
    return GM_OK;
}

enum gm_status gm_infer_open(struct gm_body *b, struct gm_error *err)
{
    const struct gm_params *params = &b->parsed->params;
    uint64_t text_bytes = 0;
    enum gm_status status = parse_header(b, &text_bytes, err);

    if (status == GM_OK)
        status = check_places(params, err);
    if (status == GM_OK && gm_params_have_shape(params))
        status = gm_fail(err, GM_BAD_PARAMETER,
                         "shape is for application/octet-stream; inputs state their own");
    if (status == GM_OK && b->head->content_length != GM_SIZE_UNKNOWN &&
        text_bytes < b->head->content_length)
        status = check_head_bytes(text_bytes, err);
    if (status == GM_OK)
        status = gm_body_set_format(b, &gm_codec_kserve_json, err);
    if (status != GM_OK)
        return status;
    b->infer = calloc(1, sizeof *b->infer);
    if (!b->infer)
        return gm_fail(err, GM_MEMORY_FULL, "no memory for reading an inference request");
    b->infer->text_bytes = text_bytes;
    return GM_OK;
}

void gm_infer_close(struct gm_infer *infer)
{
    free(infer);
}

uint64_t gm_infer_text_bytes(const struct gm_body *b)
{
    return b->infer->text_bytes;
}

/* Reads a parameter. Shapes and types are errors: the tensors state their own. */
static enum gm_status on_parameter(void *cls, const char *name, size_t name_len, const char *value,
                                   size_t value_len, struct gm_error *err)
{
    struct gm_body *b = cls;
    struct gm_params *params = &b->parsed->params;
    enum gm_dtype dtype = params->dtype;
    enum gm_status status = gm_params_set(params, b->op, name, name_len, value, value_len, err);

    if (status == GM_OK && (gm_params_have_shape(params) || params->dtype != dtype))
        return gm_fail(err, GM_BAD_PARAMETER,
                       "%.*s is no parameter of an inference request: inputs state their own shape "
                       "and datatype",
                       (int)(name_len < 40 ? name_len : 40), name);
    if (status == GM_OK)
        status = check_places(params, err);
    return status == GM_OK ? b->events.settled(b->events.cls, err) : status;
}

/* Takes a named matrix. The input states its shape and type too: they must be right. */
static enum gm_status take_ref(struct gm_body *b, unsigned index,
                               const struct gm_kserve_input *input, struct gm_error *err)
{
    const struct gm_matrix *stated = &input->matrix, *there = &b->parsed->operand[index];
    enum gm_status status = gm_body_take_ref(b, index, input->ref, err);
    char shapes[2][GM_SHAPE_TEXT_MAX];

    if (status != GM_OK)
        return status;
    if (there->dtype != stated->dtype)
        return gm_fail(err, GM_BAD_DTYPE, "input %c is stated as %s, and the named matrix has %s",
                       'A' + (int)index, gm_dtype_name(stated->dtype), gm_dtype_name(there->dtype));
    if (there->batch != stated->batch || there->rows != stated->rows || there->cols != stated->cols)
        return gm_fail(err, GM_BAD_SHAPE, "input %c is stated as %s, and the named matrix is %s",
                       'A' + (int)index, gm_matrix_shape_text(stated, shapes[0]),
                       gm_matrix_shape_text(there, shapes[1]));
    return GM_OK;
}

/* Allocates each operand, in the order of `inputs`. */
static enum gm_status take_operands(struct gm_body *b, struct gm_error *err)
{
    struct gm_infer *infer = b->infer;
    enum gm_status status = GM_OK;

    for (unsigned i = 0; i < infer->request.inputs && status == GM_OK; i++) {
        unsigned index = infer->request.order[i];
        const struct gm_kserve_input *input = &infer->request.input[index];
        status = input->place == GM_KSERVE_REGION
                     ? gm_body_take_region(b, index, &input->matrix, &input->part, err)
                 : input->place == GM_KSERVE_REF
                     ? take_ref(b, index, input, err)
                     : gm_body_take_operand(b, index, &input->matrix, &infer->data[index], err);
    }
    return status == GM_OK ? gm_body_check_operands(b, err) : status;
}

/* Checks that the bytes after the JSON are those of its binary tensors. */
static enum gm_status check_binary(const struct gm_body *b, struct gm_error *err)
{
    uint64_t need = 0, have = b->head->content_length - b->text_len;
    enum gm_status status = gm_kserve_binary_bytes(&b->infer->request, &need, err);

    if (status != GM_OK || b->head->content_length == GM_SIZE_UNKNOWN || need == have)
        return status;
    return gm_fail(err, need > have ? GM_BODY_TRUNCATED : GM_BODY_TRAILING,
                   "the inputs have %llu bytes of binary data (binary_data_size), and %llu follow "
                   "the JSON%s",
                   (unsigned long long)need, (unsigned long long)have,
                   b->head->infer_header
                       ? ""
                       : ", whose length Inference-Header-Content-Length does not state");
}

static enum gm_status read_text(struct gm_body *b, struct gm_error *err)
{
    struct gm_infer *infer = b->infer;
    struct gm_kserve_request *request = &infer->request;
    const struct gm_kserve_plan plan = {.model = b->parsed->model,
                                        .operands_max = gm_op_operands_max(b->op),
                                        .dtype = b->parsed->params.dtype,
                                        .parameter = on_parameter,
                                        .cls = b};
    enum gm_status status = gm_kserve_read(b->text.buffer.data, b->text_len, &plan, request, err);

    if (status == GM_OK)
        status = check_binary(b, err);
    if (status != GM_OK)
        return status;
    infer->read = true;
    b->parsed->has_id = request->has_id;
    memcpy(b->parsed->id, request->id, sizeof request->id);
    status = gm_body_set_format(b, gm_kserve_codec(request->output), err);
    if (status == GM_OK && request->output == GM_KSERVE_REGION)
        status = gm_body_set_region(b, &request->output_part, err);
    return status == GM_OK ? take_operands(b, err) : status;
}

/* The input that the next bytes after the JSON belong to; NULL if there is none. */
static const struct gm_kserve_input *next_binary(struct gm_infer *infer)
{
    const struct gm_kserve_request *request = &infer->request;

    for (; infer->next < request->inputs; infer->next++, infer->have = 0) {
        const struct gm_kserve_input *input = &request->input[request->order[infer->next]];
        if (input->place == GM_KSERVE_BINARY && infer->have < gm_matrix_bytes(&input->matrix))
            return input;
    }
    return NULL;
}

static enum gm_status take_binary(struct gm_infer *infer, const char *bytes, size_t len,
                                  struct gm_error *err)
{
    while (len > 0) {
        const struct gm_kserve_input *input = next_binary(infer);
        if (!input)
            return gm_fail(err, GM_BODY_TRAILING,
                           "the body goes on after the binary data that its inputs state");
        uint64_t want = gm_matrix_bytes(&input->matrix) - infer->have;
        size_t n = len < want ? len : (size_t)want;
        memcpy((char *)infer->data[infer->request.order[infer->next]] + infer->have, bytes, n);
        infer->have += n;
        bytes += n;
        len -= n;
    }
    return GM_OK;
}

enum gm_status gm_infer_push(struct gm_body *b, const char *bytes, size_t len, struct gm_error *err)
{
    struct gm_infer *infer = b->infer;
    uint64_t left = infer->text_bytes - b->text_len;
    size_t n = len < left ? len : (size_t)left;
    enum gm_status status = n > 0 ? gm_body_add_text(b, bytes, n, err) : GM_OK;

    if (status != GM_OK || b->text_len < infer->text_bytes)
        return status;
    bool more = b->head->content_length != GM_SIZE_UNKNOWN
                    ? b->head->content_length > infer->text_bytes
                    : len > n;
    if (more && !infer->read) {
        status = check_head_bytes(b->text_len, err);
        if (status == GM_OK)
            status = read_text(b, err);
    }
    return status == GM_OK ? take_binary(infer, bytes + n, len - n, err) : status;
}

enum gm_status gm_infer_end(struct gm_body *b, struct gm_error *err)
{
    struct gm_infer *infer = b->infer;

    if (infer->text_bytes != GM_SIZE_UNKNOWN && b->text_len < infer->text_bytes)
        return gm_fail(err, GM_BODY_TRUNCATED,
                       "Inference-Header-Content-Length says %llu bytes of JSON, the body has %llu",
                       (unsigned long long)infer->text_bytes, (unsigned long long)b->text_len);
    return GM_OK;
}

enum gm_status gm_infer_decode(struct gm_body *b, struct gm_error *err)
{
    struct gm_infer *infer = b->infer;
    enum gm_status status = GM_OK;

    if (!infer->read) {
        status = gm_body_add_text(b, "", 0, err); /* allocates, even if there is no text */
        if (status == GM_OK)
            status = read_text(b, err);
    }
    if (status == GM_OK && next_binary(infer))
        status = gm_fail(err, GM_BODY_TRUNCATED, "the body ends before its binary data does");
    for (unsigned i = 0; i < GM_OPERANDS_MAX && status == GM_OK; i++)
        if (infer->request.input[i].place == GM_KSERVE_JSON)
            status = gm_kserve_read_data(&infer->request, i, infer->data[i], err);
    gm_body_drop_text(b);
    return status;
}
