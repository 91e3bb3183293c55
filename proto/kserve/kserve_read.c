/*
 * kserve_read.c - reads an inference request. One pass over the JSON skips arrays of numbers. Each
 * array is read later, straight to its operand.
 */
#include "proto/kserve/kserve.h"
#include "proto/number/number.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LETTERS "ABC"

/* A parameter's value: the content of a string, or a number, true or false as written. */
struct value {
    char kind; /* '"', 'n' for a number, 'b' for true and false */
    const char *text;
    size_t len;
    struct gm_json_string string;
};

/* Parameters of a request, an input or an output. */
struct said {
    bool has_binary_bytes, has_binary, binary, has_region, has_region_bytes, has_ref;
    uint64_t binary_bytes;
    struct gm_region_part part;
    char ref[GM_JSON_STRING_MAX + 1];
};

/* An input or an output that is being read. */
struct tensor {
    struct gm_json_string name, datatype;
    bool has_shape, has_data;
    struct gm_shape shape;
    struct gm_json_rows rows;
    struct said said;
};

struct reader {
    struct gm_json *json;
    const struct gm_kserve_plan *plan;
    struct gm_kserve_request *request;
    bool binary_output; /* where the output does not say it itself, */
    bool output_unsaid; /* as this one does not */
    struct tensor tensor;
};

typedef enum gm_status member_fn(struct reader *r, const struct gm_json_string *name);

/* Like gm_json_begin, whose messages speak of matrices. */
static enum gm_status begin_text(struct gm_json *json, const char *text, size_t len,
                                 const char *what, struct gm_error *err)
{
    size_t space = 0;

    while (space < len && memchr(" \t\r\n", text[space], 4))
        space++;
    if (space == len || text[space] != '{')
        return gm_fail(err, GM_BAD_JSON, "byte %zu: %s is a JSON object", space, what);
    return gm_json_begin(json, text, len, err);
}

/* Reads the members of the object at the cursor. `what` names it in messages. */
static enum gm_status read_object(struct reader *r, const char *what, member_fn *member)
{
    struct gm_json_object object;

    object.count = 0;
    if (gm_json_peek(r->json) != '{')
        return gm_json_fail(r->json, r->json->at, "%s is an object", what);
    for (;;) {
        const struct gm_json_string *name;
        enum gm_status status = gm_json_member(r->json, &object, &name);
        if (status == GM_OK && name)
            status = member(r, name);
        if (status != GM_OK || !name)
            return status;
    }
}

/* Reads the elements of the array at the cursor. */
static enum gm_status read_array(struct reader *r, const char *what,
                                 enum gm_status (*element)(struct reader *r))
{
    struct gm_json *json = r->json;

    if (gm_json_peek(json) != '[')
        return gm_json_fail(json, json->at, "%s is an array", what);
    json->at++;
    gm_json_space(json);
    for (bool more = gm_json_peek(json) != ']'; more;) {
        enum gm_status status = element(r);
        if (status != GM_OK)
            return status;
        gm_json_space(json);
        more = gm_json_peek(json) == ',';
        if (!more && gm_json_peek(json) != ']')
            return gm_json_fail(json, json->at, "',' or ']' is expected in %s", what);
        json->at += more;
        gm_json_space(json);
    }
    json->at++;
    gm_json_space(json);
    return GM_OK;
}

static enum gm_status read_string(struct reader *r, const char *what, struct gm_json_string *ret)
{
    const char *at = r->json->at;

    if (gm_json_peek(r->json) != '"')
        return gm_json_fail(r->json, at, "%s is a string", what);
    enum gm_status status = gm_json_string(r->json, ret);
    if (status == GM_OK && strlen(ret->text) != ret->len)
        return gm_json_fail(r->json, at, "%s has a zero character in it", what);
    return status;
}

static enum gm_status read_value(struct reader *r, const struct gm_json_string *name,
                                 struct value *ret)
{
    struct gm_json *json = r->json;
    const char *at = json->at, *end = NULL;

    if (gm_json_peek(json) == '"') {
        enum gm_status status = read_string(r, name->text, &ret->string);
        ret->kind = '"';
        ret->text = ret->string.text;
        ret->len = ret->string.len;
        return status;
    }
    ret->kind = 'b';
    if (strncmp(at, "true", 4) == 0)
        end = at + 4;
    else if (strncmp(at, "false", 5) == 0)
        end = at + 5;
    else if ((end = gm_number_end(at)) != NULL)
        ret->kind = 'n';
    if (!end)
        return gm_json_fail(json, at, "the parameter \"%s\" is a string, a number, true or false",
                            name->text);
    ret->text = at;
    ret->len = (size_t)(end - at);
    json->at = end;
    return GM_OK;
}

