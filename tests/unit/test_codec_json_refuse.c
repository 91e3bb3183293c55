/*
 * JSON bodies that must be refused: every way to be wrong, with the status and a part of the
 * message it must get; then damage at random.
 */
#include "proto/number/number.h"
#include "tests/unit/codec_input.h"

struct bad_case {
    const char *text;
    enum gm_status status;
    const char *part; /* of the message */
};

static const struct bad_case bad_cases[] = {
    /* Not JSON at all, or not a matrix. */
    {"", GM_BAD_JSON, "empty"},
    {" \n", GM_BAD_JSON, "empty"},
    {"5", GM_BAD_JSON, "byte 0"},
    {"\"x\"", GM_BAD_JSON, "array or an object"},
    {"null", GM_BAD_JSON, "array or an object"},
    {"a=[[1]]", GM_BAD_JSON, "array or an object"},
    {"\xEF\xBB\xBF[[1]]", GM_BAD_JSON, "byte order mark"},
    {"[[1,2],[3,4]] x", GM_BAD_JSON, "does not end"},
    {"[[1]] [[2]]", GM_BAD_JSON, "byte 6"},
    {"[[1]]]", GM_BAD_JSON, "byte 5"},
    {"[[1]],[[2]]", GM_BAD_JSON, "byte 5"},
    {"{}{}", GM_BAD_JSON, "byte 2"},
    {"{} ]", GM_BAD_JSON, "byte 3"},
    {"[[1]]}", GM_BAD_JSON, NULL},
    {"{\"a\":[[1]]}}", GM_BAD_JSON, "byte 11"},
    {"{\"a\":[[1]]]}", GM_BAD_JSON, "byte 10"},
    /* Cut off. */
    {"[", GM_BAD_JSON, "byte 0"},
    {"{", GM_BAD_JSON, "byte 0"},
    {"[[1,2]", GM_BAD_JSON, "inside an array"},
    {"[[1,2],[3,4]", GM_BAD_JSON, "inside an array"},
    {"[[[1],[2]]", GM_BAD_JSON, "inside an array"},
    {"[[1,2],", GM_BAD_JSON, "does not end"},
    {"{\"a\":[[1]", GM_BAD_JSON, "inside an array"},
    {"{\"a\":[[1]]", GM_BAD_JSON, "',' or '}'"},
    {"{\"a\":[[1}", GM_BAD_JSON, "end of an object"},
    {"{\"a\":[1,2}", GM_BAD_JSON, "end of an object"},
    {"{\"a\":}", GM_BAD_JSON, "rows of numbers"},
    {"{\"a\"}", GM_BAD_JSON, "':'"},
    {"{\"a}", GM_BAD_JSON, "does not end"},
    {"{\"a\":{\"data\":[1]}", GM_BAD_JSON, "',' or '}'"},
    {"{\"data\":[1],}", GM_BAD_JSON, "name"},
    /* Separators. */
    {"[[1 2]]", GM_BAD_JSON, "byte 4"},
    {"[[1,,2]]", GM_BAD_JSON, "byte 4"},
    {"[[,1]]", GM_BAD_JSON, "byte 2"},
    {"[[1,]]", GM_BAD_JSON, "byte 4"},
    {"[[1,2],]", GM_BAD_JSON, "byte 7"},
    {"[,[1,2]]", GM_BAD_JSON, "byte 1"},
    {"[[1,2][3,4]]", GM_BAD_JSON, "byte 6"},
    {"[[1;2]]", GM_BAD_JSON, "byte 3"},
    {"[1,2,]", GM_BAD_JSON, "byte 5"},
    {"[,]", GM_BAD_JSON, "byte 1"},
    {"[[[1],],[[2]]]", GM_BAD_JSON, "byte 6"},
    {"{,}", GM_BAD_JSON, "name"},
    {"{\"a\" 1}", GM_BAD_JSON, "':'"},
    {"{\"a\":1 \"b\":2}", GM_BAD_JSON, "',' or '}'"},
    {"{\"a\":1,,\"b\":2}", GM_BAD_JSON, "name"},
    {"{a:1}", GM_BAD_JSON, "name"},
    {"{'a':1}", GM_BAD_JSON, "name"},
    {"{1:1}", GM_BAD_JSON, "name"},
    {"[[1\f,2]]", GM_BAD_JSON, "byte 3"},
    {"[[1\xC2\xA0,2]]", GM_BAD_JSON, "byte 3"},
    {"[[1,2]/**/]", GM_BAD_JSON, "byte 6"},
    /* Numbers. */
    {"[[01]]", GM_BAD_JSON, "byte 2"},
    {"[[-]]", GM_BAD_JSON, "byte 2"},
    {"[[+1]]", GM_BAD_JSON, "plus sign"},
    {"[[.5]]", GM_BAD_JSON, "point"},
    {"[[1.]]", GM_BAD_JSON, "point"},
    {"[[1e]]", GM_BAD_JSON, "not a number"},
    {"[[0x1]]", GM_BAD_JSON, "byte 3"},
    {"[[1_0]]", GM_BAD_JSON, "byte 3"},
    {"[[1,NaN]]", GM_BAD_JSON, "JSON has no NaN"},
    {"[[nan]]", GM_BAD_JSON, "JSON has no NaN"},
    {"[[Infinity]]", GM_BAD_JSON, "no infinity"},
    {"[[-Infinity]]", GM_BAD_JSON, "no infinity"},
    {"[[inf]]", GM_BAD_JSON, "no infinity"},
    {"[[1,null]]", GM_BAD_JSON, "row 0, column 1 of a is null"},
    {"[null]", GM_BAD_JSON, "null"},
    {"[[1,\"2\"]]", GM_BAD_JSON, "a string inside an array"},
    {"[[1],\"2\"]", GM_BAD_JSON, "a string inside an array"},
    {"[[\"]\"]]", GM_BAD_JSON, "a string inside an array"},
    {"[\"[[[\"]", GM_BAD_JSON, "a string inside an array"},
    {"[[{}]]", GM_BAD_JSON, "an object inside an array"},
    {"[{\"data\":[1]}]", GM_BAD_JSON, "an object inside an array"},
    {"[[x]]", GM_BAD_JSON, "byte 2"},
    {"[[1]x]", GM_BAD_JSON, "byte 4"},
    {"[[truely]]", GM_BAD_DTYPE, "dtype bool"},
    {"[[1,true]]", GM_BAD_DTYPE, "row 0, column 1 of a"},
    {"[false]", GM_BAD_DTYPE, "dtype bool"},
    {"{\"a\":true}", GM_BAD_DTYPE, "dtype bool"},
    {"{\"data\":[[truel]],\"dtype\":\"bool\"}", GM_BAD_JSON, "',' or ']'"},
    {"{\"data\":[[tru]],\"dtype\":\"bool\"}", GM_BAD_JSON, "not a number"},
    {"{\"data\":[[null]],\"dtype\":\"bool\"}", GM_BAD_JSON, "null"},
    {"{\"data\":[[2]],\"dtype\":\"bool\"}", GM_OUT_OF_RANGE, "does not fit dtype bool"},
    {"{\"a\":1.5.5}", GM_BAD_JSON, "byte 8"},
    {"{\"a\":1]}", GM_BAD_JSON, "',' or '}'"},
    {"{\"a\":-}", GM_BAD_JSON, "not a number"},
    {"{\"a\":null}", GM_BAD_JSON, "rows of numbers"},
    {"{\"a\":\"x\"}", GM_BAD_JSON, "rows of numbers"},
    {"{\"data\":{}}", GM_BAD_JSON, "rows of numbers"},
    {"{\"a\":{\"data\":{\"data\":[1]}}}", GM_BAD_JSON, "rows of numbers"},
    /* Range. */
    {"[[1,2],[3,1e39]]", GM_OUT_OF_RANGE, "1e39 at row 1, column 1 of a"},
    {"[[-3.5e38]]", GM_OUT_OF_RANGE, "does not fit dtype f32"},
    {"[1e400]", GM_OUT_OF_RANGE, "1e400 at column 0 of a"},
    {"[[[1],[1e99]]]", GM_OUT_OF_RANGE, "matrix 0, row 1, column 0 of a"},
    {"{\"b\":1e99}", GM_OUT_OF_RANGE, "1e99 at b"},
    {"{\"data\":[[1.5]],\"dtype\":\"i32\"}", GM_OUT_OF_RANGE, "whole number"},
    {"{\"data\":[[2147483648]],\"dtype\":\"i32\"}", GM_OUT_OF_RANGE, "does not fit dtype i32"},
    {"{\"data\":[[-1]],\"dtype\":\"u8\"}", GM_OUT_OF_RANGE, "does not fit dtype u8"},
    {"{\"data\":[[65520]],\"dtype\":\"f16\"}", GM_OUT_OF_RANGE, "does not fit dtype f16"},
    {"{\"data\":[[1e309]],\"dtype\":\"f64\"}", GM_OUT_OF_RANGE, "does not fit dtype f64"},
    /* Shapes. */
    {"[[1,2],[3]]", GM_BAD_SHAPE, "row 1 of a has 1 elements where 2"},
    {"[[1],[2,3]]", GM_BAD_SHAPE, "row 1 of a has 2 elements where 1"},
    {"[[1,2],[3,4],[5,6,7,8]]", GM_BAD_SHAPE, "row 2 of a has 4 elements where 2"},
    {"[[1,2],[3],[4,5,6]]", GM_BAD_SHAPE, "row 1 of a has 1 elements where 2"},
    {"[[],[1]]", GM_BAD_SHAPE, "row 1 of a has 1 elements where 0"},
    {"[[1],[]]", GM_BAD_SHAPE, "row 1 of a has 0 elements where 1"},
    {"[[1,2],3]", GM_BAD_SHAPE, "row 1 of a is not an array"},
    {"[1,[2]]", GM_BAD_SHAPE, "is an array where the first is a number"},
    {"[[1],[[2]]]", GM_BAD_SHAPE, "is an array where the first is a number"},
    {"[[[1]],[2]]", GM_BAD_SHAPE, "matrix 1, row 0 of a is not an array"},
    {"[[[1],[2]],[[3]]]", GM_BAD_SHAPE, "matrix 1 of a has 1 rows where 2"},
    {"[[[1]],[[2],[3],[4]]]", GM_BAD_SHAPE, "matrix 1 of a has 3 rows where 1"},
    {"[[[1,2]],[[3]]]", GM_BAD_SHAPE, "matrix 1, row 0 of a has 1 elements where 2"},
    {"[[[1]],[[]]]", GM_BAD_SHAPE, "matrix 1, row 0 of a has 0 elements where 1"},
    {"[[[1]],[]]", GM_BAD_SHAPE, "matrix 1 of a has 0 rows where 1"},
    {"[[],[[]]]", GM_BAD_SHAPE, NULL},
    {"[[[]],[]]", GM_BAD_SHAPE, "matrix 1 of a has 0 rows where 1"},
    {"[[[[1]]]]", GM_BAD_JSON, "deeper"},
    {"[[[[[[[[]]]]]]]]", GM_BAD_JSON, "deeper"},
    {"{\"a\":[[1,2],[3]]}", GM_BAD_SHAPE, "row 1 of a"},
    {"{\"a\":[1],\"b\":[[1,2],[3]]}", GM_BAD_SHAPE, "row 1 of b"},
    {"{\"shape\":[2,2],\"data\":[1,2,3]}", GM_BAD_SHAPE,
     "shape says 2x2 (4 elements), data is 1x3"},
    {"{\"shape\":[2,2],\"data\":[1,2,3,4,5]}", GM_BAD_SHAPE, "1x5, flat"},
    {"{\"shape\":[2,2],\"data\":[[1,2,3,4]]}", GM_BAD_SHAPE, "data is 1x4"},
    {"{\"shape\":[2,3],\"data\":[[1,2],[3,4],[5,6]]}", GM_BAD_SHAPE, "data is 3x2"},
    {"{\"shape\":[1,2,2],\"data\":[[1,2],[3,4]]}", GM_BAD_SHAPE, "data is 2x2"},
    {"{\"shape\":[2,2],\"data\":[[[1,2],[3,4]]]}", GM_BAD_SHAPE, "data is 1x2x2"},
    {"{\"shape\":[2,2],\"data\":[[1,2],[3]]}", GM_BAD_SHAPE, "row 1 of a"},
    {"{\"shape\":[2,2],\"data\":[1,x]}", GM_BAD_JSON, "not a number"},
    {"{\"shape\":[2,2],\"data\":7}", GM_BAD_SHAPE, "data is a number"},
    {"{\"shape\":[1],\"data\":7}", GM_BAD_SHAPE, "data is a number"},
    {"{\"shape\":[],\"data\":[]}", GM_BAD_SHAPE, "1x1"},
    {"{\"shape\":[0,5],\"data\":[[]]}", GM_BAD_SHAPE, NULL},
    {"{\"shape\":[2,0],\"data\":[[],[],[]]}", GM_BAD_SHAPE, NULL},
    {"{\"shape\":[0,5],\"data\":[1]}", GM_BAD_SHAPE, NULL},
    {"{\"shape\":[2,2,1,1],\"data\":[1,2,3,4]}", GM_BAD_SHAPE, "up to 3"},
    {"{\"shape\":[-2,2],\"data\":[]}", GM_BAD_SHAPE, "up to 3"},
    {"{\"shape\":[1.5],\"data\":[]}", GM_BAD_SHAPE, "up to 3"},
    {"{\"shape\":[18446744073709551616],\"data\":[]}", GM_BAD_SHAPE, "up to 3"},
    {"{\"shape\":[4294967296,4294967296],\"data\":[]}", GM_BAD_SHAPE, "63-bit"},
    {"{\"shape\":[2 2],\"data\":[]}", GM_BAD_JSON, "',' or ']'"},
    {"{\"shape\":[2,],\"data\":[]}", GM_BAD_JSON, "up to 3"},
    {"{\"shape\":[\"2\"],\"data\":[]}", GM_BAD_JSON, "up to 3"},
    {"{\"shape\":\"2x2\",\"data\":[]}", GM_BAD_JSON, "up to 3"},
    {"{\"shape\":4,\"data\":[]}", GM_BAD_JSON, "up to 3"},
    {"{\"shape\":[2,2}", GM_BAD_JSON, "',' or ']'"},
    {"{\"shape\":[2,2]}", GM_BAD_JSON, "no \"data\""},
    {"{\"a\":{\"shape\":[2,2]}}", GM_BAD_JSON, "a has no member \"data\""},
    {"{\"a\":{}}", GM_BAD_JSON, "a has no member \"data\""},
    {"{\"a\":[1],\"data\":[1]}", GM_BAD_JSON, "\"data\" stands beside"},
    {"{\"a\":[1],\"shape\":[1]}", GM_BAD_JSON, "\"shape\" stands beside"},
    {"{\"data\":[1],\"b\":[1]}", GM_BAD_JSON, "\"data\" stands beside"},
    /* Types. */
    {"{\"data\":[1],\"dtype\":\"float31\"}", GM_BAD_DTYPE, "float31"},
    {"{\"data\":[1],\"dtype\":\"c64\"}", GM_BAD_DTYPE, "NPY"},
    {"{\"data\":[1],\"dtype\":\"v4\"}", GM_BAD_DTYPE, "NPY"},
    {"{\"data\":[1],\"dtype\":32}", GM_BAD_JSON, "dtype is a string"},
    {"{\"data\":[1],\"dtype\":null}", GM_BAD_JSON, "dtype is a string"},
    {"{\"a\":{\"data\":[1],\"dtype\":\"f99\"}}", GM_BAD_DTYPE, "a has dtype"},
    {"{\"dtype\":\"f64\",\"a\":{\"data\":[1],\"dtype\":\"f32\"}}", GM_BAD_DTYPE,
     "the request says"},
    /* Members. */
    {"{\"a\":1,\"a\":2}", GM_BAD_JSON, "\"a\" is there twice"},
    {"{\"a\":1,\"\\u0061\":2}", GM_BAD_JSON, "\"a\" is there twice"},
    {"{\"alpha\":1,\"data\":[1],\"alpha\":1}", GM_BAD_JSON, "\"alpha\" is there twice"},
    {"{\"data\":[1],\"data\":[1]}", GM_BAD_JSON, "\"data\" is there twice"},
    {"{\"a\":{\"data\":[1],\"shape\":[1],\"data\":[1]}}", GM_BAD_JSON, "\"data\" is there twice"},
    {"{\"a\":{\"data\":[1],\"alpha\":1}}", GM_BAD_JSON, "member \"alpha\""},
    {"{\"a\":{\"data\":[1],\"a\":1}}", GM_BAD_JSON, "member \"a\""},
    {"{\"alpha\":null,\"data\":[1]}", GM_BAD_PARAMETER, "alpha is null"},
    {"{\"alpha\":[1],\"data\":[1]}", GM_BAD_PARAMETER, "alpha is an array"},
    {"{\"A\":[[1]]}", GM_BAD_PARAMETER, "A is an array; operands are named a, b and c"},
    {"{\"data\":[1],\"stats\":{\"x\":1}}", GM_BAD_PARAMETER, "take stats out"},
    {"{\"data\":[1],\"alpha\":{\"x\":1}}", GM_BAD_PARAMETER, "alpha is an object"},
    {"{\"alpha\":01}", GM_BAD_JSON, "\"alpha\""},
    {"{\"alpha\":tru}", GM_BAD_JSON, "\"alpha\""},
    {"{\"alpha\":truex}", GM_BAD_JSON, "',' or '}'"},
    {"{\"alpha\":1x}", GM_BAD_JSON, "',' or '}'"},
    {"{\"alpha\":}", GM_BAD_JSON, "\"alpha\""},
    {"{\"refused\":1,\"a\":[1]}", GM_UNKNOWN_PARAMETER, "refused by the test"},
    {"{\"a\":[1],\"refused\":1}", GM_UNKNOWN_PARAMETER, "refused by the test"},
    /* Strings. */
    {"{\"k\":\"\x01\"}", GM_BAD_JSON, "control character"},
    {"{\"k\":\"\x1F\"}", GM_BAD_JSON, "control character"},
    {"{\"k\":\"a\nb\"}", GM_BAD_JSON, "control character"},
    {"{\"k\":\"\\x41\"}", GM_BAD_JSON, "escape"},
    {"{\"k\":\"\\u12G4\"}", GM_BAD_JSON, "escape"},
    {"{\"k\":\"\\u12\"}", GM_BAD_JSON, "escape"},
    {"{\"k\":\"\\uD83D\"}", GM_BAD_JSON, "surrogate"},
    {"{\"k\":\"\\uD83Dx\\uDE00\"}", GM_BAD_JSON, "surrogate"},
    {"{\"k\":\"\\uD83D\\u0041\"}", GM_BAD_JSON, "surrogate"},
    {"{\"k\":\"\\uDE00\"}", GM_BAD_JSON, "surrogate"},
    {"{\"k\":\"\\uD83D\\n\"}", GM_BAD_JSON, "surrogate"},
    {"{\"k\":\"\xFF\"}", GM_BAD_JSON, "UTF-8"},
    {"{\"k\":\"\xC3\"}", GM_BAD_JSON, "UTF-8"},
    {"{\"k\":\"\xC0\xAF\"}", GM_BAD_JSON, "UTF-8"},
    {"{\"k\":\"\xE0\x80\x80\"}", GM_BAD_JSON, "UTF-8"},
    {"{\"k\":\"\xED\xA0\x80\"}", GM_BAD_JSON, "UTF-8"},
    {"{\"k\":\"\xF4\x90\x80\x80\"}", GM_BAD_JSON, "UTF-8"},
    {"{\"k\":\"\xF8\x88\x80\x80\x80\"}", GM_BAD_JSON, "UTF-8"},
    {"{\"\xFF\":1}", GM_BAD_JSON, "UTF-8"},
    {"{\"k\":\"abc}", GM_BAD_JSON, "does not end"},
    {"{\"k\":\"abc\\\"}", GM_BAD_JSON, "does not end"},
    {"{\"k\":\"abc\\}", GM_BAD_JSON, "escape"},
    {"{\"k\":\"\xC3}", GM_BAD_JSON, "UTF-8"},
};

