/*
 * fuzz_json.c - JSON bodies. Input: which operands it can hold, the dtype asked for, the text.
 *
 * Checked: what lies behind the text never matters; no more elements are asked for than the text
 * can hold; what is accepted is JSON to another parser (jansson); arrays of numbers that jansson
 * reads as a matrix or a stack are accepted, with its shape and, as f64, its values; arrays it
 * reads as anything else are refused; operands written as JSON again read back to the same bits.
 */
#include "proto/number/number.h"
#include "tests/fuzz/fuzz_sink.h"

#include <jansson.h>

/* jansson's view of a value that may be a matrix. */
struct view {
    bool words;  /* true and false count as numbers */
    bool matrix; /* a rectangle of numbers */
    struct gm_shape shape;
};

static void look_at(const json_t *value, unsigned level, struct view *view)
{
    if (json_is_array(value) && level < view->shape.ndim) {
        size_t n = json_array_size(value);
        view->matrix = view->matrix && view->shape.dim[level] == n;
        for (size_t i = 0; view->matrix && i < n; i++)
            look_at(json_array_get(value, i), level + 1, view);
    } else {
        bool number = json_is_number(value) || (view->words && json_is_boolean(value));
        view->matrix = view->matrix && number && level == view->shape.ndim;
    }
}

static struct view view_of(const json_t *value, bool words)
{
    struct view view = {.words = words, .matrix = true};
    for (const json_t *v = value; json_is_array(v); v = json_array_get(v, 0)) {
        if (view.shape.ndim == GM_DIMS_MAX)
            return (struct view){0};
        view.shape.dim[view.shape.ndim++] = json_array_size(v);
    }
    look_at(value, 0, &view);
    return view;
}

/* The numbers of value, in order, are the elements at *at. */
static void must_equal(const json_t *value, const double **at, const double *end)
{
    if (json_is_array(value)) {
        for (size_t i = 0; i < json_array_size(value); i++)
            must_equal(json_array_get(value, i), at, end);
        return;
    }
    double number = json_number_value(value);
    MUST(*at < end);
    MUST_SAY(memcmp(*at, &number, sizeof number) == 0, "%a, jansson reads %a", **at, number);
    ++*at;
}

static void must_have_values(const struct fuzz_sink *sink, unsigned index, const json_t *value)
{
    const struct gm_matrix *operand = &sink->operand[index];
    if (json_is_object(value))
        value = json_object_get(value, "data");
    if (!value || !sink->present[index] || operand->dtype != GM_F64)
        return;
    const double *at = operand->data, *end = at + gm_matrix_elements(operand);
    must_equal(value, &at, end);
    MUST(at == end);
}

static void check_array(const struct fuzz_sink *sink, const json_t *root, size_t len)
{
    struct view view = view_of(root, sink->plan.dtype == GM_BOOL);
    struct gm_matrix expected;
    bool number_type = gm_number_reader_of(sink->plan.dtype ? sink->plan.dtype : GM_F32);
    bool fits = sink->status == GM_OK || sink->status == GM_OUT_OF_RANGE;

    if (!view.matrix || !number_type) {
        MUST(sink->status != GM_OK);
        return;
    }
    if (sink->status == GM_TOO_LARGE || len > GM_NUMBER_TEXT_MAX)
        return;
    MUST_SAY(fits && (sink->status == GM_OK || sink->plan.dtype != GM_F64), "%s",
             sink->error.detail);
    if (sink->status != GM_OK)
        return;
    MUST(gm_matrix_init(&expected, GM_F64, GM_ROW_MAJOR, &view.shape, NULL) == GM_OK);
    const struct gm_matrix *a = &sink->operand[sink->plan.operand_first];
    MUST(sink->present[sink->plan.operand_first] && a->stacked == expected.stacked &&
         a->batch == expected.batch && a->rows == expected.rows && a->cols == expected.cols);
}

