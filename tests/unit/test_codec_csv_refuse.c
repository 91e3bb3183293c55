/*
 * CSV bodies that must be refused: every way to be wrong, with the status and a part of the
 * message it must get; texts made to be slow; then damage at random.
 */
#include "tests/unit/codec_input.h"

#include "proto/number/number.h"

struct bad_case {
    const char *text;
    enum gm_status status;
    const char *part; /* of the message */
    enum gm_dtype dtype;
};

static const struct bad_case bad_cases[] = {
    /* Rows of different lengths. */
    {"1,2\n3\n", GM_BAD_SHAPE, "line 2 has 1 fields where 2 are expected, as in line 1", 0},
    {"1,2\n3,4,5\n", GM_BAD_SHAPE, "line 2 has 3 fields where 2", 0},
    {"1\n2,3\n", GM_BAD_SHAPE, "line 2 has 2 fields where 1", 0},
    {"x,y\n1,2\n3,4\n5", GM_BAD_SHAPE, "line 4 has 1 fields where 2 are expected, as in line 2", 0},
    {"x,y\r\n\r\n1,2\r\n3", GM_BAD_SHAPE, "line 4 has 1 fields where 2 are expected, as in line 3",
     0},
    {"1,2\r3", GM_BAD_SHAPE, "line 2 has 1 fields", 0},
    {"1,2,3,4,5,6,7,8\n1\n2\n3\n4\n5\n6\n7\n8\n9\n", GM_BAD_SHAPE, "line 2 has 1 fields where 8",
     0},
    {"1,2\n\n3,4\n5,6\n", GM_BAD_SHAPE, "ends at line 4 has 2 rows where 1 are expected", 0},
    {"1\n2\n\n3\n\n", GM_BAD_SHAPE, "ends at line 4 has 1 rows where 2 are expected", 0},
    {"1,2\n\n3,4,5\n", GM_BAD_SHAPE, "line 3 has 3 fields", 0},
    /* Empty fields. */
    {"1,,3\n", GM_BAD_CSV, "line 1, field 2 is empty: write nan", 0},
    {",2\n", GM_BAD_CSV, "line 1, field 1 is empty", 0},
    {"1,2,\n3,4,\n", GM_BAD_CSV, "line 1, field 3 is empty, behind the line's last separator", 0},
    {"1,", GM_BAD_CSV, "field 2 is empty", 0},
    {"1, ,3", GM_BAD_CSV, "field 2 is empty", 0},
    {"1,\"\",3", GM_BAD_CSV, "field 2 is empty", 0},
    {"1\t\t3\n", GM_BAD_CSV, "field 2 is empty", 0},
    {"\t1\t2", GM_BAD_CSV, "line 1, field 1 is empty", 0},
    {",,,\n", GM_BAD_CSV, "line 1, field 1 is empty", 0},
    {"1,2\n,\n", GM_BAD_CSV, "line 2, field 1 is empty", 0},
    {",", GM_BAD_CSV, "field 1 is empty", 0},
    /* What is no number. */
    {"1,2\n3,x\n", GM_BAD_CSV, "line 2, field 2 is 'x', which is not a number", 0},
    {"1.5.3,2\n", GM_BAD_CSV, "line 1, field 1 is '1.5.3', which is not a number", 0},
    {"1..5,2\n", GM_BAD_CSV, "'1..5'", 0},
    {"1..\n2\n", GM_BAD_CSV, "'1..'", 0},
    {"1e,2\n", GM_BAD_CSV, "'1e'", 0},
    {"1,2\n1e+,2\n", GM_BAD_CSV, "'1e+'", 0},
    {"0x10,1\n", GM_BAD_CSV, "'0x10'", 0},
    {"1_000\n", GM_BAD_CSV, "'1_000'", 0},
    {"--1\n", GM_BAD_CSV, "'--1'", 0},
    {"+-1\n", GM_BAD_CSV, "'+-1'", 0},
    {"++1\n", GM_BAD_CSV, "'++1'", 0},
    {"-\n", GM_BAD_CSV, "'-'", 0},
    {".\n", GM_BAD_CSV, "'.'", 0},
    {"+\n", GM_BAD_CSV, "'+'", 0},
    {"-.e5\n", GM_BAD_CSV, "'-.e5'", 0},
    {"1\xC2\xA0,2\n", GM_BAD_CSV, "field 1", 0},
    {"\"1,2\n", GM_BAD_CSV, "line 1, field 1", 0},
    {"1,\"2\n", GM_BAD_CSV, "line 1, field 2", 0},
    {"1,\"2\"3\n", GM_BAD_CSV, "line 1, field 2", 0},
    {"1,2\"\n", GM_BAD_CSV, "line 1, field 2", 0},
    {"1,\"\"\"2\"\"\"\n", GM_BAD_CSV, "line 1, field 2", 0},
    {"1,\"2\n3\"\n", GM_BAD_CSV, "line 1, field 2", 0},
    {"x,y\nu,v\n1,2\n", GM_BAD_CSV, "line 2, field 1 is 'u', which is not a number: one header", 0},
    {"NA,2\n", GM_BAD_CSV, "'NA', which is not a number: write nan", 0},
    {"1,n/a\n", GM_BAD_CSV, "write nan", 0},
    {"#N/A,1\n", GM_BAD_CSV, "write nan", 0},
    {"null,1\n", GM_BAD_CSV, "write nan", 0},
    {"1,2\n3,None\n", GM_BAD_CSV, "write nan", 0},
    {"'1','2'\n", GM_BAD_CSV, "line 1, field 1", 0},
    {"1st,2nd\n1,2\n", GM_BAD_CSV, "line 1, field 1 is '1st'", 0},
    /* A damaged first row is no header. */
    {"5,x\n1,2\n", GM_BAD_CSV, "line 1, field 2 is 'x', which is not a number", 0},
    {"inf,x\n1,2\n", GM_BAD_CSV, "line 1, field 2 is 'x'", 0},
    {"$1,2\n3,4\n", GM_BAD_CSV, "line 1, field 1 is '$1'", 0},
    {"(1),2\n3,4\n", GM_BAD_CSV, "line 1, field 1 is '(1)'", 0},
    {"<1,2\n3,4\n", GM_BAD_CSV, "line 1, field 1 is '<1'", 0},
    {"=1,2\n3,4\n", GM_BAD_CSV, "line 1, field 1 is '=1'", 0},
    {"\xE2\x88\x92\x31,2\n3,4\n", GM_BAD_CSV, "line 1, field 1 is '\xE2\x88\x92\x31'", 0},
    {"\xE2\x82\xAC\x31,2\n3,4\n", GM_BAD_CSV, "line 1, field 1", 0},
    {"\xC2\xA0\x31,2\n3,4\n", GM_BAD_CSV, "line 1, field 1", 0},
    /* Nor is a row with a label, or a header with nothing below. */
    {"id,1,2\n", GM_BAD_CSV, "line 1 is 'id,1,2': it begins like a header and has numbers", 0},
    {"id,1,2", GM_BAD_CSV, "add header=true", 0},
    {"\n\nid,1,2\n", GM_BAD_CSV, "line 3 is 'id,1,2'", 0},
    {"id,1,2\n3,4,5\n", GM_BAD_CSV, "header=true", 0},
    {"id,x,+2.50e1\n3,4,5\n", GM_BAD_CSV, "header=true", 0},
    {"id;\"2\"\n3;4\n", GM_BAD_CSV, "header=true", 0},
    {"id,nan\n3,4\n", GM_BAD_CSV, "header=true", 0},
    {"id,1.5\n3,4\n", GM_BAD_CSV, "header=true", GM_I32},
    {",x,1\n3,4,5\n", GM_BAD_CSV, "header=true", 0},
    {"x,y\n", GM_BAD_CSV, "the text is the header 'x,y' alone: add header=true", 0},
    {"x\r\n\r\n", GM_BAD_CSV, "the header 'x' alone", 0},
    {"\"a\";\"b\";c\n \n", GM_BAD_CSV, "alone", 0},
    /* Separators. */
    {"1,5;2,5\n3,5;4,5\n", GM_BAD_CSV, "decimal point", 0},
    {"1;2,5\n", GM_BAD_CSV, "decimal point", 0},
    {"1,5\t2,5\n", GM_BAD_CSV, "decimal point", 0},
    {"1,2\n3;4\n", GM_BAD_CSV, "one separator", 0},
    {"1;2\n3,4\n", GM_BAD_CSV, "one separator", 0},
    {"\"1,000\",2\n", GM_BAD_CSV, "without commas between its digits", 0},
    {"1 2 3\n4 5 6\n", GM_BAD_CSV, "'1 2 3', which is not a number: separate numbers by", 0},
    {"1\t2\n3 4\n", GM_BAD_CSV, "separate numbers by", 0},
    {"0.1,0.20.3,0.4", GM_BAD_CSV, "curl -d takes them out", 0},
    /* Other formats, and no format at all. */
    {"[[1,2],[3,4]]", GM_BAD_CSV, "application/json", 0},
    {"{\"a\":[[1]]}", GM_BAD_CSV, "application/json", 0},
    {"\x93NUMPY\x01", GM_BAD_CSV, "application/x-npy", 0},
    {"\xFF\xFE"
     "1",
     GM_BAD_CSV, "UTF-16", 0},
    {"\xFE\xFF"
     "1",
     GM_BAD_CSV, "UTF-16", 0},
    {"\x1F\x8B\x08\x04x\ny", GM_BAD_CSV, "gunzip -c", 0},
    {"PK\x03\x04xxxx\n", GM_BAD_CSV, "is no text", 0},
    {"\x89HDF\r\n\x1A\n", GM_BAD_CSV, "is no text", 0},
    {"hello", GM_BAD_CSV, "'hello', which is no row of numbers", 0},
    {"@a.csv", GM_BAD_CSV, "--data-binary @FILE", 0},
    {"x,y", GM_BAD_CSV, "no row of numbers", 0},
    {"\"x", GM_BAD_CSV, "no row of numbers", 0},
    {"a=1&b=2", GM_BAD_CSV, "no row of numbers", 0},
    {"hello\nworld\n", GM_BAD_CSV, "line 2, field 1 is 'world'", 0},
    /* Types and range. */
    {"1,2\n3,1e39", GM_OUT_OF_RANGE, "line 2, field 2 is '1e39', which does not fit dtype f32", 0},
    {"-3.5e38\n", GM_OUT_OF_RANGE, "does not fit dtype f32", 0},
    {"1e400\n", GM_OUT_OF_RANGE, "does not fit dtype f64", GM_F64},
    {"65520\n", GM_OUT_OF_RANGE, "does not fit dtype f16", GM_F16},
    {"3.4e38\n", GM_OUT_OF_RANGE, "does not fit dtype bf16", GM_BF16},
    {"1.5\n", GM_OUT_OF_RANGE, "is not a whole number, as those of dtype i32", GM_I32},
    {"2147483648", GM_OUT_OF_RANGE, "does not fit dtype i32", GM_I32},
    {"9223372036854775808\n", GM_OUT_OF_RANGE, "does not fit dtype i64", GM_I64},
    {"1,-9223372036854775809\n", GM_OUT_OF_RANGE, "does not fit dtype i64", GM_I64},
    {"18446744073709551616\n", GM_OUT_OF_RANGE, "does not fit dtype u64", GM_U64},
    {"-1\n", GM_OUT_OF_RANGE, "does not fit dtype u8", GM_U8},
    {"2\n", GM_OUT_OF_RANGE, "does not fit dtype bool", GM_BOOL},
    {"1,nan\n", GM_OUT_OF_RANGE, "line 1, field 2 is 'nan', which dtype i32 does not have", GM_I32},
    {"-inf\n", GM_OUT_OF_RANGE, "'-inf', which dtype i64 does not have", GM_I64},
    {"inf\n", GM_OUT_OF_RANGE, "dtype bool does not have", GM_BOOL},
    {"true,1\n", GM_BAD_DTYPE, "line 1, field 1 is 'true', which needs dtype bool", 0},
    {"1,FALSE\n", GM_BAD_DTYPE, "needs dtype bool", GM_I32},
    {"1,2\n", GM_BAD_DTYPE, "dtype c64 cannot be written as CSV; send them as NPY", GM_C64},
    {"1,2\n", GM_BAD_DTYPE, "dtype v4", GM_V4},
};

