/*
 * The grammar of RFC 8259, section by section: what a parser must accept and what it must reject.
 * Numbers and strings are tried in each place where a body can have one. A second parser, jansson,
 * has to agree with each verdict, so that none is a matter of opinion; and with that on every short
 * text there is. (Section 9 allows limits: those are in test_codec_json_refuse.c.)
 */
#include "tests/unit/codec_input.h"

#include <jansson.h>

/* Whether the text is JSON: jansson's opinion. */
static bool is_json(const char *text, size_t len)
{
    json_t *root = json_loadb(
        text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, NULL);
    json_decref(root);
    return root != NULL;
}

static enum gm_status decode(const char *text, size_t len, enum gm_dtype dtype)
{
    struct sink sink;
    struct gm_error err = {0};
    sink_init(&sink, 3);
    sink.plan.dtype = dtype;
    enum gm_status status = sink_decode(&sink, &gm_codec_json, text, len, '7', &err);
    CHECK((status == GM_OK) == (err.detail[0] == '\0'));
    sink_clear(&sink);
    return status;
}

/* jansson, which counts as right. `own`: the status that gemmd gives. */
static void expect(const char *text, size_t len, enum gm_status own, const char *why)
{
    bool valid = own == GM_OK || own == GM_OUT_OF_RANGE;
    enum gm_status status = decode(text, len, GM_F64);
    if (!CHECK(status == own))
        fprintf(stderr, "  %s, not %s: %s\n  %.*s\n", gm_status_code(status), gm_status_code(own),
                why, (int)len, text);
    /* It cannot hold numbers beyond a double nor names with a NUL, and overlooks some bare NULs. */
    bool knows =
        own != GM_OUT_OF_RANGE && !memmem(text, len, "\\u0000", 6) && !memchr(text, '\0', len);
    if (knows && !CHECK(is_json(text, len) == valid))
        fprintf(stderr, "  jansson is of another opinion: %s\n  %.*s\n", why, (int)len, text);
}

struct token {
    const char *text;
    bool valid;
    const char *why;
};

/* before + token + after, all the places. */
static void expect_token(const struct token *token, size_t len, const char *const (*places)[2],
                         size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t before = strlen(places[i][0]), after = strlen(places[i][1]);
        char *text = check_alloc(before + len + after);
        memcpy(text, places[i][0], before);
        memcpy(text + before, token->text, len);
        memcpy(text + before + len, places[i][1], after);
        expect(text, before + len + after, token->valid ? GM_OK : GM_BAD_JSON, token->why);
        free(text);
    }
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Section 6. */
static const struct token numbers[] = {
    {"0", true, "zero"},
    {"-0", true, "zero has a sign"},
    {"10", true, "zeros may follow"},
    {"-12.75", true, "sign, whole part, fraction"},
    {"0.000", true, "a fraction of zeros"},
    {"1e5", true, "an exponent"},
    {"1E5", true, "in either case"},
    {"1e+5", true, "with a plus sign"},
    {"1e-5", true, "with a minus sign"},
    {"1e0005", true, "an exponent may have leading zeros"},
    {"1.5E-00", true, "and be zero"},
    {"-0.0e-0", true, "zero in its longest form"},
    {"0e99999999999999999999999999", true, "zero, whatever its exponent"},
    {"1e-99999999999999999999999999", true, "too small is zero"},
    {"4.9e-324", true, "the smallest f64"},
    {"1.7976931348623157e308", true, "the largest f64"},
    {"123456789012345678901234567890", true, "more digits than any integer has"},
    {"0.1000000000000000055511151231257827021181583404541015625", true, "all digits of a double"},
    {"00", false, "a leading zero"},
    {"01", false, "a leading zero"},
    {"-01", false, "a leading zero behind a sign"},
    {"00.5", false, "a leading zero before a fraction"},
    {"+1", false, "a plus sign"},
    {"--1", false, "two signs"},
    {"-", false, "a sign alone"},
    {"- 1", false, "a blank behind the sign"},
    {"-a", false, "a sign before a letter"},
    {".5", false, "no digit before the point"},
    {"-.5", false, "no digit before the point"},
    {"1.", false, "no digit behind the point"},
    {"1.e5", false, "no digit behind the point"},
    {"1..5", false, "two points"},
    {"1.5.5", false, "two points"},
    {"1e", false, "no digit in the exponent"},
    {"1e+", false, "no digit in the exponent"},
    {"1e-", false, "no digit in the exponent"},
    {"1e1.5", false, "a point in the exponent"},
    {"1e5e5", false, "two exponents"},
    {"1e+-5", false, "two signs in the exponent"},
    {"e5", false, "an exponent alone"},
    {"1 000", false, "a blank inside"},
    {"1_000", false, "an underscore inside"},
    {"1'000", false, "an apostrophe inside"},
    {"0x10", false, "hexadecimal"},
    {"0b1", false, "binary"},
    {"1f", false, "a suffix"},
    {"1L", false, "a suffix"},
    {"1+1", false, "arithmetic"},
    {"1/2", false, "arithmetic"},
    {"1%", false, "per cent"},
    {"\xD9\xA1", false, "a digit of another script"},
    {"\xEF\xBC\x91", false, "a full-width digit"},
    {"\xE2\x88\x92"
     "1",
     false, "a minus sign that is no hyphen"},
    {"NaN", false, "not a number"},
    {"nan", false, "not a number"},
    {"Infinity", false, "infinity"},
    {"-Infinity", false, "infinity"},
    {"inf", false, "infinity"},
};

