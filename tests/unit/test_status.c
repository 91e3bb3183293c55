/* The status list, and that no error message can carry anything unprintable. */
#include "proto/status.h"
#include "tests/unit/check.h"

#include <ctype.h>

static void test_list(void)
{
    for (int i = 0; i < GM_STATUS_COUNT; i++) {
        enum gm_status status = (enum gm_status)i;
        const char *code = gm_status_code(status);
        int http = gm_status_http(status);
        CHECK(i == GM_OK ? http == 200 : http >= 400 && http <= 599);
        CHECK(strlen(gm_status_title(status)) > 0);
        CHECK(strlen(code) > 0);
        for (const char *p = code; *p; p++)
            CHECK(islower((unsigned char)*p) || *p == '_');
        for (int j = 0; j < i; j++)
            CHECK(strcmp(code, gm_status_code((enum gm_status)j)) != 0);
    }
    CHECK_EQ(gm_status_http(GM_QUEUE_FULL), 503);
    CHECK_STR(gm_status_code(GM_DEADLINE), "deadline_passed");
    CHECK_STR(gm_status_title(GM_NOT_FOUND), "There is nothing at this path");

    /* A number that is no status must not be read beyond the table. */
    CHECK_EQ(gm_status_http((enum gm_status)GM_STATUS_COUNT), 500);
    CHECK_STR(gm_status_code((enum gm_status)1000), "internal");
    CHECK_STR(gm_status_title((enum gm_status) - 1), gm_status_title(GM_INTERNAL));
}

/* Strict UTF-8 without control characters, by another method than the library's. */
static bool is_printable(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    while (*s) {
        uint32_t code;
        int more;
        if (*s < 0x80) {
            code = *s;
            more = 0;
        } else if ((*s & 0xE0) == 0xC0) {
            code = *s & 0x1F;
            more = 1;
        } else if ((*s & 0xF0) == 0xE0) {
            code = *s & 0x0F;
            more = 2;
        } else if ((*s & 0xF8) == 0xF0) {
            code = *s & 0x07;
            more = 3;
        } else {
            return false;
        }
        s++;
        for (int i = 0; i < more; i++, s++) {
            if ((*s & 0xC0) != 0x80)
                return false;
            code = code << 6 | (*s & 0x3F);
        }
        static const uint32_t lowest[] = {0, 0x80, 0x800, 0x10000};
        if (code < lowest[more] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000) ||
            code < 0x20 || (code >= 0x7F && code < 0xA0))
            return false;
    }
    return true;
}

static void test_texts(void)
{
    static const struct {
        const char *sent, *shown;
    } cases[] = {
        {"", ""},
        {"plain", "plain"},
        {"a\nb\rc\td\x7F", "a?b?c?d?"},
        {"\x1B[31mred", "?[31mred"},
        {"na\xC3\xAFve \xE2\x82\xAC \xF0\x9F\x98\x80",
         "na\xC3\xAFve \xE2\x82\xAC \xF0\x9F\x98\x80"},
        {"\x80", "?"},
        {"\xFF\xFE", "??"},
        {"\xC3", "?"}, /* ends in the middle */
        {"\xE2\x82", "??"},
        {"\xC3(", "?("},
        {"\xC0\xAF", "??"}, /* overlong */
        {"\xE0\x80\xAF", "???"},
        {"\xF0\x80\x80\xAF", "????"},
        {"\xED\xA0\x80", "???"},      /* a surrogate */
        {"\xF4\x90\x80\x80", "????"}, /* beyond Unicode */
        {"\xF5\x80\x80\x80", "????"},
        {"\xC2\x85", "??"}, /* C1 control */
        {"\xC2\xA0", "\xC2\xA0"},
        {"\xEF\xBF\xBF", "\xEF\xBF\xBF"},
        {"\xF4\x8F\xBF\xBF", "\xF4\x8F\xBF\xBF"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gm_error err = {0};
        CHECK(gm_fail(&err, GM_BAD_JSON, "%s", cases[i].sent) == GM_BAD_JSON);
        CHECK_EQ(err.status, GM_BAD_JSON);
        CHECK_STR(err.detail, cases[i].shown);
    }
    CHECK(gm_fail(NULL, GM_BAD_SHAPE, "%d", 1) == GM_BAD_SHAPE);

    struct gm_error err = {.detail = "before"};
    gm_fail(&err, GM_BAD_SHAPE, "%s, and more", err.detail);
    CHECK_STR(err.detail, "before, and more");
}

/* Texts of every length around the limit, ending in characters of 1 to 4 bytes, are cut whole. */
static void test_cut(void)
{
    static const char *const tails[] = {"x",    "\xC3\xAF", "\xE2\x82\xAC", "\xF0\x9F\x98\x80",
                                        "\x80", "\n"};
    char text[3 * GM_ERROR_DETAIL_MAX];
    for (size_t len = GM_ERROR_DETAIL_MAX - 12; len < GM_ERROR_DETAIL_MAX + 12; len++)
        for (size_t t = 0; t < sizeof(tails) / sizeof(tails[0]); t++) {
            memset(text, 'a', len);
            text[len] = '\0';
            for (int i = 0; i < 12; i++)
                strcat(text, tails[t]);
            struct gm_error err = {0};
            gm_fail(&err, GM_BAD_JSON, "%s", text);
            size_t shown = strlen(err.detail);
            CHECK(shown < GM_ERROR_DETAIL_MAX);
            CHECK(is_printable(err.detail));
            bool whole = len + 12 * strlen(tails[t]) < GM_ERROR_DETAIL_MAX - 3;
            CHECK(whole == (strcmp(err.detail + shown - 3, "...") != 0));
        }
}

static void test_random_bytes(void)
{
    uint64_t random = check_seed();
    for (int i = 0; i < 20000; i++) {
        char text[GM_ERROR_DETAIL_MAX * 2];
        size_t len = check_random(&random) % (sizeof(text) - 1);
        for (size_t j = 0; j < len; j++) {
            uint64_t r = check_random(&random);
            text[j] = (char)(r % 3 ? 0x80 | r >> 8 : r >> 8);
            text[j] = text[j] ? text[j] : 'x';
        }
        text[len] = '\0';
        struct gm_error err = {0};
        gm_fail(&err, GM_BAD_JSON, "%s", text);
        CHECK(strlen(err.detail) < GM_ERROR_DETAIL_MAX && is_printable(err.detail));
    }
}

int main(void)
{
    test_list();
    test_texts();
    test_cut();
    test_random_bytes();
    return check_report();
}
