/* One line of JSON in place: commas, nesting, escapes, numbers, and what does not fit. */
#include "server/request/text.h"
#include "tests/unit/check.h"

#include <jansson.h>
#include <math.h>
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

int main(void)
{
    test_whole();
    test_room();
    return check_report();
}
