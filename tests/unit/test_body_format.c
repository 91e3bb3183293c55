/* The format of a body: by its type, by its first bytes however they come, and what is said where
 * neither tells. */
#include "server/request/body/internal.h"
#include "tests/unit/check.h"

static void test_types(void)
{
    static const struct {
        const char *type;
        const struct gm_codec *codec; /* NULL: the first bytes decide */
        enum gm_status status;
    } cases[] = {
        {NULL, NULL, GM_OK},
        {"", NULL, GM_OK},
        {"application/x-www-form-urlencoded", NULL, GM_OK},
        {"Application/X-WWW-Form-urlencoded; charset=utf-8", NULL, GM_OK},
        {"application/json", &gm_codec_json, GM_OK},
        {"text/csv", &gm_codec_csv, GM_OK},
        {"text/csv; charset=utf-8; header=present", &gm_codec_csv, GM_OK},
        {"text/csv;header=absent", &gm_codec_csv, GM_OK},
        {"TEXT/CSV ;x", &gm_codec_csv, GM_OK},
        {"application/x-npy", &gm_codec_npy, GM_OK},
        {"application/octet-stream", &gm_codec_raw, GM_OK},
        {"text/plain", NULL, GM_UNSUPPORTED_MEDIA_TYPE},
        {"text/csvx", NULL, GM_UNSUPPORTED_MEDIA_TYPE},
        {"text/html", NULL, GM_UNSUPPORTED_MEDIA_TYPE},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct gm_codec *codec = &gm_codec_raw;
        struct gm_error err = {0};
        CHECK_STATUS(gm_body_format_by_type(cases[i].type, &codec, &err), cases[i].status, &err);
        if (cases[i].status == GM_OK)
            CHECK(codec == cases[i].codec);
        else
            CHECK(codec == &gm_codec_raw && strstr(err.detail, "text/csv") != NULL);
    }
}

struct first_bytes {
    const char *bytes;
    size_t len;
    const struct gm_codec *codec;
    const char *part; /* of the message where there is no codec */
};

#define BYTES(text) text, sizeof(text) - 1

static const struct first_bytes bodies[] = {
    {BYTES("[[1,2]]"), &gm_codec_json, NULL},
    {BYTES(" \r\n\t{\"a\":1}"), &gm_codec_json, NULL},
    {BYTES("\x93NUMPY\x01\0v\0{'descr'"), &gm_codec_npy, NULL},
    {BYTES(""), NULL, "neither like NPY nor like JSON"},
    {BYTES("   "), NULL, "neither like NPY nor like JSON"},
    {BYTES("\0\0\0\0\0\0\x80\x3F"), NULL, "neither like NPY nor like JSON"},
    {BYTES("nonsense"), NULL, "neither like NPY nor like JSON"},
    {BYTES("1,2\n3,4\n"), NULL, "CSV"},
    {BYTES("-1.5e3;nan;+inf\n"), NULL, "CSV"},
    {BYTES("1\t2\n"), NULL, "CSV"},
    {BYTES("\xEF\xBB\xBF"
           "1,2\n"),
     NULL, "CSV"},
    {BYTES("\"1\",\"2\"\n"), NULL, "CSV"},
    {BYTES("x,y\r\n1,2\r\n"), NULL, "CSV"},
    {BYTES("\"x\";\"y\"\n-1;.5\n"), NULL, "CSV"},
    {BYTES("dear all,\nhello\n"), NULL, "neither"},
    {BYTES("12 monkeys, and more"), NULL, "neither"},
    {BYTES("1 2 3\n4 5 6\n"), NULL, "tr -s ' ' ','"},
    {BYTES("  1.0  2.0\n"), NULL, "tr -s ' ' ','"},
    {BYTES("\xFF\xFE"
           "1\0,\0"),
     NULL, "iconv"},
    {BYTES("\xEF\xBB\xBF[[1]]"), NULL, "byte order mark"},
    {BYTES("PK\x03\x04\x14\0\0\0"), NULL, ".npz"},
    {BYTES("PK\x05\x06\0\0"), NULL, "empty zip"},
    {BYTES("\x1F\x8B\x08\0"), NULL, "gunzip"},
    {BYTES("BZh91AY"), NULL, "bunzip2"},
    {BYTES("\x89HDF\r\n\x1A\n"), NULL, "h5py"},
    {BYTES("\x89HDF\x1A"), NULL, "h5py"}, /* after curl -d */
    {BYTES("MATLAB 5.0 MAT-file, "), NULL, "loadmat"},
    {BYTES("\x89PNG\r\n\x1A\n"), NULL, "PNG"},
    {BYTES("\x80\x04\x95\x0B"), NULL, "pickle"},
    {BYTES("?NUMPY\x01\0v\0"), NULL, "as if it were text"},
    {BYTES("\xC2\x93NUMPY\x01\0v\0"), NULL, "as if it were text"},
    {BYTES("\xEF\xBF\xBDNUMPY\x01\0v\0"), NULL, "as if it were text"},
    {BYTES("@a.npy"), NULL, "--data-binary @a.npy"},
    {BYTES("/tmp/x/a.csv"), NULL, "--data-binary @/tmp/x/a.csv"},
    {BYTES("a.npy\n"), NULL, "the text 'a.npy"},
    {BYTES(".npy"), NULL, "neither"},
    {BYTES("--a1b2\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\x93NUMPY"), NULL,
     "curl -F a=@a.npy"},
    {BYTES("--\r\n1,2"), NULL, "neither"},
    {BYTES("'[[1,2]]'"), NULL, "quotes"},
    {BYTES("\"{}\""), NULL, "quotes"},
    {BYTES("%5B%5B1%5D%5D"), NULL, "percent-encoded"},
    {BYTES("a=[[1]]&b=2"), NULL, "name=value"},
    {BYTES("((1,2),(3,4))"), NULL, "Python"},
    {BYTES("array([[1, 2]])"), NULL, "Python"},
    {BYTES("<html>"), NULL, "HTML"},
};

