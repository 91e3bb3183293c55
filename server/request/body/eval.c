/*
 * eval.c - reads an expression and its operands, from JSON or from multipart/form-data.
 *
 *   {"expr": "x @ w.T", "operands": {"x": [[1, 2]], "w": {"ref": "w"}, "k": 2}, "device": "cpu"}
 *   -F expr='x @ w.T' -F x=@x.npy -F w=ref:w -F k=2 -F device=cpu
 *
 * NPY parts stream into memory; texts are collected and decoded at the end. A number alone is a
 * Python number, which takes the type of what it stands beside. Identifiers that the body does not
 * explain are named matrices.
 */
#include "proto/json/json.h"
#include "proto/multipart/multipart.h"
#include "proto/number/number.h"
#include "server/request/body/internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What is being read. */
struct gm_expression_reader {
    struct gm_multipart *parser; /* NULL: the body is JSON */
    uint64_t parameters;         /* bits of gm_params.seen: those that came as parts */
    enum { PART_EXPRESSION, PART_OPERAND, PART_PARAMETER } part;
    bool has_expression;
    struct gm_expression_operand *operand;
    struct gm_first_bytes first;
    char name[GM_PARAMETER_BYTES_MAX], value[GM_PARAMETER_BYTES_MAX];
    size_t value_len;
    struct gm_decode_plan plan;
    struct gm_decoder *decoder; /* of an NPY part, while it is read */
};

static struct gm_expression *expression_of(const struct gm_body *b)
{
    return b->parsed->expression;
}

/* ---- Operands. ---- */

static enum gm_status add_operand(struct gm_body *b, const char *name, size_t len,
                                  struct gm_expression_operand **ret, struct gm_error *err)
{
    struct gm_expression *x = expression_of(b);

    if (!gm_matrix_name_ok(name, len))
        return gm_fail(err, GM_BAD_PARAMETER,
                       "'%.60s' is no name of an operand: it has letters, digits and _, with no "
                       "digit first, 64 at most",
                       name);
    for (unsigned i = 0; i < x->operands; i++)
        if (strcmp(x->operand[i].name, name) == 0)
            return gm_fail(err, GM_EXTRA_OPERAND, "operand %s is there twice", name);
    if (x->operands == GM_EVAL_OPERANDS_MAX)
        return gm_fail(err, GM_EXTRA_OPERAND, "there are more than %d operands",
                       GM_EVAL_OPERANDS_MAX);
    *ret = &x->operand[x->operands++];
    memcpy((*ret)->name, name, len + 1);
    return GM_OK;
}

static enum gm_status take_operand(struct gm_body *b, struct gm_expression_operand *operand,
                                   const struct gm_matrix *matrix, void **ret_data,
                                   struct gm_error *err)
{
    struct gm_allocator allocator;
    unsigned device;
    enum gm_status status = b->events.allocator(b->events.cls, &allocator, &device, err);

    if (status == GM_OK)
        status = gm_allocation_make(&operand->memory, b->reservation, allocator,
                                    gm_matrix_bytes(matrix), err);
    if (status != GM_OK)
        return status;
    operand->matrix = *matrix;
    operand->matrix.data = operand->memory.buffer.data;
    operand->present = true;
    *ret_data = operand->matrix.data;
    return GM_OK;
}

/* A number with nothing beside it becomes a Python number. All other text is left alone, but not
 * numbers that none is: as elements they would have a type, and mean something else. */
static enum gm_status read_number(struct gm_expression_operand *operand, const char *text,
                                  size_t len, struct gm_error *err)
{
    char copy[GM_NUMBER_TEXT_MAX + 1], *end, *whole_end;
    size_t n = len < sizeof copy ? len : sizeof copy - 1;

    memcpy(copy, text, n);
    copy[n] = '\0';
    if (n == 0 || strspn(copy, "0123456789+-.eEINFATYinfaty") < n) /* also infinity and nan */
        return GM_OK;
    double real = strtod(copy, &end);
    if (*end)
        return GM_OK;
    errno = 0;
    long long integer = strtoll(copy, &whole_end, 10);
    bool whole = !*whole_end;
    if (n < len || !isfinite(real) || (whole && errno != 0))
        return gm_fail(err, GM_OUT_OF_RANGE,
                       "operand %s is %.40s%s: a number alone is a whole one of i64, or a finite "
                       "one of f64; elements that are NaN or infinity come as NPY",
                       operand->name, copy, n > 40 ? "..." : "");
    operand->number =
        whole ? GM_WHOLE_NUMBER(integer) : GM_REAL_NUMBER(real); /* -0 is the integer 0 */
    operand->is_number = operand->present = true;
    return GM_OK;
}

