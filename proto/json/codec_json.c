/*
 * codec_json.c - reads matrices in JSON. A body is one of
 *
 *   [[1,2],[3,4]]                                            rows: operand a
 *   {"shape":[2,2], "dtype":"f64", "data":[1,2,3,4], ...}    an operand: a
 *   {"ref":"w", ...}                                         a matrix that is elsewhere: a
 *   {"a":X, "b":X, "c":X, ...}                               X is rows, one of these or a number
 *
 * with parameters as further members. Two passes: the first gives parameters to the sink, and skips
 * arrays of numbers. Then the element type is known, and the second pass reads each array straight
 * into the sink's storage. json_write.c writes.
 */
#include "proto/codec.h"
#include "proto/json/json.h"
#include "proto/number/number.h"

#include <inttypes.h>
#include <string.h>

static const char operand_letters[GM_OPERANDS_MAX + 1] = "abc";

/* An operand, as found by the first pass. */
struct operand {
    char name[2];
    bool has_data, has_shape, has_dtype, has_ref;
    struct gm_json_rows rows;
    struct gm_shape shape;
    struct gm_json_string dtype, ref;
};

struct body {
    struct gm_json json;
    const struct gm_decode_plan *plan;
    struct operand operand[GM_OPERANDS_MAX];
    struct operand bare; /* shape, dtype and data as members of the body itself */
};

static enum gm_status read_string(struct gm_json *json, const char *name,
                                  struct gm_json_string *ret)
{
    if (gm_json_peek(json) != '"')
        return gm_json_fail(json, json->at, "%s is a string", name);
    enum gm_status status = gm_json_string(json, ret);
    return status == GM_OK || ret->len <= GM_JSON_STRING_MAX
               ? status
               : gm_fail(json->err, GM_BAD_PARAMETER, "the value of %.64s has more than %d bytes",
                         name, GM_JSON_STRING_MAX);
}

static enum gm_status read_data(struct gm_json *json, const char *name, struct operand *operand)
{
    if (!gm_json_rows_begin(gm_json_peek(json)))
        return gm_json_fail(json, json->at, "%s is rows of numbers, as in [[1,2],[3,4]]", name);
    operand->has_data = true;
    return gm_json_rows_prescan(json, &operand->rows);
}

/* Reads a member of an operand. *ret_known: whether the name is one of its members. */
static enum gm_status read_operand_member(struct gm_json *json, const struct gm_json_string *name,
                                          struct operand *operand, bool *ret_known)
{
    *ret_known = true;
    if (gm_json_string_is(name, "data"))
        return read_data(json, "data", operand);
    if (gm_json_string_is(name, "shape")) {
        operand->has_shape = true;
        return gm_json_shape(json, &operand->shape);
    }
    if (gm_json_string_is(name, "dtype")) {
        operand->has_dtype = true;
        return read_string(json, "dtype", &operand->dtype);
    }
    if (gm_json_string_is(name, "ref")) {
        operand->has_ref = true;
        return read_string(json, "ref", &operand->ref);
    }
    *ret_known = false;
    return GM_OK;
}

/* Gives the name of an operand that is elsewhere to the sink, as the parameter "a", "b" or "c". */
static enum gm_status give_ref(const struct body *body, const struct operand *operand,
                               const char *name)
{
    const struct gm_json *json = &body->json;
    const struct gm_sink *sink = &body->plan->sink;
    char value[sizeof "ref:" + GM_JSON_STRING_MAX] = "ref:";

    if (operand->has_data || operand->has_shape || operand->has_dtype)
        return gm_json_fail(json, json->at, "%s has a \"ref\" and a \"%s\"", name,
                            operand->has_data    ? "data"
                            : operand->has_shape ? "shape"
                                                 : "dtype");
    memcpy(value + 4, operand->ref.text, operand->ref.len);
    return sink->parameter(sink->cls, name, 1, value, 4 + operand->ref.len, json->err);
}

/* The value of "a", "b" or "c". */
static enum gm_status read_operand(struct body *body, struct operand *operand)
{
    struct gm_json *json = &body->json;

    if (gm_json_peek(json) != '{')
        return read_data(json, operand->name, operand);