/* Where it was said whether there is a header. */
static const struct {
    struct bad_case bad;
    enum gm_header header;
} said_cases[] = {
    {{"x,y\n1,2\n", GM_BAD_CSV, "line 1, field 1 is 'x'", 0}, GM_HEADER_ABSENT},
    {{"id,1\n1,2\n", GM_BAD_CSV, "line 1, field 1 is 'id'", 0}, GM_HEADER_ABSENT},
    {{"x,y\nid,1\n", GM_BAD_CSV, "line 2, field 1 is 'id'", 0}, GM_HEADER_PRESENT},
    {{"1,2\nx\n", GM_BAD_CSV, "line 2, field 1 is 'x'", 0}, GM_HEADER_PRESENT},
};

static void check_refused(const char *text, size_t len, const struct bad_case *c,
                          enum gm_header header)
{
    struct gm_error err = {0};
    struct sink sink;
    sink_init(&sink, 1);
    sink.plan.dtype = c->dtype;
    sink.plan.header = header;
    enum gm_status status = sink_decode_all(&sink, &gm_codec_csv, text, len, &err);
    if (!CHECK_STATUS(status, c->status, &err) || !CHECK(strstr(err.detail, c->part) != NULL))
        fprintf(stderr, "  %.60s: %s\n", text, err.detail);
    sink_clear(&sink);
}

