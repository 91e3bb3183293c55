#include "server/request/body/internal.h"

#include <string.h>

static char letter(const struct gm_parts *parts)
{
    return (char)('a' + parts->index);
}

/* Names the part in a codec's error, which speaks of the body. */
static enum gm_status blame_part(const struct gm_parts *parts, enum gm_status status,
                                 struct gm_error *err)
{
    int http = gm_status_http(status);

    if (http != 400 && http != 422)
        return status;
    struct gm_error part = *err;
    return gm_fail(err, status, "part %c: %s", letter(parts), part.detail);
}

static enum gm_status sink_operand(void *cls, unsigned index, const struct gm_matrix *matrix,
                                   void **ret_data, struct gm_error *err)
{
    struct gm_body *b = cls;
    const struct gm_parts *parts = b->parts;
    uint64_t bytes = gm_matrix_bytes(matrix), length = b->head->content_length;

    if (index != parts->index)
        return gm_fail(err, GM_EXTRA_OPERAND,
                       "it holds an operand %c; each is a part of its own, as with curl -F "
                       "a=@a.npy -F b=@b.npy",
                       'a' + (int)index);
    /* Report it before allocating memory for it. */
    if (!parts->operand[index].format.text && length != GM_SIZE_UNKNOWN && bytes > length)
        return gm_fail(err, GM_BODY_TRUNCATED,
                       "its elements need %llu bytes, and all parts together have %llu",
                       (unsigned long long)bytes, (unsigned long long)length);
    return gm_body_take_operand(b, index, matrix, ret_data, err);
}

static enum gm_status sink_parameter(void *cls, const char *name, size_t name_len,
                                     const char *value, size_t value_len, struct gm_error *err)
{
    (void)cls;
    return gm_fail(err, GM_BAD_PARAMETER,
                   "it holds %.*s; a parameter is a part of its own, as with curl -F %.*s=%.*s",
                   (int)(name_len < 40 ? name_len : 40), name, (int)(name_len < 40 ? name_len : 40),
                   name, (int)(value_len < 40 ? value_len : 40), value);
}

/* Sets the decoder's plan for the operand `index`. */
static void set_plan(struct gm_body *b, unsigned index)
{
    struct gm_parts *parts = b->parts;

    parts->index = index;
    parts->plan = (struct gm_decode_plan){
        .dtype = b->parsed->params.dtype,
        .header = b->parsed->params.header,
        .operands_max = gm_op_operands_max(b->op),
        .operand_first = index,
        .body_bytes = GM_SIZE_UNKNOWN,
        .sink = {.operand = sink_operand, .parameter = sink_parameter, .cls = b},
    };
    parts->plan.has_shape[index] = b->parsed->params.shape[index].ndim > 0;
    parts->plan.shape[index] = b->parsed->params.shape[index];
}

enum gm_status gm_part_operand_begin(struct gm_body *b, unsigned index, const char *type,
                                     struct gm_error *err)
{
    struct gm_parts *parts = b->parts;
    struct gm_part_operand *operand = &parts->operand[index];
    unsigned max = gm_op_operands_max(b->op);

    if (index >= max)
        return gm_fail(err, GM_EXTRA_OPERAND, "there is a part %c; %s takes %s", 'a' + (int)index,
                       gm_op_name(b->op), max == 1 ? "a alone" : "a and b");
    if (b->parsed->present[index] && !operand->given)
        return gm_fail(err, GM_EXTRA_OPERAND, "operand %c is in a %s, and in a part too",
                       'a' + (int)index, b->parsed->ref[index].named ? "named matrix" : "region");
    if (operand->given)
        return gm_fail(err, GM_BAD_MULTIPART, "there are two parts named %c", 'a' + (int)index);
    enum gm_status status =
        gm_part_format_by_type(type, (char)('a' + index), &operand->format, err);
    if (status != GM_OK)
        return status;
    set_plan(b, index);
    operand->given = true;
    parts->first.len = 0;
    if (!operand->format.codec || operand->format.text)
        return GM_OK;
    return blame_part(parts, operand->format.codec->open(&parts->plan, &parts->decoder, err), err);
}

/* Reads data of an operand of known format, or known to be text. */
static enum gm_status take_operand(struct gm_body *b, const void *bytes, size_t len,
                                   struct gm_error *err)
{
    struct gm_parts *parts = b->parts;
    struct gm_part_operand *operand = &parts->operand[parts->index];

    if (!operand->format.text)
        return blame_part(parts, operand->format.codec->push(parts->decoder, bytes, len, err), err);
    if (operand->text_len == 0)
        operand->text_at = b->text_len;
    enum gm_status status = gm_body_add_text(b, bytes, len, err);
    if (status == GM_OK)
        operand->text_len += len;
    return status;
}

