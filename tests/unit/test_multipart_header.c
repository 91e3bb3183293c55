/* The lines of multipart/form-data: boundaries as clients state them, headers as they write them.
 */
#include "proto/multipart/multipart.h"
#include "tests/unit/codec_input.h"

#define DIGITS70 "1234567890123456789012345678901234567890123456789012345678901234567890"

static void test_type(void)
{
    CHECK(gm_multipart_is("multipart/form-data"));
    CHECK(gm_multipart_is("Multipart/Form-Data; boundary=x"));
    CHECK(gm_multipart_is("multipart/form-data ;boundary=x"));
    CHECK(!gm_multipart_is("multipart/form-dat"));
    CHECK(!gm_multipart_is("multipart/form-data2; boundary=x"));
    CHECK(!gm_multipart_is("multipart/mixed; boundary=x"));
    CHECK(!gm_multipart_is(""));
    CHECK(!gm_multipart_is(NULL));
}

static void test_boundary(void)
{
    static const struct {
        const char *type, *boundary, *detail;
    } cases[] = {
        {"multipart/form-data; boundary=------------------------e4cc548c31cf953e",
         "------------------------e4cc548c31cf953e", NULL},
        {"multipart/form-data;boundary=a", "a", NULL},
        {"multipart/form-data; BOUNDARY=\"a b:c\"", "a b:c", NULL},
        {"multipart/form-data; boundary=\"a\\b\"", "ab", NULL},
        {"multipart/form-data; charset=utf-8; boundary=a=/b?; x=y", "a=/b?", NULL},
        {"multipart/form-data; x=\"; boundary=b\"; boundary=a", "a", NULL},
        {"multipart/form-data ; boundary = a ", "a", NULL},
        {"multipart/form-data; boundary=a; boundary=b", "a", NULL},
        {"multipart/form-data; boundary=" DIGITS70, DIGITS70, NULL},
        {"multipart/form-data; boundary=\"\\1\\2" DIGITS70 "\"", NULL, "1 to 70"},
        {"multipart/form-data; boundary=" DIGITS70 "1", NULL, "1 to 70"},
        {"multipart/form-data; boundary=" DIGITS70 DIGITS70 DIGITS70, NULL, "1 to 70"},
        {"multipart/form-data", NULL, "leave that header to the client"},
        {"multipart/form-data;", NULL, "leave that header to the client"},
        {"multipart/form-data; bound=a", NULL, "leave that header to the client"},
        {"multipart/form-data; boundary", NULL, "leave that header to the client"},
        {"multipart/form-data; boundary=\"a", NULL, "leave that header to the client"},
        {"multipart/form-data; boundary=\"a\"b", NULL, "leave that header to the client"},
        {"multipart/form-data; boundary=", NULL, "is ''; it is 1 to 70"},
        {"multipart/form-data; boundary=\"\"", NULL, "is ''; it is 1 to 70"},
        {"multipart/form-data; boundary=\"a \"", NULL, "1 to 70"},
        {"multipart/form-data; boundary=a*b", NULL, "is 'a*b'; it is 1 to 70"},
        {"multipart/form-data; boundary=\"a\rb\"", NULL, "1 to 70"},
        {"multipart/form-data; boundary=\xC3\xA9", NULL, "1 to 70"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char boundary[GM_MULTIPART_BOUNDARY_MAX + 1] = "untouched";
        struct gm_error error = {0};
        enum gm_status expected = cases[i].boundary ? GM_OK : GM_BAD_MULTIPART;
        CHECK_STATUS(gm_multipart_boundary(cases[i].type, boundary, &error), expected, &error);
        CHECK_STR(boundary, cases[i].boundary ? cases[i].boundary : "untouched");
        CHECK(cases[i].boundary || strstr(error.detail, cases[i].detail));
    }
}

/* From storage of exactly the header's size. */
static enum gm_status read_part(const char *text, size_t len, char name[64], char type[64],
                                struct gm_error *err)
{
    struct gm_multipart_part part = {0};
    char *header = check_alloc(len);

    memcpy(header, text, len);
    enum gm_status status = gm_multipart_header_read(header, len, &part, err);
    CHECK((status == GM_OK) == (part.name != NULL));
    snprintf(name, 64, "%s", part.name ? part.name : "");
    snprintf(type, 64, "%s", part.type ? part.type : "");
    free(header);
    return status;
}

#define DISPOSITION "\r\nContent-Disposition: form-data; "

static void test_names(void)
{
    static const struct {
        const char *header, *name;
    } cases[] = {
        {"name=\"a\"", "a"},
        {"name=a", "a"},
        {"Name = \"a\" ; filename=\"x\"", "a"},
        {"filename=\"a; name=\\\"b\\\"\"; name=\"c\"", "c"},
        {"filename=\"; name=b\"; name=c", "c"},
        {"filename*=UTF-8''%22; name=c", "c"},
        {"name=\"\"", ""},
        {"name=\"two words\"", "two words"},
        {"name=\"a%22b\"", "a\"b"},
        {"name=\"a\\\"b\\\\\"", "a\"b\\"},
        {"name=\"%0D%0a%0A%22%2\"", "\r\n\n\"%2"},
        {"name=\"100%41%\"", "100%41%"},
        {"name=a%22;", "a\""},
        /* A backslash that is none of an escape, as curl writes it. */
        {"name=\"a\\\"; filename=\"b\"", "a\\"},
        {"name=\"a\"; filename=\"C:\\dir\\\"", "a"},
        {"name=\"a\\\"", "a\\"},
        {"name=\"\xC3\xA9\"", "\xC3\xA9"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[256], name[64], type[64];
        struct gm_error error = {0};
        int len = snprintf(text, sizeof(text), DISPOSITION "%s\r\n\r\n", cases[i].header);
        CHECK_STATUS(read_part(text, (size_t)len, name, type, &error), GM_OK, &error);
        CHECK_STR(name, cases[i].name);
        CHECK_STR(type, "");
    }
}

static void test_fields(void)
{
    static const struct {
        const char *header;
        enum gm_status status;
        const char *type_or_detail;
    } cases[] = {
#define NAMED DISPOSITION "name=a\r\n"
        {NAMED "Content-Type: text/csv\r\n", GM_OK, "text/csv"},
        {NAMED "content-type:text/csv; header=present  \r\n", GM_OK, "text/csv; header=present"},
        {NAMED "Content-Type:\r\n", GM_OK, ""},
        {NAMED "Content-Type: text/csv;\r\n\theader=absent\r\n", GM_OK,
         "text/csv;  \theader=absent"},
        {NAMED "Content-Transfer-Encoding: Binary\r\n", GM_OK, ""},
        {NAMED "Content-Transfer-Encoding: 8bit\r\nContent-Encoding: identity\r\n", GM_OK, ""},
        {" \t" NAMED, GM_OK, ""},
        {"x" NAMED, GM_BAD_MULTIPART, "goes on with 'x'"},
        {NAMED "Content-Transfer-Encoding: base64\r\n", GM_UNSUPPORTED_MEDIA_TYPE, "'base64'"},
        {NAMED "Content-Encoding: gzip\r\n", GM_UNSUPPORTED_MEDIA_TYPE, "Content-Encoding of a"},
        {NAMED "Content-Type: text/csv\r\nContent-Type: text/csv\r\n", GM_BAD_MULTIPART,
         "two lines"},
        {NAMED NAMED, GM_BAD_MULTIPART, "two lines Content-Disposition"},
        {NAMED "Content-Type\r\n", GM_BAD_MULTIPART, "stands 'Content-Type'"},
        {NAMED "Content-Type : a\r\n", GM_BAD_MULTIPART, "stands 'Content-Type : a'"},
        {NAMED ": a\r\n", GM_BAD_MULTIPART, "stands ': a'"},
        {NAMED "X: \x01\r\n", GM_BAD_MULTIPART, "control character (1)"},
        {NAMED "X: \x7F\r\n", GM_BAD_MULTIPART, "control character (127)"},
        {NAMED "X: a\rb\r\n", GM_BAD_MULTIPART, "control character (13)"},
        {"\r\n", GM_BAD_MULTIPART, "no line Content-Disposition"},
        {"\r\nX: a\r\n", GM_BAD_MULTIPART, "no line Content-Disposition"},
        {"\r\nContent-Disposition: attachment; name=a\r\n", GM_BAD_MULTIPART, "must be form-data"},
        {"\r\nContent-Disposition: form-data2; name=a\r\n", GM_BAD_MULTIPART, "must be form-data"},
        {"\r\nContent-Disposition: form-data\r\n", GM_BAD_MULTIPART, "has no name"},
        {DISPOSITION "filename=a\r\n", GM_BAD_MULTIPART, "has no name"},
        {DISPOSITION "name*=UTF-8''a\r\n", GM_BAD_MULTIPART, "has no name"},
        {DISPOSITION "name=a; name=b\r\n", GM_BAD_MULTIPART, "two names"},
        {DISPOSITION "name=\"a\r\n", GM_BAD_MULTIPART, "cannot be read: 'form-data; name=\"a'"},
        {DISPOSITION "name=\"a\"b\r\n", GM_BAD_MULTIPART, "cannot be read"},
        {DISPOSITION "name\r\n", GM_BAD_MULTIPART, "cannot be read"},
        {DISPOSITION "name=a, b\r\n", GM_BAD_MULTIPART, "cannot be read"},
#undef NAMED
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[512], name[64], type[64];
        struct gm_error error = {0};
        int len = snprintf(text, sizeof(text), "%s\r\n", cases[i].header);
        enum gm_status status = read_part(text, (size_t)len, name, type, &error);
        CHECK_STATUS(status, cases[i].status, &error);
        const char *expected = cases[i].type_or_detail;
        if (cases[i].status == GM_OK)
            CHECK_STR(type, expected);
        else
            check_that(strstr(error.detail, expected) != NULL, __FILE__, __LINE__,
                       "\"%s\" in \"%s\"", expected, error.detail);
    }
    char name[64], type[64];
    struct gm_error error = {0};
    CHECK_STATUS(read_part("\r\nX: \0\r\n\r\n", 10, name, type, &error), GM_BAD_MULTIPART, &error);
    CHECK(strstr(error.detail, "control character (0)"));
}

int main(void)
{
    test_type();
    test_boundary();
    test_names();
    test_fields();
    return check_report();
}
