/* Heat maps: what is drawn of which element, and that no picture is longer than its bound. */
#include "proto/codec.h"
#include "tests/unit/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static char text[1 << 20];

static const char *draw(enum gm_dtype dtype, uint64_t batch, uint64_t rows, uint64_t cols,
                        const void *data)
{
    struct gm_matrix m = {dtype, GM_ROW_MAJOR, batch > 1, batch, rows, cols, (void *)data};
    const struct gm_encode_options options = {false};
    uint64_t bound, len = 0;
    struct gm_error error;

    CHECK(gm_codec_svg.encode_bound(&m, &bound, &error) == GM_OK);
    CHECK(bound < sizeof text);
    CHECK(gm_codec_svg.encode(&m, &options, text, bound, &len, &error) == GM_OK);
    CHECK(len > 0 && len <= bound);
    text[len] = '\0';
    CHECK(strncmp(text, "<svg ", 5) == 0 && strcmp(text + len - 7, "</svg>\n") == 0);
    return text;
}

static size_t count(const char *in, const char *what)
{
    const char *end = in + strlen(in);
    size_t n = 0;

    /* Not strstr, for which AddressSanitizer reads to the end of the text each time. */
    for (; (in = memmem(in, (size_t)(end - in), what, strlen(what))); in += strlen(what))
        n++;
    return n;
}

static void test_cells(void)
{
    static const float m[] = {0, 0, 1, 1, 0, 0};
    const char *svg = draw(GM_F32, 1, 2, 3, m);

    CHECK(strstr(svg, "<title>2x3 f32, from 0 to 1</title>"));
    CHECK(strstr(svg, "<path fill=\"#440154\" d=\"M0 0h2v1h-2zM1 1h2v1h-2z\"/>"));
    CHECK(strstr(svg, "<path fill=\"#fde725\" d=\"M2 0h1v1h-1zM0 1h1v1h-1z\"/>"));
    CHECK_EQ(count(svg, "<path"), 2);
    /* A stack's matrices are one under the other. */
    svg = draw(GM_F32, 2, 1, 3, m);
    CHECK(strstr(svg, "2x1x3 f32") && strstr(svg, "M0 0h2v1h-2zM1 1h2v1h-2z"));
    /* By columns. */
    struct gm_matrix turned = {GM_F32, GM_COL_MAJOR, false, 1, 3, 2, (void *)m};
    uint64_t len;
    struct gm_error error;
    CHECK(gm_codec_svg.encode(&turned, &(struct gm_encode_options){false}, text, sizeof text - 1,
                              &len, &error) == GM_OK);
    text[len] = '\0';
    CHECK(strstr(text, "M0 0h1v1h-1zM0 1h2v1h-2zM1 2h1v1h-1z\"/>"));
}

/* Up to 160 rows and columns each is drawn, once and where it is. */
static void test_each_is_drawn(void)
{
    for (unsigned n = 1; n <= 160; n++) {
        for (unsigned one = 0; one < n; one++) {
            float m[160] = {[0] = 0};
            char cell[64];
            m[one] = 1;
            snprintf(cell, sizeof cell, "#fde725\" d=\"M%u 0h1v1h-1z\"/>", one);
            CHECK(n == 1 || strstr(draw(GM_F32, 1, 1, n, m), cell));
            snprintf(cell, sizeof cell, "#fde725\" d=\"M0 %uh1v1h-1z\"/>", one);
            CHECK(n == 1 || strstr(draw(GM_F32, 1, n, 1, m), cell));
        }
    }
}

static void test_what_is_no_number(void)
{
    const double m[] = {NAN, -INFINITY, INFINITY, -1e308, 1e308, 0};
    const char *svg = draw(GM_F64, 1, 1, 6, m);

    CHECK(strstr(svg, "from -1e+308 to 1e+308"));
    CHECK(strstr(svg, "<path fill=\"#d55e00\" d=\"M0 0h1v1h-1z\"/>"));
    CHECK(strstr(svg, "<path fill=\"#440154\" d=\"M1 0h1v1h-1zM3 0h1v1h-1z\"/>"));
    CHECK(strstr(svg, "<path fill=\"#fde725\" d=\"M2 0h1v1h-1zM4 0h1v1h-1z\"/>"));
    svg = draw(GM_F64, 1, 1, 3, m); /* nothing finite */
    CHECK(strstr(svg, "from 0 to 0"));
    svg = draw(GM_F64, 1, 0, 5, m);
    CHECK(strstr(svg, "no elements"));
    CHECK(strstr(draw(GM_F64, 1, 5, 0, m), "no elements"));
}

