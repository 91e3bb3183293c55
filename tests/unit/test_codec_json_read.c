/*
 * Reading JSON bodies: every format of an operand, parameters, sizes and limits. What must be
 * refused is in test_codec_json_refuse.c.
 */
#include "tests/unit/codec_input.h"
#include "tests/unit/failing_alloc.h"

#include "proto/number/number.h"

#include <stdarg.h>

/* Writes at text[*at] and moves *at on. */
static void put(char *text, size_t *at, const char *format, ...)
    __attribute__((format(printf, 3, 4), noinline));

static void put(char *text, size_t *at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    *at += (size_t)vsprintf(text + *at, format, args);
    va_end(args);
}

/* The operand as "2x3: 1 2 3 4 5 6", whatever its type. */
static const char *show(const struct gm_matrix *m, char *buf, size_t size)
{
    char shape[GM_SHAPE_TEXT_MAX];
    size_t at = (size_t)snprintf(buf, size, "%s:", gm_matrix_shape_text(m, shape));
    for (uint64_t i = 0; i < gm_matrix_elements(m) && at + 40 < size; i++) {
        char text[GM_NUMBER_WIDTH_MAX + 1];
        *gm_number_writer_of(m->dtype)(text, (char *)m->data + i * gm_dtype_size(m->dtype)) = '\0';
        at += (size_t)snprintf(buf + at, size - at, " %s", text);
    }
    return buf;
}

struct good_case {
    const char *text;
    const char *operand[GM_OPERANDS_MAX]; /* as show() has it, after the dtype; NULL: absent */
    const char *parameters;               /* "name=value name=value" */
};