/* ref:NAME, without the prefix. */
static enum gm_status set_ref(struct gm_expression_operand *operand, const char *ref, size_t len,
                              struct gm_error *err)
{
    if (!gm_matrix_ref_ok(ref, len))
        return gm_fail(err, GM_BAD_PARAMETER,
                       "operand %s is ref:%.*s, which is no name of a matrix", operand->name,
                       len < 60 ? (int)len : 60, ref);
    memcpy(operand->ref, ref, len);
    operand->ref[len] = '\0';
    return GM_OK;
}

static enum gm_status set_parameter(struct gm_body *b, const char *name, size_t name_len,
                                    const char *value, size_t value_len, struct gm_error *err)
{
    enum gm_status status =
        gm_params_set(&b->parsed->params, b->op, name, name_len, value, value_len, err);

    return status == GM_OK ? b->events.settled(b->events.cls, err) : status;
}

/* ---- JSON. ---- */

/* An operand of the first pass: its elements are read in the second. */
struct json_operand {
    bool has_data, has_shape;
    struct gm_json_rows rows;
    struct gm_shape shape;
    enum gm_dtype dtype;
    struct gm_expression_operand *of;
};

struct json_body {
    struct gm_body *body;
    struct gm_json json;
    unsigned operands;
    struct json_operand operand[GM_EVAL_OPERANDS_MAX];
};

static enum gm_status read_string(struct gm_json *json, const char *name,
                                  struct gm_json_string *ret)
{
    if (gm_json_peek(json) == '"')
        return gm_json_string(json, ret);
    return gm_json_fail(json, json->at, "%s is a string", name);
}

static enum gm_status read_member(struct gm_json *json, const struct gm_json_string *name,
                                  struct json_operand *x)
{
    struct gm_json_string text;
    enum gm_status status;

    if (gm_json_string_is(name, "data")) {
        if (!gm_json_rows_begin(gm_json_peek(json)))
            return gm_json_fail(json, json->at, "data is rows of numbers, as in [[1,2],[3,4]]");
        x->has_data = true;
        return gm_json_rows_prescan(json, &x->rows);
    }
    if (gm_json_string_is(name, "shape")) {
        x->has_shape = true;
        return gm_json_shape(json, &x->shape);
    }
    if (!gm_json_string_is(name, "dtype") && !gm_json_string_is(name, "ref"))
        return gm_json_fail(json, json->at,
                            "%s has a member \"%s\"; an operand has shape, dtype and data, or ref",
                            x->of->name, name->text);
    status = read_string(json, name->text, &text);
    if (status != GM_OK)
        return status;
    if (gm_json_string_is(name, "ref"))
        return set_ref(x->of, text.text, text.len, json->err);
    x->dtype = gm_dtype_from_name(text.text, text.len);
    return x->dtype != GM_DTYPE_NONE
               ? GM_OK
               : gm_fail(json->err, GM_BAD_DTYPE, "%s has dtype \"%.40s\"; there are %s",
                         x->of->name, text.text, gm_dtype_names());
}

static enum gm_status read_operand(struct json_body *j, struct json_operand *x)
{
    struct gm_json *json = &j->json;
    struct gm_json_object object;
    const struct gm_json_string *name;
    enum gm_status status = GM_OK;
    const char *end;

    if (gm_json_peek(json) == '[') {
        x->has_data = true;
        return gm_json_rows_prescan(json, &x->rows);
    }
    if (gm_json_peek(json) != '{') {
        end = gm_number_end(json->at);
        if (!end)
            return gm_json_fail(json, json->at,
                                "operand %s is rows of numbers, an object with data or ref, or a "
                                "number",
                                x->of->name);
        status = read_number(x->of, json->at, (size_t)(end - json->at), json->err);
        if (status != GM_OK)
            return status;
        json->at = end;
        gm_json_space(json);
        return GM_OK;
    }
    object.count = 0;
    while ((status = gm_json_member(json, &object, &name)) == GM_OK && name)
        if ((status = read_member(json, name, x)) != GM_OK)
            break;
    if (status != GM_OK || (x->has_data && !*x->of->ref))
        return status;
    if (*x->of->ref && !x->has_data && !x->has_shape && x->dtype == GM_DTYPE_NONE)
        return GM_OK;
    return gm_json_fail(json, json->at, "operand %s has %s", x->of->name,
                        *x->of->ref ? "a \"ref\", and more beside it" : "no member \"data\"");
}

