/* Access reports as JSON, as text and as a drawing: what is in them, and that they are whole. */
#include "server/api/explain/explain.h"
#include "server/limits.h"
#include "tests/unit/check.h"
#include "tests/unit/explain_case.h"

#include <ctype.h>
#include <jansson.h>
#include <string.h>

static double number(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    return json_is_number(value) ? json_number_value(value) : -1;
}

static const char *string(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static json_t *parse(const struct explain_case *c)
{
    char *text = gm_explain_json(&c->explain);
    json_error_t fault;
    json_t *document = text ? json_loads(text, JSON_REJECT_DUPLICATES, &fault) : NULL;

    CHECK(document != NULL);
    free(text);
    return document;
}

static void check_members(const json_t *object, const char *const *names)
{
    for (; *names; names++)
        check_that(json_object_get(object, *names) != NULL, __FILE__, __LINE__, "no %s", *names);
}

static void test_json(void)
{
    static const char *const members[] = {
        "kernel", "op",      "shape",         "dtype", "totals", "sites",  "launches", "sampled",
        "blocks", "problem", "blocks_traced", "cure",  "id",     "device", "cut",      NULL};
    static const char *const of_site[] = {"kind",
                                          "file",
                                          "line",
                                          "source",
                                          "memory",
                                          "requests",
                                          "bytes_useful",
                                          "bytes_moved",
                                          "example",
                                          "kernel",
                                          "lanes_per_request",
                                          NULL};
    struct explain_case c;

    case_transpose(&c, 32);
    json_t *o = parse(&c), *sites = json_object_get(o, "sites");
    check_members(o, members);
    CHECK_EQ(json_array_size(sites), 4);
    for (size_t i = 0; i < json_array_size(sites); i++)
        check_members(json_array_get(sites, i), of_site);
    const json_t *load = json_array_get(sites, 0), *column = json_array_get(sites, 2);
    CHECK_STR(string(load, "kind"), "global_load");
    CHECK(number(load, "sectors_per_request") == 4 &&
          number(load, "ideal_sectors_per_request") == 4);
    CHECK(!json_object_get(load, "wavefronts_per_request"));
    CHECK(number(column, "wavefronts_per_request") == 32);
    CHECK(number(column, "ideal_wavefronts_per_request") == 1);
    CHECK(!json_object_get(column, "sectors_per_request"));
    CHECK_STR(string(column, "source"), c.site[2].source);
    const json_t *addresses = json_object_get(json_object_get(column, "example"), "addresses");
    CHECK_EQ(json_array_size(addresses), 32);
    CHECK_EQ(json_integer_value(json_array_get(addresses, 3)), 3 * 128);

    const json_t *totals = json_object_get(o, "totals");
    CHECK(number(totals, "global_sectors") == 262144 &&
          number(totals, "global_sectors_min") == 262144);
    CHECK(number(totals, "global_sectors_ratio") == 1 && number(totals, "barriers_per_block") == 1);
    CHECK(number(totals, "shared_wavefronts") == 32768 * 33);
    CHECK(!json_object_get(totals, "intensity") && !json_object_get(totals, "flops"));
    const json_t *occupancy = json_object_get(totals, "occupancy");
    CHECK_STR(string(occupancy, "gpu"), "H200");
    CHECK(number(occupancy, "blocks") == 8 && number(occupancy, "percent") == 100);
    CHECK(strstr(string(occupancy, "note"), "registers"));
    const json_t *roofline = json_object_get(totals, "roofline");
    CHECK_STR(string(roofline, "bound"), "memory");
    CHECK(!json_object_get(roofline, "attainable_gflops") && !json_object_get(roofline, "ridge"));
    CHECK(json_is_true(json_object_get(o, "sampled")) && number(o, "blocks") == 1024);
    json_decref(o);

    case_init(&c, GM_OP_MATMUL, 64, 64);
    case_add(&c, GM_GLOBAL_LOAD, 9, "a", 100, (struct lanes){.stride = 4, .active = 0xF0});
    o = parse(&c);
    totals = json_object_get(o, "totals");
    CHECK(number(totals, "flops") == 2.0 * 64 * 64 * 64 &&
          number(totals, "executed_intensity") > 0);
    CHECK(number(json_object_get(totals, "roofline"), "attainable_gflops") > 0);
    CHECK(number(json_object_get(totals, "roofline"), "ridge") > 10);
    addresses = json_object_get(
        json_object_get(json_array_get(json_object_get(o, "sites"), 0), "example"), "addresses");
    CHECK(json_is_null(json_array_get(addresses, 3)) &&
          json_is_integer(json_array_get(addresses, 4)));
    json_decref(o);
}

static void test_text(void)
{
    struct explain_case c;

    case_transpose(&c, 32);
    char *text = gm_explain_text(&c.explain);
    static const char *const parts[] = {
        "transpose, kernel mine, f32: a 1024x1024 -> 1024x1024\n",
        "mine_kernel: grid 32x32x1, block 32x8x1, 4096 bytes of shared memory per block\n",
        "Traced: 9 of 1024 blocks",
        "kernels/cuda/mine.cu:29: each warp's load from `tile`",
        "mine.cu:29              shared_load    tile               32768         32        32      "
        "   1    3.125 %  32-way bank conflict  <--\n",
        "mine.cu:23              global_load    a                  32768         32         4      "
        "   4      100 %  coalesced\n",
        "used / moved: 8.3886e+06 / 8.3886e+06, 100 %",
        "0 % of loaded sectors hit L1",
        "4 requests of a warp; bandwidth x latency, the loads' share of it, is 10.3 kB",
        "us on H200, 4.15 of them launch; the longest: l1_and_shared",
        "\nkernels/cuda/mine.cu\n   23  a[i] = x < y",
        "262144 sectors of 32 bytes, 1 times the minimum of 262144",
        "barriers        1024, 1 per block",
        "8 blocks, 64 of 64 warps (100 %) per multiprocessor",
        "roofline        memory is the limit: there is no arithmetic",
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        check_that(text && strstr(text, parts[i]), __FILE__, __LINE__, "no \"%s\" in:\n%s",
                   parts[i], text);
    free(text);

    c.launch[0].shared = 200 * 1024; /* one block fits */
    text = gm_explain_text(&c.explain);
    CHECK(text && strstr(text, ": 1 block, 8 of 64 warps"));
    free(text);
}

/* A place is marked if the sentence tells of it: not where a measurement says that all is well. */
static void test_no_mark_without_blame(void)
{
    struct explain_case c;

    case_transpose(&c, 32);
    c.variant.name = "vectorized"; /* as fast as a copy on this shape */
    char *text = gm_explain_text(&c.explain);
    CHECK(text && strstr(text, "Memory is the limit, and hides what is"));
    CHECK(text && strstr(text, "32-way bank conflict\n") && !strstr(text, "<--"));
    free(text);
}

/* Whether the elements of an XML text are closed in order; counts those of one name. */
static bool is_whole(const char *text, const char *name, unsigned *ret_count)
{
    const char *open[16];
    size_t depth = 0, name_len = strlen(name);

    *ret_count = 0;
    for (const char *p = text; (p = strchr(p, '<')) != NULL; p++) {
        const char *end = strchr(p, '>');
        size_t len = strcspn(p + 1 + (p[1] == '/'), " />\n?");
        if (!end || memchr(p + 1, '<', (size_t)(end - p - 1)))
            return false;
        *ret_count += len == name_len && strncmp(p + 1, name, len) == 0;
        if (p[1] == '?' || end[-1] == '/')
            continue;
        if (p[1] != '/') {
            if (depth == 16)
                return false;
            open[depth++] = p + 1;
        } else if (depth == 0 || strncmp(open[--depth], p + 2, len) != 0) {
            return false;
        }
    }
    return depth == 0;
}

static void check_svg(struct explain_case *c, unsigned groups, unsigned rects, const char *says)
{
    unsigned count;
    char *text = gm_explain_svg(&c->explain);

    if (!CHECK(text != NULL))
        return;
    CHECK(is_whole(text, "rect", &count));
    CHECK_EQ(count, rects);
    CHECK(is_whole(text, "g", &count));
    CHECK_EQ(count, groups);
    CHECK(strstr(text, "viewBox=\"0 0 ") && strstr(text, "<title id=\"title\">"));
    CHECK(strstr(text, "<desc id=\"desc\">") && !strstr(text, "<script") && !strstr(text, "href"));
    check_that(strstr(text, says) != NULL, __FILE__, __LINE__, "no \"%s\"", says);
    for (const char *p = text; *p; p++)
        if (!CHECK(*p == '\n' || isprint((unsigned char)*p)))
            break;
    free(text);
}

/* Background, two patterns and three samples of the legend. */
#define FRAME_RECTS 6

static void test_svg(void)
{
    struct explain_case c, other;

    /* Of each sector the whole and what is used; a bank, or each of its first six words. */
    case_transpose(&c, 0);
    check_svg(&c, 2, FRAME_RECTS + 2 * (4 + 32), ">12.5 %</text>");
    check_svg(&c, 2, FRAME_RECTS + 2 * (4 + 32), "of its sectors</text>");  /* the store */
    check_svg(&c, 2, FRAME_RECTS + 2 * (4 + 32), "fetched is used</text>"); /* the load */
    case_transpose(&c, 32);
    check_svg(&c, 4, FRAME_RECTS + 2 * (4 + 4) + 32 + (31 + 6),
              "x &lt; y ? a &amp; b : &quot;29&quot;");
    check_svg(&c, 4, FRAME_RECTS + 2 * (4 + 4) + 32 + (31 + 6), "wavefronts, in turn");
    snprintf(c.site[0].source, sizeof c.site[0].source, "\x01\xff</text>\xc3");
    check_svg(&c, 4, FRAME_RECTS + 85, " ?&lt;/text&gt;?");

    /* Places alike are drawn once; what one screen does not hold is counted. */
    case_init(&c, GM_OP_COPY, 64, 64);
    for (unsigned i = 0; i < 20; i++)
        case_add(&c, GM_GLOBAL_LOAD, i, "a", 1, (struct lanes){.stride = 4});
    check_svg(&c, 1, FRAME_RECTS + 2 * 4, "(and 19 more places like it)");
    case_init(&c, GM_OP_COPY, 64, 64);
    for (unsigned i = 0; i < 20; i++)
        case_add(&c, GM_GLOBAL_LOAD, i, "a", 1, (struct lanes){.stride = 4, .active = 3u << i});
    char *text = gm_explain_svg(&c.explain);
    CHECK(text && strstr(text, "more places are not drawn"));
    free(text);

    /* Another kernel is beside it. */
    case_transpose(&c, 32);
    case_transpose(&other, 33);
    c.explain.against = &other.explain;
    check_svg(&c, 8, FRAME_RECTS + 85 + 2 * (4 + 4) + 32 + 32, "viewBox=\"0 0 1480 ");
}

/* Wide accesses need several wavefronts, and the drawing says so. Of conflicts that some warps
 * have, a warp that has one is drawn. */
static void test_svg_of_widths(void)
{
    struct explain_case c;

    case_init(&c, GM_OP_COPY, 64, 64);
    struct gm_access_site *s =
        case_add(&c, GM_SHARED_LOAD, 1, "t", 10, (struct lanes){.stride = 16, .bytes = 16});
    s->sums.units = s->sums.units_ideal = s->sums.passes = 40;
    check_svg(&c, 1, FRAME_RECTS + 4 * 32, "for 16 bytes a lane</text>");

    case_init(&c, GM_OP_COPY, 64, 64);
    s = case_add(&c, GM_SHARED_LOAD, 1, "t", 10, (struct lanes){.stride = 4});
    s->warp[0] = s->example;
    s->warp[1] = s->example;
    for (unsigned i = 0; i < GM_WARP; i++)
        s->warp[1].offset[i] = 8 * i;
    s->sums.units = s->sums.passes = 15;
    check_svg(&c, 1, FRAME_RECTS + 32 + 16, "1.5-way bank conflict");
}

static void test_against(void)
{
    struct explain_case c, other;
    char changed[GM_EXPLAIN_WORDS_MAX], brought[GM_EXPLAIN_WORDS_MAX];

    case_transpose(&c, 32);
    case_transpose(&other, 33);
    other.variant.name = "other";
    c.explain.against = &other.explain;
    gm_explain_changed(&c.explain, changed, brought);
    CHECK(strstr(changed, "from mine to other: l1_and_shared, 0.6035 us instead of 5.28 "));
    CHECK(strstr(brought, "(estimated on H200)") && strstr(brought, " times as fast"));
    char *text = gm_explain_text(&c.explain);
    CHECK(text && strstr(text, "wavefronts of shared memory                    1.08134e+06"));
    free(text);
    text = gm_explain_json(&c.explain);
    json_t *o = json_loads(text, 0, NULL);
    CHECK(json_is_object(json_object_get(o, "against")) && json_object_get(o, "changed"));
    CHECK_STR(json_string_value(json_object_get(json_object_get(o, "against"), "kernel")), "other");
    json_decref(o);
    free(text);
    other.report.cut = true;
    gm_explain_changed(&c.explain, changed, brought);
    CHECK(strstr(changed, "could not be traced to its end"));
    CHECK(strstr(brought, "has not been measured"));
}

/* Without a name for the kernel the first line says what auto takes, if that is another. */
static void test_automatic(void)
{
    struct explain_case c;

    case_transpose(&c, 33);
    c.explain.automatic = "cublas";
    char *text = gm_explain_text(&c.explain);
    CHECK(text && strncmp(text, "On H200 auto takes cublas, which cannot be traced", 48) == 0);
    free(text);
    c.explain.automatic = "mine";
    text = gm_explain_text(&c.explain);
    CHECK(text && strncmp(text, "transpose, kernel mine", 22) == 0);
    free(text);
}

static void test_maps(void)
{
    struct explain_case c;
    struct gm_sectors sectors;
    struct gm_banks banks;
    char text[16];

    case_init(&c, GM_OP_COPY, 64, 64);
    struct gm_access_site *s = case_add(&c, GM_GLOBAL_LOAD, 1, "a", 1,
                                        (struct lanes){.begin = -16, .stride = 24, .bytes = 16});
    gm_map_sectors(&s->example, &sectors); /* bytes -16 to 744 */
    CHECK_EQ(sectors.rows, 25);
    CHECK(sectors.row[0].index == -1 && sectors.row[0].lanes == 1);
    CHECK(sectors.row[1].index == 0 && sectors.row[1].lanes == 2);

    s = case_add(&c, GM_SHARED_LOAD, 1, "t", 1, (struct lanes){.stride = 8, .bytes = 8});
    gm_map_banks(&s->example, &banks);
    CHECK_EQ(banks.rows, 2);
    CHECK(banks.row[0].lanes[0] == 1 && banks.row[0].lanes[1] == 1 && banks.row[0].lanes[2] == 2);
    for (unsigned i = 0; i < GM_BANKS; i++)
        CHECK_EQ(banks.words[i], 2);
    s = case_add(&c, GM_SHARED_LOAD, 1, "t", 1, (struct lanes){.begin = 128 * 5, .stride = 0});
    gm_map_banks(&s->example, &banks);
    CHECK(banks.rows == 1 && banks.row[0].index == 5 && banks.row[0].lanes[0] == UINT32_MAX);
    CHECK(banks.words[0] == 1 && banks.words[1] == 0);

    CHECK_STR(gm_map_lanes_text(1u << 31, text), "31");
    CHECK_STR(gm_map_lanes_text(UINT32_MAX, text), "0-31");
    CHECK_STR(gm_map_lanes_text(0x19, text), "0+2");
}

int main(void)
{
    test_json();
    test_text();
    test_no_mark_without_blame();
    test_svg();
    test_svg_of_widths();
    test_against();
    test_automatic();
    test_maps();
    return check_report();
}
