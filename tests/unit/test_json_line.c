/* One line of JSON in place: commas, nesting, escapes, numbers, and what does not fit. */
#include "proto/json/json.h"
#include "tests/unit/check.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_all(struct gm_json_line *line)
{
    gm_json_line_open(line, NULL, '{');
    gm_json_line_open(line, "none", '{');
    gm_json_line_close(line, '{');
    gm_json_line_open(line, "shape", '[');
    gm_json_line_integer(line, NULL, 2);
    gm_json_line_integer(line, NULL, INT64_MIN);
    gm_json_line_close(line, '[');
    gm_json_line_string(line, "text", "a\"b\\c\n{");
    gm_json_line_real(line, "tenth", 0.1);
    gm_json_line_real(line, "nan", NAN);
    gm_json_line_true(line, "yes");
    gm_json_line_close(line, '{');
}

static const char whole[] = "{\"none\":{},\"shape\":[2,-9223372036854775808],"
                            "\"text\":\"a\\u0022b\\u005cc\\u000a{\",\"tenth\":0.1,\"nan\":null,"
                            "\"yes\":true}";

static void test_whole(void)
{
    char text[256];
    json_error_t fault;
    struct gm_json_line line = gm_json_line_begin(text, sizeof text);

    write_all(&line);
    CHECK(gm_json_line_end(&line));
    CHECK_STR(text, whole);
    json_t *read = json_loads(text, 0, &fault);
    CHECK_STR(json_string_value(json_object_get(read, "text")), "a\"b\\c\n{");
    json_decref(read);
}

/* At every length: it fits or it says that it does not, and writes nowhere else. */
static void test_room(void)
{
    for (size_t size = 1; size <= sizeof whole + 1; size++) {
        char text[sizeof whole + 8];
        memset(text, '#', sizeof text);
        struct gm_json_line line = gm_json_line_begin(text, size);
        write_all(&line);
        CHECK_EQ(gm_json_line_end(&line), size >= sizeof whole);
        CHECK(strlen(text) < size && memcmp(text, whole, strlen(text)) == 0);
        for (size_t i = size; i < sizeof text; i++)
            CHECK_EQ(text[i], '#');
    }
}

static const char *decimal(int64_t value, unsigned places)
{
    static char text[64];
    struct gm_json_line line = gm_json_line_begin(text, sizeof text);

    gm_json_line_decimal(&line, NULL, value, places);
    CHECK(gm_json_line_end(&line));
    return text;
}

static void test_decimal(void)
{
    CHECK_STR(decimal(0, 0), "0.0");
    CHECK_STR(decimal(0, 3), "0.0");
    CHECK_STR(decimal(12000, 3), "12.0");
    CHECK_STR(decimal(66391, 3), "66.391");
    CHECK_STR(decimal(66390, 3), "66.39");
    CHECK_STR(decimal(7, 3), "0.007");
    CHECK_STR(decimal(-7, 3), "-0.007");
    CHECK_STR(decimal(INT64_MAX, 0), "9223372036854775807.0");
    CHECK_STR(decimal(INT64_MIN, 18), "-9.223372036854775808");
    CHECK_STR(decimal(1, GM_DECIMAL_PLACES_MAX), "0.000000000000000001");
}

static const char *rounded(double value, unsigned digits)
{
    static char text[64];
    struct gm_json_line line = gm_json_line_begin(text, sizeof text);

    gm_json_line_rounded(&line, NULL, value, digits);
    CHECK(gm_json_line_end(&line));
    return text;
}

static void test_rounded(void)
{
    CHECK_STR(rounded(0, 5), "0.0");
    CHECK_STR(rounded(31.567891, 5), "31.568");
    CHECK_STR(rounded(-31.567891, 5), "-31.568");
    CHECK_STR(rounded(9.99996, 5), "10.0");
    CHECK_STR(rounded(99999.6, 5), "100000.0");
    CHECK_STR(rounded(123456789, 5), "123460000.0");
    CHECK_STR(rounded(0.000123456789, 5), "0.00012346");
    CHECK_STR(rounded(1e-18, 5), "0.000000000000000001");
    CHECK_STR(rounded(1e-30, 5), "0.0");
    CHECK_STR(rounded(NAN, 5), "null");
    /* As C's own %g rounds, over all sizes; ties aside, of which there is none here. */
    for (double value = 1.0437e-12; value < 1e18; value *= 1.0773) {
        char want[64];
        snprintf(want, sizeof want, "%.5g", value);
        CHECK_EQ(strtod(rounded(value, 5), NULL) == strtod(want, NULL), true);
    }
    CHECK_EQ(strtod(rounded(3.5e300, 5), NULL) == 3.5e300, true);
}

int main(void)
{
    test_decimal();
    test_rounded();
    test_whole();
    test_room();
    return check_report();
}