static enum gm_status read_operands(struct json_body *j)
{
    struct gm_json *json = &j->json;
    struct gm_json_object object;
    const struct gm_json_string *name;
    enum gm_status status = GM_OK;

    if (gm_json_peek(json) != '{')
        return gm_json_fail(
            json, json->at,
            "operands is an object, as in {\"x\": [[1,2]], \"w\": {\"ref\": \"w\"}}");
    object.count = 0;
    while ((status = gm_json_member(json, &object, &name)) == GM_OK && name) {
        struct json_operand *x = &j->operand[j->operands];
        status = add_operand(j->body, name->text, name->len, &x->of, json->err);
        j->operands += status == GM_OK;
        if (status == GM_OK)
            status = read_operand(j, x);
        if (status != GM_OK)
            break;
    }
    return status;
}

/* A member of the body: expr, operands or a parameter. */
static enum gm_status read_body_member(struct json_body *j, const struct gm_json_string *name)
{
    struct gm_json *json = &j->json;
    struct gm_expression *x = expression_of(j->body);
    const char *value = json->at, *end = NULL;
    enum gm_status status;

    if (gm_json_string_is(name, "operands"))
        return read_operands(j);
    if (gm_json_string_is(name, "expr")) {
        if (gm_json_peek(json) != '"')
            return gm_json_fail(json, json->at, "expr is a string, as in \"x @ w.T + 1\"");
        x->reader->has_expression = true;
        status = gm_json_text(json, x->text, GM_EVAL_CHARACTERS_MAX, &x->len);
        if (status == GM_OK || x->len <= GM_EVAL_CHARACTERS_MAX)
            return status;
        return gm_fail(json->err, GM_BAD_EXPRESSION,
                       "the expression has more than %d characters, which is the limit",
                       GM_EVAL_CHARACTERS_MAX);
    }
    if (gm_json_peek(json) == '"') {
        struct gm_json_string text;
        status = gm_json_string(json, &text);
        return status == GM_OK
                   ? set_parameter(j->body, name->text, name->len, text.text, text.len, json->err)
                   : status;
    }
    end = strncmp(value, "true", 4) == 0    ? value + 4
          : strncmp(value, "false", 5) == 0 ? value + 5
                                            : gm_number_end(value);
    if (!end || *value == '[' || *value == '{')
        return gm_json_fail(json, value,
                            "the value of \"%s\" is no parameter's: operands are members of "
                            "\"operands\"",
                            name->text);
    json->at = end;
    return set_parameter(j->body, name->text, name->len, value, (size_t)(end - value), json->err);
}

static enum gm_status store_operand(struct json_body *j, const struct json_operand *x)
{
    struct gm_json *json = &j->json;
    enum gm_dtype asked = j->body->parsed->params.dtype;
    enum gm_dtype dtype = x->dtype ? x->dtype : asked ? asked : GM_F32;
    struct gm_shape nested;
    struct gm_matrix matrix;
    void *data;

    if (!gm_number_reader_of(dtype))
        return gm_fail(json->err, GM_BAD_DTYPE,
                       "elements of dtype %s cannot be written as JSON; send %s as NPY",
                       gm_dtype_name(dtype), x->of->name);
    enum gm_status status = gm_json_rows_matrix(json, &x->rows, dtype, x->of->name,
                                                x->has_shape ? &x->shape : NULL, &nested, &matrix);
    if (status == GM_OK)
        status = take_operand(j->body, x->of, &matrix, &data, json->err);
    return status == GM_OK ? gm_json_rows_read(json, &x->rows, dtype, x->of->name, &nested, data)
                           : status;
}

static enum gm_status read_json(struct gm_body *b, struct gm_error *err)
{
    struct json_body *j = calloc(1, sizeof *j);
    struct gm_json_object object;
    const struct gm_json_string *name;

