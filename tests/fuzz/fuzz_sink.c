#include "tests/fuzz/fuzz_sink.h"
#include "tests/unit/in_place.h"

static void hash(uint64_t *state, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        *state = (*state ^ (uint8_t)text[i]) * UINT64_C(0x100000001B3); /* FNV-1a */
    *state = (*state ^ 0x100) * UINT64_C(0x100000001B3);
}

static enum gm_status take_operand(void *cls, unsigned index, const struct gm_matrix *matrix,
                                   void **ret_data, struct gm_error *err)
{
    struct fuzz_sink *sink = cls;
    uint64_t bytes = gm_matrix_bytes(matrix);
    void *data = NULL;

    MUST(index < sink->plan.operands_max && !sink->present[index]);
    MUST(matrix->dtype > GM_DTYPE_NONE && matrix->dtype < GM_DTYPE_COUNT);
    MUST(matrix->stacked || matrix->batch == 1);
    MUST_SAY(gm_matrix_elements(matrix) <= sink->elements_max, "%llu elements of at most %llu",
             (unsigned long long)gm_matrix_elements(matrix),
             (unsigned long long)sink->elements_max);
    if (bytes > FUZZ_BYTES_MAX - sink->bytes)
        return gm_fail(err, GM_TOO_LARGE, "more than the fuzzer wants");
    MUST(posix_memalign(&data, 64, bytes ? bytes : 1) == 0);
    memset(data, 0xA5, bytes);
    sink->bytes += bytes;
    sink->present[index] = true;
    sink->operand[index] = *matrix;
    sink->operand[index].data = data;
    *ret_data = data;
    return GM_OK;
}

static enum gm_status take_parameter(void *cls, const char *name, size_t name_len,
                                     const char *value, size_t value_len, struct gm_error *err)
{
    struct fuzz_sink *sink = cls;
    for (unsigned i = 0; i < GM_OPERANDS_MAX; i++)
        MUST(!sink->present[i]);
    hash(&sink->parameters_hash, name, name_len);
    hash(&sink->parameters_hash, value, value_len);
    sink->parameters++;
    if (name_len == 6 && memcmp(name, "refuse", 6) == 0)
        return gm_fail(err, GM_UNKNOWN_PARAMETER, "refused by the sink");
    if (sink->take_dtype && name_len == 5 && memcmp(name, "dtype", 5) == 0)
        sink->plan.dtype = gm_dtype_from_name(value, value_len);
    return GM_OK;
}

void fuzz_sink_init(struct fuzz_sink *sink, unsigned which, enum gm_dtype dtype)
{
    static const unsigned max[FUZZ_OPERANDS_COUNT] = {1, 2, 3, 2, 3};
    *sink = (struct fuzz_sink){
        .plan = {.dtype = dtype,
                 .operands_max = max[which],
                 .operand_first = which > FUZZ_OPERANDS_ALL ? which - FUZZ_OPERANDS_ALL : 0,
                 .body_bytes = GM_SIZE_UNKNOWN},
        .elements_max = UINT64_MAX,
        .take_dtype = true,
    };
    sink->plan.sink = (struct gm_sink){take_operand, take_parameter, sink};
}

void fuzz_sink_clear(struct fuzz_sink *sink)
{
    for (unsigned i = 0; i < GM_OPERANDS_MAX; i++) {
        if (sink->present[i])
            free(sink->operand[i].data);
        sink->present[i] = false;
    }
}

void fuzz_sink_must_agree(const struct fuzz_sink *one, const struct fuzz_sink *other)
{
    MUST_SAY(one->status == other->status && strcmp(one->error.detail, other->error.detail) == 0,
             "%s: %s\n  %s: %s", gm_status_code(one->status), one->error.detail,
             gm_status_code(other->status), other->error.detail);
    MUST(one->parameters == other->parameters && one->parameters_hash == other->parameters_hash);
    for (unsigned i = 0; one->status == GM_OK && i < GM_OPERANDS_MAX; i++) {
        const struct gm_matrix *a = &one->operand[i], *b = &other->operand[i];
        MUST(one->present[i] == other->present[i]);
        if (!one->present[i])
            continue;
        MUST(a->dtype == b->dtype && a->layout == b->layout && a->stacked == b->stacked);
        MUST(a->batch == b->batch && a->rows == b->rows && a->cols == b->cols);
        MUST(memcmp(a->data, b->data, gm_matrix_bytes(a)) == 0);
    }
}

static void ended(struct fuzz_sink *sink, enum gm_status status)
{
    sink->status = status;
    if (status != GM_OK)
        fuzz_check_error(status, &sink->error);
    else
        MUST(sink->error.status == GM_OK && !sink->error.detail[0]);
}

void fuzz_decode(struct fuzz_sink *sink, const struct gm_codec *codec, const char *text, size_t len,
                 char filler)
{
    char *copy = fuzz_alloc(len + GM_TEXT_PADDING);
    memcpy(copy, text, len);
    memset(copy + len, filler, GM_TEXT_PADDING);
    enum gm_status status = codec->decode(copy, len, &sink->plan, &sink->error);
    MUST(memcmp(copy, text, len) == 0);
    free(copy);
    ended(sink, status);
}

void fuzz_stream(struct fuzz_sink *sink, const struct gm_codec *codec, const void *body, size_t len,
                 size_t longest, uint64_t seed)
{
    struct gm_decoder *decoder = NULL;
    const char *at = body;
    enum gm_status status = codec->open(&sink->plan, &decoder, &sink->error);
    MUST((status == GM_OK) == (decoder != NULL));
    while (status == GM_OK && len > 0) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        size_t n = longest ? 1 + (size_t)(seed >> 33) % longest : len;
        n = n < len ? n : len;
        size_t placed = seed & 1u << 30 ? put_in_place(codec, decoder, at, n) : 0;
        if (placed > 0) {
            n = placed;
            status = codec->push(decoder, NULL, n, &sink->error);
        } else {
            char *piece = fuzz_alloc(n);
            memcpy(piece, at, n);
            status = codec->push(decoder, piece, n, &sink->error);
            free(piece);
        }
        at += n;
        len -= n;
    }
    if (status == GM_OK)
        status = codec->finish(decoder, &sink->error);
    codec->close(decoder);
    ended(sink, status);
}
