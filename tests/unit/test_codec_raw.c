/* Raw bodies: sizes, splits, and what the plan can get wrong. */
#include "tests/unit/codec_input.h"
#include "tests/unit/failing_alloc.h"

/* Gives the plan a shape for operand `index`, as text. */
static void plan_shape(struct sink *sink, unsigned index, const char *text)
{
    sink->plan.has_shape[index] =
        CHECK(gm_shape_parse(text, strlen(text), &sink->plan.shape[index]));
}

static void test_every_split(void)
{
    struct sink sink;
    struct gm_error err = {0};
    char body[4 * 6 + 4 * 2 + 4 * 1];
    for (size_t i = 0; i < sizeof(body); i++)
        body[i] = (char)(i * 37 + 1);

    sink_init(&sink, 3);
    plan_shape(&sink, 0, "2x3");
    plan_shape(&sink, 1, "1x2x1");
    plan_shape(&sink, 2, "1");
    for (int known = 0; known < 2; known++)
        for (size_t first = 0; first <= sizeof(body); first++)
            for (size_t step = 0; step < 3; step++) {
                sink.plan.body_bytes = known ? sizeof(body) : GM_SIZE_UNKNOWN;
                CHECK_STATUS(
                    sink_stream(&sink, &gm_codec_raw, body, sizeof(body), first, step, &err), GM_OK,
                    &err);
                for (int i = 0; i < 3; i++)
                    if (!CHECK(sink.present[i]))
                        return;
                const struct gm_matrix *m = sink.operand;
                CHECK(m[0].dtype == GM_F32 && m[0].layout == GM_ROW_MAJOR && !m[0].stacked);
                CHECK(m[0].rows == 2 && m[0].cols == 3);
                CHECK(m[1].stacked && m[1].batch == 1 && m[1].rows == 2 && m[1].cols == 1);
                CHECK(!m[2].stacked && m[2].rows == 1 && m[2].cols == 1);
                CHECK(memcmp(m[0].data, body, 24) == 0);
                CHECK(memcmp(m[1].data, body + 24, 8) == 0);
                CHECK(memcmp(m[2].data, body + 32, 4) == 0);
                sink_clear(&sink);
            }
}

static void test_dtypes(void)
{
    char body[16 * 6] = {1, 2, 3};
    for (int i = GM_F16; i < GM_DTYPE_COUNT; i++) {
        struct sink sink;
        struct gm_error err = {0};
        sink_init(&sink, 1);
        sink.plan.dtype = (enum gm_dtype)i;
        plan_shape(&sink, 0, "3x2");
        size_t bytes = 6 * gm_dtype_size(sink.plan.dtype);
        sink.plan.body_bytes = bytes;
        CHECK_STATUS(sink_stream(&sink, &gm_codec_raw, body, bytes, 1, 0, &err), GM_OK, &err);
        CHECK(sink.operand[0].dtype == sink.plan.dtype);
        CHECK(memcmp(sink.operand[0].data, body, bytes) == 0);
        sink_clear(&sink);
    }
}

