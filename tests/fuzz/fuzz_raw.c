/*
 * fuzz_raw.c - bare elements. Input: which operands it can hold, the dtype, what is said of the
 * length; a line with the operands' shapes, as "2x3 4 -" ("-": not stated); the body.
 *
 * Checked: any cut gives the same outcome, sentence and bits; no storage is asked for where a
 * stated length contradicts the shapes; what is accepted is the body's bytes, one operand after the
 * other, and nothing else.
 */
#include "tests/fuzz/fuzz_sink.h"

struct
try {
    unsigned which;
    struct gm_decode_plan plan; /* its sink and its operands are the sink's */
    struct fuzz_input body;
};

static void stream(const struct try *try, size_t longest, uint64_t seed, struct fuzz_sink *sink)
{
    fuzz_sink_init(sink, try->which, try->plan.dtype);
    sink->plan.body_bytes = try->plan.body_bytes;
    memcpy(sink->plan.has_shape, try->plan.has_shape, sizeof sink->plan.has_shape);
    memcpy(sink->plan.shape, try->plan.shape, sizeof sink->plan.shape);
    fuzz_stream(sink, &gm_codec_raw, try->body.at, try->body.left, longest, seed);
    MUST(sink->parameters == 0);
    MUST(try->plan.body_bytes == GM_SIZE_UNKNOWN || sink->bytes <= try->plan.body_bytes);
}

/* Shapes as the query string states them. */
static void take_shapes(struct fuzz_input *in, struct gm_decode_plan *plan)
{
    const uint8_t *end = memchr(in->at, '\n', in->left);
    size_t line = end ? (size_t)(end - in->at) : in->left;
    const char *at = (const char *)in->at, *stop = at + line;
    for (unsigned i = 0; i < GM_OPERANDS_MAX && at < stop; i++) {
        const char *space = memchr(at, ' ', (size_t)(stop - at));
        const char *next = space ? space : stop;
        plan->has_shape[i] = gm_shape_parse(at, (size_t)(next - at), &plan->shape[i]);
        at = next < stop ? next + 1 : stop;
    }
    in->at += line + (end != NULL);
    in->left -= line + (end != NULL);
}

/* The operands are the body. */
static void check_content(const struct try *try, const struct fuzz_sink *sink)
{
    const uint8_t *at = try->body.at;
    size_t left = try->body.left;
    unsigned first = sink->plan.operand_first;
    MUST(sink->present[first] && sink->bytes == left);
    for (unsigned i = first; i < GM_OPERANDS_MAX && sink->present[i]; i++) {
        uint64_t bytes = gm_matrix_bytes(&sink->operand[i]);
        MUST(try->plan.has_shape[i] && bytes <= left);
        MUST(memcmp(at, sink->operand[i].data, bytes) == 0);
        at += bytes;
        left -= bytes;
    }
    MUST(left == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct fuzz_input in = {bytes, len};
    struct try try = {.which = fuzz_choice(&in, FUZZ_OPERANDS_COUNT)};
    try.plan.dtype = (enum gm_dtype)fuzz_choice(&in, GM_DTYPE_COUNT);
    unsigned said = fuzz_choice(&in, 4);
    struct fuzz_sink whole, cut;

    take_shapes(&in, &try.plan);
    try.body = in;
    const uint64_t lengths[] = {GM_SIZE_UNKNOWN, in.left, in.left + 1, in.left ? in.left - 1 : 0};
    try.plan.body_bytes = lengths[said];
    stream(&try, 0, 0, &whole);
    for (size_t longest = 1; longest < 100; longest = longest * 7) {
        stream(&try, longest, len, &cut);
        fuzz_sink_must_agree(&whole, &cut);
        fuzz_sink_clear(&cut);
    }
    if (whole.status == GM_OK)
        check_content(&try, &whole);
    MUST(said < 2 || whole.status != GM_OK || try.plan.body_bytes == in.left);
    fuzz_sink_clear(&whole);
    return 0;
}
