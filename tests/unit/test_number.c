/*
 * Decimal text to elements and back. The oracle is the C library: strtof and strtod round
 * correctly, printf writes a double exactly.
 */
#include "proto/number/half.h"
#include "proto/number/number.h"
#include "tests/unit/check.h"

#include <math.h>

#define TEXT_MAX (GM_NUMBER_TEXT_MAX + 100)

/* Reads text as dtype; true if it was read to its end. The text is followed by `after`. */
static bool read_as(enum gm_dtype dtype, const char *text, char after, void *element)
{
    static char buf[TEXT_MAX + 16];
    size_t len = strlen(text);
    memcpy(buf, text, len);
    buf[len] = after;
    memset(buf + len + 1, '7', 8);
    return gm_number_reader_of(dtype)(buf, element) == buf + len;
}

static bool check_f32(const char *text)
{
    float value = -1, want = strtof(text, NULL);
    bool good = read_as(GM_F32, text, ',', &value);
    if (isinf(want))
        return CHECK(!good);
    return CHECK(good && gm_f32_bits(value) == gm_f32_bits(want));
}

static bool check_f64(const char *text)
{
    double value = -1, want = strtod(text, NULL);
    bool good = read_as(GM_F64, text, ']', &value);
    if (isinf(want))
        return CHECK(!good);
    return CHECK(good && gm_f64_bits(value) == gm_f64_bits(want));
}

static void check_floats(const char *text)
{
    if (!check_f32(text) || !check_f64(text))
        fprintf(stderr, "  the number is %s\n", text);
}