    if (!j)
        return gm_fail(err, GM_MEMORY_FULL, "no memory for reading an expression");
    j->body = b;
    enum gm_status status = gm_json_begin(&j->json, b->text.buffer.data, b->text_len, err);
    const char first = gm_json_peek(&j->json);
    if (first != '{' && first != '\xEF') /* a byte order mark has a sentence of its own */
        status =
            gm_json_fail(&j->json, j->json.at,
                         "the body must be an object, as in {\"expr\": \"x @ w.T\", \"operands\": "
                         "{\"x\": [[1,2]]}}");
    object.count = 0;
    while (status == GM_OK) {
        status = gm_json_member(&j->json, &object, &name);
        if (status != GM_OK || !name)
            break;
        status = read_body_member(j, name);
    }
    if (status == GM_OK)
        status = gm_json_end(&j->json);
    for (unsigned i = 0; i < j->operands && status == GM_OK; i++)
        if (j->operand[i].has_data)
            status = store_operand(j, &j->operand[i]);
    free(j);
    return status;
}

/* ---- Parts. ---- */

/* Names the part in a codec's error, which speaks of the body. */
static enum gm_status blame(const struct gm_expression_operand *operand, enum gm_status status,
                            struct gm_error *err)
{
    int http = gm_status_http(status);

    if (http != 400 && http != 422)
        return status;
    struct gm_error part = *err;
    return gm_fail(err, status, "part %s: %s", operand->name, part.detail);
}

static enum gm_status sink_operand(void *cls, unsigned index, const struct gm_matrix *matrix,
                                   void **ret_data, struct gm_error *err)
{
    struct gm_body *b = cls;
    uint64_t length = b->head->content_length;
    struct gm_expression_operand *operand = expression_of(b)->reader->operand;

    if (index != 0)
        return gm_fail(err, GM_EXTRA_OPERAND, "it holds several matrices, and a part holds one");
    if (!operand->is_text && length != GM_SIZE_UNKNOWN && gm_matrix_bytes(matrix) > length)
        return gm_fail(err, GM_BODY_TRUNCATED,
                       "its elements need %llu bytes, and all parts together have %llu",
                       (unsigned long long)gm_matrix_bytes(matrix), (unsigned long long)length);
    return take_operand(b, operand, matrix, ret_data, err);
}

static enum gm_status sink_parameter(void *cls, const char *name, size_t name_len,
                                     const char *value, size_t value_len, struct gm_error *err)
{
    (void)cls;
    return gm_fail(err, GM_BAD_PARAMETER, "it holds %.*s=%.*s; a parameter is a part of its own",
                   name_len < 40 ? (int)name_len : 40, name, value_len < 40 ? (int)value_len : 40,
                   value);
}

static void set_plan(struct gm_body *b)
{
    struct gm_expression_reader *r = expression_of(b)->reader;
    enum gm_dtype dtype = b->parsed->params.dtype;

    r->plan = (struct gm_decode_plan){
        .dtype = r->operand->is_text ? dtype : GM_DTYPE_NONE,
        .header = b->parsed->params.header,
        .operands_max = 1,
        .body_bytes = GM_SIZE_UNKNOWN,
        .sink = {.operand = sink_operand, .parameter = sink_parameter, .cls = b},
    };
}

static enum gm_status begin_parameter(struct gm_expression_reader *r, enum gm_op_kind op,
                                      const char *name, bool *ret_known, struct gm_error *err)
{
    size_t len = strlen(name);
    uint64_t bit = 0;
    struct gm_error unknown;

    *ret_known = gm_params_find(op, name, len, &bit, &unknown) == GM_OK && len < sizeof r->name;
    if (!*ret_known)
        return GM_OK;
    if (r->parameters & bit)
        return gm_fail(err, GM_BAD_MULTIPART, "there are two parts named %s", name);
    r->parameters |= bit;
    r->part = PART_PARAMETER;
    memcpy(r->name, name, len + 1);
    r->value_len = 0;
    return GM_OK;
}

static enum gm_status on_begin(void *cls, const struct gm_multipart_part *part,
                               struct gm_error *err)
{
    struct gm_body *b = cls;
    struct gm_expression_reader *r = expression_of(b)->reader;
    bool known = false;

