/* Element types, shapes, and sizes that must not overflow. */
#include "proto/matrix.h"
#include "tests/unit/check.h"

static void test_dtypes(void)
{
    static const struct {
        enum gm_dtype dtype;
        const char *name;
        size_t bytes;
        bool arithmetic;
    } cases[] = {
        {GM_F16, "f16", 2, true},    {GM_BF16, "bf16", 2, true}, {GM_F32, "f32", 4, true},
        {GM_F64, "f64", 8, true},    {GM_I32, "i32", 4, true},   {GM_I64, "i64", 8, true},
        {GM_BOOL, "bool", 1, false}, {GM_I8, "i8", 1, false},    {GM_U8, "u8", 1, false},
        {GM_I16, "i16", 2, false},   {GM_U16, "u16", 2, false},  {GM_U32, "u32", 4, false},
        {GM_U64, "u64", 8, false},   {GM_C64, "c64", 8, false},  {GM_C128, "c128", 16, false},
        {GM_V1, "v1", 1, false},     {GM_V2, "v2", 2, false},    {GM_V4, "v4", 4, false},
        {GM_V8, "v8", 8, false},     {GM_V16, "v16", 16, false},
    };
    CHECK_EQ(sizeof(cases) / sizeof(cases[0]), GM_DTYPE_COUNT - 1);
    char names[300] = "";
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CHECK_EQ(gm_dtype_size(cases[i].dtype), cases[i].bytes);
        CHECK_STR(gm_dtype_name(cases[i].dtype), cases[i].name);
        CHECK_EQ(gm_dtype_from_name(cases[i].name, strlen(cases[i].name)), cases[i].dtype);
        CHECK_EQ(gm_dtype_arithmetic(cases[i].dtype), cases[i].arithmetic);
        strcat(names, i ? ", " : "");
        strcat(names, cases[i].name);
    }
    CHECK_STR(gm_dtype_names(), names);

    CHECK(!gm_dtype_arithmetic(GM_DTYPE_NONE) && !gm_dtype_arithmetic(GM_DTYPE_COUNT));
    CHECK_EQ(gm_dtype_size(GM_DTYPE_NONE), 0);
    CHECK_EQ(gm_dtype_size(GM_DTYPE_COUNT), 0);
    CHECK_STR(gm_dtype_name((enum gm_dtype)99), "none");
    static const char *const wrong[] = {
        "",        "F32",      "f3",     "f322",      " f32",     "none",           "v3",
        "Float32", "float",    "float8", "float3",    "float322", "bool_",          "int",
        "int012",  "ufloat32", "void1",  "complex32", "bfloat32", "float1234567890"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        CHECK_EQ(gm_dtype_from_name(wrong[i], strlen(wrong[i])), GM_DTYPE_NONE);
    CHECK_EQ(gm_dtype_from_name("f32&x=y", 3), GM_F32); /* the length counts, not a NUL */
    CHECK_EQ(gm_dtype_from_name("float32\0x", 9), GM_DTYPE_NONE);

    static const struct {
        const char *theirs;
        enum gm_dtype dtype;
    } numpy[] = {{"float16", GM_F16},   {"bfloat16", GM_BF16},   {"float32", GM_F32},
                 {"float64", GM_F64},   {"int8", GM_I8},         {"int16", GM_I16},
                 {"int32", GM_I32},     {"int64", GM_I64},       {"uint8", GM_U8},
                 {"uint16", GM_U16},    {"uint32", GM_U32},      {"uint64", GM_U64},
                 {"complex64", GM_C64}, {"complex128", GM_C128}, {"bool", GM_BOOL}};
    for (size_t i = 0; i < sizeof(numpy) / sizeof(numpy[0]); i++)
        CHECK_EQ(gm_dtype_from_name(numpy[i].theirs, strlen(numpy[i].theirs)), numpy[i].dtype);
}

static void test_sizes(void)
{
    uint64_t value = 7;
    CHECK(gm_size_mul(UINT64_C(1) << 32, (UINT64_C(1) << 32) - 1, &value));
    CHECK(value == UINT64_MAX - UINT32_MAX);
    CHECK(!gm_size_mul(UINT64_C(1) << 32, UINT64_C(1) << 32, &value));
    CHECK(value == UINT64_MAX - UINT32_MAX);
    CHECK(gm_size_mul(0, UINT64_MAX, &value) && value == 0);
    CHECK(gm_size_add(UINT64_MAX - 1, 1, &value) && value == UINT64_MAX);
    CHECK(!gm_size_add(UINT64_MAX, 1, &value) && value == UINT64_MAX);
}