/* Every prefix comes first, each from storage of its own length; then the whole. */
static void test_first_bytes(void)
{
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        const struct first_bytes *b = &bodies[i];
        const struct gm_codec *codec = NULL;
        struct gm_error err = {0};
        enum gm_status status = GM_OK;
        uint64_t space = 0;
        for (size_t len = 0; len <= b->len && status == GM_OK && !codec; len++) {
            char *piece = malloc(len ? len : 1);
            if (!CHECK(piece != NULL))
                return;
            memcpy(piece, b->bytes, len);
            status = gm_body_format_by_first_bytes(piece, len, len == b->len, &space, &codec, &err);
            CHECK(len == b->len || status == GM_OK);
            free(piece);
        }
        CHECK(codec == b->codec);
        CHECK_STATUS(status, b->codec ? GM_OK : GM_UNSUPPORTED_MEDIA_TYPE, &err);
        if (!b->codec && !CHECK(strstr(err.detail, b->part) != NULL))
            fprintf(stderr, "  case %zu: %s\n", i, err.detail);
        CHECK(strlen(err.detail) < GM_ERROR_DETAIL_MAX - 40); /* nothing was cut */
    }
}

/* Enough of a body is enough, however much follows. */
static void test_undecided_bodies_end(void)
{
    char text[GM_BODY_HINT_BYTES + 3];
    memset(text, 'x', sizeof(text));
    memcpy(text, "\n\n1,2\n", 6);
    for (size_t len = 0; len <= sizeof(text); len++) {
        const struct gm_codec *codec = &gm_codec_raw;
        struct gm_error err = {0};
        uint64_t space = 0;
        enum gm_status status =
            gm_body_format_by_first_bytes(text, len, false, &space, &codec, &err);
        if (len < GM_BODY_HINT_BYTES + 2)
            CHECK(status == GM_OK && codec == NULL);
        else
            CHECK_STATUS(status, GM_UNSUPPORTED_MEDIA_TYPE, &err);
    }
}

static void test_operands(void)
{
    struct gm_error err = {0};
    CHECK_STATUS(gm_body_format_check_operands(&gm_codec_csv, 1, &err), GM_OK, &err);
    CHECK_STATUS(gm_body_format_check_operands(&gm_codec_npy, 2, &err), GM_OK, &err);
    CHECK_STATUS(gm_body_format_check_operands(NULL, 2, &err), GM_OK, &err);
    CHECK_STATUS(gm_body_format_check_operands(&gm_codec_csv, 2, &err), GM_MISSING_OPERAND, &err);
    CHECK(strstr(err.detail, "-F a=@a.csv -F b=@b.csv") != NULL);
}

int main(void)
{
    test_types();
    test_first_bytes();
    test_undecided_bodies_end();
    test_operands();
    return check_report();
}
