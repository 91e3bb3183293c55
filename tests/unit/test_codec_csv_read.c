/*
 * Reading CSV: separators, line ends, headers, quotes, stacks, and numbers as people and
 * programs write them. What must be refused is in test_codec_csv_refuse.c.
 */
#include "tests/unit/codec_input.h"

#include "proto/number/number.h"

#include <math.h>

/* The operand as "f32 2x3: 1 2 3 4 5 6"; NaN and infinity as their bits. */
static const char *show(const struct gm_matrix *m, char *buf, size_t size)
{
    char shape[GM_SHAPE_TEXT_MAX];
    size_t at = (size_t)snprintf(buf, size, "%s %s:", gm_dtype_name(m->dtype),
                                 gm_matrix_shape_text(m, shape));
    for (uint64_t i = 0; i < gm_matrix_elements(m) && at + 40 < size; i++) {
        char text[GM_NUMBER_WIDTH_MAX + 1] = "";
        const char *element = (const char *)m->data + i * gm_dtype_size(m->dtype);
        uint64_t bits = 0;
        memcpy(&bits, element, gm_dtype_size(m->dtype));
        char *end = gm_number_writer_of(m->dtype)(text, element);
        if (end)
            *end = '\0';
        else
            snprintf(text, sizeof(text), "%" PRIx64, bits);
        at += (size_t)snprintf(buf + at, size - at, " %s", text);
    }
    return buf;
}

struct good_case {
    const char *text, *operand;
    enum gm_dtype dtype;
};