static void test_grammar(void)
{
    static const char *const good[] = {
        "0",    "-0",    "1",      "10",        "0.0",
        "-0.5", "1e5",   "1E5",    "1e+5",      "1e-5",
        "0e0",  "0.1e1", "1.0E-0", "123456789", "0e99999999999999999999"};
    static const char *const bad[] = {"",     "-",   "+1",  ".5",   "1.",   "-.5",      "1.e5",
                                      "1e",   "1e+", "e5",  "01",   "-01",  "00",       "0x10",
                                      "1.5.", "NaN", "nan", "inf",  "-inf", "Infinity", "true",
                                      "null", " 1",  "--1", "1.-5", "1e1.", "\xC2\xB2", "1,"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        double value;
        CHECK(read_as(GM_F64, good[i], ' ', &value));
        char padded[64] = "";
        strcpy(padded, good[i]);
        CHECK(gm_number_end(padded) == padded + strlen(padded));
        check_floats(good[i]);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        for (int dtype = GM_F16; dtype <= GM_U64; dtype++) {
            uint64_t value;
            if (dtype == GM_BOOL && strcmp(bad[i], "true") == 0)
                continue;
            if (!CHECK(!read_as((enum gm_dtype)dtype, bad[i], ',', &value)))
                fprintf(stderr, "  \"%s\" as %s\n", bad[i], gm_dtype_name((enum gm_dtype)dtype));
        }
    CHECK_EQ(gm_number_fault("01,          ", GM_F32), GM_NUMBER_SYNTAX);
    CHECK_EQ(gm_number_fault("1e99,          ", GM_F32), GM_NUMBER_RANGE);
    CHECK_EQ(gm_number_fault("1.5,          ", GM_I32), GM_NUMBER_FRACTION);
    CHECK_EQ(gm_number_fault("1e99,          ", GM_I32), GM_NUMBER_RANGE);

    for (int dtype = GM_DTYPE_NONE; dtype < GM_DTYPE_COUNT; dtype++) {
        bool text = dtype >= GM_F16 && dtype <= GM_U64;
        CHECK_EQ(gm_number_reader_of((enum gm_dtype)dtype) != NULL, text);
        CHECK_EQ(gm_number_writer_of((enum gm_dtype)dtype) != NULL, text);
    }
}

static const char *const edges[] = {
    "1.7976931348623157e308",
    "1.7976931348623158e308",
    "1.7976931348623159e308",
    "1e309",
    "-1e400",
    "1e-400",
    "4.9406564584124654e-324",
    "2.4703282292062327e-324",
    "2.4703282292062328e-324",
    "2.2250738585072011e-308",
    "2.2250738585072014e-308",
    "3.4028234663852886e38",
    "3.4028235677973366e38",
    "3.4028235677973365e38",
    "1e-45",
    "1e-46",
    "7.0064923216240853e-46",
    "7.0064923216240854e-46",
    "1.17549435e-38",
    "1.1754943508e-38",
    "9007199254740993",
    "9007199254740992.5",
    "9007199254740993.00000000000000000000001",
    "16777217",
    "16777217.0000000001",
    "16777216.99999999999999999",
    "0.1",
    "1e23",
    "8.5e22",
    "1e22",
    "1e-22",
    "123456789012345678901234567890",
    "0.000000000000000000000000000000001",
    "145664e9223372036854775807",
    "0.00012e-9223372036854775808",
    "12345e2147483647",
    "0.0001e-2147483648",
    "12345e-2147483648",
    "1e99999999999999999999",
    "1e-99999999999999999999",
    "0e99999999999999999999",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999",
    "9999999999999999999e27",
    "9999999999999999999e-27",
    "1e27",
    "1e28",
    "1e-27",
    "1e-28",
    "6.25e-2",
    "0.00012345678901234567890",
    "100000000000000000000000000e-26",
};

static void test_edges(void)
{
    for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++)
        check_floats(edges[i]);

    /* Zeros without end on either side of the point, and an exponent that undoes them. */
    char text[TEXT_MAX];
    for (int zeros = 0; zeros < 600; zeros += 7) {
        snprintf(text, sizeof(text), "0.%0*de%d", zeros + 1, 3, zeros);
        check_floats(text);
        snprintf(text, sizeof(text), "3%0*de-%d", zeros + 1, 0, zeros);
        check_floats(text);
    }

    /* The longest text that is read, and one more. */
    memset(text, '0', sizeof(text));
    memcpy(text, "0.", 2);
    text[GM_NUMBER_TEXT_MAX] = '\0';
    text[GM_NUMBER_TEXT_MAX - 1] = '1';
    check_floats(text);
    memcpy(text + GM_NUMBER_TEXT_MAX - 1, "01", 3);
    uint64_t value;
    for (int last = '0'; last <= '1'; last++) {
        text[GM_NUMBER_TEXT_MAX] = (char)last;
        for (int dtype = GM_F16; dtype <= GM_U64; dtype++)
            CHECK(!read_as((enum gm_dtype)dtype, text, ',', &value));
    }
    text[GM_NUMBER_TEXT_MAX + 1] = ',';
    CHECK_EQ(gm_number_fault(text, GM_F64), GM_NUMBER_LENGTH);
    CHECK_EQ(gm_number_fault(text, GM_I8), GM_NUMBER_LENGTH);

    /* The smallest f64 and f32 written out in full, and half of them, which goes to even, 0. */
    snprintf(text, sizeof(text), "%.1074f", 5e-324);
    check_floats(text);
    snprintf(text, sizeof(text), "%.149f", 0x1p-149);
    check_floats(text);
    snprintf(text, sizeof(text), "%.150f", 0x1p-150);
    check_floats(text);
}

/* Random digits, points and exponents. */
static void test_random_text(void)
{
    uint64_t random = check_seed();
    char text[200];
    for (int i = 0; i < 300000; i++) {
        char *p = text;
        uint64_t r = check_random(&random);
        if (r & 1)
            *p++ = '-';
        unsigned whole = (r >> 1) % 22, fraction = (r >> 8) % 24;
        for (unsigned d = 0; d < whole; d++)
            *p++ = (char)('0' + check_random(&random) % 10);
        if (whole == 0)
            *p++ = '0';
        char *first = *text == '-' ? text + 1 : text;
        if (whole > 1 && *first == '0')
            *first = '1';
        if (fraction) {
            *p++ = '.';
            bool small = r >> 16 & 1;
            for (unsigned d = 0; d < fraction; d++)
                *p++ = (char)('0' + (small && d < fraction / 2 ? 0 : check_random(&random) % 10));
        }
        int range = (r >> 20 & 3) == 0 ? 360 : (r >> 20 & 3) == 1 ? 50 : 0;
        if (range)
            p += sprintf(p, "e%d", (int)(check_random(&random) % (unsigned)(2 * range)) - range);
        *p = '\0';
        check_floats(text);
    }
}

