/* Access reports: the figures that follow from counts, and the words that follow from figures. */
#include "tests/unit/check.h"
#include "tests/unit/explain_case.h"

#include <math.h>
#include <string.h>

static bool near(double actual, double expected)
{
    return fabs(actual - expected) <= 1e-9 * fabs(expected);
}

static struct gm_site_figures figures_of(const struct explain_case *c, unsigned site)
{
    struct gm_site_figures f;

    gm_explain_site(&c->explain, &c->site[site], &f);
    return f;
}

/* What the lanes of one request look like, and what it is called. */
static void test_sites(void)
{
    static const struct {
        enum gm_access_kind kind;
        struct lanes lanes;
        enum gm_pattern pattern;
        double units, ideal;
        const char *verdict;
    } cases[] = {
        {GM_GLOBAL_LOAD, {.stride = 4}, GM_PATTERN_ROW, 4, 4, "coalesced"},
        {GM_GLOBAL_LOAD, {.begin = 124, .stride = -4}, GM_PATTERN_ROW, 4, 4, "coalesced"},
        {GM_GLOBAL_LOAD, {.stride = 16, .bytes = 16}, GM_PATTERN_ROW, 16, 16, "coalesced"},
        {GM_GLOBAL_LOAD, {.stride = 1, .bytes = 1}, GM_PATTERN_ROW, 1, 1, "coalesced"},
        {GM_GLOBAL_LOAD, {.stride = 0}, GM_PATTERN_SAME, 1, 1, "one address"},
        {GM_GLOBAL_LOAD, {.active = 1u << 7}, GM_PATTERN_SAME, 1, 1, "one address"},
        {GM_GLOBAL_LOAD, {.begin = 4, .stride = 4}, GM_PATTERN_ROW, 5, 4, "misaligned"},
        {GM_GLOBAL_STORE, {.stride = 4096}, GM_PATTERN_STRIDE, 32, 4, "strided"},
        {GM_GLOBAL_STORE, {.stride = -4096, .begin = 1 << 20}, GM_PATTERN_STRIDE, 32, 4, "strided"},
        {GM_GLOBAL_LOAD, {.stride = 32}, GM_PATTERN_STRIDE, 32, 4, "strided"},
        {GM_GLOBAL_LOAD, {.stride = 12}, GM_PATTERN_STRIDE, 12, 4, "interleaved"},
        /* Half a warp in a row, the other half in the next. */
        {GM_GLOBAL_LOAD,
         {.stride = 4, .width = 16, .pitch = 4000},
         GM_PATTERN_ROWS,
         4,
         4,
         "coalesced"},
        {GM_GLOBAL_LOAD,
         {.stride = 4, .width = 4, .pitch = 4000},
         GM_PATTERN_ROWS,
         8,
         4,
         "short spans"},
        {GM_GLOBAL_LOAD, {.stride = 4, .active = 0xFFFF}, GM_PATTERN_ROW, 2, 2, "coalesced"},
        {GM_SHARED_STORE, {.stride = 4}, GM_PATTERN_ROW, 1, 1, "no conflict"},
        {GM_SHARED_LOAD, {.stride = 132}, GM_PATTERN_STRIDE, 1, 1, "no conflict"},
        {GM_SHARED_LOAD, {.stride = 128}, GM_PATTERN_STRIDE, 32, 1, "32-way bank conflict"},
        {GM_SHARED_LOAD, {.stride = 8}, GM_PATTERN_STRIDE, 2, 1, "2-way bank conflict"},
        /* A tile 16 wide: 16 words of 64 bytes' distance, twice, four bytes apart: 8 a bank. */
        {GM_SHARED_LOAD,
         {.stride = 64, .width = 16, .pitch = 4},
         GM_PATTERN_STRIDE,
         8,
         1,
         "8-way bank conflict"},
        {GM_SHARED_LOAD, {.stride = 0}, GM_PATTERN_SAME, 1, 1, "one address"},
        {GM_SHARED_LOAD,
         {.stride = 0, .width = 16, .pitch = 128},
         GM_PATTERN_SAME,
         2,
         1,
         "2-way bank conflict"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct explain_case c;
        case_init(&c, GM_OP_COPY, 1024, 1024);
        case_add(&c, cases[i].kind, 10, "m", 1000, cases[i].lanes);
        struct gm_site_figures f = figures_of(&c, 0);
        check_that(f.pattern == cases[i].pattern && f.units == cases[i].units &&
                       f.ideal == cases[i].ideal && strcmp(f.verdict, cases[i].verdict) == 0,
                   __FILE__, __LINE__, "case %zu: pattern %d, %g for %g, %s", i, f.pattern, f.units,
                   f.ideal, f.verdict);
        CHECK(near(f.ratio, cases[i].units / cases[i].ideal));
    }
}

static void test_transposes(void)
{
    struct explain_case naive, tiled, padded;
    struct gm_explain_figures f;

    case_transpose(&naive, 0);
    case_transpose(&tiled, 32);
    case_transpose(&padded, 33);
    CHECK(gm_explain_worst(&naive.explain) == &naive.site[1]);
    CHECK(gm_explain_worst(&tiled.explain) == &tiled.site[2]);
    CHECK(gm_explain_worst(&padded.explain) == NULL);

    gm_explain_figures(&naive.explain, &f);
    CHECK(f.sectors == 32768 * (4 + 32) && f.sectors_min == 2 * 131072);
    CHECK(f.sectors_ideal == 32768 * 8 && f.wavefronts == 0);
    CHECK(f.bytes_min == 8388608 && f.bytes_moved == 32768.0 * 36 * 32);
    CHECK(f.flops == 0 && f.intensity < 0 && f.executed_intensity < 0);
    CHECK(f.attainable_gflops < 0 && f.percent_of_peak < 0 && !f.compute_bound);
    CHECK(f.active_percent == 100 && f.traced == 9 && f.blocks == 1024);
    CHECK(f.occupancy.warps == 64 && f.occupancy.percent == 100);

    gm_explain_figures(&tiled.explain, &f);
    CHECK(f.wavefronts == 32768 * 33 && f.wavefronts_ideal == 32768 * 2);
    CHECK(f.sectors == f.sectors_min && f.barriers_per_block == 1);

    /* Cost: at the bandwidth of memory, and at a wavefront a cycle of 132 multiprocessors. */
    CHECK(near(figures_of(&naive, 1).cost, 32768.0 * 28 * 32 / 4800e3));
    CHECK(near(figures_of(&tiled, 2).cost, 32768.0 * 31 / (132 * 1.98e3)));
}

/* A product of n x n matrices whose every element is fetched from memory for each use. */
static void make_product(struct explain_case *c, double n, double uses)
{
    case_init(c, GM_OP_MATMUL, (uint64_t)n, (uint64_t)n);
    case_add(c, GM_GLOBAL_LOAD, 12, "a", n * n * n / 32 / uses, (struct lanes){.stride = 0});
    case_add(c, GM_GLOBAL_LOAD, 12, "b", n * n * n / 32 / uses, (struct lanes){.stride = 4});
    case_add(c, GM_GLOBAL_STORE, 14, "result", n * n / 32, (struct lanes){.stride = 4});
}

static void test_roofline(void)
{
    struct explain_case c;
    struct gm_explain_figures f;

    make_product(&c, 1024, 1);
    gm_explain_figures(&c.explain, &f);
    CHECK(f.flops == 2.0 * 1024 * 1024 * 1024);
    CHECK(near(f.intensity, 1024.0 / 6));
    double moved = 32.0 * (32768.0 * 1024 * 5 + 32768 * 4);
    CHECK(near(f.bytes_moved, moved) && near(f.executed_intensity, f.flops / moved));
    CHECK(near(f.ridge, c.explain.gpu->fp32_gflops / 4800));
    CHECK(!f.compute_bound && near(f.attainable_gflops, f.executed_intensity * 4800));
    CHECK(near(f.percent_of_peak, 100 * f.attainable_gflops / c.explain.gpu->fp32_gflops));

    make_product(&c, 1024, 256);
    c.explain.gpu = gm_gpu_find("T4");
    gm_explain_figures(&c.explain, &f);
    CHECK(f.compute_bound && f.attainable_gflops == c.explain.gpu->fp32_gflops);
    CHECK(f.percent_of_peak == 100);

    c.op.result.dtype = GM_I64; /* whose ceiling is not known */
    gm_explain_figures(&c.explain, &f);
    CHECK(f.peak_gflops < 0 && f.ridge < 0 && f.attainable_gflops < 0 && f.executed_intensity > 0);
}

static void check_words(const struct explain_case *c, const char *problem, const char *cure)
{
    char p[GM_EXPLAIN_WORDS_MAX], u[GM_EXPLAIN_WORDS_MAX];

    gm_explain_words(&c->explain, p, u);
    check_that(strstr(p, problem) != NULL, __FILE__, __LINE__, "no \"%s\" in: %s", problem, p);
    check_that(strstr(u, cure) != NULL, __FILE__, __LINE__, "no \"%s\" in: %s", cure, u);
}

/* Each rule, from figures alone: the variant's name says nothing. */
static void test_words(void)
{
    struct explain_case c;

    case_transpose(&c, 0);
    check_words(&c, "touches 32 sectors of 32 bytes instead of 4", "tile of shared memory");
    check_words(&c, "Line 23: each warp's store to `result`", "tile");
    check_words(&c, "4096 bytes apart", "");
    case_transpose(&c, 32);
    check_words(&c,
                "Line 29: each warp's load from `tile` takes 32 wavefronts (passes over the banks) "
                "instead of 1",
                "by one element");
    check_words(&c, "128 bytes apart, so that they share 1 of the 32 banks",
                "by one element (from 32 to 33)");
    case_transpose(&c, 16); /* two rows of a tile for each 128 bytes */
    check_words(&c, "64 bytes apart, so that they share 2 of the 32 banks", "from 16 to 17");
    c.site[2].example.offset[1] = 4 * 777;
    c.site[2].example.offset[9] = 4 * 999;
    for (unsigned i = 11; i < 29; i += 2)
        c.site[2].example.offset[i] = 128 * i + 8 * (i % 3);
    check_words(&c, "a bank delivers different words one after another", "by one element, so that");
    case_transpose(&c, 33);
    check_words(&c, "Nothing is wasted", "4800 GB/s");
    c.explain.gpu = gm_gpu_find("L4");
    check_words(&c, "Nothing is wasted", "L4 moves at most 300 GB/s");

    case_init(&c, GM_OP_ADD, 100000, 3);
    case_add(&c, GM_GLOBAL_LOAD, 8, "a", 3125, (struct lanes){.stride = 12});
    check_words(&c, "12 sectors of 32 bytes instead of 4", "array of its own");

    case_init(&c, GM_OP_COPY, 1001, 1001);
    case_add(&c, GM_GLOBAL_LOAD, 8, "a", 32000, (struct lanes){.begin = 4, .stride = 4});
    check_words(&c, "begins in the middle of a sector", "leading dimension");

    case_init(&c, GM_OP_COPY, 1024, 1024);
    case_add(&c, GM_GLOBAL_LOAD, 8, "a", 32768,
             (struct lanes){.stride = 4, .width = 4, .pitch = 99 * 32});
    check_words(&c, "8 separate spans", "a warp wide");

    make_product(&c, 1024, 1);
    check_words(&c, "each thread that needs an element fetches it again",
                "into a tile in shared memory");
    make_product(&c, 1024, 32);
    case_add(&c, GM_SHARED_LOAD, 13, "tile", 1024, (struct lanes){.stride = 4});
    check_words(&c, "each tile that needs an element", "registers");

    case_transpose(&c, 33);
    c.report.totals.lanes *= 0.5;
    check_words(&c, "On average 16 of a warp's 32 lanes", "same branch");
    c.launch[0].block[0] = 19;
    check_words(&c, "not a multiple of 32", "multiple of 32 threads");

    case_init(&c, GM_OP_TRANSPOSE, 1, 5);
    case_add(&c, GM_GLOBAL_LOAD, 8, "a", 1, (struct lanes){.stride = 4, .active = 0x1F});
    case_add(&c, GM_GLOBAL_STORE, 9, "result", 5, (struct lanes){.active = 1});
    check_words(&c, "On average 1.67 of a warp's 32 lanes", "lie outside");

    case_transpose(&c, 33);
    c.report.launches = 2;
    c.launch[1].prepares = true;
    check_words(&c, "Nothing is wasted",
                "rearranging the data before and after takes 1 more pass.");

    case_transpose(&c, 33);
    c.launch[0].shared = 100 * 1024;
    check_words(&c, "on H200 only 16 of 64 warps", "less shared memory");
    c.launch[0].shared = 0;
    c.launch[0].block[0] = 4;
    check_words(&c, "The limit is blocks", "128 to 512 threads");

    case_init(&c, GM_OP_COPY, 0, 5);
    c.report.launches = 0;
    check_words(&c, "Nothing to improve", "");
}

/* What is a trifle beside the whole is not named, however bad it is. */
static void test_trifles(void)
{
    struct explain_case c;

    case_transpose(&c, 33);
    case_add(&c, GM_GLOBAL_STORE, 40, "result", 1, (struct lanes){.stride = 4096});
    CHECK(gm_explain_worst(&c.explain) == NULL);
}

int main(void)
{
    test_sites();
    test_transposes();
    test_roofline();
    test_words();
    test_trifles();
    return check_report();
}
