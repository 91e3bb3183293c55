/* The table of formats. */
#include "proto/codec.h"
#include "tests/unit/check.h"

static void test_table(void)
{
    size_t n = 0;
    for (; gm_codec_at(n); n++) {
        const struct gm_codec *codec = gm_codec_at(n);
        CHECK(gm_codec_by_media_type(codec->media_type, strlen(codec->media_type)) == codec);
        /* Read whole or streamed, written whole or behind a head: one of each. */
        bool text = codec->decode != NULL;
        CHECK(text == !codec->open && text == !codec->push && text == !codec->finish &&
              text == !codec->close);
        CHECK(text == (codec->encode != NULL) && text == (codec->encode_bound != NULL) &&
              text == !codec->head);
        CHECK(text || !codec->carries_stats);
        if (codec->close)
            codec->close(NULL);
        for (size_t j = 0; j < n; j++)
            CHECK(strcmp(codec->name, gm_codec_at(j)->name) != 0);
    }
    CHECK_EQ(n, 4);
    CHECK(gm_codec_at(n + 1) == NULL && gm_codec_at(SIZE_MAX) == NULL);
}

static void test_media_types(void)
{
    static const struct {
        const char *type;
        const struct gm_codec *codec;
    } cases[] = {
        {"application/json", &gm_codec_json},
        {"APPLICATION/Json", &gm_codec_json},
        {"application/x-npy", &gm_codec_npy},
        {"application/octet-stream", &gm_codec_raw},
        {"text/csv", &gm_codec_csv},
        {"Text/CSV", &gm_codec_csv},
        {"text/cs", NULL},
        {"application/jso", NULL},
        {"application/json5", NULL},
        {"application/json ", NULL},
        {"text/json", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        CHECK(gm_codec_by_media_type(cases[i].type, strlen(cases[i].type)) == cases[i].codec);
    CHECK(gm_codec_by_media_type("application/json; charset=utf-8", 16) == &gm_codec_json);
}

static void test_first_bytes(void)
{
    static const struct {
        const char *bytes;
        const struct gm_codec *codec;
    } cases[] = {
        {"\x93NUMPY", &gm_codec_npy},
        {"\x93NUMPY\x01", &gm_codec_npy},
        {"\x93NUMP", NULL},
        {"NUMPY", NULL},
        {" \x93NUMPY", NULL},
        {"[[1]]", &gm_codec_json},
        {"{", &gm_codec_json},
        {" \t\r\n [", &gm_codec_json},
        {" \t\r\n ", NULL},
        {"", NULL},
        {"1,2", NULL},
        {"\f[", NULL},
        {"a=[[1]]", NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        CHECK(gm_codec_by_first_bytes(cases[i].bytes, strlen(cases[i].bytes)) == cases[i].codec);
    CHECK(gm_codec_by_first_bytes(NULL, 0) == NULL);
    CHECK(gm_codec_by_first_bytes("  [", 2) == NULL); /* no byte beyond len */
}

int main(void)
{
    test_table();
    test_media_types();
    test_first_bytes();
    return check_report();
}