/* Reads a parameter that is a count. */
static enum gm_status to_count(struct reader *r, const struct gm_json_string *name,
                               const struct value *value, uint64_t *ret)
{
    if (value->kind == 'n' && gm_number_reader_of(GM_U64)(value->text, ret))
        return GM_OK;
    return gm_fail(r->json->err, GM_BAD_PARAMETER, "%s is %.*s; it is a whole number of bytes",
                   name->text, (int)(value->len < 40 ? value->len : 40), value->text);
}

static enum gm_status to_bool(struct reader *r, const struct gm_json_string *name,
                              const struct value *value, bool *ret)
{
    if (value->kind != 'b')
        return gm_fail(r->json->err, GM_BAD_PARAMETER, "%s is true or false", name->text);
    *ret = *value->text == 't';
    return GM_OK;
}

/* Reads a parameters object, or null for none. */
static enum gm_status read_parameters(struct reader *r, member_fn *member)
{
    if (strncmp(r->json->at, "null", 4) == 0) {
        r->json->at += 4;
        return GM_OK;
    }
    return read_object(r, "parameters", member);
}

static enum gm_status read_region_parameter(struct reader *r, const struct gm_json_string *name,
                                            const struct value *value, bool *ret_known)
{
    struct said *said = &r->tensor.said;

    *ret_known = true;
    if (gm_json_string_is(name, "shared_memory_region")) {
        if (value->kind != '"' || value->len == 0 || value->len >= GM_REGION_NAME_MAX)
            return gm_fail(r->json->err, GM_BAD_PARAMETER,
                           "shared_memory_region is the name of a region, of 1 to %d bytes",
                           GM_REGION_NAME_MAX - 1);
        said->has_region = true;
        memcpy(said->part.region, value->text, value->len + 1);
        return GM_OK;
    }
    if (gm_json_string_is(name, "shared_memory_byte_size")) {
        said->has_region_bytes = true;
        return to_count(r, name, value, &said->part.bytes);
    }
    if (gm_json_string_is(name, "shared_memory_offset"))
        return to_count(r, name, value, &said->part.offset);
    *ret_known = false;
    return GM_OK;
}

static enum gm_status to_ref(struct reader *r, const struct value *value)
{
    struct said *said = &r->tensor.said;

    if (value->kind != '"' || value->len == 0 || value->len >= sizeof said->ref)
        return gm_fail(r->json->err, GM_BAD_PARAMETER, "ref is the name of a matrix");
    said->has_ref = true;
    memcpy(said->ref, value->text, value->len);
    said->ref[value->len] = '\0';
    return GM_OK;
}

static enum gm_status input_parameter(struct reader *r, const struct gm_json_string *name)
{
    struct value value;
    bool known = false;
    enum gm_status status = read_value(r, name, &value);

    if (status == GM_OK && gm_json_string_is(name, "binary_data_size")) {
        r->tensor.said.has_binary_bytes = known = true;
        status = to_count(r, name, &value, &r->tensor.said.binary_bytes);
    }
    if (status == GM_OK && !known && gm_json_string_is(name, "ref")) {
        known = true;
        status = to_ref(r, &value);
    }
    if (status == GM_OK && !known)
        status = read_region_parameter(r, name, &value, &known);
    if (status != GM_OK || known)
        return status;
    return gm_fail(r->json->err, GM_UNKNOWN_PARAMETER,
                   "an input has the parameters binary_data_size, or shared_memory_region, "
                   "shared_memory_byte_size and shared_memory_offset, or ref; there is no '%.64s'",
                   name->text);
}

static enum gm_status output_parameter(struct reader *r, const struct gm_json_string *name)
{
    struct value value;
    bool known = false;
    enum gm_status status = read_value(r, name, &value);

    if (status == GM_OK && gm_json_string_is(name, "classification"))
        return gm_fail(r->json->err, GM_BAD_PARAMETER,
                       "classification is not supported: the result is a matrix, not scores");
    if (status == GM_OK && gm_json_string_is(name, "binary_data")) {
        r->tensor.said.has_binary = known = true;
        status = to_bool(r, name, &value, &r->tensor.said.binary);
    }
    if (status == GM_OK && !known)
        status = read_region_parameter(r, name, &value, &known);
    if (status != GM_OK || known)
        return status;
    return gm_fail(r->json->err, GM_UNKNOWN_PARAMETER,
                   "an output has the parameters binary_data, or shared_memory_region, "
                   "shared_memory_byte_size and shared_memory_offset; there is no '%.64s'",
                   name->text);
}