    r->first.len = 0;
    if (strcmp(part->name, "expr") == 0) {
        if (r->has_expression)
            return gm_fail(err, GM_BAD_MULTIPART, "there are two parts named expr");
        r->has_expression = true;
        r->part = PART_EXPRESSION;
        return GM_OK;
    }
    enum gm_status status = begin_parameter(r, b->op, part->name, &known, err);
    if (status != GM_OK || known)
        return status;
    r->part = PART_OPERAND;
    return add_operand(b, part->name, strlen(part->name), &r->operand, err);
}

/* Data of an operand whose format is known. */
static enum gm_status operand_data(struct gm_body *b, const void *bytes, size_t len,
                                   struct gm_error *err)
{
    struct gm_expression_reader *r = expression_of(b)->reader;

    if (r->decoder)
        return blame(r->operand, gm_codec_npy.push(r->decoder, bytes, len, err), err);
    if (r->operand->text_len == 0)
        r->operand->text_at = b->text_len;
    r->operand->text_len += len;
    return gm_body_add_text(b, bytes, len, err);
}

/* The first bytes are there: NPY, or a text. */
static enum gm_status settle(struct gm_body *b, struct gm_error *err)
{
    struct gm_expression_reader *r = expression_of(b)->reader;
    enum gm_status status = GM_OK;

    r->operand->is_text = gm_codec_by_first_bytes(r->first.bytes, r->first.len) != &gm_codec_npy;
    set_plan(b);
    if (!r->operand->is_text)
        status = blame(r->operand, gm_codec_npy.open(&r->plan, &r->decoder, err), err);
    for (size_t i = 0; i < r->first.len && r->operand->is_text; i++) {
        unsigned char c = (unsigned char)r->first.bytes[i];
        if (c == 0x7F || (c < ' ' && !(c >= '\t' && c <= '\r')))
            return gm_fail(err, GM_UNSUPPORTED_MEDIA_TYPE,
                           "part %s is neither NPY nor text: np.save writes NPY", r->operand->name);
    }
    return status == GM_OK ? operand_data(b, r->first.bytes, r->first.len, err) : status;
}

static enum gm_status on_operand_data(struct gm_body *b, const char *bytes, size_t len,
                                      struct gm_error *err)
{
    struct gm_expression_reader *r = expression_of(b)->reader;
    enum gm_status status = GM_OK;

    if (r->first.len < GM_PART_FIRST_BYTES) {
        if (!gm_first_bytes_take(&r->first, &bytes, &len))
            return GM_OK;
        status = settle(b, err);
    }
    return status == GM_OK && len > 0 ? operand_data(b, bytes, len, err) : status;
}

static enum gm_status on_data(void *cls, const void *bytes, size_t len, struct gm_error *err)
{
    struct gm_body *b = cls;
    struct gm_expression *x = expression_of(b);
    struct gm_expression_reader *r = x->reader;

    if (r->part == PART_OPERAND)
        return on_operand_data(b, bytes, len, err);
    bool expression = r->part == PART_EXPRESSION;
    size_t room = expression ? GM_EVAL_CHARACTERS_MAX - x->len : sizeof r->value - r->value_len;
    if (len > room)
        return gm_fail(err, expression ? GM_BAD_EXPRESSION : GM_BAD_MULTIPART,
                       "the value of %s has more than %d bytes", expression ? "expr" : r->name,
                       expression ? GM_EVAL_CHARACTERS_MAX : GM_PARAMETER_BYTES_MAX);
    memcpy(expression ? x->text + x->len : r->value + r->value_len, bytes, len);
    *(expression ? &x->len : &r->value_len) += len;
    return GM_OK;
}

/* What a text is: a number alone, ref:NAME, or elements, which are decoded later. */
static enum gm_status end_text(struct gm_body *b, struct gm_expression_operand *operand,
                               struct gm_error *err)
{
    const char *text = (char *)b->text.buffer.data + operand->text_at;
    size_t len = operand->text_len;

    while (len > 0 && memchr(" \t\r\n", text[len - 1], 4))
        len--;
    for (; len > 0 && memchr(" \t\r\n", *text, 4); len--)
        text++;
    if (len == 0)
        return gm_fail(err, GM_MISSING_OPERAND, "part %s is empty", operand->name);
    if (len > 4 && memcmp(text, "ref:", 4) == 0) {
        operand->is_text = false;
        return set_ref(operand, text + 4, len - 4, err);
    }
    enum gm_status status = read_number(operand, text, len, err);
    operand->is_text = !operand->is_number;
    return status;
}

