/*
 * fuzz_encode.c - writing. Input: the format, the dtype, whether column-major, stacked, nonfinite
 * as null; three sizes; the elements' bytes, repeated as often as needed.
 *
 * Checked: no more is written than the bound, which is asked for beforehand; a bound too small is
 * refused and nothing written; NaN and infinity are refused exactly where there are some, or
 * written as null (and are then refused by the reader); everything else reads back as the same
 * matrix, bit for bit, whatever its layout in memory. A drawing has a cell for each element.
 */
#include "proto/number/number.h"
#include "tests/fuzz/fuzz_sink.h"

/* Element (b, r, c) of a matrix in either layout. */
static const char *element(const struct gm_matrix *m, uint64_t b, uint64_t r, uint64_t c)
{
    uint64_t index = m->layout == GM_ROW_MAJOR ? (b * m->rows + r) * m->cols + c
                                               : b + m->batch * (r + m->rows * c);
    return (const char *)m->data + index * gm_dtype_size(m->dtype);
}

/* The exponent of a float with all bits set, where its bits are an integer; 0: it is no float. */
static uint64_t exponent_of(enum gm_dtype dtype)
{
    switch (dtype) {
    case GM_F16:
        return 0x7C00;
    case GM_BF16:
        return 0x7F80;
    case GM_F32:
        return 0x7F800000;
    default:
        return dtype == GM_F64 ? 0x7FF0000000000000 : 0;
    }
}

/* 'n' for NaN, 'i' for infinity, 0 for everything else. */
static char nonfinite(const char *at, enum gm_dtype dtype)
{
    uint64_t bits = 0, exponent = exponent_of(dtype);
    if (exponent)
        memcpy(&bits, at, gm_dtype_size(dtype));
    if (!exponent || (bits & exponent) != exponent)
        return '\0';
    return bits & ((exponent & -exponent) - 1) ? 'n' : 'i';
}

/* any_nan: text has no payloads. */
static void must_equal(const struct gm_matrix *one, const struct gm_matrix *other, bool any_nan)
{
    size_t size = gm_dtype_size(one->dtype);
    MUST(one->dtype == other->dtype && one->batch == other->batch);
    MUST(one->rows == other->rows && one->cols == other->cols);
    for (uint64_t b = 0; b < one->batch; b++)
        for (uint64_t r = 0; r < one->rows; r++)
            for (uint64_t c = 0; c < one->cols; c++) {
                const char *x = element(one, b, r, c), *y = element(other, b, r, c);
                char which = nonfinite(x, one->dtype);
                bool nan = any_nan && which == 'n' && nonfinite(y, one->dtype) == 'n';
                MUST(nan || memcmp(x, y, size) == 0);
            }
}

static bool has_nonfinite(const struct gm_matrix *m)
{
    uint64_t n = gm_matrix_elements(m);
    for (uint64_t i = 0; i < n; i++)
        if (nonfinite((const char *)m->data + i * gm_dtype_size(m->dtype), m->dtype))
            return true;
    return false;
}

static void check_decoded(const struct gm_codec *codec, const struct gm_matrix *m, const char *text,
                          size_t len, enum gm_status expected)
{
    struct fuzz_sink sink;
    fuzz_sink_init(&sink, 0, m->dtype);
    if (codec->decode)
        fuzz_decode(&sink, codec, text, len, '7');
    else
        fuzz_stream(&sink, codec, text, len, 0, 0);
    MUST_SAY(sink.status == expected, "%s: %s", gm_status_code(sink.status), sink.error.detail);
    /* A CSV text of nothing has lost its shape. */
    if (expected == GM_OK && (codec != &gm_codec_csv || gm_matrix_elements(m) > 0)) {
        MUST(sink.present[0]);
        must_equal(m, &sink.operand[0], codec->decode);
    }
    fuzz_sink_clear(&sink);
}