static const char *const number_places[][2] = {
    {"[", "]"},           {"[[1,2],[3,", "]]"},
    {"{\"a\":", "}"},     {"{\"data\":[[", "]],\"dtype\":\"f64\"}"},
    {"{\"alpha\":", "}"}, {"[ ", "\n]"},
};

/* Section 7, the characters between the quotes. */
static const struct token strings[] = {
    {"", true, "nothing"},
    {"a b", true, "letters and a blank"},
    {"/", true, "a slash need not be escaped"},
    {"'", true, "nor an apostrophe"},
    {"\x7F", true, "nor DEL"},
    {"{[,:]}", true, "nor what has a meaning outside"},
    {"\\\"\\\\\\/\\b\\f\\n\\r\\t", true, "the short escapes"},
    {"\\u0041\\u00e9\\u00E9\\u20AC", true, "escapes in hexadecimal of either case"},
    {"\\u0000", true, "NUL, escaped"},
    {"\\uFFFE\\uFFFF", true, "code points that are no characters"},
    {"\\uD834\\uDD1E", true, "a pair of surrogates"},
    {"\\uD800\\uDC00", true, "the first pair"},
    {"\\uDBFF\\uDFFF", true, "the last pair"},
    {"\\\\u12", true, "an escaped backslash escapes nothing"},
    {"\xC2\x80", true, "U+0080"},
    {"\xDF\xBF", true, "U+07FF"},
    {"\xE0\xA0\x80", true, "U+0800"},
    {"\xED\x9F\xBF", true, "U+D7FF, before the surrogates"},
    {"\xEE\x80\x80", true, "U+E000, behind them"},
    {"\xEF\xBF\xBF", true, "U+FFFF"},
    {"\xEF\xBB\xBF", true, "U+FEFF inside a string"},
    {"\xE2\x80\xA8\xE2\x80\xA9", true, "line separators of Unicode"},
    {"\xF0\x90\x80\x80", true, "U+10000"},
    {"\xF4\x8F\xBF\xBF", true, "U+10FFFF"},
    {"\\", false, "the quote is escaped: no end"},
    {"\\u", false, "no digits"},
    {"\\u1", false, "one digit of four"},
    {"\\u123", false, "three digits of four"},
    {"\\u123g", false, "no digit"},
    {"\\u 123", false, "a blank for a digit"},
    {"\\u+123", false, "a sign for a digit"},
    {"\\U0041", false, "a large U"},
    {"\\uD834", false, "half of a pair, at the end"},
    {"\\uD834x", false, "half of a pair, then a letter"},
    {"\\uD834\\n", false, "half of a pair, then another escape"},
    {"\\uD834\\u0041", false, "half of a pair, then no half"},
    {"\\uD834\\uD834", false, "the first half twice"},
    {"\\uDD1E", false, "the second half alone"},
    {"\\uDD1E\\uD834", false, "the halves the other way round"},
    {"\\uD834\\uDD1", false, "a second half of three digits"},
    {"\x80", false, "a continuation byte alone"},
    {"\xBF", false, "a continuation byte alone"},
    {"a\xC3", false, "a sequence cut off"},
    {"\xC3(", false, "a sequence cut off by a letter"},
    {"\xE2\x82", false, "a sequence of three cut off"},
    {"\xE2(\xAC", false, "a letter in a sequence"},
    {"\xF0\x9F\x98", false, "a sequence of four cut off"},
    {"\xC0\xAF", false, "a slash in two bytes"},
    {"\xC1\xBF", false, "the longest overlong of two bytes"},
    {"\xE0\x80\xAF", false, "a slash in three bytes"},
    {"\xE0\x9F\xBF", false, "the longest overlong of three bytes"},
    {"\xF0\x80\x80\xAF", false, "a slash in four bytes"},
    {"\xF0\x8F\xBF\xBF", false, "the longest overlong of four bytes"},
    {"\xC0\x80", false, "NUL in two bytes"},
    {"\xED\xA0\x80", false, "the first surrogate as UTF-8"},
    {"\xED\xBF\xBF", false, "the last surrogate as UTF-8"},
    {"\xED\xA0\xB4\xED\xB4\x9E", false, "a pair of surrogates as UTF-8"},
    {"\xF4\x90\x80\x80", false, "beyond U+10FFFF"},
    {"\xF5\x80\x80\x80", false, "far beyond"},
    {"\xF8\x88\x80\x80\x80", false, "five bytes"},
    {"\xFC\x84\x80\x80\x80\x80", false, "six bytes"},
    {"\xFE", false, "no byte of UTF-8"},
    {"\xFF", false, "no byte of UTF-8"},
    {"caf\xE9", false, "Latin 1"},
};

