/*
 * NPY files: those that numpy wrote (tests/golden/npy), bodies that lie about their size, and
 * every way of cutting a body into pieces. Headers that are wrong are in test_npy_header.c.
 */
#include "tests/unit/codec_input.h"
#include "tests/unit/failing_alloc.h"

#include "proto/number/half.h"

struct file {
    char *bytes;
    size_t len;
};

static struct file load(const char *name)
{
    struct file file = {NULL, 0};
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", GM_TEST_GOLDEN, name);
    FILE *in = fopen(path, "rb");
    if (!CHECK(in != NULL))
        return file;
    file.bytes = check_alloc(65536);
    file.len = fread(file.bytes, 1, 65536, in);
    CHECK(file.len > 0 && file.len < 65536);
    fclose(in);
    return file;
}

/* Element k of every golden array, as tests/golden/npy/make.py has it. */
static void golden_element(enum gm_dtype dtype, uint64_t k, unsigned char out[16])
{
    size_t size = gm_dtype_size(dtype);
    double real = (double)k * 0.75 - 3.5, imaginary = (double)k + 0.25;
    int64_t step = (int64_t)1 << (8 * size - 8) % 64; /* integers have up to 8 bytes */
    switch (dtype) {
    case GM_F16:
        memcpy(out, &(uint16_t){gm_f16_of_f64(real)}, 2);
        break;
    case GM_F32:
        memcpy(out, &(float){(float)real}, 4);
        break;
    case GM_F64:
        memcpy(out, &real, 8);
        break;
    case GM_C64:
        memcpy(out, (float[]){(float)real, (float)imaginary}, 8);
        break;
    case GM_C128:
        memcpy(out, (double[]){real, imaginary}, 16);
        break;
    case GM_BOOL:
        out[0] = k % 3 == 0;
        break;
    case GM_I8:
    case GM_I16:
    case GM_I32:
    case GM_I64:
        memcpy(out, &(int64_t){((int64_t)k * 9 - 40) * step}, size);
        break;
    case GM_U8:
    case GM_U16:
    case GM_U32:
    case GM_U64:
        memcpy(out, &(uint64_t){k * 9 * (uint64_t)step}, size);
        break;
    default:
        for (size_t i = 0; i < size; i++)
            out[i] = (unsigned char)(k * 16 + i * 7 + 1);
    }
}

/* Checks every element against the formula, whatever the layout. */
static void check_elements(const struct gm_matrix *m)
{
    size_t size = gm_dtype_size(m->dtype);
    uint64_t k = 0;
    for (uint64_t b = 0; b < m->batch; b++)
        for (uint64_t r = 0; r < m->rows; r++)
            for (uint64_t c = 0; c < m->cols; c++, k++) {
                uint64_t at = m->layout == GM_ROW_MAJOR ? k : b + m->batch * (r + m->rows * c);
                unsigned char want[16] = {0};
                golden_element(m->dtype, k, want);
                CHECK(memcmp((const char *)m->data + at * size, want, size) == 0);
            }
}

/* "rows:3x4" */
static void check_operand(const struct gm_matrix *m, enum gm_dtype dtype, const char *want)
{
    struct gm_shape shape = {0};
    const char *text = strchr(want, ':') + 1;
    CHECK(strcmp(text, "-") == 0 || gm_shape_parse(text, strlen(text), &shape));
    struct gm_matrix expected;
    gm_matrix_init(&expected, dtype, want[0] == 'c' ? GM_COL_MAJOR : GM_ROW_MAJOR, &shape, NULL);
    CHECK_EQ(m->dtype, dtype);
    CHECK_EQ(m->layout, expected.layout);
    CHECK_EQ(m->stacked, expected.stacked);
    CHECK(m->batch == expected.batch && m->rows == expected.rows && m->cols == expected.cols);
    check_elements(m);
}