static enum gm_status tensor_shape(struct reader *r)
{
    r->tensor.has_shape = true;
    return gm_json_shape(r->json, &r->tensor.shape);
}

static enum gm_status fail_datatype(const struct reader *r)
{
    return gm_fail(r->json->err, GM_BAD_DTYPE,
                   "input %s has datatype '%.40s'; matrices have BOOL, INT8 to INT64, UINT8 to "
                   "UINT64, FP16, BF16, FP32 or FP64",
                   r->tensor.name.text, r->tensor.datatype.text);
}

static bool datatype_is_known(const struct tensor *t)
{
    return gm_kserve_dtype(t->datatype.text, t->datatype.len) != GM_DTYPE_NONE;
}

static enum gm_status input_member(struct reader *r, const struct gm_json_string *name)
{
    struct gm_json *json = r->json;
    struct tensor *tensor = &r->tensor;

    if (gm_json_string_is(name, "name"))
        return read_string(r, "an input's name", &tensor->name);
    if (gm_json_string_is(name, "datatype"))
        return read_string(r, "datatype", &tensor->datatype);
    if (gm_json_string_is(name, "shape"))
        return tensor_shape(r);
    if (gm_json_string_is(name, "parameters"))
        return read_parameters(r, input_parameter);
    if (!gm_json_string_is(name, "data"))
        return gm_json_fail(json, json->at,
                            "an input has name, shape, datatype, and data or parameters; not "
                            "\"%.64s\"",
                            name->text);
    if (tensor->datatype.len > 0 && !datatype_is_known(tensor))
        return fail_datatype(r); /* of BYTES, say: data is texts then */
    if (!gm_json_rows_begin(gm_json_peek(json)))
        return gm_json_fail(json, json->at, "data is an array of numbers, flat or nested");
    tensor->has_data = true;
    return gm_json_rows_prescan(json, &tensor->rows);
}

/* "A", "A and B", "A, B and C" */
static const char *letters(unsigned n)
{
    return n == 1 ? "A" : n == 2 ? "A and B" : "A, B and C";
}

static enum gm_status input_index(const struct reader *r, unsigned *ret)
{
    const char *name = r->tensor.name.text;
    unsigned max = r->plan->operands_max;

    for (unsigned i = 0; i < max; i++) {
        if (name[0] != LETTERS[i] || name[1])
            continue;
        if (r->request->input[i].place != GM_KSERVE_ABSENT)
            return gm_fail(r->json->err, GM_EXTRA_OPERAND, "there are two inputs %s", name);
        *ret = i;
        return GM_OK;
    }
    if (r->tensor.name.len == 0)
        return gm_json_fail(r->json, r->json->at, "an input has no name; %s takes %s",
                            r->plan->model, letters(max));
    return gm_fail(r->json->err, GM_EXTRA_OPERAND, "there is an input '%.64s'; %s takes %s", name,
                   r->plan->model, letters(max));
}

static enum gm_status input_dtype(const struct reader *r, enum gm_dtype *ret)
{
    const struct tensor *t = &r->tensor;
    enum gm_dtype dtype = gm_kserve_dtype(t->datatype.text, t->datatype.len),
                  fixed = r->plan->dtype;

    if (t->datatype.len == 0)
        return gm_json_fail(r->json, r->json->at, "input %s has no datatype", t->name.text);
    if (!datatype_is_known(t))
        return fail_datatype(r);
    if (fixed != GM_DTYPE_NONE && dtype != fixed)
        return gm_fail(r->json->err, GM_BAD_DTYPE, "input %s has datatype %s, and %s takes %s",
                       t->name.text, t->datatype.text, r->plan->model, gm_kserve_datatype(fixed));
    *ret = dtype;
    return GM_OK;
}

/* Checks that a stated number of bytes is that of the shape. */
static enum gm_status check_bytes(const struct reader *r, const struct gm_matrix *matrix,
                                  const char *what, uint64_t stated)
{
    char shape[GM_SHAPE_TEXT_MAX];
    uint64_t bytes = gm_matrix_bytes(matrix);

    return stated == bytes
               ? GM_OK
               : gm_fail(r->json->err, GM_BAD_SHAPE,
                         "input %s is %s of %s, which takes %" PRIu64 " bytes; %s says %" PRIu64,
                         r->tensor.name.text, gm_matrix_shape_text(matrix, shape),
                         gm_kserve_datatype(matrix->dtype), bytes, what, stated);
}

