/*
 * Writing JSON: exact texts, bounds, and that every f16 and bf16 value and random values of
 * all other types read back to the same bits.
 */
#include "tests/unit/codec_input.h"

#include "proto/number/half.h"

#include <math.h>

/* Encodes into storage of exactly the bound, which ends the text with "}" when it is room. */
static char *encode(const struct gm_matrix *m, bool nonfinite_null, enum gm_status want,
                    uint64_t *ret_len, struct gm_error *err)
{
    struct gm_encode_options options = {.nonfinite_null = nonfinite_null};
    uint64_t bound = 0;
    *ret_len = 0;
    if (!CHECK_STATUS(gm_codec_json.encode_bound(m, &bound, err), GM_OK, err))
        return NULL;
    char *out = check_alloc(bound);
    CHECK_STATUS(gm_codec_json.encode(m, &options, out, bound, ret_len, err), want, err);
    CHECK(*ret_len <= bound);
    return out;
}

/* Encodes, closes the object, reads it back: the same shape and the same bits. */
static void check_round_trip(const struct gm_matrix *m)
{
    struct gm_error err = {0};
    uint64_t len;
    char *out = encode(m, false, GM_OK, &len, &err);
    if (!out || !len) {
        free(out);
        return;
    }
    char *text = check_alloc(len + 1);
    memcpy(text, out, len);
    text[len] = '}';
    struct sink sink;
    sink_init(&sink, 1);
    if (CHECK_STATUS(sink_decode(&sink, &gm_codec_json, text, len + 1, ',', &err), GM_OK, &err)) {
        const struct gm_matrix *back = &sink.operand[0];
        CHECK(back->dtype == m->dtype && back->stacked == m->stacked && back->batch == m->batch &&
              back->rows == m->rows && back->cols == m->cols);
        if (m->layout == GM_ROW_MAJOR)
            CHECK(memcmp(back->data, m->data, gm_matrix_bytes(m)) == 0);
    } else {
        fprintf(stderr, "  %.300s\n", text);
    }
    sink_clear(&sink);
    free(text);
    free(out);
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

static void check_text(const struct gm_matrix *m, bool nonfinite_null, const char *want)
{
    struct gm_error err = {0};
    uint64_t len;
    char *out = encode(m, nonfinite_null, GM_OK, &len, &err);
    if (out && !CHECK(len == strlen(want) && memcmp(out, want, len) == 0))
        fprintf(stderr, "  %.*s\n  not %s\n", (int)len, out, want);
    free(out);
}

static void test_texts(void)
{
    static const float f[] = {1, 2.5f, -0.0f, 0.1f, 1e-45f, 3.4028235e38f};
    struct gm_matrix m = make(GM_F32, 2, 2, 3, 0, f);
    check_text(
        &m, false,
        "{\"shape\":[2,3],\"dtype\":\"f32\",\"data\":[[1,2.5,-0.0],[0.1,1e-45,3.4028235e+38]]");
    m = make(GM_F32, 3, 3, 1, 2, f);
    check_text(&m, false,
               "{\"shape\":[3,1,2],\"dtype\":\"f32\",\"data\":[[[1,2.5]],[[-0.0,0.1]],[[1e-45,"
               "3.4028235e+38]]]");
    m = make(GM_F32, 3, 1, 1, 1, f);
    check_text(&m, false, "{\"shape\":[1,1,1],\"dtype\":\"f32\",\"data\":[[[1]]]");
    m = make(GM_F32, 0, 0, 0, 0, f);
    check_text(&m, false, "{\"shape\":[1,1],\"dtype\":\"f32\",\"data\":[[1]]");
    m = make(GM_F32, 2, 0, 3, 0, f);
    check_text(&m, false, "{\"shape\":[0,3],\"dtype\":\"f32\",\"data\":[]");
    m = make(GM_F32, 2, 2, 0, 0, f);
    check_text(&m, false, "{\"shape\":[2,0],\"dtype\":\"f32\",\"data\":[[],[]]");
    m = make(GM_F32, 3, 0, 2, 3, f);
    check_text(&m, false, "{\"shape\":[0,2,3],\"dtype\":\"f32\",\"data\":[]");
    m = make(GM_F32, 3, 2, 0, 3, f);
    check_text(&m, false, "{\"shape\":[2,0,3],\"dtype\":\"f32\",\"data\":[[],[]]");
    m = make(GM_F32, 2, 65537, 0, 0, NULL);
    check_text(&m, false, "{\"shape\":[65537,0],\"dtype\":\"f32\",\"data\":[]");
    m = make(GM_F32, 3, 40000, 2, 0, NULL);
    check_text(&m, false, "{\"shape\":[40000,2,0],\"dtype\":\"f32\",\"data\":[]");
    static const uint8_t truths[] = {1, 0, 255};
    m = make(GM_BOOL, 2, 1, 3, 0, truths);
    check_text(&m, false, "{\"shape\":[1,3],\"dtype\":\"bool\",\"data\":[[true,false,true]]");
    static const int64_t longs[] = {INT64_MIN, INT64_MAX, 9007199254740993};
    m = make(GM_I64, 2, 1, 3, 0, longs);
    check_text(&m, false,
               "{\"shape\":[1,3],\"dtype\":\"i64\",\"data\":[[-9223372036854775808,"
               "9223372036854775807,9007199254740993]]");
    static const uint16_t halves[] = {0x2E66, 0x3C00, 0x0001, 0xFBFF};
    m = make(GM_F16, 2, 1, 4, 0, halves);
    check_text(&m, false, "{\"shape\":[1,4],\"dtype\":\"f16\",\"data\":[[0.1,1,6e-08,-65500]]");
}

/* Column-major matrices and stacks are written by their indices. */
static void test_layout(void)
{
    static const int16_t columns[] = {11, 21, 12, 22, 13, 23};
    struct gm_matrix m = make(GM_I16, 2, 2, 3, 0, columns);
    m.layout = GM_COL_MAJOR;
    check_text(&m, false, "{\"shape\":[2,3],\"dtype\":\"i16\",\"data\":[[11,12,13],[21,22,23]]");

    int16_t stack[2 * 3 * 4];
    for (int b = 0; b < 2; b++)
        for (int r = 0; r < 3; r++)
            for (int c = 0; c < 4; c++)
                stack[b + 2 * (r + 3 * c)] = (int16_t)(100 * b + 10 * r + c);
    m = make(GM_I16, 3, 2, 3, 4, stack);
    m.layout = GM_COL_MAJOR;
    check_text(&m, false,
               "{\"shape\":[2,3,4],\"dtype\":\"i16\",\"data\":[[[0,1,2,3],[10,11,12,13],[20,21,22,"
               "23]],[[100,101,102,103],[110,111,112,113],[120,121,122,123]]]");
}

static void test_nonfinite(void)
{
    static const float f[] = {1, NAN, -INFINITY, 4, 5, INFINITY};
    struct gm_matrix m = make(GM_F32, 2, 2, 3, 0, f);
    struct gm_error err = {0};
    uint64_t len;
    free(encode(&m, false, GM_NONFINITE_IN_JSON, &len, &err));
    CHECK_EQ(len, 0);
    CHECK(strstr(err.detail, "row 0, column 1") && strstr(err.detail, "application/x-npy") &&
          strstr(err.detail, "?nonfinite=null"));
    check_text(&m, true, "{\"shape\":[2,3],\"dtype\":\"f32\",\"data\":[[1,null,null],[4,5,null]]");

    m = make(GM_F32, 3, 2, 3, 1, f);
    m.layout = GM_COL_MAJOR; /* matrix 0 is 1, -inf, 5; matrix 1 is NaN, 4, inf */
    free(encode(&m, false, GM_NONFINITE_IN_JSON, &len, &err));
    CHECK(strstr(err.detail, "matrix 0, row 1, column 0"));

    static const uint16_t f16[] = {0x7BFF, 0x7C00, 0xFE00}, bf16[] = {0x7F7F, 0xFF80, 0x7FC1};
    static const double f64[] = {1e308, INFINITY, NAN};
    const void *data[] = {f16, bf16, f64};
    static const enum gm_dtype dtypes[] = {GM_F16, GM_BF16, GM_F64};
    for (int i = 0; i < 3; i++) {
        m = make(dtypes[i], 2, 1, 3, 0, data[i]);
        free(encode(&m, false, GM_NONFINITE_IN_JSON, &len, &err));
        CHECK(strstr(err.detail, "row 0, column 1"));
        char *out = encode(&m, true, GM_OK, &len, &err);
        CHECK(len > 12 && memcmp(out + len - 12, ",null,null]]", 12) == 0);
        free(out);
    }
}

static void test_refusals(void)
{
    static const enum gm_dtype dtypes[] = {GM_C64, GM_C128, GM_V1, GM_V2, GM_V4, GM_V8, GM_V16};
    struct gm_error err = {0};
    struct gm_encode_options options = {0};
    uint64_t bytes = 77;
    char out[8];
    for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
        struct gm_matrix m = make(dtypes[i], 2, 0, 1, 0, out);
        CHECK_STATUS(gm_codec_json.encode_bound(&m, &bytes, &err), GM_CANNOT_ENCODE, &err);
        CHECK(strstr(err.detail, "application/x-npy"));
        CHECK_STATUS(gm_codec_json.encode(&m, &options, out, sizeof(out), &bytes, &err),
                     GM_CANNOT_ENCODE, &err);
        CHECK_EQ(bytes, 77);
    }
    struct gm_matrix m = make(GM_F32, 2, UINT64_C(1) << 60, 1, 0, NULL);
    CHECK_STATUS(gm_codec_json.encode_bound(&m, &bytes, &err), GM_TOO_LARGE, &err);
    /* Empty rows take no room, however many there are. */
    m = make(GM_F32, 2, UINT64_C(1) << 60, 0, 0, NULL);
    CHECK_STATUS(gm_codec_json.encode_bound(&m, &bytes, &err), GM_OK, &err);
    CHECK(bytes < 1000);
    m = make(GM_I8, 3, UINT64_C(1) << 31, UINT64_C(1) << 31, 0, NULL);
    CHECK_STATUS(gm_codec_json.encode_bound(&m, &bytes, &err), GM_OK, &err);
    CHECK(bytes < 1000);

    m = make(GM_F32, 2, 1, 1, 0, &(float){1});
    CHECK_STATUS(gm_codec_json.encode(&m, &options, out, sizeof(out), &bytes, &err), GM_INTERNAL,
                 &err);
    CHECK_STATUS(gm_codec_json.encode(&m, &options, out, sizeof(out), &bytes, NULL), GM_INTERNAL,
                 &err);
}