static void test_shape_parse(void)
{
    static const struct {
        const char *text;
        bool good;
        struct gm_shape shape;
    } cases[] = {
        {"3x4", true, {2, {3, 4}}},
        {"2x3x4", true, {3, {2, 3, 4}}},
        {"5", true, {1, {5}}},
        {"0x0", true, {2, {0, 0}}},
        {"007x1", true, {2, {7, 1}}},
        {"18446744073709551615", true, {1, {UINT64_MAX}}},
        {"18446744073709551616", false, {0}},
        {"99999999999999999999x1", false, {0}},
        {"1x2x3x4", false, {0}},
        {"", false, {0}},
        {"x", false, {0}},
        {"x3", false, {0}},
        {"3x", false, {0}},
        {"3xx4", false, {0}},
        {"3X4", false, {0}},
        {"3*4", false, {0}},
        {"3,4", false, {0}},
        {" 3x4", false, {0}},
        {"3x4 ", false, {0}},
        {"3 x4", false, {0}},
        {"-3x4", false, {0}},
        {"+3x4", false, {0}},
        {"3.0x4", false, {0}},
        {"0x1F", false, {0}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gm_shape shape = {9, {9, 9, 9}};
        bool good = gm_shape_parse(cases[i].text, strlen(cases[i].text), &shape);
        if (!CHECK_EQ(good, cases[i].good))
            fprintf(stderr, "  the shape is \"%s\"\n", cases[i].text);
        CHECK_EQ(shape.ndim, good ? cases[i].shape.ndim : 9);
        for (unsigned d = 0; good && d < shape.ndim; d++)
            CHECK(shape.dim[d] == cases[i].shape.dim[d]);
    }
    struct gm_shape shape;
    CHECK(gm_shape_parse("3x45", 3, &shape) && shape.dim[1] == 4); /* no byte beyond len */
}

static void test_init(void)
{
    static const struct {
        struct gm_shape shape;
        bool stacked;
        uint64_t batch, rows, cols;
        const char *text;
    } cases[] = {
        {{0, {0}}, false, 1, 1, 1, "1x1"},        {{1, {5}}, false, 1, 1, 5, "1x5"},
        {{1, {0}}, false, 1, 1, 0, "1x0"},        {{2, {3, 4}}, false, 1, 3, 4, "3x4"},
        {{2, {0, 4}}, false, 1, 0, 4, "0x4"},     {{3, {2, 3, 4}}, true, 2, 3, 4, "2x3x4"},
        {{3, {1, 3, 4}}, true, 1, 3, 4, "1x3x4"}, {{3, {0, 3, 4}}, true, 0, 3, 4, "0x3x4"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gm_matrix matrix;
        char buf[GM_SHAPE_TEXT_MAX];
        CHECK(gm_matrix_init(&matrix, GM_I16, GM_COL_MAJOR, &cases[i].shape, NULL) == GM_OK);
        CHECK(matrix.dtype == GM_I16 && matrix.layout == GM_COL_MAJOR && matrix.data == NULL);
        CHECK_EQ(matrix.stacked, cases[i].stacked);
        CHECK_EQ(matrix.batch, cases[i].batch);
        CHECK_EQ(matrix.rows, cases[i].rows);
        CHECK_EQ(matrix.cols, cases[i].cols);
        CHECK_EQ(gm_matrix_elements(&matrix), cases[i].batch * cases[i].rows * cases[i].cols);
        CHECK_EQ(gm_matrix_bytes(&matrix), 2 * gm_matrix_elements(&matrix));
        CHECK_STR(gm_matrix_shape_text(&matrix, buf), cases[i].text);
    }
}

static void test_overflow(void)
{
    const uint64_t big = UINT64_C(1) << 40;
    static const struct gm_shape good[] = {
        {2, {UINT64_C(1) << 30, UINT64_C(1) << 30}},
        {1, {INT64_MAX / 4}},
        {2, {0, INT64_MAX / 4}},
        {3, {UINT64_C(1) << 20, UINT64_C(1) << 20, UINT64_C(1) << 20}},
    };
    const struct gm_shape bad[] = {
        {1, {UINT64_MAX}},
        {1, {INT64_MAX / 4 + 1}},
        {2, {big, big}},
        {2, {UINT64_C(1) << 32, UINT64_C(1) << 32}}, /* 2^64: 0 if it wrapped */
        {3, {UINT64_C(1) << 21, UINT64_C(1) << 20, UINT64_C(1) << 20}},
        {3, {big, 0, big}}, /* no bytes, but rows times something would overflow */
        {3, {0, big, big}},
        {4, {1, 1, 1}},
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct gm_matrix matrix;
        CHECK(gm_matrix_init(&matrix, GM_F32, GM_ROW_MAJOR, &good[i], NULL) == GM_OK);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct gm_matrix matrix = {.rows = 77};
        struct gm_error err = {0};
        CHECK_STATUS(gm_matrix_init(&matrix, GM_F32, GM_ROW_MAJOR, &bad[i], &err), GM_BAD_SHAPE,
                     &err);
        CHECK_EQ(matrix.rows, 77);
        CHECK(err.status == GM_BAD_SHAPE && err.detail[0]);
    }
    struct gm_matrix widest;
    char buf[GM_SHAPE_TEXT_MAX];
    struct gm_shape shape = {3, {0, INT64_MAX, 0}};
    CHECK(gm_matrix_init(&widest, GM_I8, GM_ROW_MAJOR, &shape, NULL) == GM_OK);
    CHECK_STR(gm_matrix_shape_text(&widest, buf), "0x9223372036854775807x0");
}

int main(void)
{
    test_dtypes();
    test_sizes();
    test_shape_parse();
    test_init();
    test_overflow();
    return check_report();
}