/* Against jansson, which reads every number as strtod does. */
static void check_oracle(const struct fuzz_sink *sink, const char *text, size_t len)
{
    json_error_t fault;
    if (memchr(text, '\0', len)) { /* jansson takes some of these; JSON has none */
        MUST(sink->status != GM_OK);
        return;
    }
    json_t *root = json_loadb(
        text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, &fault);
    if (!root) {
        enum json_error_code code = json_error_code(&fault);
        /* Valid JSON that jansson cannot represent. */
        MUST_SAY(sink->status != GM_OK || code == json_error_numeric_overflow ||
                     code == json_error_null_byte_in_key,
                 "accepted; jansson says %s", fault.text);
        return;
    }
    if (json_is_array(root))
        check_array(sink, root, len);
    bool bare = json_is_array(root) || json_object_get(root, "data");
    for (unsigned i = 0; sink->status == GM_OK && i < GM_OPERANDS_MAX; i++) {
        static const char *const letters[] = {"a", "b", "c"};
        if (!bare)
            must_have_values(sink, i, json_object_get(root, letters[i]));
        else if (i == sink->plan.operand_first)
            must_have_values(sink, i, root);
    }
    json_decref(root);
}

/* The operands as one text again. */
static char *write_operands(const struct fuzz_sink *sink, uint64_t *ret_len)
{
    uint64_t capacity = 2, at = 0;
    for (unsigned i = 0; i < GM_OPERANDS_MAX; i++) {
        uint64_t bound;
        if (!sink->present[i])
            continue;
        MUST(gm_codec_json.encode_bound(&sink->operand[i], &bound, NULL) == GM_OK);
        capacity += bound + 6;
    }
    char *text = fuzz_alloc(capacity);
    text[at++] = '{';
    for (unsigned i = 0; i < GM_OPERANDS_MAX; i++) {
        struct gm_encode_options options = {0};
        uint64_t bound, len;
        if (!sink->present[i])
            continue;
        const struct gm_matrix *operand = &sink->operand[i];
        char name[] = {'"', (char)('a' + (int)i), '"', ':'};
        memcpy(text + at, name, sizeof name);
        at += sizeof name;
        MUST(gm_codec_json.encode_bound(operand, &bound, NULL) == GM_OK && bound <= capacity - at);
        MUST(gm_codec_json.encode(operand, &options, text + at, bound, &len, NULL) == GM_OK);
        MUST(len <= bound);
        at += len;
        text[at++] = '}';
        text[at++] = ',';
    }
    at -= at > 1; /* the last comma */
    text[at++] = '}';
    *ret_len = at;
    return text;
}

static void check_round_trip(const struct fuzz_sink *sink)
{
    struct fuzz_sink again;
    uint64_t len;
    char *text = write_operands(sink, &len);

    fuzz_sink_init(&again, FUZZ_OPERANDS_ALL, GM_DTYPE_NONE);
    fuzz_decode(&again, &gm_codec_json, text, len, '\0');
    free(text);
    again.parameters = sink->parameters;
    again.parameters_hash = sink->parameters_hash;
    fuzz_sink_must_agree(sink, &again);
    fuzz_sink_clear(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct fuzz_input in = {bytes, len};
    unsigned which = fuzz_choice(&in, FUZZ_OPERANDS_COUNT);
    enum gm_dtype dtype = (enum gm_dtype)fuzz_choice(&in, GM_DTYPE_COUNT);
    struct fuzz_sink sink, other;

    fuzz_sink_init(&sink, which, dtype);
    fuzz_sink_init(&other, which, dtype);
    sink.elements_max = other.elements_max = in.left;
    fuzz_decode(&sink, &gm_codec_json, (const char *)in.at, in.left, '7');
    fuzz_decode(&other, &gm_codec_json, (const char *)in.at, in.left, ']');
    fuzz_sink_must_agree(&sink, &other);
    check_oracle(&sink, (const char *)in.at, in.left);
    if (sink.status == GM_OK)
        check_round_trip(&sink);
    fuzz_sink_clear(&sink);
    fuzz_sink_clear(&other);
    return 0;
}
