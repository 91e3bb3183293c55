/*
 * fuzz_kserve.c - requests of the Open Inference Protocol v2. Input: how many operands, the type
 * that they must have, what is read (an inference request, or a region), the text.
 *
 * Checked: what lies behind the text never matters; what is accepted is JSON to another parser
 * (jansson), with the id that it reads; inputs are within what the plan allows, each once; elements
 * in the JSON fill their matrix and no more; what is written as JSON or before binary data is JSON
 * again, once it is closed.
 */
#include "proto/kserve/kserve.h"
#include "tests/fuzz/fuzz.h"

#include <jansson.h>

#define BYTES_MAX (UINT64_C(1) << 16)

static enum gm_status on_parameter(void *cls, const char *name, size_t name_len, const char *value,
                                   size_t value_len, struct gm_error *err)
{
    char *copies[] = {fuzz_string(name, name_len), fuzz_string(value, value_len)};
    bool refused = name_len == 6 && strcmp(copies[0], "refuse") == 0;

    (void)cls;
    free(copies[0]);
    free(copies[1]);
    return refused ? gm_fail(err, GM_UNKNOWN_PARAMETER, "refused") : GM_OK;
}

/* The text in storage of its own, with padding that is full of `filler`. */
static char *padded(const struct fuzz_input *in, char filler)
{
    char *text = fuzz_alloc(in->left + GM_TEXT_PADDING);

    memset(text, filler, in->left + GM_TEXT_PADDING);
    if (in->left > 0)
        memcpy(text, in->at, in->left);
    return text;
}

/* A text that a codec has left open. */
static void must_be_json(const char *text, size_t len)
{
    char *closed = fuzz_alloc(len + 1);

    memcpy(closed, text, len);
    closed[len] = '}';
    json_t *document = json_loadb(closed, len + 1, 0, NULL);
    MUST_SAY(document, "%.*s", (int)len, closed);
    json_decref(document);
    free(closed);
}

static void check_written(const struct gm_matrix *matrix)
{
    const struct gm_encode_options options = {.nonfinite_null = true};
    struct gm_error error;
    char head[GM_HEAD_MAX];
    uint64_t bound = 0, len = 0;
    size_t head_len = 0;

    MUST(gm_codec_kserve_json.encode_bound(matrix, &bound, &error) == GM_OK);
    char *text = fuzz_alloc((size_t)bound);
    MUST(gm_codec_kserve_json.encode(matrix, &options, text, bound, &len, &error) == GM_OK);
    MUST(len <= bound);
    must_be_json(text, (size_t)len);
    free(text);
    MUST(gm_codec_kserve_binary.head(matrix, head, &head_len, &error) == GM_OK);
    MUST(head_len <= GM_HEAD_MAX);
    must_be_json(head, head_len);
}

static void check_inputs(const struct gm_kserve_request *request, const struct gm_kserve_plan *plan)
{
    unsigned seen = 0;
    uint64_t binary = 0;
    struct gm_error error = {0};

    MUST(request->inputs >= 1 && request->inputs <= plan->operands_max);
    MUST(request->output != GM_KSERVE_ABSENT);
    for (unsigned i = 0; i < request->inputs; i++) {
        unsigned index = request->order[i];
        MUST(index < plan->operands_max && !(seen & 1u << index));
        seen |= 1u << index;
        const struct gm_kserve_input *input = &request->input[index];
        struct gm_matrix matrix = input->matrix;
        uint64_t bytes = gm_matrix_bytes(&matrix);
        MUST(input->place != GM_KSERVE_ABSENT);
        MUST(plan->dtype == GM_DTYPE_NONE || matrix.dtype == plan->dtype);
        MUST(input->place != GM_KSERVE_REGION || input->part.bytes == bytes);
        if (input->place != GM_KSERVE_JSON || bytes > BYTES_MAX)
            continue;
        matrix.data = fuzz_alloc((size_t)bytes);
        enum gm_status status = gm_kserve_read_data(request, index, matrix.data, &error);
        if (status == GM_OK)
            check_written(&matrix);
        else
            fuzz_check_error(status, &error);
        free(matrix.data);
    }
    MUST(seen & 1u);
    if (gm_kserve_binary_bytes(request, &binary, &error) != GM_OK)
        fuzz_check_error(GM_BAD_SHAPE, &error);
}

static void fuzz_request(const struct fuzz_input *in, const struct gm_kserve_plan *plan)
{
    static struct gm_kserve_request request, again;
    struct gm_error error = {0}, error_again = {0};
    char *text = padded(in, '7'), *other = padded(in, ']');
    enum gm_status status = gm_kserve_read(text, in->left, plan, &request, &error);

    MUST(gm_kserve_read(other, in->left, plan, &again, &error_again) == status);
    MUST(strcmp(error.detail, error_again.detail) == 0);
    if (status != GM_OK) {
        fuzz_check_error(status, &error);
    } else {
        json_t *document = json_loadb(text, in->left, JSON_ALLOW_NUL, NULL);
        check_inputs(&request, plan);
        /* Where elements are in it, not all of them have been looked at. */
        bool whole = request.input[0].place != GM_KSERVE_JSON &&
                     request.input[1].place != GM_KSERVE_JSON &&
                     request.input[2].place != GM_KSERVE_JSON;
        MUST(document || !whole);
        const char *id = json_string_value(json_object_get(document, "id"));
        MUST(!document || (id ? request.has_id && strcmp(id, request.id) == 0 : !request.has_id));
        json_decref(document);
    }
    free(text);
    free(other);
}

static void fuzz_region(const struct fuzz_input *in, bool on_device)
{
    struct gm_kserve_region region = {0}, again = {0};
    struct gm_error error = {0};
    char *text = padded(in, '7'), *other = padded(in, ']');
    enum gm_status status = gm_kserve_read_region(text, in->left, on_device, &region, &error);

    MUST(gm_kserve_read_region(other, in->left, on_device, &again, NULL) == status);
    MUST(memcmp(&region, &again, sizeof region) == 0);
    if (status == GM_OK)
        MUST(on_device ? region.on_device : region.key[0] && strlen(region.key) < 256);
    else
        fuzz_check_error(status, &error);
    free(text);
    free(other);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct fuzz_input in = {bytes, len};
    struct gm_kserve_plan plan = {
        .model = "matmul", .operands_max = 1 + fuzz_choice(&in, 3), .parameter = on_parameter};

    plan.dtype = (enum gm_dtype)fuzz_choice(&in, GM_V1);
    if (plan.dtype != GM_DTYPE_NONE && !gm_kserve_datatype(plan.dtype))
        return 0;
    unsigned what = fuzz_choice(&in, 3);
    if (what == 0)
        fuzz_request(&in, &plan);
    else
        fuzz_region(&in, what == 2);
    return 0;
}