/* Random values: exactly halfway between f32 neighbours, and a digit to either side of it. */
static void test_f32_ties(void)
{
    uint64_t random = check_seed() + 1;
    char text[400];
    for (int i = 0; i < 20000; i++) {
        uint32_t bits = (uint32_t)check_random(&random) & 0x7FFFFFFF;
        if (bits >= 0x7F7FFFFF)
            continue;
        if (i % 4 == 0) /* magnitudes whose ties have few digits: the fast ways see them */
            bits = (bits & 0x03FFFFFF) + 0x48000000;
        double middle = ((double)gm_f32_of_bits(bits) + (double)gm_f32_of_bits(bits + 1)) / 2;
        snprintf(text, sizeof(text), "%.170g", middle);
        check_floats(text);
        if (!strchr(text, 'e') && strchr(text, '.')) {
            strcat(text, "0000000000000000000001");
            check_floats(text);
        }
        snprintf(text, sizeof(text), "%.30g", nextafter(middle, 0));
        check_floats(text);
        snprintf(text, sizeof(text), "%.17g", middle);
        check_floats(text);
    }
}

static void check_writing(enum gm_dtype dtype, const void *element, const char *want)
{
    char text[GM_NUMBER_WIDTH_MAX + 1];
    char *end = gm_number_writer_of(dtype)(text, element);
    if (!CHECK(end != NULL))
        return;
    *end = '\0';
    CHECK_STR(text, want);
}

static void test_writing(void)
{
    static const struct {
        double value;
        const char *text;
    } doubles[] = {{0, "0"},
                   {-0.0, "-0.0"},
                   {1, "1"},
                   {-1.5, "-1.5"},
                   {0.1, "0.1"},
                   {1e21, "1e+21"},
                   {5e-324, "5e-324"},
                   {1.7976931348623157e308, "1.7976931348623157e+308"},
                   {-2.2250738585072014e-308, "-2.2250738585072014e-308"},
                   {123456, "123456"}};
    for (size_t i = 0; i < sizeof(doubles) / sizeof(doubles[0]); i++)
        check_writing(GM_F64, &doubles[i].value, doubles[i].text);
    check_writing(GM_F32, &(float){0.1f}, "0.1");
    check_writing(GM_F32, &(float){-0.0f}, "-0.0");
    check_writing(GM_F32, &(float){16777216}, "16777216");
    check_writing(GM_F16, &(uint16_t){0x2E66}, "0.1");
    check_writing(GM_F16, &(uint16_t){0x8000}, "-0.0");
    check_writing(GM_F16, &(uint16_t){0x0001}, "6e-08");
    check_writing(GM_BF16, &(uint16_t){0x3DCD}, "0.1");
    check_writing(GM_BF16, &(uint16_t){0xBF80}, "-1");
    check_writing(GM_I64, &(int64_t){INT64_MIN}, "-9223372036854775808");
    check_writing(GM_U64, &(uint64_t){UINT64_MAX}, "18446744073709551615");
    check_writing(GM_I8, &(int8_t){-128}, "-128");
    check_writing(GM_U8, &(uint8_t){255}, "255");
    check_writing(GM_BOOL, &(uint8_t){1}, "true");
    check_writing(GM_BOOL, &(uint8_t){0}, "false");
    check_writing(GM_BOOL, &(uint8_t){2}, "true");
    char text[GM_NUMBER_WIDTH_MAX];
    CHECK(gm_number_writer_of(GM_F32)(text, &(float){NAN}) == NULL);
    CHECK(gm_number_writer_of(GM_F64)(text, &(double){-INFINITY}) == NULL);

    uint64_t random = check_seed() + 2;
    for (int i = 0; i < 300000; i++) {
        uint64_t bits = check_random(&random), back64 = 0;
        uint32_t low = (uint32_t)bits, back32 = 0;
        char buf[GM_NUMBER_WIDTH_MAX + 1];
        char *end = gm_number_writer_of(GM_F64)(buf, &bits);
        if (CHECK_EQ(end != NULL, isfinite(gm_f64_of_bits(bits))) && end) {
            *end = '\0';
            CHECK(read_as(GM_F64, buf, ',', &back64) && back64 == bits);
        }
        end = gm_number_writer_of(GM_F32)(buf, &low);
        if (CHECK_EQ(end != NULL, isfinite(gm_f32_of_bits(low))) && end) {
            *end = '\0';
            CHECK(read_as(GM_F32, buf, ',', &back32) && back32 == low);
        }
    }
}

