/*
 * Writing CSV: exact texts, bounds, and that every f16 and bf16 value and random bits of all other
 * types read back the same.
 */
#include "tests/unit/codec_input.h"

#include "proto/number/half.h"

#include <math.h>

/* Encodes into storage of exactly the bound. */
static char *encode(const struct gm_matrix *m, uint64_t *ret_len)
{
    struct gm_encode_options options = {0};
    struct gm_error err = {0};
    uint64_t bound = 0;
    *ret_len = 0;
    if (!CHECK_STATUS(gm_codec_csv.encode_bound(m, &bound, &err), GM_OK, &err))
        return NULL;
    char *out = check_alloc(bound);
    CHECK_STATUS(gm_codec_csv.encode(m, &options, out, bound, ret_len, &err), GM_OK, &err);
    CHECK(*ret_len <= bound);
    return out;
}

static struct gm_matrix make(enum gm_dtype dtype, unsigned ndim, uint64_t a, uint64_t b, uint64_t c,
                             const void *data)
{
    struct gm_shape shape = {ndim, {a, b, c}};
    struct gm_matrix m;
    CHECK(gm_matrix_init(&m, dtype, GM_ROW_MAJOR, &shape, NULL) == GM_OK);
    m.data = (void *)data;
    return m;
}

static void check_text(const struct gm_matrix *m, const char *want)
{
    uint64_t len;
    char *out = encode(m, &len);
    if (out && !CHECK(len == strlen(want) && memcmp(out, want, len) == 0))
        fprintf(stderr, "  %.*s\n  not %s\n", (int)len, out, want);
    free(out);
}

static void test_texts(void)
{
    static const float f[] = {1, 2.5f, -0.0f, 0.1f, 1e-45f, 3.4028235e38f};
    struct gm_matrix m = make(GM_F32, 2, 2, 3, 0, f);
    check_text(&m, "1,2.5,-0.0\n0.1,1e-45,3.4028235e+38\n");
    m = make(GM_F32, 3, 3, 1, 2, f);
    check_text(&m, "1,2.5\n\n-0.0,0.1\n\n1e-45,3.4028235e+38\n");
    m = make(GM_F32, 3, 2, 3, 1, f);
    check_text(&m, "1\n2.5\n-0.0\n\n0.1\n1e-45\n3.4028235e+38\n");
    m = make(GM_F32, 3, 1, 1, 1, f);
    check_text(&m, "1\n");
    m = make(GM_F32, 0, 0, 0, 0, f);
    check_text(&m, "1\n");
    static const uint8_t truths[] = {1, 0, 255};
    m = make(GM_BOOL, 2, 1, 3, 0, truths);
    check_text(&m, "1,0,1\n");
    static const int64_t longs[] = {INT64_MIN, INT64_MAX, 9007199254740993};
    m = make(GM_I64, 2, 3, 1, 0, longs);
    check_text(&m, "-9223372036854775808\n9223372036854775807\n9007199254740993\n");
    static const uint16_t halves[] = {0x2E66, 0x3C00, 0x0001, 0xFBFF};
    m = make(GM_F16, 2, 1, 4, 0, halves);
    check_text(&m, "0.1,1,6e-08,-65500\n");
    static const float odd[] = {NAN, -NAN, INFINITY, -INFINITY};
    m = make(GM_F32, 2, 2, 2, 0, odd);
    check_text(&m, "nan,nan\ninf,-inf\n");
    static const double odd64[] = {NAN, INFINITY, -INFINITY};
    m = make(GM_F64, 2, 1, 3, 0, odd64);
    check_text(&m, "nan,inf,-inf\n");
    static const uint16_t odd16[] = {0x7C01, 0x7C00, 0xFC00, 0xFFFF};
    m = make(GM_F16, 2, 1, 4, 0, odd16);
    check_text(&m, "nan,inf,-inf,nan\n");
    static const uint16_t oddb[] = {0x7F81, 0x7F80, 0xFF80, 0xFFFF};
    m = make(GM_BF16, 2, 1, 4, 0, oddb);
    check_text(&m, "nan,inf,-inf,nan\n");
}

/* Without elements there is no text, however many rows there are. */
static void test_empty(void)
{
    static const uint64_t shapes[][3] = {
        {0, 0, 0}, {0, 5, 0}, {5, 0, 0}, {UINT64_C(1) << 40, 0, 0}};
    for (size_t i = 0; i < 4; i++) {
        struct gm_matrix m = make(GM_F32, 2, shapes[i][0], shapes[i][1], 0, NULL);
        check_text(&m, "");
        m = make(GM_F32, 3, 3, shapes[i][0], shapes[i][1], NULL);
        check_text(&m, "");
    }
}

/* Column-major matrices and stacks are written by their indices. */
static void test_layout(void)
{
    static const int16_t columns[] = {11, 21, 12, 22, 13, 23};
    struct gm_matrix m = make(GM_I16, 2, 2, 3, 0, columns);
    m.layout = GM_COL_MAJOR;
    check_text(&m, "11,12,13\n21,22,23\n");

    int16_t stack[2 * 3 * 4];
    for (int b = 0; b < 2; b++)
        for (int r = 0; r < 3; r++)
            for (int c = 0; c < 4; c++)
                stack[b + 2 * (r + 3 * c)] = (int16_t)(100 * b + 10 * r + c);
    m = make(GM_I16, 3, 2, 3, 4, stack);
    m.layout = GM_COL_MAJOR;
    check_text(&m, "0,1,2,3\n10,11,12,13\n20,21,22,23\n\n"
                   "100,101,102,103\n110,111,112,113\n120,121,122,123\n");
}