static enum gm_status on_end(void *cls, struct gm_error *err)
{
    struct gm_body *b = cls;
    struct gm_expression_reader *r = expression_of(b)->reader;
    enum gm_status status = GM_OK;

    if (r->part == PART_PARAMETER)
        return set_parameter(b, r->name, strlen(r->name), r->value, r->value_len, err);
    if (r->part == PART_EXPRESSION)
        return GM_OK;
    if (r->first.len < GM_PART_FIRST_BYTES)
        status = settle(b, err);
    if (status == GM_OK && r->operand->is_text)
        status = gm_body_add_text(b, "", 0, err); /* there is memory, even if it is empty */
    if (status == GM_OK && r->operand->is_text)
        return end_text(b, r->operand, err);
    if (status == GM_OK && r->decoder)
        status = blame(r->operand, gm_codec_npy.finish(r->decoder, err), err);
    gm_codec_npy.close(r->decoder);
    r->decoder = NULL;
    return status;
}

static enum gm_status decode_text(struct gm_body *b, struct gm_expression_operand *operand,
                                  struct gm_error *err)
{
    struct gm_expression_reader *r = expression_of(b)->reader;
    const char *text = (char *)b->text.buffer.data + operand->text_at;
    uint64_t len = operand->text_len, at = 0;

    while (at < len && memchr(" \t\r\n", text[at], 4))
        at++;
    const struct gm_codec *codec = gm_codec_by_first_bytes(text + at, len - at);
    r->operand = operand;
    set_plan(b);
    if (!codec || !codec->decode)
        codec = &gm_codec_csv;
    enum gm_status status = codec->decode(text, len, &r->plan, err);
    if (status == GM_OK && !operand->present)
        status = gm_fail(err, GM_MISSING_OPERAND, "it holds no matrix");
    return blame(operand, status, err);
}

/* ---- The body's steps. ---- */

enum gm_status gm_expression_open(struct gm_body *b, struct gm_error *err)
{
    const struct gm_multipart_events events = {on_begin, on_data, on_end, b};
    bool parts = gm_multipart_is(b->head->content_type);
    const struct gm_codec *codec = NULL;
    enum gm_status status = GM_OK;

    if ((!parts && gm_body_format_by_type(b->head->content_type, &codec, err) != GM_OK) ||
        (codec && codec != &gm_codec_json))
        status = gm_fail(err, GM_UNSUPPORTED_MEDIA_TYPE,
                         "%s takes application/json and multipart/form-data, which name their "
                         "operands: curl -F expr='x @ w.T' -F x=@x.npy",
                         b->path);
    if (status == GM_OK)
        status = gm_body_set_format(b, parts ? &gm_codec_npy : &gm_codec_json, err);
    if (status != GM_OK)
        return status;
    struct gm_expression *x = calloc(1, sizeof *x);
    struct gm_expression_reader *reader = calloc(1, sizeof *reader);
    if (!x || !reader) {
        free(x);
        free(reader);
        return gm_fail(err, GM_MEMORY_FULL, "no memory for reading an expression");
    }
    x->reader = reader;
    b->parsed->expression = x;
    return parts ? gm_multipart_open(b->head->content_type, &events, &reader->parser, err) : GM_OK;
}

enum gm_status gm_expression_push(struct gm_body *b, const void *bytes, size_t len,
                                  struct gm_error *err)
{
    struct gm_multipart *parser = expression_of(b)->reader->parser;

    return parser ? gm_multipart_push(parser, bytes, len, err)
                  : gm_body_add_text(b, bytes, len, err);
}

/* The operand of a name; a named matrix if the body has none. */
static enum gm_status match(struct gm_body *b, unsigned name, struct gm_error *err)
{
    struct gm_expression *x = expression_of(b);
    const struct gm_syntax_tree *tree = &x->tree;
    unsigned i = 0;