    struct gm_json_object object;
    object.count = 0;
    for (;;) {
        const struct gm_json_string *name;
        bool known;
        enum gm_status status = gm_json_member(json, &object, &name);
        if (status != GM_OK)
            return status;
        if (!name)
            break;
        status = read_operand_member(json, name, operand, &known);
        if (status != GM_OK)
            return status;
        if (!known)
            return gm_json_fail(json, json->at,
                                "%s has a member \"%s\"; an operand has shape, dtype and data, or "
                                "ref",
                                operand->name, name->text);
    }
    if (operand->has_ref)
        return give_ref(body, operand, operand->name);
    if (!operand->has_data)
        return gm_json_fail(json, json->at, "%s has no member \"data\"", operand->name);
    return GM_OK;
}

/* Gives a member that is no operand to the sink, as text. */
static enum gm_status read_parameter(struct body *body, const struct gm_json_string *name)
{
    struct gm_json *json = &body->json;
    const struct gm_sink *sink = &body->plan->sink;
    char first = gm_json_peek(json);
    if (first == '"') {
        struct gm_json_string value;
        enum gm_status status = read_string(json, name->text, &value);
        if (status != GM_OK)
            return status;
        return sink->parameter(sink->cls, name->text, name->len, value.text, value.len, json->err);
    }
    if (first == '[' || first == '{' || strncmp(json->at, "null", 4) == 0)
        return gm_fail(
            json->err, GM_BAD_PARAMETER, "%s is %s; %s", name->text,
            first == '['   ? "an array"
            : first == '{' ? "an object"
                           : "null",
            strcmp(name->text, "stats") == 0
                ? "a reply's own, with which it cannot be sent back: ask for the reply with -H "
                  "'Accept: application/x-npy', or take stats out"
                : "operands are named a, b and c, and a parameter is a string, a number, true or "
                  "false");

    const char *value = json->at, *end;
    if (strncmp(value, "true", 4) == 0)
        end = value + 4;
    else if (strncmp(value, "false", 5) == 0)
        end = value + 5;
    else
        end = gm_number_end(value);
    if (!end)
        return gm_json_fail(json, value, "the value of \"%s\" is not JSON", name->text);
    json->at = end;
    return sink->parameter(sink->cls, name->text, name->len, value, (size_t)(end - value),
                           json->err);
}

/* Index of the operand of this name; GM_OPERANDS_MAX if it is none. */
static unsigned operand_index(const struct gm_json_string *name)
{
    for (unsigned i = 0; i < GM_OPERANDS_MAX; i++)
        if (name->len == 1 && name->text[0] == operand_letters[i])
            return i;
    return GM_OPERANDS_MAX;
}

static enum gm_status read_member(struct body *body, const struct gm_json_string *name)
{
    unsigned index = operand_index(name), max = body->plan->operands_max;
    if (index < GM_OPERANDS_MAX && index >= max)
        return gm_fail(body->json.err, GM_EXTRA_OPERAND,
                       "there is an operand %c; this operation takes %s", operand_letters[index],
                       max == 1 ? "a alone" : "a and b");
    if (index < GM_OPERANDS_MAX)
        return read_operand(body, &body->operand[index]);

    bool known;
    enum gm_status status = read_operand_member(&body->json, name, &body->bare, &known);
    return status == GM_OK && !known ? read_parameter(body, name) : status;
}

/* The first pass over an object. */
static enum gm_status read_members(struct body *body)
{
    struct gm_json_object object;
    object.count = 0;
    for (;;) {
        const struct gm_json_string *name;
        enum gm_status status = gm_json_member(&body->json, &object, &name);
        if (status == GM_OK && name)
            status = read_member(body, name);
        if (status != GM_OK)
            return status;
        if (!name)
            return gm_json_end(&body->json);
    }
}

/* Interprets shape, dtype and data as members of the body, alone or beside a, b and c. */
static enum gm_status settle_members(struct body *body)
{
    struct operand *bare = &body->bare;
    const struct gm_sink *sink = &body->plan->sink;
    bool lettered = false;
    for (unsigned i = 0; i < GM_OPERANDS_MAX; i++)
        lettered |= body->operand[i].has_data;