/* Checks that the elements of an input are in one place, all of them. */
static enum gm_status settle_place(const struct reader *r, struct gm_kserve_input *input,
                                   enum gm_dtype dtype)
{
    const struct tensor *t = &r->tensor;
    struct gm_error *err = r->json->err;

    if (t->has_data + t->said.has_binary_bytes + t->said.has_region + t->said.has_ref != 1)
        return gm_fail(err, GM_BAD_PARAMETER,
                       "input %s has its elements as data, or behind the JSON (binary_data_size), "
                       "or in a shared_memory_region or a named matrix (ref): in one of them",
                       t->name.text);
    if (t->has_data) {
        input->place = GM_KSERVE_JSON;
        input->rows = t->rows;
        return gm_json_rows_matrix(r->json, &t->rows, dtype, t->name.text, &t->shape,
                                   &input->nested, &input->matrix);
    }
    enum gm_status status = gm_matrix_init(&input->matrix, dtype, GM_ROW_MAJOR, &t->shape, err);
    if (status != GM_OK)
        return status;
    if (t->said.has_binary_bytes) {
        input->place = GM_KSERVE_BINARY;
        return check_bytes(r, &input->matrix, "binary_data_size", t->said.binary_bytes);
    }
    if (t->said.has_ref) {
        input->place = GM_KSERVE_REF;
        memcpy(input->ref, t->said.ref, sizeof input->ref);
        return GM_OK;
    }
    input->place = GM_KSERVE_REGION;
    input->part = t->said.part;
    if (!t->said.has_region_bytes)
        input->part.bytes = gm_matrix_bytes(&input->matrix);
    return check_bytes(r, &input->matrix, "shared_memory_byte_size", input->part.bytes);
}

static enum gm_status read_input(struct reader *r)
{
    unsigned index = 0;
    enum gm_dtype dtype = GM_DTYPE_NONE;

    memset(&r->tensor, 0, sizeof r->tensor);
    enum gm_status status = read_object(r, "an input", input_member);
    if (status == GM_OK)
        status = input_index(r, &index);
    if (status == GM_OK)
        status = input_dtype(r, &dtype);
    if (status == GM_OK && !r->tensor.has_shape)
        status = gm_json_fail(r->json, r->json->at, "input %s has no shape", r->tensor.name.text);
    if (status == GM_OK)
        status = settle_place(r, &r->request->input[index], dtype);
    if (status == GM_OK)
        r->request->order[r->request->inputs++] = index;
    return status;
}

static enum gm_status output_member(struct reader *r, const struct gm_json_string *name)
{
    if (gm_json_string_is(name, "name"))
        return read_string(r, "an output's name", &r->tensor.name);
    if (gm_json_string_is(name, "parameters"))
        return read_parameters(r, output_parameter);
    return gm_json_fail(r->json, r->json->at, "an output has name and parameters; not \"%.64s\"",
                        name->text);
}

static enum gm_status read_output(struct reader *r)
{
    struct gm_kserve_request *request = r->request;
    const struct said *said = &r->tensor.said;

    memset(&r->tensor, 0, sizeof r->tensor);
    enum gm_status status = read_object(r, "an output", output_member);
    if (status != GM_OK)
        return status;
    if (!gm_json_string_is(&r->tensor.name, "C"))
        return gm_fail(r->json->err, GM_BAD_PARAMETER, "there is an output '%.64s'; %s has C alone",
                       r->tensor.name.text, r->plan->model);
    if (request->output != GM_KSERVE_ABSENT)
        return gm_fail(r->json->err, GM_BAD_PARAMETER, "output C is asked for twice");
    if (said->has_region && !said->has_region_bytes)
        return gm_fail(r->json->err, GM_BAD_PARAMETER,
                       "output C goes into a region: shared_memory_byte_size says how much of it "
                       "there is");
    if (said->has_region) {
        request->output = GM_KSERVE_REGION;
        request->output_part = said->part;
    } else {
        request->output = said->binary ? GM_KSERVE_BINARY : GM_KSERVE_JSON;
        r->output_unsaid = !said->has_binary;
    }
    return GM_OK;
}