static const struct good_case good_cases[] = {
    {"[[1,2],[3,4]]", {"f32 2x2: 1 2 3 4"}, ""},
    {" [ [ 1 , 2 ] ,\n[\t3,4 ]\r\n] ", {"f32 2x2: 1 2 3 4"}, ""},
    {"[1,2,3]", {"f32 1x3: 1 2 3"}, ""},
    {"[5]", {"f32 1x1: 5"}, ""},
    {"[[5]]", {"f32 1x1: 5"}, ""},
    {"[]", {"f32 1x0:"}, ""},
    {"[ ]", {"f32 1x0:"}, ""},
    {"[[]]", {"f32 1x0:"}, ""},
    {"[[],[]]", {"f32 2x0:"}, ""},
    {"[[[]]]", {"f32 1x1x0:"}, ""},
    {"[[[],[]],[[],[]],[[],[ ]]]", {"f32 3x2x0:"}, ""},
    {"[[[1,2]],[[3,4]],[[5,6]]]", {"f32 3x1x2: 1 2 3 4 5 6"}, ""},
    {"[[[1,2],[3,4]]]", {"f32 1x2x2: 1 2 3 4"}, ""},
    {"[[[1],[2]],[[3],[4]]]", {"f32 2x2x1: 1 2 3 4"}, ""},
    {"[[-1.5e2,0.25],[1E2,-0.0]]", {"f32 2x2: -150 0.25 100 -0.0"}, ""},
    {"{\"a\":[[1,2]]}", {"f32 1x2: 1 2"}, ""},
    {"{\"a\":7}", {"f32 1x1: 7"}, ""},
    {"{\"a\":-7.5 }", {"f32 1x1: -7.5"}, ""},
    {"{\"a\":[[1,2]],\"b\":[[3],[4]]}", {"f32 1x2: 1 2", "f32 2x1: 3 4"}, ""},
    {"{\"b\":[3],\"c\":[4],\"a\":[5]}", {"f32 1x1: 5", "f32 1x1: 3", "f32 1x1: 4"}, ""},
    {"{\"a\":1,\"b\":2,\"c\":3}", {"f32 1x1: 1", "f32 1x1: 2", "f32 1x1: 3"}, ""},
    {"{\"b\":[[1]]}", {NULL, "f32 1x1: 1"}, ""},
    {"{}", {NULL}, ""},
    {" { } ", {NULL}, ""},
    {"{\"data\":[[1,2],[3,4]]}", {"f32 2x2: 1 2 3 4"}, ""},
    {"{\"data\":7}", {"f32 1x1: 7"}, ""},
    {"{\"shape\":[],\"data\":7}", {"f32 1x1: 7"}, ""},
    {"{\"shape\":[],\"data\":[7]}", {"f32 1x1: 7"}, ""},
    {"{\"shape\":[1,1],\"data\":[7]}", {"f32 1x1: 7"}, ""},
    {"{\"shape\":[2,2],\"dtype\":\"f64\",\"data\":[1,2,3,4]}", {"f64 2x2: 1 2 3 4"}, ""},
    {"{\"data\":[1,2,3,4],\"dtype\":\"i32\",\"shape\":[2,2]}", {"i32 2x2: 1 2 3 4"}, ""},
    {"{\"shape\":[2,2],\"data\":[[1,2],[3,4]]}", {"f32 2x2: 1 2 3 4"}, ""},
    {"{\"shape\":[4],\"data\":[1,2,3,4]}", {"f32 1x4: 1 2 3 4"}, ""},
    {"{\"shape\":[1,2,2],\"data\":[1,2,3,4]}", {"f32 1x2x2: 1 2 3 4"}, ""},
    {"{\"shape\":[ 2 ,1, 2 ],\"data\":[[[1,2]],[[3,4]]]}", {"f32 2x1x2: 1 2 3 4"}, ""},
    {"{\"shape\":[0,5],\"data\":[]}", {"f32 0x5:"}, ""},
    {"{\"shape\":[5,0],\"data\":[]}", {"f32 5x0:"}, ""},
    {"{\"shape\":[2,0],\"data\":[[],[]]}", {"f32 2x0:"}, ""},
    {"{\"shape\":[2,0,3],\"data\":[[],[]]}", {"f32 2x0x3:"}, ""},
    {"{\"shape\":[0,3,4],\"data\":[]}", {"f32 0x3x4:"}, ""},
    {"{\"shape\":[0],\"data\":[]}", {"f32 1x0:"}, ""},
    {"{\"shape\":[2.0,1e0],\"data\":[1,2]}", {"f32 2x1: 1 2"}, ""},
    {"{\"a\":{\"shape\":[2,1],\"data\":[1,2]},\"b\":{\"data\":[3],\"dtype\":\"f32\"}}",
     {"f32 2x1: 1 2", "f32 1x1: 3"},
     ""},
    {"{\"a\":{\"dtype\":\"i64\",\"data\":[9007199254740993]}}", {"i64 1x1: 9007199254740993"}, ""},
    {"{\"a\":{\"dtype\":\"u64\",\"data\":18446744073709551615}}",
     {"u64 1x1: 18446744073709551615"},
     ""},
    {"{\"data\":[[true,false],[1,0]],\"dtype\":\"bool\"}", {"bool 2x2: true false true false"}, ""},
    {"{\"a\":{\"data\":true,\"dtype\":\"bool\"}}", {"bool 1x1: true"}, ""},
    {"{\"\\u0061\":[[1]],\"\\u0064ata\\u0000\":1}", {"f32 1x1: 1"}, "data=1"},
    /* Parameters, in any place. */
    {"{\"alpha\":2.50,\"data\":[[1]],\"kernel\":\"tiled\",\"transa\":true,\"x\":false}",
     {"f32 1x1: 1"},
     "alpha=2.50 kernel=tiled transa=true x=false"},
    {"{\"a\":[[1]],\"alpha\":-1e-3,\"b\":[[2]],\"kernel\":\"\"}",
     {"f32 1x1: 1", "f32 1x1: 2"},
     "alpha=-1e-3 kernel="},
    {"{\"kernel\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00\xC3\xA9\"}",
     {NULL},
     "kernel=\"\\/\b\f\n\r\t\xC3\xA9\xF0\x9F\x98\x80\xC3\xA9"},
    {"{\"a\":[[1]],\"dtype\":\"f64\"}", {"f64 1x1: 1"}, "dtype=f64"},
    {"{\"dtype\":\"i32\",\"a\":[[1]],\"b\":{\"data\":[2],\"dtype\":\"i32\"}}",
     {"i32 1x1: 1", "i32 1x1: 2"},
     "dtype=i32"},
    {"{\"dtype\":\"f16\"}", {NULL}, "dtype=f16"},
};