static void test_refusals(void)
{
    struct gm_encode_options options = {0};
    struct gm_error err = {0};
    uint64_t bound, len = 7;
    char out[16];
    struct gm_matrix m = make(GM_C64, 2, 1, 1, 0, NULL);
    CHECK_STATUS(gm_codec_csv.encode_bound(&m, &bound, &err), GM_CANNOT_ENCODE, &err);
    CHECK(strstr(err.detail, "application/x-npy") != NULL);
    CHECK_STATUS(gm_codec_csv.encode(&m, &options, out, 16, &len, &err), GM_CANNOT_ENCODE, &err);
    m = make(GM_U8, 2, UINT64_C(1) << 31, UINT64_C(1) << 31, 0, NULL);
    CHECK_STATUS(gm_codec_csv.encode_bound(&m, &bound, &err), GM_TOO_LARGE, &err);
    m = make(GM_F32, 2, 1, 1, 0, "\0\0\0");
    CHECK_STATUS(gm_codec_csv.encode(&m, &options, out, 2, &len, &err), GM_INTERNAL, &err);
    CHECK_EQ(len, 7);
}

/* What is NaN: the text does not say which. */
static bool is_nan(enum gm_dtype dtype, const char *element)
{
    union {
        uint16_t half;
        float single;
        double full;
        char bytes[8];
    } value = {.bytes = {0}};
    memcpy(value.bytes, element, gm_dtype_size(dtype));
    return dtype == GM_F16    ? isnan(gm_f32_of_f16(value.half))
           : dtype == GM_BF16 ? isnan(gm_f32_of_bf16(value.half))
           : dtype == GM_F32  ? isnan(value.single)
                              : dtype == GM_F64 && isnan(value.full);
}

/* The same shape and the same bits; NaN for NaN. Stacks of one come back as matrices. */
static void check_round_trip(const struct gm_matrix *m)
{
    struct gm_error err = {0};
    uint64_t len;
    char *out = encode(m, &len);
    struct sink sink;
    sink_init(&sink, 1);
    sink.plan.dtype = m->dtype;
    if (out && CHECK_STATUS(sink_decode(&sink, &gm_codec_csv, out, len, '7', &err), GM_OK, &err)) {
        const struct gm_matrix *back = &sink.operand[0];
        size_t size = gm_dtype_size(m->dtype);
        CHECK(back->dtype == m->dtype && back->batch == m->batch && back->rows == m->rows &&
              back->cols == m->cols && back->stacked == (m->batch > 1));
        uint64_t wrong = 0;
        for (uint64_t i = 0; i < gm_matrix_elements(m); i++) {
            const char *a = (const char *)m->data + i * size;
            const char *b = (const char *)back->data + i * size;
            wrong += is_nan(m->dtype, a) ? !is_nan(m->dtype, b) : memcmp(a, b, size) != 0;
        }
        CHECK_EQ(wrong, 0);
    }
    sink_clear(&sink);
    free(out);
}

static void test_every_half(void)
{
    uint16_t *all = check_alloc(65536 * sizeof(*all));
    for (unsigned i = 0; i < 65536; i++)
        all[i] = (uint16_t)i;
    struct gm_matrix m = make(GM_F16, 2, 256, 256, 0, all);
    check_round_trip(&m);
    m = make(GM_BF16, 3, 16, 64, 64, all);
    check_round_trip(&m);
    free(all);
}

/* Any bits at all: NaN, infinity and denormal numbers among them. */
static void test_random_bits(void)
{
    static const enum gm_dtype dtypes[] = {GM_F32, GM_F64, GM_I8,  GM_U8,  GM_I16,
                                           GM_U16, GM_I32, GM_U32, GM_I64, GM_U64};
    enum { ELEMENTS = 100000 };
    uint64_t state = 88172645463325252, *bits = check_alloc(ELEMENTS * sizeof(*bits));
    for (size_t d = 0; d < sizeof(dtypes) / sizeof(dtypes[0]); d++) {
        for (size_t i = 0; i < ELEMENTS; i++) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            /* Every eighth is tiny in magnitude, as denormal numbers are. */
            bits[i] = i % 8 ? state : state & UINT64_C(0x800FFFFF807FFFFF);
        }
        struct gm_matrix m = make(dtypes[d], 3, 10, 100, 100, bits);
        check_round_trip(&m);
        m = make(dtypes[d], 2, 1, ELEMENTS, 0, bits);
        check_round_trip(&m);
    }
    uint8_t truths[6] = {0, 1, 1, 0, 1, 0};
    struct gm_matrix m = make(GM_BOOL, 2, 3, 2, 0, truths);
    check_round_trip(&m);
    free(bits);
}

int main(void)
{
    test_texts();
    test_empty();
    test_layout();
    test_refusals();
    test_every_half();
    test_random_bits();
    return check_report();
}