/* Shape and type alone, as for a result that is kept; the account follows. */
static void test_shape(void)
{
    static const char want[] = "{\"shape\":[2,3],\"dtype\":\"f32\"";
    const struct gm_encode_options options = {0};
    struct gm_matrix m = make(GM_F32, 2, 2, 3, 0, NULL);
    struct gm_error err = {0};
    uint64_t bound = 0, len = 77;
    char text[256];
    CHECK_STATUS(gm_codec_json_shape.encode_bound(&m, &bound, &err), GM_OK, &err);
    CHECK(bound <= sizeof(text));
    CHECK_STATUS(gm_codec_json_shape.encode(&m, &options, text, bound - 1, &len, &err), GM_INTERNAL,
                 &err);
    CHECK_EQ(len, 77);
    CHECK_STATUS(gm_codec_json_shape.encode(&m, &options, text, bound, &len, &err), GM_OK, &err);
    CHECK(len == sizeof(want) - 1 && memcmp(text, want, len) == 0);
}

/* The bound must hold where every element is as long as its type allows. */
static void test_bound(void)
{
    static const struct {
        enum gm_dtype dtype;
        uint64_t bits;
        int width;
    } widest[] = {
        {GM_F64, 0x8010000000000001, 24},
        {GM_F32, 0x80800001, 15},
        {GM_I64, UINT64_C(1) << 63, 20},
        {GM_U64, UINT64_MAX, 20},
        {GM_I32, 0x80000000, 11},
        {GM_U32, 0xFFFFFFFF, 10},
        {GM_I16, 0x8000, 6},
        {GM_U16, 0xFFFF, 5},
        {GM_I8, 0x80, 4},
        {GM_U8, 0xFF, 3},
        {GM_BOOL, 0, 5},
    };
    static const struct gm_shape shapes[] = {
        {2, {1, 1}},    {2, {1, 100}},    {2, {100, 1}},    {2, {10, 10}},
        {3, {1, 1, 1}}, {3, {100, 1, 1}}, {3, {1, 100, 1}}, {3, {5, 4, 5}},
        {2, {100, 0}},  {3, {50, 2, 0}},  {3, {100, 0, 1}},
    };
    for (size_t w = 0; w < sizeof(widest) / sizeof(widest[0]); w++) {
        char data[800];
        size_t size = gm_dtype_size(widest[w].dtype);
        for (size_t i = 0; i < 100; i++)
            memcpy(data + i * size, &widest[w].bits, size);
        for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
            struct gm_matrix m = make(widest[w].dtype, shapes[s].ndim, shapes[s].dim[0],
                                      shapes[s].dim[1], shapes[s].dim[2], data);
            struct gm_error err = {0};
            uint64_t len;
            char *out = encode(&m, false, GM_OK, &len, &err); /* a sanitizer watches its end */
            CHECK(len >= gm_matrix_elements(&m) * (uint64_t)widest[w].width);
            free(out);
            check_round_trip(&m);
        }
    }
}