static void test_good(void)
{
    for (size_t i = 0; i < sizeof(good_cases) / sizeof(good_cases[0]); i++) {
        const struct good_case *c = &good_cases[i];
        struct sink sink;
        struct gm_error err = {0};
        sink_init(&sink, 3);
        sink.take_dtype = true;
        if (!CHECK_STATUS(sink_decode_all(&sink, &gm_codec_json, c->text, strlen(c->text), &err),
                          GM_OK, &err))
            fprintf(stderr, "  %s\n", c->text);
        for (unsigned o = 0; o < GM_OPERANDS_MAX; o++) {
            CHECK_EQ(sink.present[o], c->operand[o] != NULL);
            if (!sink.present[o] || !c->operand[o])
                continue;
            const struct gm_matrix *m = &sink.operand[o];
            char buf[1000], all[1100];
            snprintf(all, sizeof(all), "%s %s", gm_dtype_name(m->dtype), show(m, buf, sizeof(buf)));
            CHECK_STR(all, c->operand[o]);
            CHECK_EQ(m->layout, GM_ROW_MAJOR);
            bool stack = strchr(strchr(c->operand[o], 'x') + 1, 'x') != NULL;
            CHECK_EQ(m->stacked, stack);
        }
        char parameters[SINK_PARAMETERS_MAX * 602] = "";
        for (unsigned p = 0; p < sink.parameters; p++) {
            strcat(parameters, p ? " " : "");
            strcat(strcat(parameters, sink.parameter[p].name), "=");
            strcat(parameters, sink.parameter[p].value);
        }
        CHECK_STR(parameters, c->parameters);
        sink_clear(&sink);
    }
}