static void test_bad(void)
{
    for (size_t i = 0; i < sizeof(bad_cases) / sizeof(bad_cases[0]); i++) {
        const struct bad_case *c = &bad_cases[i];
        struct sink sink;
        struct gm_error err = {0};
        sink_init(&sink, 3);
        sink.take_dtype = true;
        sink.refuse_parameter = "refused";
        if (!CHECK_STATUS(sink_decode_all(&sink, &gm_codec_json, c->text, strlen(c->text), &err),
                          c->status, &err) ||
            (c->part && !CHECK(strstr(err.detail, c->part) != NULL)))
            fprintf(stderr, "  %s\n  -> %s\n", c->text, err.detail);
        CHECK_EQ(err.status, c->status);
        sink_clear(&sink);
    }
    struct sink sink;
    struct gm_error err = {0};
    sink_init(&sink, 3);
    CHECK_STATUS(sink_decode_all(&sink, &gm_codec_json, "[[1]]\0", 6, &err), GM_BAD_JSON, &err);
    CHECK_STATUS(sink_decode_all(&sink, &gm_codec_json, "[[1\0]]", 6, &err), GM_BAD_JSON, &err);
    CHECK_STATUS(sink_decode_all(&sink, &gm_codec_json, "\0[[1]]", 6, &err), GM_BAD_JSON, &err);
    sink_clear(&sink);
}