static void test_integers(void)
{
    static const struct {
        enum gm_dtype dtype;
        const char *lowest, *below, *highest, *above;
    } types[] = {
        {GM_I8, "-128", "-129", "127", "128"},
        {GM_U8, "-0", "-1", "255", "256"},
        {GM_I16, "-32768", "-32769", "32767", "32768"},
        {GM_U16, "0", "-1", "65535", "65536"},
        {GM_I32, "-2147483648", "-2147483649", "2147483647", "2147483648"},
        {GM_U32, "0", "-1", "4294967295", "4294967296"},
        {GM_I64, "-9223372036854775808", "-9223372036854775809", "9223372036854775807",
         "9223372036854775808"},
        {GM_U64, "0", "-1", "18446744073709551615", "18446744073709551616"},
        {GM_BOOL, "0", "-1", "1", "2"},
    };
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        enum gm_dtype dtype = types[i].dtype;
        const char *ends[] = {types[i].lowest, types[i].highest};
        uint64_t value;
        for (int e = 0; e < 2; e++) {
            value = 0x5555555555555555;
            CHECK(read_as(dtype, ends[e], ',', &value));
            char text[GM_NUMBER_WIDTH_MAX + 1], longer[64];
            if (dtype != GM_BOOL) {
                *gm_number_writer_of(dtype)(text, &value) = '\0';
                CHECK_STR(text, strcmp(ends[e], "-0") ? ends[e] : "0");
            }
            snprintf(longer, sizeof(longer), "%s.000000000000000000000000", ends[e]);
            uint64_t same = 0x5555555555555555;
            CHECK(read_as(dtype, longer, ',', &same) && same == value);
            snprintf(longer, sizeof(longer), "%s.0000000000000000000001", ends[e]);
            CHECK(!read_as(dtype, longer, ',', &same));
            snprintf(longer, sizeof(longer), "%s0000000000e-10", ends[e]);
            bool zero = strtol(ends[e], NULL, 10) == 0; /* leading zeros are no JSON */
            CHECK(zero != (read_as(dtype, longer, ',', &same) && same == value));
        }
        value = 42;
        CHECK(!read_as(dtype, types[i].below, ',', &value));
        CHECK(!read_as(dtype, types[i].above, ',', &value));
        CHECK(value == 42); /* untouched */
    }
}

/* Numbers that are whole without looking so, and the other way round. */
static void test_whole(void)
{
    static const struct {
        const char *text;
        bool whole;
        int64_t value;
    } texts[] = {
        {"1.0", true, 1},
        {"1e3", true, 1000},
        {"1.5e1", true, 15},
        {"-2.50e+2", true, -250},
        {"1200e-2", true, 12},
        {"0.0", true, 0},
        {"0e50", true, 0},
        {"0.000e-50", true, 0},
        {"1.5", false, 0},
        {"1e-1", false, 0},
        {"0.1", false, 0},
        {"12e-2", false, 0},
        {"1e19", false, 0},
        {"1e99999999999999999", false, 0},
        {"1e-99999999999999999", false, 0},
        {"922337203685477580.7e1", true, INT64_MAX},
        {"922337203685477580.8e1", false, 0},
        {"9007199254740993", true, 9007199254740993},
        {"0.000000000000000000000001e24", true, 1},
        {"00", false, 0},
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        int64_t value = -77;
        bool good = read_as(GM_I64, texts[i].text, ',', &value);
        if (!CHECK_EQ(good, texts[i].whole) || (good && !CHECK_EQ(value, texts[i].value)))
            fprintf(stderr, "  the number is %s\n", texts[i].text);
    }

    uint8_t yes = 7;
    CHECK(read_as(GM_BOOL, "true", ',', &yes) && yes == 1);
    CHECK(read_as(GM_BOOL, "false", ']', &yes) && yes == 0);
    CHECK(!read_as(GM_BOOL, "tru", ',', &yes));
    CHECK(!read_as(GM_BOOL, "True", ',', &yes));
    CHECK(!read_as(GM_BOOL, "0.5", ',', &yes));

    uint64_t random = check_seed() + 3;
    for (int i = 0; i < 100000; i++) {
        int64_t value = (int64_t)(check_random(&random) >> check_random(&random) % 64), back = 0;
        value = i & 1 ? value : -value;
        char text[32];
        snprintf(text, sizeof(text), "%" PRId64, value);
        CHECK(read_as(GM_I64, text, ' ', &back) && back == value);
    }
}

int main(void)
{
    test_grammar();
    test_edges();
    test_random_text();
    test_f32_ties();
    test_writing();
    test_integers();
    test_whole();
    return check_report();
}