/* Each type's own zero, least and largest, at the ends of the scale. */
static void test_types(void)
{
#define CASE(dtype, type, low, high, words)                                                        \
    do {                                                                                           \
        const type m[] = {(type)(low), (type)(high)};                                              \
        CHECK(strstr(draw(dtype, 1, 1, 2, m), words));                                             \
        CHECK(strstr(text, "#440154\" d=\"M0 0h1") && strstr(text, "#fde725\" d=\"M1 0h1"));       \
    } while (0)
    CASE(GM_F16, uint16_t, 0xC000, 0x3C00, "from -2 to 1");
    CASE(GM_BF16, uint16_t, 0xC000, 0x3F80, "from -2 to 1");
    CASE(GM_I8, int8_t, -128, 127, "from -128 to 127");
    CASE(GM_U8, uint8_t, 0, 255, "from 0 to 255");
    CASE(GM_BOOL, uint8_t, 0, 1, "from 0 to 1");
    CASE(GM_I16, int16_t, INT16_MIN, 5, "from -3.277e+04 to 5");
    CASE(GM_U16, uint16_t, 0, UINT16_MAX, "to 6.554e+04");
    CASE(GM_I32, int32_t, INT32_MIN, 0, "from -2.147e+09");
    CASE(GM_U32, uint32_t, 1, UINT32_MAX, "to 4.295e+09");
    CASE(GM_I64, int64_t, INT64_MIN, INT64_MAX, "from -9.223e+18 to 9.223e+18");
    CASE(GM_U64, uint64_t, 0, UINT64_MAX, "to 1.845e+19");
    for (enum gm_dtype dtype = GM_C64; dtype < GM_DTYPE_COUNT; dtype++) {
        struct gm_matrix m = {dtype, GM_ROW_MAJOR, false, 1, 1, 1, text};
        uint64_t bound = 7;
        struct gm_error error;
        CHECK(gm_codec_svg.encode_bound(&m, &bound, &error) == GM_CANNOT_ENCODE && bound == 7);
        CHECK(gm_codec_svg.encode(&m, &(struct gm_encode_options){false}, text, sizeof text, &bound,
                                  &error) == GM_CANNOT_ENCODE);
    }
}

/* The longest pictures, which have no neighbours of one colour; and large matrices, of which some
 * rows and columns are drawn. */
static void test_bound(void)
{
    enum { N = 1000 };
    float *m = malloc(sizeof *m * N * N);

    CHECK(m);
    for (size_t i = 0; m && i < (size_t)N * N; i++)
        m[i] = (float)rand();
    const char *svg = draw(GM_F32, 1, 160, 160, m);
    CHECK(count(svg, "v1h-") > 160 * 150);
    svg = draw(GM_F32, 1, N, N, m);
    CHECK(count(svg, "v1h-") > 160 * 150);
    draw(GM_F32, 4, 250, N, m);
    draw(GM_F32, 1, 1, (uint64_t)N * N, m);
    draw(GM_F32, 1, (uint64_t)N * N, 1, m);
    for (size_t i = 0; m && i < (size_t)N * N; i++)
        m[i] = (float)(i / N / 500); /* the lower half is 1 */
    svg = draw(GM_F32, 1, N, N, m);
    CHECK(strstr(svg, "M0 79h160v1h-160z\"/>") && strstr(svg, "d=\"M0 80h160"));
    /* One byte less than it takes is refused. */
    struct gm_matrix one = {GM_F32, GM_ROW_MAJOR, false, 1, 1, 1, m};
    uint64_t len, again;
    struct gm_error error;
    const struct gm_encode_options options = {false};
    CHECK(gm_codec_svg.encode(&one, &options, text, sizeof text, &len, &error) == GM_OK);
    CHECK(gm_codec_svg.encode(&one, &options, text, len, &again, &error) == GM_INTERNAL);
    CHECK(gm_codec_svg.encode(&one, &options, text, len + 1, &again, &error) == GM_OK);
    free(m);
}

int main(void)
{
    test_cells();
    test_each_is_drawn();
    test_what_is_no_number();
    test_types();
    test_bound();
    return check_report();
}