    if (bare->has_ref && lettered)
        return gm_json_fail(&body->json, body->json.start,
                            "\"ref\" stands beside operands by letter; write it inside one of "
                            "them, as in {\"a\":{\"ref\":\"w\"}}");
    if (bare->has_ref)
        return give_ref(body, bare, body->operand[body->plan->operand_first].name);
    if (lettered && (bare->has_data || bare->has_shape))
        return gm_json_fail(&body->json, body->json.start,
                            "\"%s\" stands beside operands by letter; write it inside them, as in "
                            "{\"a\":{\"shape\":[1,2],\"data\":[1,2]}}",
                            bare->has_data ? "data" : "shape");
    if (bare->has_shape && !bare->has_data)
        return gm_json_fail(&body->json, body->json.start, "there is a shape but no \"data\"");
    if (bare->has_data) {
        struct operand *own = &body->operand[body->plan->operand_first];
        memcpy(bare->name, own->name, sizeof(bare->name));
        *own = *bare;
    } else if (bare->has_dtype) {
        return sink->parameter(sink->cls, "dtype", strlen("dtype"), bare->dtype.text,
                               bare->dtype.len, body->json.err);
    }
    return GM_OK;
}

static enum gm_status operand_dtype(const struct body *body, const struct operand *operand,
                                    enum gm_dtype *ret)
{
    struct gm_error *err = body->json.err;
    enum gm_dtype asked = body->plan->dtype, dtype = asked ? asked : GM_F32;
    if (operand->has_dtype) {
        dtype = gm_dtype_from_name(operand->dtype.text, operand->dtype.len);
        if (dtype == GM_DTYPE_NONE)
            return gm_fail(err, GM_BAD_DTYPE, "%s has dtype \"%s\"; there are %s", operand->name,
                           operand->dtype.text, gm_dtype_names());
        if (asked && asked != dtype)
            return gm_fail(err, GM_BAD_DTYPE, "%s has dtype %s, but the request says %s",
                           operand->name, gm_dtype_name(dtype), gm_dtype_name(asked));
    }
    if (!gm_number_reader_of(dtype))
        return gm_fail(err, GM_BAD_DTYPE,
                       "elements of dtype %s cannot be written as JSON; send %s as NPY",
                       gm_dtype_name(dtype), operand->name);
    *ret = dtype;
    return GM_OK;
}

/* The second pass: reads one operand into the sink's storage. */
static enum gm_status store_operand(const struct body *body, unsigned index)
{
    const struct operand *operand = &body->operand[index];
    const struct gm_sink *sink = &body->plan->sink;
    struct gm_error *err = body->json.err;
    struct gm_shape nested;
    struct gm_matrix matrix;
    enum gm_dtype dtype = GM_DTYPE_NONE;
    void *data;

    enum gm_status status = operand_dtype(body, operand, &dtype);
    if (status != GM_OK)
        return status;
    status = gm_json_rows_matrix(&body->json, &operand->rows, dtype, operand->name,
                                 operand->has_shape ? &operand->shape : NULL, &nested, &matrix);
    if (status != GM_OK)
        return status;
    status = sink->operand(sink->cls, index, &matrix, &data, err);
    if (status != GM_OK)
        return status;
    return gm_json_rows_read(&body->json, &operand->rows, dtype, operand->name, &nested, data);
}

static enum gm_status decode(const char *text, size_t len, const struct gm_decode_plan *plan,
                             struct gm_error *err)
{
    struct body body = {.plan = plan};
    for (unsigned i = 0; i < GM_OPERANDS_MAX; i++)
        body.operand[i].name[0] = operand_letters[i];

    enum gm_status status = gm_json_begin(&body.json, text, len, err);
    if (status != GM_OK)
        return status;
    if (*body.json.at == '[') {
        struct operand *own = &body.operand[plan->operand_first];
        status = read_data(&body.json, own->name, own);
        if (status == GM_OK)
            status = gm_json_end(&body.json);
    } else {
        status = read_members(&body);
        if (status == GM_OK)
            status = settle_members(&body);
    }
    for (unsigned i = 0; status == GM_OK && i < GM_OPERANDS_MAX; i++)
        if (body.operand[i].has_data)
            status = store_operand(&body, i);
    return status;
}

const struct gm_codec gm_codec_json = {
    .name = "json",
    .media_type = "application/json",
    .decode = decode,
    .carries_stats = true,
    .encode_bound = gm_json_encode_bound,
    .encode = gm_json_encode,
};