/* Every golden file, whole, in two pieces cut at every place, and byte by byte. */
static void test_golden(void)
{
    struct file index = load("index.txt");
    int files = 0;
    index.bytes[index.len] = '\0';
    for (char *line_end, *line = strtok_r(index.bytes, "\n", &line_end); line;
         line = strtok_r(NULL, "\n", &line_end)) {
        char *word, *name = strtok_r(line, " ", &word), *dtype_name = strtok_r(NULL, " ", &word);
        char *operands[GM_OPERANDS_MAX] = {NULL};
        unsigned n = 0;
        for (char *p; (p = strtok_r(NULL, " ", &word));)
            operands[n++] = p;
        enum gm_dtype dtype = gm_dtype_from_name(dtype_name, strlen(dtype_name));
        struct file file = load(name);
        if (!CHECK(dtype != GM_DTYPE_NONE && n > 0 && file.bytes))
            continue;
        files++;
        for (size_t first = 0; first <= file.len; first++)
            for (int known = 0; known < 2; known++) {
                struct sink sink;
                struct gm_error err = {0};
                sink_init(&sink, known ? n : GM_OPERANDS_MAX);
                sink.plan.body_bytes = known ? file.len : GM_SIZE_UNKNOWN;
                sink.plan.dtype = known || dtype == GM_BF16 ? dtype : GM_DTYPE_NONE;
                enum gm_status status = sink_stream(&sink, &gm_codec_npy, file.bytes, file.len,
                                                    first, first == 0 ? 1 : 0, &err);
                if (!CHECK_STATUS(status, GM_OK, &err))
                    fprintf(stderr, "  %s cut at %zu\n", name, first);
                for (unsigned i = 0; i < GM_OPERANDS_MAX; i++) {
                    CHECK_EQ(sink.present[i], i < n);
                    if (sink.present[i] && i < n)
                        check_operand(&sink.operand[i], dtype, operands[i]);
                }
                sink_clear(&sink);
            }
        free(file.bytes);
    }
    free(index.bytes);
    CHECK(files >= 50);
}

/* Every golden file cut off at every place: never accepted, except between two arrays. */
static void test_truncated(void)
{
    static const char *const names[] = {"f32_little.npy", "c64_big.npy", "version2.npy", "two.npy",
                                        "shape_0x5.npy"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct file file = load(names[i]);
        for (size_t len = 0; len < file.len; len++)
            for (int known = 0; known < 3; known++) { /* unknown, the truth, the whole length */
                struct sink sink;
                struct gm_error err = {0};
                sink_init(&sink, 2);
                sink.plan.body_bytes = known == 0 ? GM_SIZE_UNKNOWN : known == 1 ? len : file.len;
                enum gm_status status =
                    sink_stream(&sink, &gm_codec_npy, file.bytes, len, 7, 11, &err);
                bool between = i == 3 && len == 128 + 48;
                CHECK_STATUS(status, between ? GM_OK : GM_BODY_TRUNCATED, &err);
                if (!between)
                    CHECK(strstr(err.detail, "--data-binary") != NULL);
                /* With the true length known, storage is not even asked for. */
                if (known == 1 && i < 3)
                    CHECK(!sink.present[0]);
                sink_clear(&sink);
            }
        free(file.bytes);
    }
}

