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
         "whole sectors"},
        /* Two rows that follow on one another, and rows of whole lines. */
        {GM_GLOBAL_LOAD,
         {.stride = 4, .width = 16, .pitch = 64},
         GM_PATTERN_ROW,
         4,
         4,
         "coalesced"},
        {GM_GLOBAL_LOAD,
         {.stride = 16, .bytes = 16, .width = 8, .pitch = 4096},
         GM_PATTERN_ROWS,
         16,
         16,
         "coalesced"},
        {GM_GLOBAL_LOAD,
         {.stride = 16, .bytes = 16, .width = 2, .pitch = 4096},
         GM_PATTERN_ROWS,
         16,
         16,
         "whole sectors"},
        /* Half a warp has one address, the other half the next. */
        {GM_GLOBAL_LOAD,
         {.stride = 0, .width = 16, .pitch = 4},
         GM_PATTERN_SAME,
         1,
         1,
         "broadcast"},
        {GM_SHARED_LOAD,
         {.stride = 0, .width = 16, .pitch = 4},
         GM_PATTERN_SAME,
         1,
         1,
         "broadcast"},
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
    CHECK(f.passes == 32768 * (1 + 32) && f.l1_hit_percent == 0 && f.l2_lines == 32768 * (1 + 32));
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
    /* No use hits L1: what L2 can deliver is the lowest roof. */
    CHECK(!f.compute_bound && strcmp(f.roof, "l2") == 0);
    CHECK(near(f.attainable_gflops, f.flops / (moved / (64 * 132 * 1.98))));
    CHECK(near(f.percent_of_peak, 100 * f.attainable_gflops / c.explain.gpu->fp32_gflops));

    /* All but the first use hit it: then it passes a wavefront for each load. */
    c.site[0].sums.first = c.site[1].sums.first = 131072;
    c.report.totals.kind[GM_GLOBAL_LOAD].first = 2 * 131072;
    gm_explain_figures(&c.explain, &f);
    CHECK(strcmp(f.roof, "l1_and_shared") == 0);
    CHECK(near(f.attainable_gflops, f.flops / (2 * 32768.0 * 1024 + 32768) * 132 * 1.98));

    make_product(&c, 1024, 256);
    c.explain.gpu = gm_gpu_find("T4");
    gm_explain_figures(&c.explain, &f);
    CHECK(f.compute_bound && f.attainable_gflops == c.explain.gpu->fp32_gflops);
    CHECK(f.percent_of_peak == 100);

    c.op.result.dtype = GM_I64; /* by products of 32 bits */
    gm_explain_figures(&c.explain, &f);
    CHECK(f.peak_gflops == gm_explain_peak(&c.explain) && f.peak_gflops > 0 && f.compute_bound);
}

static void check_words(const struct explain_case *c, const char *problem, const char *cure)
{
    char p[GM_EXPLAIN_WORDS_MAX], u[GM_EXPLAIN_WORDS_MAX];

    gm_explain_words(&c->explain, p, u);
    check_that(strstr(p, problem) != NULL, __FILE__, __LINE__, "no \"%s\" in: %s", problem, p);
    check_that(strstr(u, cure) != NULL, __FILE__, __LINE__, "no \"%s\" in: %s", cure, u);
}