    while (i < x->operands && strcmp(x->operand[i].name, tree->name[name]) != 0)
        i++;
    x->by_name[name] = (uint8_t)i;
    struct gm_expression_operand *operand = &x->operand[i];
    bool named = i == x->operands || *operand->ref;
    if (i == x->operands) {
        memcpy(operand->name, tree->name[name], GM_EVAL_NAME_MAX);
        memcpy(operand->ref, tree->name[name], GM_EVAL_NAME_MAX);
        x->operands++;
    }
    if (!named)
        return GM_OK;
    enum gm_status status =
        b->events.ref(b->events.cls, operand->ref, &operand->use, &b->region_bytes, err);
    if (status == GM_OK) {
        operand->matrix = *gm_matrix_of(&operand->use);
        operand->present = true;
        return GM_OK;
    }
    struct gm_error why = *err;
    if (status != GM_NOT_FOUND)
        return gm_eval_fail(err, status, tree->name_at[name], "%s", why.detail);
    if (strcmp(operand->ref, operand->name) != 0)
        return gm_eval_fail(err, GM_MISSING_OPERAND, tree->name_at[name],
                            "%s is ref:%s, and there is no such named matrix for this client",
                            tree->name[name], operand->ref);
    return gm_eval_fail(err, GM_MISSING_OPERAND, tree->name_at[name],
                        "%s is no operand of the request, and no named matrix of yours",
                        tree->name[name]);
}

/* Fails for an operand that the expression does not name: a slip, most likely. */
static enum gm_status check_used(const struct gm_body *b, struct gm_error *err)
{
    const struct gm_expression *x = expression_of(b);

    for (unsigned i = 0; i < x->operands; i++) {
        const char *name = x->operand[i].name, *nearest = NULL;
        bool used = false;
        for (unsigned k = 0; k < x->tree.names; k++)
            used = used || strcmp(x->tree.name[k], name) == 0;
        if (used)
            continue;
        nearest = gm_params_nearest(b->op, name, strlen(name));
        bool near = gm_is_near(name, strlen(name), nearest);
        return gm_fail(err, GM_EXTRA_OPERAND, "operand %s is not in the expression%s%s%s", name,
                       near ? "; the nearest parameter is '" : "", near ? nearest : "",
                       near ? "'" : "");
    }
    return GM_OK;
}

/* Reads the expression, and the JSON around it. */
static enum gm_status read_expression(struct gm_body *b, struct gm_error *err)
{
    struct gm_expression *x = expression_of(b);
    enum gm_status status = GM_OK;

    if (x->read)
        return GM_OK;
    if (!x->reader->parser) {
        status = gm_body_add_text(b, "", 0, err); /* allocates, even if there is no text */
        if (status == GM_OK)
            status = read_json(b, err);
    }
    if (status == GM_OK && !x->reader->has_expression)
        status = gm_fail(err, GM_BAD_EXPRESSION, "there is no expr, which is the expression");
    if (status == GM_OK)
        status = gm_eval_parse(x->text, x->len, &x->tree, err);
    if (status == GM_OK)
        status = check_used(b, err);
    for (unsigned i = 0; i < x->tree.names && status == GM_OK; i++)
        status = match(b, i, err);
    x->read = status == GM_OK;
    return status;
}

enum gm_status gm_expression_end(struct gm_body *b, struct gm_error *err)
{
    struct gm_multipart *parser = expression_of(b)->reader->parser;
    enum gm_status status = parser ? gm_multipart_finish(parser, err) : GM_OK;

    /* A large text is read on a worker. */
    return status == GM_OK && b->text_len <= GM_TEXT_INLINE_BYTES_MAX ? read_expression(b, err)
                                                                      : status;
}

enum gm_status gm_expression_decode(struct gm_body *b, struct gm_error *err)
{
    struct gm_expression *x = expression_of(b);
    enum gm_status status = read_expression(b, err);

    for (unsigned i = 0; i < x->operands && status == GM_OK; i++) {
        struct gm_expression_operand *operand = &x->operand[i];
        if (operand->is_text)
            status = decode_text(b, operand, err);
        else if (operand->use.named)
            status = b->events.ref_data(b->events.cls, GM_OPERANDS_MAX + i, err);
        else if (operand->matrix.dtype == GM_V2 && b->parsed->params.dtype == GM_BF16)
            operand->matrix.dtype = GM_BF16; /* as NPY has it */
    }
    gm_body_drop_text(b);
    return status;
}

void gm_expression_close(struct gm_expression *x, struct gm_reservation *reservation)
{
    if (!x)
        return;
    for (unsigned i = 0; i < x->operands; i++) {
        gm_allocation_free(&x->operand[i].memory, reservation);
        gm_matrix_leave(&x->operand[i].use);
    }
    gm_codec_npy.close(x->reader->decoder);
    gm_multipart_close(x->reader->parser);
    free(x->reader);
    free(x);
}