/* All values of f16 and bf16 that JSON can carry. */
static void test_halves(void)
{
    static uint16_t data[65536];
    for (int f = 0; f < 2; f++) {
        uint16_t infinity = f ? 0x7F80 : 0x7C00;
        uint64_t n = 0;
        for (unsigned i = 0; i < 65536; i++)
            if ((i & 0x7FFF) < infinity)
                data[n++] = (uint16_t)i;
        CHECK_EQ(n, 2u * infinity);
        struct gm_matrix m = make(f ? GM_BF16 : GM_F16, 2, n / 256, 256, 0, data);
        check_round_trip(&m);
    }
}

static void test_random(void)
{
    uint64_t random = check_seed();
    static const struct gm_shape shapes[] = {{2, {37, 41}}, {3, {3, 17, 29}}, {2, {1, 1500}}};
    for (int round = 0; round < 6; round++)
        for (int dtype = GM_F16; dtype <= GM_U64; dtype++) {
            const struct gm_shape *s = &shapes[round % 3];
            uint64_t data[1600];
            for (size_t i = 0; i < 1600; i++)
                data[i] = check_random(&random);
            if (dtype == GM_F64)
                for (size_t i = 0; i < 1600; i++)
                    data[i] = isfinite(gm_f64_of_bits(data[i])) ? data[i] : i;
            if (dtype == GM_F32)
                for (size_t i = 0; i < 1600; i++) {
                    float value;
                    memcpy(&value, (char *)data + i * 4, 4);
                    if (!isfinite(value))
                        memcpy((char *)data + i * 4, &(float){(float)i}, 4);
                }
            if (dtype == GM_F16 || dtype == GM_BF16)
                for (size_t i = 0; i < 6400; i++)
                    ((unsigned char *)data)[2 * i + 1] &= 0xBF; /* exponents below the highest */
            if (dtype == GM_BOOL)
                for (size_t i = 0; i < sizeof(data); i++)
                    ((unsigned char *)data)[i] &= 1;
            struct gm_matrix m =
                make((enum gm_dtype)dtype, s->ndim, s->dim[0], s->dim[1], s->dim[2], data);
            check_round_trip(&m);
            m.layout = GM_COL_MAJOR;
            check_round_trip(&m); /* its shape and that it is read at all */
        }
}

int main(void)
{
    test_texts();
    test_layout();
    test_nonfinite();
    test_refusals();
    test_shape();
    test_bound();
    test_halves();
    test_random();
    return check_report();
}