/* What comes after the last array. */
static void test_trailing(void)
{
    struct file one = load("f32_little.npy"), two = load("two.npy");
    static const struct {
        const char *rest;
        size_t len;
        enum gm_status chunked, announced; /* body length unknown or known, one operand */
        enum gm_status second;             /* where a second operand could come */
    } cases[] = {
        {"x", 1, GM_BODY_TRAILING, GM_BODY_TRAILING, GM_BODY_TRAILING},
        {"\n", 1, GM_BODY_TRAILING, GM_BODY_TRAILING, GM_BODY_TRAILING},
        {"\x93NUMPx", 6, GM_BODY_TRAILING, GM_BODY_TRAILING, GM_BODY_TRAILING},
        {"\x93NUM", 4, GM_BODY_TRAILING, GM_BODY_TRAILING, GM_BODY_TRUNCATED},
        {"\x93NUMPY", 6, GM_EXTRA_OPERAND, GM_BODY_TRAILING, GM_BODY_TRUNCATED},
        {"\x93NUMPY\x01", 8, GM_EXTRA_OPERAND, GM_BODY_TRAILING, GM_BODY_TRUNCATED},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (int how = 0; how < 3; how++)
            for (size_t step = 1; step < 400; step += 57) {
                char body[512];
                size_t len = one.len + cases[i].len;
                memcpy(body, one.bytes, one.len);
                memcpy(body + one.len, cases[i].rest, cases[i].len);
                struct sink sink;
                struct gm_error err = {0};
                sink_init(&sink, how == 2 ? 2 : 1);
                if (how == 1)
                    sink.plan.body_bytes = len;
                enum gm_status want = how == 0   ? cases[i].chunked
                                      : how == 1 ? cases[i].announced
                                                 : cases[i].second;
                CHECK_STATUS(sink_stream(&sink, &gm_codec_npy, body, len, step, step, &err), want,
                             &err);
                CHECK_EQ(sink.present[0], how != 1);
                sink_clear(&sink);
            }
    struct sink sink;
    struct gm_error err = {0};
    sink_init(&sink, 1);
    CHECK_STATUS(sink_stream(&sink, &gm_codec_npy, two.bytes, two.len, 64, 64, &err),
                 GM_EXTRA_OPERAND, &err);
    sink_clear(&sink);
    free(one.bytes);
    free(two.bytes);
}

static void test_refusals(void)
{
    struct file file = load("f32_little.npy");
    struct sink sink;
    struct gm_error err = {0};
    struct gm_decoder *decoder = NULL;
    sink_init(&sink, 1);
    sink.refuse_operand = GM_TOO_LARGE;
    CHECK_STATUS(sink_stream(&sink, &gm_codec_npy, file.bytes, file.len, 50, 50, &err),
                 GM_TOO_LARGE, &err);
    sink.refuse_operand = GM_OK;
    alloc_fails = true;
    enum gm_status status = gm_codec_npy.open(&sink.plan, &decoder, &err);
    alloc_fails = false;
    CHECK_STATUS(status, GM_MEMORY_FULL, &err);
    CHECK(decoder == NULL);
    CHECK_STATUS(sink_stream(&sink, &gm_codec_npy, file.bytes, file.len, 50, 50, NULL), GM_OK,
                 &err);
    sink_clear(&sink);
    free(file.bytes);
}

/* What head writes, numpy's way, and that it is read back. */
static void test_head(void)
{
    static const struct {
        enum gm_dtype dtype;
        const char *descr;
    } types[] = {{GM_F16, "<f2"}, {GM_BF16, "<V2"}, {GM_F32, "<f4"},   {GM_F64, "<f8"},
                 {GM_I32, "<i4"}, {GM_I64, "<i8"},  {GM_BOOL, "|b1"},  {GM_I8, "|i1"},
                 {GM_U8, "|u1"},  {GM_I16, "<i2"},  {GM_U16, "<u2"},   {GM_U32, "<u4"},
                 {GM_U64, "<u8"}, {GM_C64, "<c8"},  {GM_C128, "<c16"}, {GM_V1, "|V1"},
                 {GM_V2, "|V2"},  {GM_V4, "|V4"},   {GM_V8, "|V8"},    {GM_V16, "|V16"}};
    static const struct gm_shape shapes[] = {{2, {3, 4}},
                                             {2, {1, 0}},
                                             {3, {2, 3, 4}},
                                             {3, {1, 1, 1}},
                                             {2, {1, UINT64_C(576460752303423487)}},
                                             {3, {0, UINT64_C(576460752303423487), 0}}};
    CHECK_EQ(sizeof(types) / sizeof(types[0]), GM_DTYPE_COUNT - 1);
    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++)
        for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++)
            for (int layout = GM_ROW_MAJOR; layout <= GM_COL_MAJOR; layout++) {
                struct gm_matrix matrix;
                char head[GM_HEAD_MAX], want[GM_HEAD_MAX];
                size_t len = 0;
                memset(head, 'Z', sizeof(head));
                CHECK(gm_matrix_init(&matrix, types[t].dtype, (enum gm_layout)layout, &shapes[s],
                                     NULL) == GM_OK);
                CHECK(gm_codec_npy.head(&matrix, head, &len, NULL) == GM_OK);
                CHECK(len % 64 == 0 && len >= 64 && len <= 192);
                CHECK(memcmp(head, "\x93NUMPY\x01", 8) == 0);
                CHECK_EQ((unsigned char)head[8] | (unsigned char)head[9] << 8, len - 10);
                CHECK_EQ(head[len - 1], '\n');
                char stack[32] = "";
                if (matrix.stacked)
                    snprintf(stack, sizeof(stack), "%" PRIu64 ", ", matrix.batch);
                int n = snprintf(
                    want, sizeof(want),
                    "{'descr': '%s', 'fortran_order': %s, 'shape': (%s%" PRIu64 ", %" PRIu64 "), }",
                    types[t].descr, layout ? "True" : "False", stack, matrix.rows, matrix.cols);
                CHECK(memcmp(head + 10, want, (size_t)n) == 0);
                for (size_t i = 10 + (size_t)n; i < len - 1; i++)
                    CHECK_EQ(head[i], ' ');

                if (s > 3) /* no storage for these */
                    continue;
                size_t bytes = gm_matrix_bytes(&matrix);
                char *body = check_alloc(len + bytes);
                memset(body, 0, len + bytes);
                memcpy(body, head, len);
                struct sink sink;
                struct gm_error err = {0};
                sink_init(&sink, 1);
                sink.plan.dtype = types[t].dtype;
                sink.plan.body_bytes = len + bytes;
                CHECK_STATUS(sink_stream(&sink, &gm_codec_npy, body, len + bytes, 0, 0, &err),
                             GM_OK, &err);
                CHECK(sink.operand[0].rows == matrix.rows && sink.operand[0].cols == matrix.cols &&
                      sink.operand[0].batch == matrix.batch);
                CHECK_EQ(sink.operand[0].layout, s == 0 || s == 2 ? layout : GM_ROW_MAJOR);
                sink_clear(&sink);
                free(body);
            }
}

/* numpy's own file for the same array must have the same head. */
static void test_head_is_numpys(void)
{
    static const char *const names[] = {"f32_little.npy",  "f64_little.npy", "bool_little.npy",
                                        "c128_little.npy", "v16_little.npy", "f32_columns.npy",
                                        "stack_rows.npy"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct file file = load(names[i]);
        struct sink sink;
        struct gm_error err = {0};
        char head[GM_HEAD_MAX];
        size_t len = 0;
        sink_init(&sink, 1);
        CHECK_STATUS(sink_stream(&sink, &gm_codec_npy, file.bytes, file.len, 0, 0, &err), GM_OK,
                     &err);
        CHECK(gm_codec_npy.head(&sink.operand[0], head, &len, &err) == GM_OK);
        CHECK_EQ(len, 128);
        size_t dict = strcspn(head + 10, "}");
        CHECK(memcmp(head + 10, file.bytes + 10, dict + 1) == 0);
        sink_clear(&sink);
        free(file.bytes);
    }
}

int main(void)
{
    test_golden();
    test_truncated();
    test_trailing();
    test_refusals();
    test_head();
    test_head_is_numpys();
    CHECK(alloc_count > 0); /* the wrapping works */
    return check_report();
}