static const char *const string_places[][2] = {
    {"{\"k\":\"", "\"}"},
    {"{\"", "\":1}"},
    {"{\"a\":[1],\"k\":\"", "\",\"b\":[2]}"},
};

/* Sections 2 to 5, 8 and 9: whole texts. */
static const struct token texts[] = {
    {"[]", true, "an empty array"},
    {"{}", true, "an empty object"},
    {"[ ]", true, "with a blank inside"},
    {"\t[\n1\r,\n 2 ]\r\n", true, "all kinds of white space, everywhere"},
    {" { \"a\" : [ 1 ] , \"b\" : [ 2 ] } ", true, "in objects too"},
    {"[[1,2],[3,4]]", true, "arrays in arrays"},
    {"{\"a\":1,\"A\":2,\"aa\":3,\"\":4}", true, "names that are not the same"},
    {"", false, "nothing"},
    {" \n", false, "nothing but white space"},
    {"[", false, "an array cut off"},
    {"]", false, "an end without a beginning"},
    {"{", false, "an object cut off"},
    {"}", false, "an end without a beginning"},
    {"[1", false, "an array cut off"},
    {"[1,", false, "an array cut off"},
    {"[1}", false, "an array that ends as an object"},
    {"{\"a\":1]", false, "an object that ends as an array"},
    {"[[1]", false, "an inner end is missing"},
    {"[1]]", false, "an end too many"},
    {"{}}", false, "an end too many"},
    {"[1][2]", false, "two values"},
    {"[1] [2]", false, "two values"},
    {"[1],[2]", false, "two values"},
    {"[1]x", false, "something behind the value"},
    {"[1];", false, "a semicolon behind the value"},
    {"[1]\xC2\xA0", false, "a no-break space behind the value"},
    {"[1,]", false, "a comma at the end"},
    {"[,1]", false, "a comma at the beginning"},
    {"[1,,2]", false, "two commas"},
    {"[,]", false, "a comma alone"},
    {"[1 2]", false, "no comma"},
    {"[1;2]", false, "a semicolon for a comma"},
    {"[1:2]", false, "a colon for a comma"},
    {"[\"a\":1]", false, "a member in an array"},
    {"{\"a\":1,}", false, "a comma at the end"},
    {"{,\"a\":1}", false, "a comma at the beginning"},
    {"{\"a\":1,,\"b\":2}", false, "two commas"},
    {"{\"a\" 1}", false, "no colon"},
    {"{\"a\",1}", false, "a comma for the colon"},
    {"{\"a\"=1}", false, "an equals sign for the colon"},
    {"{\"a\"::1}", false, "two colons"},
    {"{\"a\":}", false, "no value"},
    {"{\"a\"}", false, "a name alone"},
    {"{:1}", false, "no name"},
    {"{a:1}", false, "a name without quotes"},
    {"{'a':1}", false, "a name in apostrophes"},
    {"{1:1}", false, "a number for a name"},
    {"{null:1}", false, "null for a name"},
    {"{\"a\":1 \"b\":2}", false, "no comma"},
    {"{\"a\":1,\"a\":2}", false, "a name twice"},
    {"{\"a\":1,\"\\u0061\":2}", false, "a name twice, once escaped"},
    {"{\"k\":tru}", false, "half of a word"},
    {"{\"k\":truee}", false, "more than a word"},
    {"{\"k\":True}", false, "a word in another case"},
    {"{\"k\":TRUE}", false, "a word in another case"},
    {"{\"k\":nul}", false, "half of a word"},
    {"{\"k\":undefined}", false, "a word of JavaScript"},
    {"[1,2]//x", false, "a comment"},
    {"[1,/*x*/2]", false, "a comment"},
    {"#x\n[1]", false, "a comment"},
    {"[1\v]", false, "a vertical tab"},
    {"[1\f]", false, "a form feed"},
    {"[\xC2\xA0"
     "1]",
     false, "a no-break space"},
    {"[\xE2\x80\xA8"
     "1]",
     false, "a line separator of Unicode"},
    {"[\xE3\x80\x80"
     "1]",
     false, "an ideographic space"},
    {"\xEF\xBB\xBF[1]", false, "a byte order mark (section 8.1)"},
    {"[1\xEF\xBB\xBF]", false, "a byte order mark in the middle"},
    {"\xFF\xFE[", false, "UTF-16"},
    {"[\"x]", false, "a string cut off"},
    {"{\"k\":\"a\nb\"}", false, "a line end inside a string"},
    {"{\"k\":'x'}", false, "a string in apostrophes"},
    {"{\"k\":\"x\"\"y\"}", false, "two strings"},
};