static const struct good_case good_cases[] = {
    /* Separators. */
    {"1,2\n3,4\n", "f32 2x2: 1 2 3 4", 0},
    {"1;2\n3;4\n", "f32 2x2: 1 2 3 4", 0},
    {"1\t2\n3\t4\n", "f32 2x2: 1 2 3 4", 0},
    {"5", "f32 1x1: 5", 0},
    {"5\n6\n7", "f32 3x1: 5 6 7", 0},
    {"1,2,3", "f32 1x3: 1 2 3", 0},
    {" 1 , 2 \n 3\t,\t4 ", "f32 2x2: 1 2 3 4", 0},
    {"1,\t2\n3,\t4\n", "f32 2x2: 1 2 3 4", 0},
    {"1 \t 2\n3 \t 4\n", "f32 2x2: 1 2 3 4", 0},
    {"1\t\n2\t\n", "f32 2x1: 1 2", 0},
    {"\t1;2", "f32 1x2: 1 2", 0},
    {"1\t,2\n3,4", "f32 2x2: 1 2 3 4", 0},
    {"1,2 ", "f32 1x2: 1 2", 0},
    /* Line ends, mixed as they come. */
    {"1,2\r\n3,4\r\n", "f32 2x2: 1 2 3 4", 0},
    {"1,2\r3,4\r", "f32 2x2: 1 2 3 4", 0},
    {"1,2\r\r\n3,4\r\r\n", "f32 2x2: 1 2 3 4", 0},
    {"1,2\r\n3,4\n5,6\r7,8", "f32 4x2: 1 2 3 4 5 6 7 8", 0},
    {"\n\r\n\n1,2\n3,4\n\n\n", "f32 2x2: 1 2 3 4", 0},
    {" \n\t\n1,2\n \t \n\t", "f32 1x2: 1 2", 0},
    /* Byte order mark, header. */
    {"\xEF\xBB\xBF"
     "1,2\n",
     "f32 1x2: 1 2", 0},
    {"\xEF\xBB\xBFx,y\n1,2\n", "f32 1x2: 1 2", 0},
    {"x,y\n1,2\n", "f32 1x2: 1 2", 0},
    {"\n\nx,y\n\n1,2\n", "f32 1x2: 1 2", 0},
    {"x\n1\n2\n", "f32 2x1: 1 2", 0},
    {"\"x\",\"y\"\r\n1,2\r\n", "f32 1x2: 1 2", 0},
    {"\"x,1\n\"\"two\"\" lines\",y\n1,2\n", "f32 1x2: 1 2", 0},
    {"# x,y\n1,2\n", "f32 1x2: 1 2", 0},
    {"#x\n1,2\n", "f32 1x2: 1 2", 0},
    {"x,2nd,3D,(m),-\n1,2,3,4,5\n", "f32 1x5: 1 2 3 4 5", 0},
    {",x,y\n1,2,3\n", "f32 1x3: 1 2 3", 0},
    {"\xC2\xB5s,\xC2\xB0\x43\n1,2\n", "f32 1x2: 1 2", 0},
    {"\xE2\x88\x86T,$\n1,2\n", "f32 1x2: 1 2", 0},
    {"sep=;\n1;2\n", "f32 1x2: 1 2", 0},
    {"Time, s;Force, N\n1;2\n", "f32 1x2: 1 2", 0},
    {"\xCE\xB1,\xCE\xB2\n1,2\n", "f32 1x2: 1 2", 0},
    {"name\n1,2\n", "f32 1x2: 1 2", 0},
    {"infinite,nano\n1,2\n", "f32 1x2: 1 2", 0},
    {"", "f32 0x0:", 0},
    {"\n", "f32 0x0:", 0},
    {" \r\n\t\r\n ", "f32 0x0:", 0},
    {"\xEF\xBB\xBF", "f32 0x0:", 0},
    /* Stacks. */
    {"1,2\n\n3,4\n", "f32 2x1x2: 1 2 3 4", 0},
    {"1\n2\n\n\n3\n4\n \n5\n6", "f32 3x2x1: 1 2 3 4 5 6", 0},
    {"1,2\r\n\r\n3,4", "f32 2x1x2: 1 2 3 4", 0},
    {"1,2\r\r3,4\r", "f32 2x1x2: 1 2 3 4", 0},
    {"x,y\n1,2\n\n3,4\n", "f32 2x1x2: 1 2 3 4", 0},
    {"1\t2\n\t\n3\t4\n", "f32 2x1x2: 1 2 3 4", 0},
    /* Quotes around numbers. */
    {"\"1\",\"2\"\n\"3\",4\n", "f32 2x2: 1 2 3 4", 0},
    {"\" 1 \" , \"2\"", "f32 1x2: 1 2", 0},
    {"\"1\"", "f32 1x1: 1", 0},
    {"\"-1e3\"\n\"+.5\"", "f32 2x1: -1000 0.5", 0},
    {"\"nan\",1", "f32 1x2: 7fc00000 1", 0},
    /* Numbers as others write them. */
    {"+1,+2.5,-3", "f32 1x3: 1 2.5 -3", 0},
    {".5,-.5,+.5,5.,-5.", "f32 1x5: 0.5 -0.5 0.5 5 -5", 0},
    {"1.e2,.5e1,1E+02,1e+2,1E2", "f32 1x5: 100 5 100 100 100", 0},
    {"007,-00.5,00,000e5", "f32 1x4: 7 -0.5 0 0", 0},
    {"-0,-0.0,-.0,+0", "f32 1x4: -0.0 -0.0 -0.0 0", 0},
    {"1.000000000000000000e+00,-2.500000000000000000e-01", "f32 1x2: 1 -0.25", 0},
    {"nan,NaN,NAN,-nan,+nan", "f32 1x5: 7fc00000 7fc00000 7fc00000 ffc00000 7fc00000", 0},
    {"inf,-inf,+Inf,Infinity,-INFINITY", "f32 1x5: 7f800000 ff800000 7f800000 7f800000 ff800000",
     0},
    {"nan,inf,-inf,-nan", "f16 1x4: 7e00 7c00 fc00 fe00", GM_F16},
    {"nan,inf,-inf,-nan", "bf16 1x4: 7fc0 7f80 ff80 ffc0", GM_BF16},
    {"nan,inf,-inf", "f64 1x3: 7ff8000000000000 7ff0000000000000 fff0000000000000", GM_F64},
    /* Types. */
    {"9223372036854775807,-9223372036854775808,9007199254740993",
     "i64 1x3: 9223372036854775807 -9223372036854775808 9007199254740993", GM_I64},
    {"18446744073709551615", "u64 1x1: 18446744073709551615", GM_U64},
    {"+00012,1.50e1,7.0", "i32 1x3: 12 15 7", GM_I32},
    {"-128,127", "i8 1x2: -128 127", GM_I8},
    {"true,false,TRUE,False,1,0,\"true\"", "bool 1x7: true false true false true false true",
     GM_BOOL},
    {"0.1,65504,6e-8", "f16 1x3: 0.1 65500 6e-08", GM_F16},
    {"0.1,3.39e38", "bf16 1x2: 0.1 3.39e+38", GM_BF16},
    {"4.9406564584124654e-324,1.7976931348623157e308", "f64 1x2: 5e-324 1.7976931348623157e+308",
     GM_F64},
};

/* Where it was said whether there is a header. */
static const struct {
    struct good_case good;
    enum gm_header header;
} said_cases[] = {
    {{"id,2019,2020\n1,2,3\n", "f32 1x3: 1 2 3", 0}, GM_HEADER_PRESENT},
    {{"2018,2019\n1,2\n", "f32 1x2: 1 2", 0}, GM_HEADER_PRESENT},
    {{"\n1st;?\n\n1\n\n2\n", "f32 2x1x1: 1 2", 0}, GM_HEADER_PRESENT},
    {{"x,y\n", "f32 0x2:", 0}, GM_HEADER_PRESENT},
    {{"x,y", "f32 0x2:", 0}, GM_HEADER_PRESENT},
    {{"1,2", "f32 0x2:", 0}, GM_HEADER_PRESENT},
    {{"x\r\n\r\n", "f32 0x1:", 0}, GM_HEADER_PRESENT},
    {{"\"a\";\"b\";c\n", "f32 0x3:", 0}, GM_HEADER_PRESENT},
    {{"", "f32 0x0:", 0}, GM_HEADER_PRESENT},
    {{"1,2\n3,4\n", "f32 2x2: 1 2 3 4", 0}, GM_HEADER_ABSENT},
    {{"\n", "f32 0x0:", 0}, GM_HEADER_ABSENT},
};