static void check_text(const struct gm_codec *codec, const struct gm_matrix *m, bool null)
{
    struct gm_encode_options options = {.nonfinite_null = null};
    struct gm_error err = {0};
    uint64_t bound = 0, len = UINT64_MAX;
    bool unwritable = codec->carries_stats && has_nonfinite(m);

    enum gm_status status = codec->encode_bound(m, &bound, &err);
    if (!gm_number_writer_of(m->dtype)) {
        MUST(status == GM_CANNOT_ENCODE && bound == 0);
        fuzz_check_error(status, &err);
        return;
    }
    MUST(status == GM_OK);
    char *text = fuzz_alloc(bound + 1);
    text[0] = '?';
    if (bound > 0)
        MUST(codec->encode(m, &options, text, bound - 1, &len, &err) == GM_INTERNAL);
    MUST(text[0] == '?' && len == UINT64_MAX);
    free(text);

    text = fuzz_alloc(bound);
    err = (struct gm_error){0};
    status = codec->encode(m, &options, text, bound, &len, &err);
    if (unwritable && !null) {
        MUST(status == GM_NONFINITE_IN_JSON && len == UINT64_MAX);
        fuzz_check_error(status, &err);
    } else {
        MUST(status == GM_OK && len <= bound);
        char *whole = fuzz_string(text, len);
        if (codec->carries_stats)
            whole[len] = '}';
        check_decoded(codec, m, whole, len + codec->carries_stats,
                      unwritable ? GM_BAD_JSON : GM_OK);
        free(whole);
    }
    free(text);
}

static void check_binary(const struct gm_codec *codec, const struct gm_matrix *m)
{
    char *text = fuzz_alloc(GM_HEAD_MAX + gm_matrix_bytes(m)), head[GM_HEAD_MAX];
    struct gm_error err = {0};
    size_t len = SIZE_MAX;
    enum gm_status status = codec->head(m, head, &len, &err);

    if (status != GM_OK) {
        MUST(codec == &gm_codec_raw && m->layout == GM_COL_MAJOR && len == SIZE_MAX);
        fuzz_check_error(status, &err);
    } else {
        MUST(len <= GM_HEAD_MAX);
        memcpy(text, head, len);
        memcpy(text + len, m->data, gm_matrix_bytes(m));
        if (codec == &gm_codec_npy)
            check_decoded(codec, m, text, len + gm_matrix_bytes(m), GM_OK);
        else
            MUST(len == 0);
    }
    free(text);
}

/* Cells of all colours together are as many as elements. */
static void check_drawing(const struct gm_matrix *m)
{
    const struct gm_encode_options options = {.nonfinite_null = false};
    struct gm_error err = {0};
    uint64_t bound = 0, len = UINT64_MAX, cells = 0;
    enum gm_status status = gm_codec_svg.encode_bound(m, &bound, &err);

    if (!gm_number_writer_of(m->dtype)) {
        MUST(status == GM_CANNOT_ENCODE && bound == 0);
        fuzz_check_error(status, &err);
        return;
    }
    char *text = fuzz_alloc(bound);
    MUST(status == GM_OK && gm_codec_svg.encode(m, &options, text, bound, &len, &err) == GM_OK);
    MUST(len <= bound);
    char *whole = fuzz_string(text, len);
    for (const char *at = whole; (at = memmem(at, len - (size_t)(at - whole), "v1h-", 4)); at += 4)
        cells += strtoull(at + 4, NULL, 10);
    MUST(cells == gm_matrix_elements(m));
    free(whole);
    free(text);
}

static const struct gm_codec *take_format(struct fuzz_input *in)
{
    unsigned n = 0;
    while (gm_codec_at(n))
        n++;
    return gm_codec_at(fuzz_choice(in, n));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct fuzz_input in = {bytes, len};
    const struct gm_codec *codec = take_format(&in);
    enum gm_dtype dtype = (enum gm_dtype)(1 + fuzz_choice(&in, GM_DTYPE_COUNT - 1));
    unsigned flags = fuzz_choice(&in, 8);
    struct gm_shape shape = {.ndim = flags & 2 ? 3 : 2};
    struct gm_matrix m;

    for (unsigned i = 0; i < shape.ndim; i++)
        shape.dim[i] = fuzz_choice(&in, 12);
    enum gm_layout layout = flags & 1 ? GM_COL_MAJOR : GM_ROW_MAJOR;
    MUST(gm_matrix_init(&m, dtype, layout, &shape, NULL) == GM_OK);
    size_t size = gm_matrix_bytes(&m);
    uint8_t *data = fuzz_alloc(size);
    for (size_t i = 0; i < size; i++)
        data[i] = in.left ? in.at[i % in.left] & (dtype == GM_BOOL ? 1 : 0xFF) : 0;
    m.data = data;
    if (codec->encode)
        check_text(codec, &m, flags & 4);
    else
        check_binary(codec, &m);
    check_drawing(&m);
    free(data);
    return 0;
}