static void test_tables(void)
{
    for (size_t i = 0; i < COUNT(numbers); i++)
        expect_token(&numbers[i], strlen(numbers[i].text), number_places, COUNT(number_places));
    for (size_t i = 0; i < COUNT(strings); i++)
        expect_token(&strings[i], strlen(strings[i].text), string_places, COUNT(string_places));
    for (size_t i = 0; i < COUNT(texts); i++)
        expect(texts[i].text, strlen(texts[i].text), texts[i].valid ? GM_OK : GM_BAD_JSON,
               texts[i].why);
}

/* Each byte, bare and behind a backslash, in a string; and between tokens. */
static void test_bytes(void)
{
    for (int byte = 0; byte < 256; byte++) {
        char bare[2] = {(char)byte}, escaped[3] = {'\\', (char)byte};
        bool plain = byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
        bool escape = byte && strchr("\"\\/bfnrt", byte);
        bool space = byte && strchr(" \t\n\r", byte);
        struct token token = {bare, plain, "a byte in a string"};
        if (byte != '"' && byte != '\\')
            expect_token(&token, 1, string_places, COUNT(string_places));
        token = (struct token){escaped, escape, "a byte behind a backslash"};
        expect_token(&token, 2, string_places, COUNT(string_places));

        char text[] = "[1?,2]";
        text[2] = (char)byte;
        bool digit = byte >= '0' && byte <= '9';
        expect(text, 6, space || digit ? GM_OK : GM_BAD_JSON, "a byte before a comma");
    }
}

/* Every NUL is refused, wherever it stands. */
static void test_nul(void)
{
    static const char text[] = "{\"a\":[[1,-2.5e3]],\"kernel\":\"x\"}";
    for (size_t at = 0; at <= sizeof(text) - 1; at++) {
        char with[sizeof(text)];
        memcpy(with, text, at);
        with[at] = '\0';
        memcpy(with + at + 1, text + at, sizeof(text) - 1 - at);
        CHECK_EQ(decode(with, sizeof(with), GM_F64), GM_BAD_JSON);
    }
}

/* Whether all that jansson finds in the array are numbers. */
static bool is_row(const char *text, size_t len)
{
    json_t *root = json_loadb(text, len, JSON_DECODE_INT_AS_REAL, NULL), *value;
    bool row = root && json_is_array(root);
    size_t index;
    if (row)
        json_array_foreach (root, index, value)
            row = row && json_is_number(value);
    json_decref(root);
    return row;
}

/* All arrays of up to five characters of those that matter to numbers and to nesting. */
static void test_every_short_text(void)
{
    static const char characters[] = "01-+.e, []\"t";
    const unsigned base = sizeof(characters) - 1;
    unsigned long different = 0;
    for (unsigned len = 0, count = 1; len <= 5; len++, count *= base)
        for (unsigned n = 0; n < count; n++) {
            char text[8] = "[";
            for (unsigned i = 0, rest = n; i < len; i++, rest /= base)
                text[1 + i] = characters[rest % base];
            text[1 + len] = ']';
            bool ours = decode(text, len + 2, GM_F64) == GM_OK;
            bool wrong = ours ? !is_json(text, len + 2) : is_row(text, len + 2);
            if (wrong && different++ < 20)
                fprintf(stderr, "  %s %s\n", ours ? "accepted" : "refused", text);
        }
    CHECK_EQ(different, 0);
}

int main(void)
{
    test_tables();
    test_bytes();
    test_nul();
    test_every_short_text();
    return check_report();
}
