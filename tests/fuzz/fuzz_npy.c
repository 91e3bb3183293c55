/*
 * fuzz_npy.c - NPY bodies. Input: which operands it can hold, the dtype asked for, how the body is
 * cut and what is said of its length, then the body.
 *
 * Checked: any cut gives the same outcome, the same sentence and the same bits; a true
 * Content-Length changes no success, and lets no operand be larger than the body; a wrong one is
 * refused or the operands lie within the body; operands written again as NPY read back the same.
 */
#include "proto/npy/npy_header.h"
#include "tests/fuzz/fuzz_sink.h"

struct
try {
    unsigned which;
    enum gm_dtype dtype;
    struct fuzz_input body;
};

static void stream(const struct try *try, uint64_t body_bytes, size_t longest, uint64_t seed,
                   struct fuzz_sink *sink)
{
    fuzz_sink_init(sink, try->which, try->dtype);
    sink->plan.body_bytes = body_bytes;
    fuzz_stream(sink, &gm_codec_npy, try->body.at, try->body.left, longest, seed);
    MUST(sink->parameters == 0);
    MUST(body_bytes == GM_SIZE_UNKNOWN || sink->bytes <= body_bytes);
}

/* All cuts are alike. */
static void check_cuts(const struct try *try, uint64_t body_bytes, uint64_t seed,
                       struct fuzz_sink *whole)
{
    const size_t longest[] = {1, 3, 100};
    stream(try, body_bytes, 0, 0, whole);
    for (size_t i = 0; i < sizeof longest / sizeof *longest; i++) {
        struct fuzz_sink cut;
        stream(try, body_bytes, longest[i], seed, &cut);
        fuzz_sink_must_agree(whole, &cut);
        fuzz_sink_clear(&cut);
    }
}

static void check_round_trip(const struct try *try, const struct fuzz_sink *sink)
{
    size_t capacity = GM_OPERANDS_MAX * GM_HEAD_MAX + sink->bytes, at = 0;
    char *text = fuzz_alloc(capacity);
    struct fuzz_sink again;

    for (unsigned i = sink->plan.operand_first; i < GM_OPERANDS_MAX && sink->present[i]; i++) {
        const struct gm_matrix *operand = &sink->operand[i];
        char head[GM_HEAD_MAX];
        size_t len;
        MUST(gm_codec_npy.head(operand, head, &len, NULL) == GM_OK);
        MUST(len <= GM_HEAD_MAX && len % 64 == 0 && head[len - 1] == '\n');
        memcpy(text + at, head, len);
        at += len;
        memcpy(text + at, operand->data, gm_matrix_bytes(operand));
        at += gm_matrix_bytes(operand);
    }
    struct try second = {try->which, try->dtype, {(uint8_t *)text, at}};
    stream(&second, at, 0, 0, &again);
    fuzz_sink_must_agree(sink, &again);
    fuzz_sink_clear(&again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct fuzz_input in = {bytes, len};
    struct try try = {.which = fuzz_choice(&in, FUZZ_OPERANDS_COUNT)};
    try.dtype = (enum gm_dtype)fuzz_choice(&in, GM_DTYPE_COUNT);
    uint64_t seed = fuzz_byte(&in), off = fuzz_choice(&in, 16);
    struct fuzz_sink unknown, known, lied;

    try.body = in;
    check_cuts(&try, GM_SIZE_UNKNOWN, seed, &unknown);
    check_cuts(&try, in.left, seed, &known);
    MUST(unknown.status == GM_TOO_LARGE || (unknown.status == GM_OK) == (known.status == GM_OK));
    if (unknown.status == GM_OK)
        fuzz_sink_must_agree(&unknown, &known);
    /* The bytes that come are not as many as was said: the HTTP library prevents this. */
    stream(&try, in.left + off - 7 < in.left + 16 ? in.left + off - 7 : 0, 0, 0, &lied);
    if (lied.status == GM_OK)
        fuzz_sink_must_agree(&unknown, &lied);
    if (known.status == GM_OK)
        check_round_trip(&try, &known);
    fuzz_sink_clear(&unknown);
    fuzz_sink_clear(&known);
    fuzz_sink_clear(&lied);
    return 0;
}