static void test_sizes(void)
{
    static const struct {
        const char *shape_a, *shape_b, *dtype;
        size_t bytes;
        enum gm_status status;
        const char *detail;
    } cases[] = {
        {"2x3", NULL, "f32", 24, GM_OK, NULL},
        {"2x3", NULL, "f32", 20, GM_BODY_TRUNCATED, "2x3 f32 needs 24 bytes, the body has 20"},
        {"2x3", NULL, "f32", 25, GM_BODY_TRAILING, "2x3 f32 needs 24 bytes, the body has 25"},
        {"2x3", NULL, "f32", 28, GM_BODY_TRAILING,
         "2x3 f32 needs 24 bytes, the body has 28; shape_b is not stated"},
        {"2x3", NULL, "f64", 24, GM_BODY_TRUNCATED, "2x3 f64 needs 48 bytes, the body has 24"},
        {"2x3", "3x1", "f16", 17, GM_BODY_TRUNCATED,
         "2x3 and 3x1 f16 need 18 bytes, the body has 17"},
        {"2x3", "3x1", "f16", 30, GM_BODY_TRAILING,
         "2x3 and 3x1 f16 need 18 bytes, the body has 30; shape_c is not stated"},
        {"2x3", NULL, "f32", 0, GM_BODY_TRUNCATED, "2x3 f32 needs 24 bytes, the body has 0"},
        {"0x3", NULL, "f32", 0, GM_OK, NULL},
        {"0x3", "3x0", "f32", 0, GM_OK, NULL},
        {"0x3", "1", "f32", 4, GM_OK, NULL},
        {"1", "0x3", "f32", 4, GM_OK, NULL},
        {"0x3", NULL, "f32", 1, GM_BODY_TRAILING, "0x3 f32 needs 0 bytes, the body has 1"},
        {"4294967296x4294967296", NULL, "f32", 4, GM_BAD_SHAPE, NULL},
        {"1152921504606846976", "1152921504606846976", "f32", 4, GM_BODY_TRUNCATED, NULL},
    };
    static const char zeros[64];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (int known = 0; known < 2; known++) {
            struct sink sink;
            struct gm_error err = {0};
            sink_init(&sink, 3);
            sink.plan.dtype = gm_dtype_from_name(cases[i].dtype, strlen(cases[i].dtype));
            plan_shape(&sink, 0, cases[i].shape_a);
            if (cases[i].shape_b)
                plan_shape(&sink, 1, cases[i].shape_b);
            if (known)
                sink.plan.body_bytes = cases[i].bytes;
            enum gm_status status =
                sink_stream(&sink, &gm_codec_raw, zeros, cases[i].bytes, 3, 5, &err);
            if (!known && cases[i].bytes == 4 && cases[i].status == GM_BODY_TRUNCATED) {
                /* Impossible sizes of unknown length are the sink's to refuse. */
                CHECK_STATUS(status, GM_TOO_LARGE, &err);
            } else if (CHECK_STATUS(status, cases[i].status, &err) && known && cases[i].detail) {
                CHECK_STR(err.detail, cases[i].detail);
                CHECK(!sink.present[0]); /* refused before anything was allocated */
            }
            sink_clear(&sink);
        }
}

static void test_plans(void)
{
    static const struct {
        const char *shape[3];
        unsigned operands_max;
        enum gm_status status;
        const char *part;
    } cases[] = {
        {{NULL}, 1, GM_BAD_PARAMETER, "?shape=RxC"},
        {{NULL, "1"}, 2, GM_BAD_PARAMETER, "operand a"},
        {{"1", NULL, "1"}, 3, GM_BAD_PARAMETER, "operand b"},
        {{"1", "1"}, 1, GM_EXTRA_OPERAND, "operand b"},
        {{"1", "1", "1"}, 2, GM_EXTRA_OPERAND, "operand c"},
        {{NULL, NULL, "1"}, 2, GM_EXTRA_OPERAND, "operand c"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sink sink;
        struct gm_error err = {0};
        struct gm_decoder *decoder = NULL;
        sink_init(&sink, cases[i].operands_max);
        for (unsigned s = 0; s < 3; s++)
            if (cases[i].shape[s])
                plan_shape(&sink, s, cases[i].shape[s]);
        CHECK_STATUS(gm_codec_raw.open(&sink.plan, &decoder, &err), cases[i].status, &err);
        CHECK(decoder == NULL && !sink.present[0]);
        CHECK(strstr(err.detail, cases[i].part) != NULL);
    }
}

static void test_refusals(void)
{
    struct sink sink;
    struct gm_error err = {0};
    struct gm_decoder *decoder = NULL;
    sink_init(&sink, 1);
    plan_shape(&sink, 0, "2x2");
    sink.refuse_operand = GM_MEMORY_FULL;
    CHECK_STATUS(gm_codec_raw.open(&sink.plan, &decoder, &err), GM_MEMORY_FULL, &err);
    CHECK(decoder == NULL);

    sink.refuse_operand = GM_OK;
    alloc_fails = true;
    enum gm_status status = gm_codec_raw.open(&sink.plan, &decoder, &err);
    alloc_fails = false;
    CHECK_STATUS(status, GM_MEMORY_FULL, &err);
    CHECK(decoder == NULL);
    sink_clear(&sink);
}

static void test_head(void)
{
    struct gm_matrix matrix = {.dtype = GM_F32, .batch = 1, .rows = 2, .cols = 2};
    struct gm_error err = {0};
    char head[GM_HEAD_MAX];
    size_t len = 99;
    CHECK_STATUS(gm_codec_raw.head(&matrix, head, &len, &err), GM_OK, &err);
    CHECK_EQ(len, 0);
    matrix.layout = GM_COL_MAJOR;
    len = 99;
    CHECK_STATUS(gm_codec_raw.head(&matrix, head, &len, &err), GM_CANNOT_ENCODE, &err);
    CHECK_EQ(len, 99);
}

int main(void)
{
    test_every_split();
    test_dtypes();
    test_sizes();
    test_plans();
    test_refusals();
    test_head();
    CHECK(alloc_count > 0); /* the wrapping works */
    return check_report();
}