/* Each rule, from figures alone: the variant's name says nothing. */
static void test_words_of_sites(void)
{
    struct explain_case c;

    case_transpose(&c, 0);
    check_words(&c, "touches 32 sectors of 32 bytes instead of 4", "tile of shared memory");
    check_words(&c, "kernels/cuda/mine.cu:23: each warp's store to `result`", "tile");
    check_words(&c, "4096 bytes apart", "");
    case_transpose(&c, 32);
    check_words(&c,
                "kernels/cuda/mine.cu:29: each warp's load from `tile` takes 32 wavefronts (passes "
                "over the banks) instead of 1",
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

    case_init(&c, GM_OP_COPY, 1001, 8192);
    case_add(&c, GM_GLOBAL_LOAD, 8, "a", 256000,
             (struct lanes){.stride = 4, .width = 4, .pitch = 99 * 32});
    check_words(&c, "8 separate spans", "a warp wide");
    case_init(&c, GM_OP_ADD, 10000000, 3);
    c.launch[0].blocks = c.report.totals.blocks = 40000;
    c.report.totals.warps = c.report.totals.loading = 320000;
    case_add(&c, GM_GLOBAL_LOAD, 8, "a", 5e6, (struct lanes){.stride = 12});
    check_words(&c, "12 sectors of 32 bytes instead of 4", "array of its own");
    /* Loads of y and z find in L1 what those of x fetched: then it costs nothing. */
    case_add(&c, GM_GLOBAL_LOAD, 9, "a", 5e6, (struct lanes){.begin = 4, .stride = 12});
    case_add(&c, GM_GLOBAL_LOAD, 10, "a", 5e6, (struct lanes){.begin = 8, .stride = 12});
    c.site[1].sums.first = c.site[2].sums.first = 0;
    c.report.totals.kind[GM_GLOBAL_LOAD].first = c.site[0].sums.first;
    CHECK(gm_explain_worst(&c.explain) == NULL);
}

/* Loads of 16 bytes, whose lanes share vectors: 2 wavefronts are the least, and no conflict. Four
 * loads of 4 bytes that a compiler makes one of have the wavefronts of that one. */
static void test_wide_loads(void)
{
    struct explain_case c;

    case_transpose(&c, 33);
    struct gm_access_site *s =
        case_add(&c, GM_SHARED_LOAD, 50, "tile", 1e6, (struct lanes){.stride = 16, .bytes = 16});
    s->sums.units = s->sums.units_ideal = s->sums.passes = 2e6;
    struct gm_site_figures f = figures_of(&c, 4);
    CHECK_STR(f.verdict, "no conflict");
    CHECK(f.units == 2 && f.ideal == 2);
    s->sums.units = 4e6;
    s->sums.passes = s->sums.units_ideal;
    CHECK_STR(figures_of(&c, 4).verdict, "no conflict as vectors");
    CHECK(gm_explain_worst(&c.explain) != s);
    s->sums.passes = 4e6;
    CHECK_STR(figures_of(&c, 4).verdict, "2-way bank conflict");

    /* Two loads of one line, of which the example has one address, and the other a row. */
    s = case_add(&c, GM_SHARED_LOAD, 51, "tile", 1e6, (struct lanes){.stride = 0});
    CHECK_STR(figures_of(&c, 5).verdict, "one address");
    s->sums.bytes_useful = (4 + 128) / 2 * 1e6;
    CHECK_STR(figures_of(&c, 5).verdict, "no conflict");
}

/* What counts cannot show of a single request: latency, instructions, blocks. */
static void test_words_of_kernels(void)
{
    struct explain_case c;

    /* One element of a row for each thread: a load is all that a warp has under way. */
    case_init(&c, GM_OP_COPY, 8192, 8192);
    c.launch[0].blocks *= 4;
    c.report.totals.blocks *= 4;
    c.report.totals.loading = c.report.totals.warps *= 4;
    case_add(&c, GM_GLOBAL_LOAD, 8, "a", 8192 * 256, (struct lanes){.stride = 4});
    case_add(&c, GM_GLOBAL_STORE, 8, "result", 8192 * 256, (struct lanes){.stride = 4});
    check_words(&c, "the 64 warps of a multiprocessor have 8.19 kB of loads under way",
                "16 bytes for each lane and request");
    check_words(&c, "needed at any time, 10.3 kB", "kernel=vector.");

    /* 16 bytes a lane */
    case_init(&c, GM_OP_COPY, 8192, 8192);
    case_add(&c, GM_GLOBAL_LOAD, 8, "a", 8192 * 64, (struct lanes){.stride = 16, .bytes = 16});
    case_add(&c, GM_GLOBAL_STORE, 8, "result", 8192 * 64,
             (struct lanes){.stride = 16, .bytes = 16});
    check_words(&c, "Nothing is wasted that costs time", "H200 moves at most 4800 GB/s");
    c.explain.gpu = gm_gpu_find("L4");
    check_words(&c, "Nothing is wasted that costs time", "L4 moves at most 300 GB/s");
    c.report.launches = 2;
    c.launch[1].prepares = true;
    check_words(&c, "Nothing is wasted",
                "rearranging the data before and after takes 1 more pass.");

    make_product(&c, 1024, 1);
    check_words(&c, "each block that needs an element fetches it again",
                "into a tile in shared memory");
    make_product(&c, 1024, 32);
    case_add(&c, GM_SHARED_LOAD, 13, "tile", 2 * 1024 * 1024 * 32, (struct lanes){.stride = 4});
    check_words(&c, "each multiply-add takes its operands from there", "registers");
    c.launch[0].blocks = c.report.totals.blocks = 32;
    check_words(&c, "the grid has 32 blocks, and H200 has 132 multiprocessors", "smaller tiles");

    /* A copy whose lanes are idle, and whose time is not memory's. */
    case_init(&c, GM_OP_COPY, 8192, 8192);
    case_add(&c, GM_GLOBAL_LOAD, 8, "a", 8192 * 512, (struct lanes){.stride = 4, .active = 0xFFFF});
    case_add(&c, GM_GLOBAL_STORE, 8, "result", 8192 * 512,
             (struct lanes){.stride = 4, .active = 0xFFFF});
    check_words(&c, "On average 16 of a warp's 32 lanes take part in a request", "same branch");
    c.launch[0].block[0] = 19;
    check_words(&c, "not a multiple of 32", "multiple of 32 threads");

    case_transpose(&c, 33);
    c.launch[0].shared = 300 * 1024;
    check_words(&c, "No block of this kernel fits", "less shared memory");

    case_init(&c, GM_OP_TRANSPOSE, 40, 50);
    case_add(&c, GM_GLOBAL_LOAD, 8, "a", 63, (struct lanes){.stride = 4});
    check_words(&c, "The launch takes most of the time", "one launch more to do");

    case_init(&c, GM_OP_COPY, 0, 5);
    c.report.launches = 0;
    check_words(&c, "Nothing to improve", "");
}

/* What was traced only in part has no estimate: words tell of its requests. */
static void test_words_when_cut(void)
{
    struct explain_case c;

    make_product(&c, 1024, 1);
    c.report.cut = true;
    check_words(&c, "each multiply-add loads both of its operands", "tile in shared memory");
    case_add(&c, GM_SHARED_LOAD, 13, "tile", 1024, (struct lanes){.stride = 4});
    check_words(&c, "how many multiply-adds each load from shared memory serves", "registers");
    case_transpose(&c, 33);
    c.report.cut = true;
    check_words(&c, "No request is wasteful in the traced part", "A smaller shape");
    case_transpose(&c, 0);
    c.report.cut = true;
    check_words(&c, "touches 32 sectors", "tile");
}

/* A variant with times is told of as they were, and no slower one is named. */
static void test_measured(void)
{
    struct explain_case c;
    char text[GM_EXPLAIN_WORDS_MAX];

    case_transpose(&c, 33);
    CHECK(!gm_explain_measured(&c.explain, text));
    c.variant.name = "padded";
    if (CHECK(gm_explain_measured(&c.explain, text)))
        check_that(strstr(text, "on an H200: 7.104 us, 90.5 % of a copy; vectorized 6.88 us") ||
                       strstr(text, "on an H200: 7.104 us, 90."),
                   __FILE__, __LINE__, "%s", text);
    c.explain.gpu = gm_gpu_find("A100");
    CHECK(!gm_explain_measured(&c.explain, text));
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
    test_words_of_sites();
    test_wide_loads();
    test_words_of_kernels();
    test_words_when_cut();
    test_measured();
    test_trifles();
    return check_report();
}