/* Every prefix of a document must be refused, and no change of one byte may confuse the reader. */
static void test_damage(void)
{
    static const char *const texts[] = {
        "[[1.5,-2],[3e2,4]]",
        ("{\"a\":{\"shape\":[2,2],\"dtype\":\"f64\",\"data\":[1,2,3,4]},\"b\":[[1],[2]],"
         "\"kernel\":\"ti\\u006ced\",\"alpha\":1.5}"),
        "[[[1,2],[3,4]],[[5,6],[7,8]],[[9,10],[11,12]]]",
    };
    uint64_t random = check_seed();
    for (size_t t = 0; t < sizeof(texts) / sizeof(texts[0]); t++) {
        size_t len = strlen(texts[t]);
        struct sink sink;
        struct gm_error err = {0};
        sink_init(&sink, 3);
        for (size_t cut = 0; cut < len; cut++) {
            CHECK_STATUS(sink_decode_all(&sink, &gm_codec_json, texts[t], cut, &err), GM_BAD_JSON,
                         &err);
            sink_clear(&sink);
        }
        for (int i = 0; i < 30000; i++) {
            static const char likely[] = "[]{},:\"\\ 0123456789.eE+-tfn\n";
            char text[200];
            size_t n = len;
            memcpy(text, texts[t], len);
            for (uint64_t changes = 1 + check_random(&random) % 4; changes > 0; changes--) {
                uint64_t r = check_random(&random);
                size_t at = r % n;
                char byte =
                    r >> 20 & 3 ? likely[(r >> 24) % (sizeof(likely) - 1)] : (char)(r >> 32);
                if ((r >> 40) % 3 == 0 && n < sizeof(text) - 1) {
                    memmove(text + at + 1, text + at, n - at);
                    n++;
                } else if ((r >> 40) % 3 == 1 && n > 1) {
                    memmove(text + at, text + at + 1, n - at - 1);
                    n--;
                    at = at < n ? at : n - 1;
                }
                text[at] = byte;
            }
            enum gm_status status = sink_decode(&sink, &gm_codec_json, text, n, ']', &err);
            if (status != GM_OK)
                CHECK_EQ(err.status, status);
            sink_clear(&sink);
        }
    }
}