/* Triton's own parameter, a time in microseconds. */
static enum gm_status set_timeout(struct reader *r, const struct gm_json_string *name,
                                  const struct value *value)
{
    uint64_t us;
    char ms[24];

    if (value->kind != 'n' || !gm_number_reader_of(GM_U64)(value->text, &us))
        return gm_fail(r->json->err, GM_BAD_PARAMETER, "%s is a whole number of microseconds",
                       name->text);
    if (us == 0)
        return GM_OK; /* 0 means none */
    int len = snprintf(ms, sizeof ms, "%" PRIu64, us / 1000 + (us % 1000 > 0));
    return r->plan->parameter(r->plan->cls, "timeout_ms", strlen("timeout_ms"), ms, (size_t)len,
                              r->json->err);
}

static enum gm_status request_parameter(struct reader *r, const struct gm_json_string *name)
{
    struct value value;
    enum gm_status status = read_value(r, name, &value);

    if (status != GM_OK)
        return status;
    if (gm_json_string_is(name, "binary_data_output"))
        return to_bool(r, name, &value, &r->binary_output);
    if (gm_json_string_is(name, "timeout"))
        return set_timeout(r, name, &value);
    if (gm_json_string_is(name, "priority")) /* ignored: requests are served by their cost */
        return value.kind == 'n' ? GM_OK
                                 : gm_fail(r->json->err, GM_BAD_PARAMETER, "priority is a number");
    if (strncmp(name->text, "sequence_", 9) == 0)
        return gm_fail(r->json->err, GM_BAD_PARAMETER,
                       "%.64s is for models with a state; here each request stands alone",
                       name->text);
    return r->plan->parameter(r->plan->cls, name->text, name->len, value.text, value.len,
                              r->json->err);
}

static enum gm_status request_member(struct reader *r, const struct gm_json_string *name)
{
    struct gm_json_string id;

    if (gm_json_string_is(name, "inputs"))
        return read_array(r, "inputs", read_input);
    if (gm_json_string_is(name, "outputs"))
        return read_array(r, "outputs", read_output);
    if (gm_json_string_is(name, "parameters"))
        return read_parameters(r, request_parameter);
    if (!gm_json_string_is(name, "id"))
        return gm_json_fail(r->json, r->json->at,
                            "a request has id, inputs, outputs and parameters; not \"%.64s\"",
                            name->text);
    enum gm_status status = read_string(r, "id", &id);
    if (status == GM_OK) {
        r->request->has_id = true;
        memcpy(r->request->id, id.text, id.len + 1);
    }
    return status;
}

enum gm_status gm_kserve_read(const char *text, size_t len, const struct gm_kserve_plan *plan,
                              struct gm_kserve_request *ret, struct gm_error *err)
{
    struct reader r = {.json = &ret->json, .plan = plan, .request = ret};

    memset(ret, 0, sizeof *ret);
    enum gm_status status = begin_text(&ret->json, text, len, "an inference request", err);
    if (status == GM_OK)
        status = read_object(&r, "an inference request", request_member);
    if (status == GM_OK)
        status = gm_json_end(&ret->json);
    if (status != GM_OK)
        return status;
    if (ret->input[0].place == GM_KSERVE_ABSENT)
        return gm_fail(err, GM_MISSING_OPERAND, "there is no input A; %s takes %s", plan->model,
                       letters(plan->operands_max));
    if (ret->output == GM_KSERVE_ABSENT || r.output_unsaid)
        ret->output = r.binary_output ? GM_KSERVE_BINARY : GM_KSERVE_JSON;
    return GM_OK;
}

enum gm_status gm_kserve_read_data(const struct gm_kserve_request *request, unsigned index,
                                   void *out, struct gm_error *err)
{
    const struct gm_kserve_input *input = &request->input[index];
    struct gm_json json = request->json;
    const char name[2] = {LETTERS[index], '\0'};

    json.err = err;
    return gm_json_rows_read(&json, &input->rows, input->matrix.dtype, name, &input->nested, out);
}

enum gm_status gm_kserve_binary_bytes(const struct gm_kserve_request *request, uint64_t *ret,
                                      struct gm_error *err)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < GM_OPERANDS_MAX; i++)
        if (request->input[i].place == GM_KSERVE_BINARY &&
            !gm_size_add(bytes, gm_matrix_bytes(&request->input[i].matrix), &bytes))
            return gm_fail(err, GM_BAD_SHAPE, "the inputs have more bytes than can be counted");
    *ret = bytes;
    return GM_OK;
}