static void test_bad_cases(void)
{
    for (size_t i = 0; i < sizeof(bad_cases) / sizeof(bad_cases[0]); i++)
        check_refused(bad_cases[i].text, strlen(bad_cases[i].text), &bad_cases[i], GM_HEADER_TELLS);
    for (size_t i = 0; i < sizeof(said_cases) / sizeof(said_cases[0]); i++)
        check_refused(said_cases[i].bad.text, strlen(said_cases[i].bad.text), &said_cases[i].bad,
                      said_cases[i].header);
    static const struct bad_case zero = {NULL, GM_BAD_CSV, "line 1, field 2", 0};
    check_refused("12345678,90123456\0,2\n", 21, &zero, GM_HEADER_TELLS);
    static const struct bad_case wide = {NULL, GM_BAD_CSV, "UTF-16", 0};
    check_refused("1\0,\0", 4, &wide, GM_HEADER_TELLS);
}

/*
 * A first line of many fields and many short ones: no memory is asked for but what a text of that
 * length can fill.
 */
static void test_no_amplification(void)
{
    size_t half = 100000, len = 0;
    char *text = check_alloc(4 * half + 1);
    for (size_t i = 0; i < half; i++)
        len += (size_t)sprintf(text + len, "1,");
    text[len - 1] = '\n';
    for (size_t i = 0; i < half; i++)
        len += (size_t)sprintf(text + len, "1\n");
    struct gm_error err = {0};
    struct sink sink;
    sink_init(&sink, 1);
    sink.plan.dtype = GM_F64;
    sink.largest_bytes = 0; /* so that asking would be seen */
    CHECK_STATUS(sink_decode(&sink, &gm_codec_csv, text, len, '7', &err), GM_BAD_SHAPE, &err);
    CHECK(strstr(err.detail, "line 2 has 1 fields where 100000") != NULL);
    sink_clear(&sink);
    free(text);
}