/* What the operation can take, and the type that the request asks for. */
static void test_plan(void)
{
    static const struct {
        const char *text;
        unsigned operands_max;
        enum gm_dtype asked;
        enum gm_status status;
        const char *part; /* of the message, or the type found */
    } cases[] = {
        {"{\"a\":1,\"b\":2}", 1, GM_DTYPE_NONE, GM_EXTRA_OPERAND, "operand b"},
        {"{\"a\":1,\"c\":2}", 2, GM_DTYPE_NONE, GM_EXTRA_OPERAND, "operand c"},
        {"{\"a\":1,\"b\":2}", 2, GM_DTYPE_NONE, GM_OK, "f32"},
        {"[[1]]", 1, GM_F64, GM_OK, "f64"},
        {"{\"data\":[1],\"dtype\":\"f64\"}", 1, GM_F64, GM_OK, "f64"},
        {"{\"data\":[1],\"dtype\":\"f64\"}", 1, GM_F32, GM_BAD_DTYPE, "the request says f32"},
        {"{\"a\":{\"data\":[1],\"dtype\":\"f64\"}}", 1, GM_BF16, GM_BAD_DTYPE, "bf16"},
        {"[[1]]", 1, GM_C64, GM_BAD_DTYPE, "NPY"},
        {"[[1]]", 1, GM_V16, GM_BAD_DTYPE, "NPY"},
        {"[[300]]", 1, GM_U8, GM_OUT_OF_RANGE, "300 at row 0, column 0 of a"},
        {"[[true]]", 1, GM_BOOL, GM_OK, "bool"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sink sink;
        struct gm_error err = {0};
        sink_init(&sink, cases[i].operands_max);
        sink.plan.dtype = cases[i].asked;
        CHECK_STATUS(
            sink_decode_all(&sink, &gm_codec_json, cases[i].text, strlen(cases[i].text), &err),
            cases[i].status, &err);
        if (cases[i].status == GM_OK)
            CHECK_STR(gm_dtype_name(sink.operand[0].dtype), cases[i].part);
        else
            CHECK(strstr(err.detail, cases[i].part) != NULL);
        sink_clear(&sink);
    }
}

/* Storage is never asked for beyond what the text can fill, and nothing else is allocated. */
static void test_memory(void)
{
    struct sink sink;
    struct gm_error err = {0};
    sink_init(&sink, 1);
    /* A long row and many short ones: rows times columns would be a terabyte. */
    size_t n = 1000000, at = 0;
    char *text = check_alloc(5 * n + 100 + GM_TEXT_PADDING);
    put(text, &at, "[[1");
    for (size_t i = 0; i < n; i++, at += 2)
        memcpy(text + at, ",1", 2);
    text[at++] = ']';
    for (size_t i = 0; i < n; i++, at += 3)
        memcpy(text + at, ",[]", 3);
    text[at++] = ']';
    CHECK_STATUS(gm_codec_json.decode(text, at, &sink.plan, &err), GM_BAD_SHAPE, &err);
    CHECK(strstr(err.detail, "row 1 of a has 0 elements where 1000001") != NULL);
    CHECK(!sink.present[0]);
    free(text);

    sink.refuse_operand = GM_MEMORY_FULL;
    CHECK_STATUS(sink_decode(&sink, &gm_codec_json, "[[1]]", 5, 0, &err), GM_MEMORY_FULL, &err);
    sink.refuse_operand = GM_OK;

    char padded[200] =
        "{\"a\":[[1.234567890123456789012345678901234567890e-5,2,3]],\"dtype\":\"f64\"}";
    unsigned long before = alloc_count;
    alloc_fails = true;
    enum gm_status status = gm_codec_json.decode(padded, strlen(padded), &sink.plan, &err);
    alloc_fails = false;
    CHECK_STATUS(status, GM_OK, &err);
    CHECK_EQ(alloc_count, before); /* the sink takes its storage elsewhere */
    sink_clear(&sink);
}

static void test_limits(void)
{
    struct sink sink;
    struct gm_error err = {0};
    char text[20000];
    sink_init(&sink, 1);

    /* Strings of 256 bytes, and of one more. */
    for (int extra = 0; extra < 2; extra++) {
        memset(text, 'n', sizeof(text));
        memcpy(text, "{\"", 2);
        size_t at = 2 + 256 + (size_t)extra;
        put(text, &at, "\":\"");
        memset(text + at, 'v', 256);
        at += 256;
        put(text, &at, "\"}");
        CHECK_STATUS(sink_decode(&sink, &gm_codec_json, text, at, 0, &err),
                     extra ? GM_BAD_JSON : GM_OK, &err);
        CHECK_EQ(sink.parameters, 1 - extra);
        if (!extra)
            CHECK_EQ(strlen(sink.parameter[0].name), 256);
        sink_clear(&sink);
    }
    size_t end = 0;
    put(text, &end, "{\"x\":\"%0257d\"}", 7);
    CHECK_STATUS(sink_decode(&sink, &gm_codec_json, text, end, 0, &err), GM_BAD_PARAMETER, &err);
    sink_clear(&sink);
    /* 32 members, and one more. */
    for (int members = 32; members <= 33; members++) {
        size_t at = 0;
        put(text, &at, "{");
        for (int i = 0; i < members; i++)
            put(text, &at, "%s\"p%d\":%d", i ? "," : "", i, i);
        put(text, &at, "}");
        CHECK_STATUS(sink_decode(&sink, &gm_codec_json, text, at, 0, &err),
                     members > 32 ? GM_BAD_JSON : GM_OK, &err);
        sink_clear(&sink);
    }
    /* A number of 2048 characters, and of one more. */
    for (int extra = 0; extra < 2; extra++) {
        memset(text, '0', sizeof(text));
        memcpy(text, "[0.", 3);
        size_t at = 1 + GM_NUMBER_TEXT_MAX + (size_t)extra;
        text[at++] = ']';
        CHECK_STATUS(sink_decode(&sink, &gm_codec_json, text, at, 0, &err),
                     extra ? GM_BAD_JSON : GM_OK, &err);
        sink_clear(&sink);
    }
    /* Brackets without end. */
    memset(text, '[', sizeof(text));
    text[sizeof(text) - 1] = ']';
    CHECK_STATUS(sink_decode(&sink, &gm_codec_json, text, sizeof(text), 0, &err), GM_BAD_JSON,
                 &err);
    for (size_t i = sizeof(text) / 2; i < sizeof(text); i++)
        text[i] = ']';
    CHECK_STATUS(sink_decode(&sink, &gm_codec_json, text, sizeof(text), 0, &err), GM_BAD_JSON,
                 &err);
}

/* Sizes around the prescan's blocks, with white space and member formats, element by element. */
static void test_sizes(void)
{
    uint64_t random = check_seed() + 1;
    for (int i = 0; i < 400; i++) {
        uint64_t r = check_random(&random);
        unsigned batch = r % 4 ? 1 : 1 + (r >> 4) % 3, rows = 1 + (r >> 8) % 20;
        unsigned cols = (r >> 16) % 40, n = batch * rows * cols;
        bool stack = r >> 24 & 1 || batch > 1, member = r >> 25 & 1, spaces = r >> 26 & 1;
        char *text =
            check_alloc(100 + batch * 8 + (size_t)batch * rows * 8 + n * 16 + GM_TEXT_PADDING);
        float *want = check_alloc(n * sizeof(float));
        const char *gap = spaces ? " \n" : "";
        size_t at = 0;
        put(text, &at, "%s%s", member ? "{\"x\":1,\"b\":" : "", stack ? "[" : "");
        unsigned k = 0;
        for (unsigned b = 0; b < batch; b++) {
            put(text, &at, "%s[", b ? "," : "");
            for (unsigned row = 0; row < rows; row++) {
                put(text, &at, "%s%s[", row ? "," : "", gap);
                for (unsigned c = 0; c < cols; c++, k++) {
                    want[k] = (float)(int)(check_random(&random) % 100000) / 8 - 5000;
                    put(text, &at, "%s%s%g", c ? "," : "", gap, (double)want[k]);
                    want[k] = strtof(strrchr(text, c ? ',' : '[') + 1, NULL);
                }
                put(text, &at, "]");
            }
            put(text, &at, "%s]", gap);
        }
        put(text, &at, "%s%s", stack ? "]" : "", member ? ",\"a\":[7] }" : gap);
        struct sink sink;
        struct gm_error err = {0};
        sink_init(&sink, 2);
        if (CHECK_STATUS(sink_decode(&sink, &gm_codec_json, text, at, ',', &err), GM_OK, &err)) {
            const struct gm_matrix *m = &sink.operand[member];
            CHECK(m->stacked == stack && m->batch == batch && m->rows == rows && m->cols == cols);
            CHECK(memcmp(m->data, want, n * sizeof(float)) == 0);
        } else {
            fprintf(stderr, "  %.200s\n", text);
        }
        sink_clear(&sink);
        free(want);
        free(text);
    }
}

int main(void)
{
    test_good();
    test_plan();
    test_memory();
    test_limits();
    test_sizes();
    CHECK(alloc_count > 0); /* the wrapping works */
    return check_report();
}