static void check_good(const struct good_case *c, enum gm_header header)
{
    struct gm_error err = {0};
    struct sink sink;
    char buf[512];
    sink_init(&sink, 1);
    sink.plan.dtype = c->dtype;
    sink.plan.header = header;
    enum gm_status status = sink_decode_all(&sink, &gm_codec_csv, c->text, strlen(c->text), &err);
    if (CHECK_STATUS(status, GM_OK, &err) && CHECK(sink.present[0]))
        CHECK_STR(show(&sink.operand[0], buf, sizeof(buf)), c->operand);
    if (status != GM_OK)
        fprintf(stderr, "  %s\n", c->text);
    sink_clear(&sink);
}

static void test_good_cases(void)
{
    for (size_t i = 0; i < sizeof(good_cases) / sizeof(good_cases[0]); i++)
        check_good(&good_cases[i], GM_HEADER_TELLS);
    for (size_t i = 0; i < sizeof(said_cases) / sizeof(said_cases[0]); i++)
        check_good(&said_cases[i].good, said_cases[i].header);
}

/* Every text above with each of its line ends, separators and blanks as others write them. */
static void test_line_ends(void)
{
    static const char *const ends[] = {"\n", "\r\n", "\r", "\r\r\n"};
    for (size_t e = 0; e < 4; e++)
        for (unsigned mask = 0; mask < 64; mask++) {
            /* Two matrices of 2 x 2; each end of a line is ends[e] or a LF. */
            char text[128] = "";
            static const char *const parts[] = {"1,2", "3,4", "", "5,6", "7,8", ""};
            for (unsigned i = 0; i < 6; i++)
                strcat(strcat(text, parts[i]), mask >> i & 1 ? ends[e] : "\n");
            struct gm_error err = {0};
            struct sink sink;
            char buf[256];
            sink_init(&sink, 1);
            /* CR before LF is one end: an empty line between cannot be told from none. */
            bool merges = e == 2 && (mask & 6) == 2;
            CHECK_STATUS(sink_decode(&sink, &gm_codec_csv, text, strlen(text), '7', &err), GM_OK,
                         &err);
            if (sink.present[0])
                CHECK_STR(show(&sink.operand[0], buf, sizeof(buf)),
                          merges ? "f32 4x2: 1 2 3 4 5 6 7 8" : "f32 2x2x2: 1 2 3 4 5 6 7 8");
            sink_clear(&sink);
        }
}

/* A number of any length up to the longest, with any byte behind the text. */
static void test_long_numbers(void)
{
    char *text = check_alloc(GM_NUMBER_TEXT_MAX + 8);
    for (int len = 1; len <= GM_NUMBER_TEXT_MAX - 2; len += len < 40 ? 1 : 97) {
        memset(text, '0', (size_t)len);
        text[0] = '1';
        if (len > 2)
            text[1] = '.';
        struct gm_error err = {0};
        struct sink sink;
        char buf[64];
        sink_init(&sink, 1);
        sink.plan.dtype = GM_F64;
        CHECK_STATUS(sink_decode_all(&sink, &gm_codec_csv, text, (size_t)len, &err), GM_OK, &err);
        if (sink.present[0])
            CHECK_STR(show(&sink.operand[0], buf, sizeof(buf)),
                      len == 2 ? "f64 1x1: 10" : "f64 1x1: 1");
        sink_clear(&sink);
    }
    free(text);
}

/* All refusals of the sink come through. */
static void test_sink_refuses(void)
{
    struct gm_error err = {0};
    struct sink sink;
    sink_init(&sink, 1);
    sink.refuse_operand = GM_MEMORY_FULL;
    CHECK_STATUS(sink_decode(&sink, &gm_codec_csv, "1,2", 3, 0, &err), GM_MEMORY_FULL, &err);
    sink_clear(&sink);
}

/* Many columns and many rows; each number tells its place. */
static void check_large(uint64_t rows, uint64_t cols)
{
    char *text = check_alloc(rows * cols * 12 + 1);
    size_t len = 0;
    for (uint64_t i = 0; i < rows * cols; i++)
        len += (size_t)sprintf(text + len, "%" PRIu64 "%s", i, (i + 1) % cols ? ";" : "\r\n");
    struct gm_error err = {0};
    struct sink sink;
    sink_init(&sink, 1);
    sink.plan.dtype = GM_I32;
    CHECK_STATUS(sink_decode(&sink, &gm_codec_csv, text, len, '7', &err), GM_OK, &err);
    if (CHECK(sink.present[0])) {
        const int32_t *data = sink.operand[0].data;
        CHECK(sink.operand[0].rows == rows && sink.operand[0].cols == cols);
        uint64_t wrong = 0;
        for (uint64_t i = 0; i < rows * cols; i++)
            wrong += data[i] != (int32_t)i;
        CHECK_EQ(wrong, 0);
    }
    sink_clear(&sink);
    free(text);
}

int main(void)
{
    test_good_cases();
    test_line_ends();
    test_long_numbers();
    test_sink_refuses();
    check_large(1, 100000);
    check_large(100000, 1);
    check_large(317, 311);
    return check_report();
}