/* Megabytes of one character, where looking ahead again and again would take for ever. */
static void test_long_runs(void)
{
    static const char *const pieces[] = {"\r", "\n", " ",      "\t", "\"",  "\"\"",
                                         ",",  "1",  "\r\r\n", "x",  " \r", "\t\r",
                                         "0",  "-",  "\"\r",   "e",  ".",   "\"\n"};
    enum { LEN = 4000000 };
    char *text = check_alloc(LEN + 64);
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
        for (int headed = 0; headed < 2; headed++) {
            size_t len = headed ? (size_t)sprintf(text, "x\n1,2\r\n") : 0;
            for (size_t n = strlen(pieces[i]); len + n <= LEN; len += n)
                memcpy(text + len, pieces[i], n);
            struct gm_error err = {0};
            struct sink sink;
            sink_init(&sink, 1);
            enum gm_status status = sink_decode(&sink, &gm_codec_csv, text, len, '7', &err);
            bool blank = strspn(pieces[i], " \t\r\n") == strlen(pieces[i]);
            CHECK(blank == (status == GM_OK));
            if (status != GM_OK)
                CHECK(status == GM_BAD_CSV || status == GM_BAD_SHAPE);
            sink_clear(&sink);
        }
    free(text);
}

static uint64_t random_state = 0x2545F4914F6CDD1D;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* Random changes to good texts: whatever comes of them, memory stays whole and messages true. */
static void test_damage(void)
{
    static const char *const seeds[] = {
        "1,2.5\n-3e2,nan\n",        "x;y\r\n1;+2\r\n\r\n\"3\";.5\r\n",
        "1\t2\r3\t4\r\r5\t6\r7\t8", "\xEF\xBB\xBF\"a\"\n1\n",
        "true,false\n0,1\n",        "9007199254740993,-0.0,inf\n1,2,3",
    };
    static const char bytes[] = ",;\t\"\r\n .0123456789eE+-naifx\0\xEF\xFF[{#@";
    static const enum gm_dtype dtypes[] = {GM_F32, GM_F16, GM_I64, GM_BOOL, GM_U8, GM_F64};
    for (int round = 0; round < 60000; round++) {
        char text[80];
        const char *seed = seeds[next_random() % 6];
        size_t len = strlen(seed);
        memcpy(text, seed, len);
        for (uint64_t n = next_random() % 6; n > 0; n--) {
            size_t at = next_random() % (len + 1);
            char c = bytes[next_random() % (sizeof(bytes) - 1)];
            if (next_random() % 2 && len < sizeof(text)) {
                memmove(text + at + 1, text + at, len - at);
                text[at] = c;
                len++;
            } else if (next_random() % 2 && at < len) {
                memmove(text + at, text + at + 1, len - at - 1);
                len--;
            } else if (at < len) {
                text[at] = c;
            }
        }
        struct gm_error err = {0};
        struct sink sink;
        sink_init(&sink, 1);
        sink.plan.dtype = dtypes[next_random() % 6];
        char filler = bytes[next_random() % (sizeof(bytes) - 1)];
        enum gm_status status = sink_decode(&sink, &gm_codec_csv, text, len, filler, &err);
        CHECK(status == GM_OK ? sink.present[0] : *err.detail != '\0');
        CHECK(status != GM_INTERNAL);
        sink_clear(&sink);
    }
}

int main(void)
{
    test_bad_cases();
    test_no_amplification();
    test_long_runs();
    test_damage();
    return check_report();
}