/* Detects the format from the first bytes, if the type did not state it. */
static enum gm_status settle_format(struct gm_body *b, const void *bytes, size_t len,
                                    struct gm_error *err)
{
    struct gm_parts *parts = b->parts;
    struct gm_part_format *format = &parts->operand[parts->index].format;
    enum gm_status status = gm_part_format_by_first_bytes(
        bytes, len, letter(parts), b->parsed->params.shape[parts->index].ndim > 0, format, err);

    if (status == GM_OK && !format->text)
        status = blame_part(parts, format->codec->open(&parts->plan, &parts->decoder, err), err);
    return status;
}

/* Whether the format is unknown, so that more first bytes are needed. */
static bool unsettled(const struct gm_parts *parts)
{
    const struct gm_part_operand *operand = &parts->operand[parts->index];

    return !operand->format.codec && parts->first.len < GM_PART_FIRST_BYTES &&
           operand->text_len == 0;
}

static enum gm_status end_first_bytes(struct gm_body *b, struct gm_error *err)
{
    struct gm_parts *parts = b->parts;
    enum gm_status status = settle_format(b, parts->first.bytes, parts->first.len, err);

    return status == GM_OK ? take_operand(b, parts->first.bytes, parts->first.len, err) : status;
}

enum gm_status gm_part_operand_push(struct gm_body *b, const char *bytes, size_t len,
                                    struct gm_error *err)
{
    struct gm_parts *parts = b->parts;
    enum gm_status status = GM_OK;

    if (unsettled(parts) && parts->first.len == 0 && len >= GM_PART_FIRST_BYTES) {
        status = settle_format(b, bytes, GM_PART_FIRST_BYTES, err);
    } else if (unsettled(parts)) {
        if (!gm_first_bytes_take(&parts->first, &bytes, &len))
            return GM_OK;
        status = end_first_bytes(b, err);
    }
    return status == GM_OK && len > 0 ? take_operand(b, bytes, len, err) : status;
}

/* Whether a text begins with "ref:", as no matrix does. */
static bool is_ref(const struct gm_body *b, const struct gm_part_operand *operand)
{
    return operand->text_len >= 4 &&
           memcmp((char *)b->text.buffer.data + operand->text_at, "ref:", 4) == 0;
}

/* Takes the named matrix that the part's text names. Blanks and line ends may follow it. */
static enum gm_status take_ref(struct gm_body *b, struct gm_error *err)
{
    struct gm_parts *parts = b->parts;
    struct gm_part_operand *operand = &parts->operand[parts->index];
    const char name = letter(parts), *text = (char *)b->text.buffer.data + operand->text_at;
    uint64_t len = operand->text_len;

    while (memchr(" \t\r\n", text[len - 1], 4))
        len--;
    enum gm_status status =
        gm_params_set(&b->parsed->params, b->op, &name, 1, text, (size_t)len, err);
    if (status == GM_OK)
        status = gm_body_take_refs(b, err);
    operand->is_ref = true;
    operand->format.text = false; /* there is nothing to decode */
    return status;
}

enum gm_status gm_part_operand_end(struct gm_body *b, struct gm_error *err)
{
    struct gm_parts *parts = b->parts;
    struct gm_part_operand *operand = &parts->operand[parts->index];
    enum gm_status status = GM_OK;

    if (unsettled(parts) &&
        (parts->first.len > 0 || b->parsed->params.shape[parts->index].ndim > 0))
        status = end_first_bytes(b, err);
    if (status == GM_OK && parts->decoder) {
        status = blame_part(parts, operand->format.codec->finish(parts->decoder, err), err);
        operand->format.codec->close(parts->decoder);
        parts->decoder = NULL;
    } else if (status == GM_OK && !operand->format.codec && is_ref(b, operand)) {
        status = take_ref(b, err);
    } else if (status == GM_OK && !operand->format.codec) {
        status =
            gm_part_format_of_text((char *)b->text.buffer.data + operand->text_at,
                                   operand->text_len, letter(parts), &operand->format.codec, err);
    }
    return status;
}

enum gm_status gm_part_operand_decode(struct gm_body *b, unsigned index, struct gm_error *err)
{
    struct gm_parts *parts = b->parts;
    const struct gm_part_operand *operand = &parts->operand[index];
    enum gm_status status = GM_OK;

    set_plan(b, index);
    if (operand->text_len == 0) /* allocates, even if the text is empty */
        status = gm_body_add_text(b, "", 0, err);
    const char *text = (char *)b->text.buffer.data + operand->text_at;
    if (status == GM_OK)
        status = operand->format.codec->decode(text, operand->text_len, &parts->plan, err);
    if (status == GM_OK && !b->parsed->present[index])
        status = gm_fail(err, GM_MISSING_OPERAND, "it holds no matrix");
    return blame_part(parts, status, err);
}