static enum gm_status decode(const char *text, size_t len, enum gm_dtype dtype)
{
    struct sink sink;
    struct gm_error err = {0};
    sink_init(&sink, 3);
    sink.plan.dtype = dtype;
    enum gm_status status = sink_decode(&sink, &gm_codec_json, text, len, '7', &err);
    sink_clear(&sink);
    return status;
}

/* RFC 8259, section 9, lets a parser limit range, depth and size: each limit has its answer. */
static void test_limits(void)
{
    const size_t deep = 1000000;
    char *text = check_alloc(6 * deep);

    CHECK_EQ(decode("[1e309]", 7, GM_F64), GM_OUT_OF_RANGE);
    CHECK_EQ(decode("[-1e999999999999999999999]", 26, GM_F64), GM_OUT_OF_RANGE);
    CHECK_EQ(decode("[1e39]", 6, GM_F32), GM_OUT_OF_RANGE);
    CHECK_EQ(decode("[70000]", 7, GM_F16), GM_OUT_OF_RANGE);
    CHECK_EQ(decode("[9223372036854775808]", 21, GM_I64), GM_OUT_OF_RANGE);
    CHECK_EQ(decode("[[[1]]]", 7, GM_F64), GM_OK);
    CHECK_EQ(decode("[[[[1]]]]", 9, GM_F64), GM_BAD_JSON);
    memset(text, '[', deep);
    memset(text + deep, ']', deep);
    CHECK_EQ(decode(text, deep, GM_F64), GM_BAD_JSON);
    CHECK_EQ(decode(text, 2 * deep, GM_F64), GM_BAD_JSON);
    for (size_t i = 0; i < deep; i++)
        memcpy(text + 5 * i, "{\"a\":", 5);
    memset(text + 5 * deep, '}', deep);
    CHECK_EQ(decode(text, 5 * deep, GM_F64), GM_BAD_JSON);
    CHECK_EQ(decode(text, 6 * deep, GM_F64), GM_BAD_JSON);

    /* A number may be long, a name or a string not so long, members not so many. */
    text[0] = '[';
    memset(text + 1, '1', GM_NUMBER_TEXT_MAX + 1);
    text[1 + GM_NUMBER_TEXT_MAX + 1] = ']';
    CHECK_EQ(decode(text, GM_NUMBER_TEXT_MAX + 3, GM_F64), GM_BAD_JSON);
    memset(text + 2, '.', 1);
    text[1 + GM_NUMBER_TEXT_MAX] = ']';
    CHECK_EQ(decode(text, GM_NUMBER_TEXT_MAX + 2, GM_F64), GM_OK);
    memcpy(text, "{\"k\":\"", 6);
    memset(text + 6, 'x', deep);
    memcpy(text + 6 + deep, "\"}", 2);
    CHECK_EQ(decode(text, deep + 8, GM_F64), GM_BAD_PARAMETER);
    size_t len = 0;
    for (int i = 0; i < 1000; i++)
        len += (size_t)sprintf(text + len, "%s\"k%d\":1", i ? "," : "{", i);
    text[len++] = '}';
    CHECK_EQ(decode(text, len, GM_F64), GM_BAD_JSON);
    free(text);
}

int main(void)
{
    test_bad();
    test_limits();
    test_damage();
    return check_report();
}
