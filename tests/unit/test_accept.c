/* Content negotiation. */
#include "server/request/accept.h"
#include "tests/unit/check.h"

#include <string.h>

int main(void)
{
    static const struct {
        const char *accept;
        const struct gm_codec *preferred, *chosen; /* chosen NULL: 406 */
    } cases[] = {
        {NULL, &gm_codec_npy, &gm_codec_npy},
        {"", &gm_codec_npy, &gm_codec_npy},
        {"*/*", &gm_codec_raw, &gm_codec_raw},
        {"application/json", &gm_codec_npy, &gm_codec_json},
        {"APPLICATION/JSON", &gm_codec_npy, &gm_codec_json},
        {"application/x-npy", &gm_codec_json, &gm_codec_npy},
        {"application/octet-stream", &gm_codec_json, &gm_codec_raw},
        {"application/*", &gm_codec_raw, &gm_codec_raw},
        {"text/html,application/xhtml+xml,*/*;q=0.8", &gm_codec_npy, &gm_codec_npy},
        {"application/json;q=0.5, application/x-npy;q=0.9", &gm_codec_json, &gm_codec_npy},
        {"application/json;q=0.9,application/x-npy;q=0.5", &gm_codec_npy, &gm_codec_json},
        {"application/json, application/x-npy", &gm_codec_npy, &gm_codec_npy},
        {"application/json;q=0, */*", &gm_codec_json, &gm_codec_npy},
        {"application/json;q=0.2, */*;q=0.1", &gm_codec_npy, &gm_codec_json},
        {"*/*;q=0.1, application/json;charset=utf-8;q=0.7", &gm_codec_npy, &gm_codec_json},
        /* A drawing, only where it is named above the others. */
        {"image/svg+xml", &gm_codec_json, &gm_codec_svg},
        {"text/html, image/avif, image/svg+xml, image/*, */*;q=0.8", &gm_codec_npy, &gm_codec_svg},
        {"image/svg+xml, application/json", &gm_codec_npy, &gm_codec_json},
        {"image/svg+xml, */*", &gm_codec_csv, &gm_codec_csv},
        {"image/png, image/svg+xml;q=0", &gm_codec_csv, NULL},
        {"text/html", &gm_codec_json, NULL},
        {"application/json;q=0", &gm_codec_json, NULL},
        {"*/*;q=0", &gm_codec_json, NULL},
        {"application/json;q=x", &gm_codec_json, NULL},
        {"application/json;q=0x1", &gm_codec_json, NULL},
        {"application/json;q=-0", &gm_codec_json, NULL},
        {"application/json;q=", &gm_codec_json, NULL},
        {"application/json;q=0.5;x", &gm_codec_json, &gm_codec_json},
        {",,;;", &gm_codec_json, NULL},
        {",", &gm_codec_npy, &gm_codec_npy}, /* empty elements do not count */
        {" ,\t, ", &gm_codec_raw, &gm_codec_raw},
        {",,application/json,", &gm_codec_npy, &gm_codec_json},
        {"text/html, application/json;q=0.1, application/octet-stream;q=0.2", &gm_codec_npy,
         &gm_codec_raw},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct gm_codec *chosen = NULL;
        struct gm_error error = {0};
        enum gm_status status =
            gm_accept_choose(cases[i].accept, cases[i].preferred, &chosen, &error);
        CHECK(chosen == cases[i].chosen);
        CHECK(status == (cases[i].chosen ? GM_OK : GM_NOT_ACCEPTABLE));
        if (status != GM_OK)
            CHECK(strstr(error.detail, "application/x-npy") != NULL);
    }
    static const struct {
        const char *accept;
        bool gzip;
    } codings[] = {{NULL, false},
                   {"", false},
                   {"identity", false},
                   {"gzip", true},
                   {"deflate, GZIP;q=0.1", true},
                   {"br, gzip;q=0", false},
                   {"gzip;q=0, *", false},
                   {"*, gzip;q=0", false},
                   {"*;q=0, gzip", true},
                   {"*", true},
                   {"*;q=0", false},
                   {"gzipped, xgzip, gzi", false}};
    for (size_t i = 0; i < sizeof codings / sizeof *codings; i++)
        CHECK(gm_accept_has_coding(codings[i].accept, "gzip") == codings[i].gzip);
    return check_report();
}
