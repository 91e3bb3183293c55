/*
 * test_choose.c - estimates and choices on a GPU and a CPU that are not here, by the recorded times
 * of every variant in tests/bench/results/. How far choices are from the best is
 * tests/bench/replay.c's to say; here they must be choices: of a variant that can run, the same
 * every time, and not absurd.
 */
#include "kernels/choose/choose.h"
#include "kernels/device_facts.h"
#include "kernels/layout.h"
#include "tests/unit/check.h"

#include <jansson.h>
#include <math.h>

#define NEAR 0.03 /* as good as the best */

/* "4096x64^T" or "4096x64 col": what is behind the shape itself is cut off and remembered. */
static bool read_shape(char *word, struct gm_shape *ret, bool *ret_trans)
{
    char *mark = strchr(word, '^');

    *ret_trans = mark != NULL;
    if (mark)
        *mark = '\0';
    return gm_shape_parse(word, strlen(word), ret);
}

static bool read_op(json_t *row, struct gm_op *ret)
{
    const char *op = json_string_value(json_object_get(row, "op"));
    const char *type = json_string_value(json_object_get(row, "dtype"));
    char text[128], *save, *word;
    struct gm_matrix operand[GM_OPERANDS_MAX] = {0};
    bool present[GM_OPERANDS_MAX] = {false}, trans[2] = {false, false};
    struct gm_op_options options = {0};
    struct gm_error err = {.detail = ""};
    enum gm_op_kind kind;

    snprintf(text, sizeof(text), "%s", json_string_value(json_object_get(row, "shape")));
    if (!CHECK(gm_op_from_name(op, &kind)))
        return false;
    word = strtok_r(text, " ", &save);
    for (unsigned i = 0; word; word = strtok_r(NULL, " ", &save)) {
        struct gm_shape shape;
        if (i < 2 && read_shape(word, &shape, &trans[i])) {
            present[i] = true;
            if (!CHECK_STATUS(gm_matrix_init(&operand[i++], gm_dtype_from_name(type, strlen(type)),
                                             GM_ROW_MAJOR, &shape, &err),
                              GM_OK, &err))
                return false;
        } else if (!CHECK(gm_precision_from_name(word, strlen(word), &options.precision))) {
            return false;
        }
    }
    options.transa = trans[0];
    options.transb = trans[1];
    return CHECK_STATUS(gm_op_init(ret, kind, &options, operand, present, &err), GM_OK, &err);
}

static bool same_operation(json_t *left, json_t *right)
{
    return json_equal(json_object_get(left, "op"), json_object_get(right, "op")) &&
           json_equal(json_object_get(left, "dtype"), json_object_get(right, "dtype")) &&
           json_equal(json_object_get(left, "shape"), json_object_get(right, "shape"));
}

static double time_of(json_t *row)
{
    return json_number_value(json_object_get(row, "median_us")) +
           json_number_value(json_object_get(row, "prepare_us"));
}

/* A row that is no variant's, or of OpenBLAS, which not all builds have. */
static bool is_baseline(json_t *row)
{
    const char *name = json_string_value(json_object_get(row, "variant"));

    return strcmp(name, "nothing") == 0 || strcmp(name, "cudaMemcpy") == 0 ||
           strcmp(name, "openblas") == 0;
}

/* How much longer than the best what is chosen takes; negative where it was not timed. */
static double loss_of(json_t *results, size_t first, const char *chosen)
{
    json_t *row, *like = json_array_get(results, first);
    double best = -1, mine = -1;

    for (size_t i = first; (row = json_array_get(results, i)) && same_operation(row, like); i++) {
        if (is_baseline(row))
            continue;
        if (best < 0 || time_of(row) < best)
            best = time_of(row);
        if (strcmp(json_string_value(json_object_get(row, "variant")), chosen) == 0)
            mine = time_of(row);
    }
    return mine < 0 ? -1 : mine / best - 1;
}

/* Steps of the way from `register_tiled` to `multistage`, for readers: `auto` never takes them. */
static bool is_lesson(const char *name)
{
    static const char *const lessons[] = {"vector_loads", "warp_tiled", "double_buffered"};

    for (size_t i = 0; i < sizeof(lessons) / sizeof(lessons[0]); i++) {
        if (strcmp(name, lessons[i]) == 0)
            return true;
    }
    return false;
}

/* Loose bounds: a table that was fitted to these times does better. */
#define NEAR_SHARE 0.85
#define FAR 1.0
#define HOST_FAR 2.0 /* other programs took part of it, and some operations take 20 ns */

static void test_recorded(json_t *results, const struct gm_device_facts *facts, double far)
{
    unsigned shapes = 0, near = 0;
    json_t *row, *before = NULL;

    for (size_t i = 0; (row = json_array_get(results, i)); before = row, i++) {
        const struct gm_variant *variant = NULL, *again = NULL;
        struct gm_error err = {.detail = ""};
        struct gm_op op;
        if ((before && same_operation(row, before)) || !read_op(row, &op) ||
            !CHECK_STATUS(gm_select(&op, facts, NULL, &variant, &err), GM_OK, &err))
            continue;
        CHECK(!is_lesson(variant->name));
        CHECK_EQ(gm_variant_check(variant, &op, facts, &err), GM_OK);
        CHECK_EQ(gm_select(&op, facts, "auto", &again, &err), GM_OK);
        CHECK(again == variant);
        double loss = loss_of(results, i, variant->name);
        if (loss < 0)
            continue; /* it was not timed */
        shapes++;
        near += loss <= NEAR;
        if (!CHECK(loss <= far))
            printf("%s of %s %s: %s takes %.1f%% longer than the best\n", gm_op_name(op.kind),
                   gm_dtype_name(op.result.dtype), json_string_value(json_object_get(row, "shape")),
                   variant->name, 100 * loss);
    }
    printf("%u of %u within %.0f%%\n", near, shapes, 100 * NEAR);
    CHECK(shapes > 50);
    CHECK(near >= NEAR_SHARE * shapes);
}

static bool is_same(struct gm_tile_choice one, struct gm_tile_choice other)
{
    return one.config == other.config && one.splits == other.splits &&
           one.repack[0] == other.repack[0] && one.repack[1] == other.repack[1];
}

/* Something of a product or a move that may change what is chosen. False: it has no such thing. */
static bool change(struct gm_op *op, unsigned which)
{
    bool product = op->kind == GM_OP_MATMUL;

    switch (which) {
    case 0:
        return true;
    case 1:
        op->precision = GM_PRECISION_IEEE;
        return true;
    case 2:
        op->operand[0].layout = GM_COL_MAJOR;
        return true;
    case 3:
        op->alpha = (struct gm_scalar){.is_integer = true};
        return product;
    case 4: /* c, which is read or not */
    case 5:
        op->operand[2] = op->result;
        op->operands = 3;
        op->beta.real = op->beta.integer = which == 4;
        return product;
    default:
        op->transa = !op->transa;
        return product && op->operand[0].rows == op->operand[0].cols;
    }
}

/* A cache gives the same answers, before and after it has them, and for operations that differ in
 * one thing. */
static void test_cache(json_t *results, const struct gm_device_facts *facts)
{
    struct gm_choice_cache *cache = NULL;
    struct gm_error err = {.detail = ""};
    json_t *row;

    if (!CHECK_STATUS(gm_choice_cache_open(&cache, &err), GM_OK, &err))
        return;
    for (unsigned round = 0; round < 2; round++) {
        for (size_t i = 0; (row = json_array_get(results, i)); i += 5) {
            const struct gm_variant *kept = NULL, *variant = NULL;
            struct gm_op op;
            if (!read_op(row, &op))
                continue;
            const struct gm_op as_read = op;
            for (unsigned which = 0; which < 7; which++) {
                op = as_read;
                if (!change(&op, which))
                    continue;
                CHECK_EQ(gm_select(&op, facts, NULL, &variant, NULL), GM_OK);
                CHECK_EQ(gm_choose(cache, &op, facts, "auto", &kept, &err), GM_OK);
                CHECK(kept == variant);
                if (strcmp(kept->name, "multistage_tuned") == 0)
                    CHECK(is_same(op.tiles, gm_choose_tiles(&op, facts)));
                else
                    CHECK_EQ(op.tiles.splits, 0);
            }
            CHECK_EQ(gm_choose(cache, &op, facts, "no such", &kept, &err), GM_KERNEL_UNAVAILABLE);
        }
    }
    gm_choice_cache_close(cache);
    gm_choice_cache_close(NULL);
}

/* Candidates are sorted, and those without an estimate come last. */
static void test_candidates(json_t *results, const struct gm_device_facts *facts)
{
    struct gm_candidate found[GM_CANDIDATES_MAX];
    json_t *row;

    for (size_t i = 0; (row = json_array_get(results, i)); i += 97) {
        const struct gm_variant *variant = NULL;
        struct gm_op op;
        if (!read_op(row, &op))
            continue;
        unsigned count = gm_candidates(&op, facts, found);
        CHECK(count > 1);
        CHECK_EQ(gm_select(&op, facts, NULL, &variant, NULL), GM_OK);
        CHECK(variant == found[0].variant);
        for (unsigned j = 1; j < count; j++)
            CHECK(found[j].estimate.us < 0 || (found[j - 1].estimate.us >= 0 &&
                                               found[j - 1].estimate.us <= found[j].estimate.us));
    }
}

/* A GPU of half the multiprocessors and half the bandwidth takes longer, but not by more than all
 * that is halved. dynamic_tile can take wider tiles there, and not be slower. */
static void test_slower(json_t *results, const struct gm_device_facts *facts)
{
    struct gm_gpu half = *facts->gpu;
    struct gm_device_facts slower = *facts;
    json_t *row;

    half.sms /= 2;
    half.fp32_gflops /= 2;
    half.fp64_gflops /= 2;
    half.int32_gflops /= 2;
    half.tensor_f16_gflops /= 2;
    half.tensor_tf32_gflops /= 2;
    half.tensor_fp64_gflops /= 2;
    half.dram_gbs /= 2;
    slower.gpu = &half;
    for (size_t i = 0; (row = json_array_get(results, i)); i += 13) {
        const char *name = json_string_value(json_object_get(row, "variant"));
        struct gm_op op;
        if (!read_op(row, &op))
            continue;
        double us = gm_estimate(&op, op.kind, name, facts).us;
        double longer = gm_estimate(&op, op.kind, name, &slower).us;
        if (us < 0)
            continue;
        if (!CHECK(longer >= 0.7 * us && longer <= 3 * us))
            printf("%s: %g us, on half the device %g us\n", name, us, longer);
    }
}

/* Any operation has estimates that are numbers: empty ones and enormous ones, on every model. */
static void test_any_shape(void)
{
    uint64_t seed = check_seed();
    const struct gm_variant *variant;

    for (unsigned i = 0; i < 2000; i++) {
        const struct gm_gpu *gpu = gm_gpu_at(check_random(&seed) % 9);
        const struct gm_device_facts facts = {.kind = GM_DEVICE_CUDA, .gpu = gpu};
        const struct gm_device_facts host = {.kind = GM_DEVICE_CPU,
                                             .compute_units = (unsigned)(check_random(&seed) % 100),
                                             .vector_bytes = 16u << check_random(&seed) % 3,
                                             .tuned_blas = check_random(&seed) % 2};
        uint64_t size[4]; /* matrices, and three sides: any number of bits, or 0 */
        for (unsigned j = 0; j < 4; j++)
            size[j] = check_random(&seed) >> (40 + check_random(&seed) % 25) % 64;
        bool stacked = check_random(&seed) % 2;
        enum gm_dtype dtype =
            (enum gm_dtype)(GM_DTYPE_NONE + 1 + check_random(&seed) % (GM_DTYPE_COUNT - 1));
        const struct gm_matrix a = {.dtype = dtype,
                                    .stacked = stacked,
                                    .batch = stacked ? size[0] : 1,
                                    .rows = size[1],
                                    .cols = size[2]};
        for (unsigned kind = GM_OP_COPY; kind <= GM_OP_FLIP; kind++) {
            struct gm_matrix operand[GM_OPERANDS_MAX] = {a, a};
            const bool present[GM_OPERANDS_MAX] = {true,
                                                   gm_op_operands_min((enum gm_op_kind)kind) > 1};
            struct gm_op_options options = {0};
            struct gm_op op;
            if (kind == GM_OP_MATMUL) {
                operand[1].rows = size[2];
                operand[1].cols = size[3];
            }
            if (gm_op_init(&op, (enum gm_op_kind)kind, &options, operand, present, NULL) != GM_OK)
                continue;
            for (size_t j = 0; (variant = gm_variant_at(j)); j++) {
                double us = gm_estimate(&op, variant->op, variant->name, &facts).us;
                double host_us = gm_estimate(&op, variant->op, variant->name, &host).us;
                CHECK(us == -1 || us > 0);
                CHECK(host_us == -1 || (host_us > 0 && isfinite(host_us)));
            }
        }
    }
}

/* A GPU of which nothing is known but its name gets estimates too. */
static void test_unknown(void)
{
    const struct gm_gpu gpu = {.name = "new", .capability = 999};
    const struct gm_device_facts facts = {.kind = GM_DEVICE_CUDA, .gpu = &gpu};
    struct gm_op op = {.kind = GM_OP_COPY, .operands = 1};

    op.operand[0] = op.result =
        (struct gm_matrix){.dtype = GM_U8, .batch = 1, .rows = 1, .cols = 9};
    double us = gm_estimate(&op, GM_OP_COPY, "vector", &facts).us;
    CHECK(us > 1 && us < 100);
}

static double transpose_us(const char *name, enum gm_dtype dtype, uint64_t rows, uint64_t cols,
                           const struct gm_device_facts *facts)
{
    struct gm_op op = {.kind = GM_OP_TRANSPOSE, .operands = 1};

    op.operand[0] = (struct gm_matrix){.dtype = dtype, .batch = 1, .rows = rows, .cols = cols};
    op.result = (struct gm_matrix){.dtype = dtype, .batch = 1, .rows = cols, .cols = rows};
    return gm_estimate(&op, op.kind, name, facts).us;
}

static void test_transposes(const struct gm_device_facts *facts)
{
    /* Rows that are whole vectors take no longer, though columns of few rows would share banks. */
    double us = transpose_us("skinny", GM_U8, 133, 301056, facts);
    CHECK(us > 0 && us < 1.05 * transpose_us("skinny", GM_U8, 133, 301057, facts));

    /* Rows of the result that end within a vector are stored in parts. */
    us = transpose_us("packed_u8", GM_U8, 240, 1024, facts);
    CHECK(us > 0 && 1.05 * us < transpose_us("packed_u8", GM_U8, 239, 1024, facts));
}

/* With the table of another GPU, nothing is promised that the data sheet rules out. */
static void test_data_sheet(void)
{
    const struct gm_variant *variant;

    for (size_t i = 1; i < 9; i++) {
        const struct gm_device_facts facts = {.kind = GM_DEVICE_CUDA, .gpu = gm_gpu_at(i)};
        double least = 4 * 0x1p30 / (facts.gpu->dram_gbs * 1e3);
        for (size_t j = 0; (variant = gm_variant_at(j)); j++) {
            double us = transpose_us(variant->name, GM_F64, 16384, 16384, &facts);
            CHECK(us == -1 || us > least);
        }
    }
}

/* A table is read as it is written, and what is wrong in it is said. */
static void test_profile(const struct gm_device_facts *facts)
{
    static const char *const wrong[] = {"GM_LAUNCH(3.4, 0)",
                                        "GM_LAUNCH(3.4, -1)",
                                        "GM_LAUNCH(3.4, 1) 2",
                                        "GM_RATES(naive, 0, 1, 1, 1, 1, 1, 1)",
                                        "GM_MEASURED_ON(\"GPU\", \"1\", \"2\", \"3\"",
                                        "GM_RATES(no_such_row, 1, 1, 1, 1, 1, 1, 1)",
                                        "GM_RATES(naive, 1, 1)",
                                        "GM_LAUNCH(1, 2, 3)",
                                        "GM_TILE(99, 1, 1, 1, 1, 1)",
                                        "GM_RATES(naive, 1, nan, 1, 1, 1, 1, 1)",
                                        "GM_RATES(naive, 1, 1, 1, 1, 1, 1, 1)\n"
                                        "GM_RATES(host_naive, 1, 1, 1, 1, 1, 1, 1)",
                                        "hello"};
    struct gm_device_facts measured = *facts;
    struct gm_profile *profile = NULL;
    struct gm_error err = {.detail = ""};
    struct gm_op op = {.kind = GM_OP_COPY, .operands = 1};

    op.operand[0] = op.result =
        (struct gm_matrix){.dtype = GM_F32, .batch = 1, .rows = 1, .cols = 4};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        CHECK_EQ(gm_profile_read(wrong[i], &profile, &err), GM_BAD_PARAMETER);
        CHECK(strstr(err.detail, "line 1 "));
        CHECK(profile == NULL);
    }
    CHECK_EQ(gm_profile_read("GM_LAUNCH(1, 1)\n", &profile, &err), GM_BAD_PARAMETER);
    CHECK(strstr(err.detail, "GM_MEASURED_ON"));
    CHECK_EQ(gm_profile_read("GM_LAUNCH(1, 1)\nGM_LAUNCH(1, 1)\n", &profile, &err),
             GM_BAD_PARAMETER);
    CHECK(strstr(err.detail, "line 2 "));
    CHECK_STATUS(
        gm_profile_read("/*\n * a comment\n */\nGM_MEASURED_ON(\"GPU\", \"1\", \"2\", \"3\")\n"
                        "GM_LAUNCH(100, 1)\n",
                        &profile, &err),
        GM_OK, &err);
    if (!profile)
        return;
    CHECK_STR(gm_profile_gpu(profile), "GPU");
    measured.profile = profile;
    double us = gm_estimate(&op, GM_OP_COPY, "vector", facts).us;
    double longer = gm_estimate(&op, GM_OP_COPY, "vector", &measured).us;
    CHECK(longer > 100 && longer < 100 + us);
    free(profile);
}

/* What can be split is, on few tiles; what cannot be loaded widely is repacked, if it is read
 * often. Equal for equal questions. */
static void test_tiles(void)
{
    struct gm_matrix operand[GM_OPERANDS_MAX] = {
        {.dtype = GM_F32, .batch = 1, .rows = 64, .cols = 65536},
        {.dtype = GM_F32, .batch = 1, .rows = 65536, .cols = 64}};
    const bool present[GM_OPERANDS_MAX] = {true, true};
    struct gm_op_options options = {0};
    struct gm_op op;

    CHECK_EQ(gm_op_init(&op, GM_OP_MATMUL, &options, operand, present, NULL), GM_OK);
    struct gm_tile_choice few = gm_choose_tiles(&op, NULL), again = gm_choose_tiles(&op, NULL);
    CHECK(few.splits > 8);
    CHECK(few.config < GM_F32_CONFIGS);
    CHECK(is_same(few, again));
    operand[0] = (struct gm_matrix){.dtype = GM_F64, .batch = 1, .rows = 4096, .cols = 4096};
    operand[1] = operand[0];
    CHECK_EQ(gm_op_init(&op, GM_OP_MATMUL, &options, operand, present, NULL), GM_OK);
    struct gm_tile_choice large = gm_choose_tiles(&op, NULL);
    CHECK_EQ(large.splits, 1);
    CHECK_EQ(large.config, GM_F32_CONFIGS);
}

/* Variants for GPUs without an estimate, besides lessons: `auto` takes none of them, or by another
 * rule. Here belongs also what was not timed yet. */
static bool is_without(const char *name)
{
    static const char *const without[] = {"float3", "float3_staged", "float3_soa", "float3_aligned",
                                          "grouped"};

    for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++)
        if (strcmp(name, without[i]) == 0)
            return true;
    return is_lesson(name);
}

/* Every other variant for GPUs has an estimate; says what is missing. */
static void test_all_have_one(const struct gm_device_facts *facts)
{
    const struct gm_matrix operand[GM_OPERANDS_MAX] = {
        {.dtype = GM_F32, .batch = 1, .rows = 256, .cols = 256},
        {.dtype = GM_F32, .batch = 1, .rows = 256, .cols = 256}};
    const struct gm_variant *variant;

    for (size_t i = 0; (variant = gm_variant_at(i)); i++) {
        const bool present[GM_OPERANDS_MAX] = {true, gm_op_operands_min(variant->op) > 1};
        struct gm_op_options options = {0};
        struct gm_op op;
        bool expected = !is_without(variant->name);
        if (!(variant->run[GM_DEVICE_CUDA] || variant->run[GM_DEVICE_SIM]) ||
            gm_op_init(&op, variant->op, &options, operand, present, NULL) != GM_OK)
            continue;
        double us = gm_estimate(&op, variant->op, variant->name, facts).us;
        if (CHECK_EQ(us > 0 && us < 1000, expected))
            continue;
        fprintf(stderr, "  %s %s: ", gm_op_name(variant->op), variant->name);
        if (us > 0)
            fprintf(stderr, "%g us\n", us);
        else
            fprintf(stderr, "no %s; until it was timed, its name belongs in is_without() here\n",
                    gm_lacks_numbers(&op, variant->op, variant->name, facts)
                        ? "numbers in kernels/choose/profiles/h200.inc"
                        : "estimate by kernels/choose/estimate.c");
    }
}

static bool parse_op(const char *dtype, const char *a, const char *b, enum gm_precision precision,
                     struct gm_op *ret)
{
    const struct gm_op_options options = {.precision = precision};
    const bool present[GM_OPERANDS_MAX] = {true, true};
    const char *text[2] = {a, b};
    struct gm_matrix operand[GM_OPERANDS_MAX] = {0};
    struct gm_error err = {.detail = ""};

    for (int i = 0; i < 2; i++) {
        struct gm_shape shape;
        if (!CHECK(gm_shape_parse(text[i], strlen(text[i]), &shape)) ||
            !CHECK_STATUS(gm_matrix_init(&operand[i], gm_dtype_from_name(dtype, strlen(dtype)),
                                         GM_ROW_MAJOR, &shape, &err),
                          GM_OK, &err))
            return false;
    }
    return CHECK_STATUS(gm_op_init(ret, GM_OP_MATMUL, &options, operand, present, &err), GM_OK,
                        &err);
}

/* bf16 of few rows that begin at no multiples of 16 bytes is not estimated by cuBLAS. */
static void test_cublas(const struct gm_device_facts *facts)
{
    static const struct {
        const char *dtype, *a, *b;
        bool has_one;
    } cases[] = {{"bf16", "8x92", "92x116", false},
                 {"bf16", "17x92", "92x116", true},
                 {"bf16", "8x96", "96x128", true},
                 {"f16", "8x92", "92x116", true},
                 {"f16", "16x92", "92x12", false}};
    struct gm_op op;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (parse_op(cases[i].dtype, cases[i].a, cases[i].b, GM_PRECISION_FP32, &op))
            CHECK_EQ(gm_estimate(&op, op.kind, "cublas", facts).us > 0, cases[i].has_one);
    }
}

/* What takes less over the link with others is a small job, and a long sum is none, for it waits;
 * by the profile's link, however fast the one at hand was found. */
static void test_small_jobs(void)
{
    static const struct {
        const char *a, *b;
        bool small;
    } cases[] = {{"64x64", "64x64", true},     {"1x60", "60x80", true},
                 {"160x160", "160x160", true}, {"256x256", "256x256", false},
                 {"4x2000", "2000x4", false},  {"1024x1024", "1024x1024", false}};
    struct gm_device_facts facts = {.kind = GM_DEVICE_CUDA, .batch_max = 48};
    struct gm_profile *slow = NULL;
    struct gm_error err = {.detail = ""};
    struct gm_op op;

    CHECK_STATUS(gm_profile_read("GM_MEASURED_ON(\"GPU\", \"1\", \"2\", \"3\")\n"
                                 "GM_LINK(0.01, 0.01, 10, 3, 20000, 2, 7)\n",
                                 &slow, &err),
                 GM_OK, &err);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (!parse_op("f32", cases[i].a, cases[i].b, GM_PRECISION_FP32, &op))
            continue;
        double us = gm_estimate(&op, GM_OP_MATMUL, "multistage_tuned", &facts).us;
        if (!CHECK_EQ(gm_is_small_job(&op, &facts, us), cases[i].small))
            printf("%s by %s\n", cases[i].a, cases[i].b);
        facts.link_in_gbs = facts.link_out_gbs = 1e-3;
        CHECK_EQ(gm_is_small_job(&op, &facts, us), cases[i].small);
        CHECK(!gm_is_small_job(&op, &facts, -1)); /* without an estimate */
        facts.profile = slow;
        CHECK(!gm_is_small_job(&op, &facts, us));
        facts.profile = NULL;
        facts.batch_max = 1;
        CHECK(!gm_is_small_job(&op, &facts, us));
        facts.batch_max = 48;
    }
    free(slow);
}

/* A lone job takes the kernel and the copies of its bytes, by the link's measured rates; a small
 * one less, gathered. On a CPU nothing is copied, and in the simulator nothing has an estimate. */
static void test_jobs(const struct gm_device_facts *facts)
{
    struct gm_candidate found[GM_CANDIDATES_MAX];
    struct gm_device_facts device = *facts;
    struct gm_op op, small;

    if (!parse_op("f32", "2048x2048", "2048x2048", GM_PRECISION_FP32, &op) ||
        !parse_op("f32", "64x64", "64x64", GM_PRECISION_FP32, &small))
        return;
    double bytes = 2048.0 * 2048 * sizeof(float); /* of one matrix */
    device.batch_max = 48;
    device.link_in_gbs = device.link_out_gbs = 50;
    double us = gm_job_us(&op, &device), small_us = gm_job_us(&small, &device);
    CHECK(gm_candidates(&op, &device, found) > 0 && us > found[0].estimate.us + 3 * bytes / 50e3);
    device.link_in_gbs = 25;
    CHECK(fabs(gm_job_us(&op, &device) - us - 2 * bytes / 50e3) < 1e-3 * us);
    device.link_out_gbs = 12.5;
    CHECK(fabs(gm_job_us(&op, &device) - us - 5 * bytes / 50e3) < 1e-3 * us);
    device.link_in_gbs = device.link_out_gbs = 0; /* not measured: the profile's */
    CHECK(fabs(gm_job_us(&op, &device) - us) < 0.2 * us);
    device.batch_max = 1;
    CHECK(small_us > 0 && gm_job_us(&small, &device) > small_us);
    device = (struct gm_device_facts){.kind = GM_DEVICE_CPU, .vector_bytes = 32};
    CHECK(gm_candidates(&op, &device, found) > 1);
    CHECK(gm_job_us(&op, &device) == found[0].estimate.us);
    device.kind = GM_DEVICE_SIM;
    CHECK(isinf(gm_job_us(&op, &device)));
}

/* Tensor cores: f32 where it is large and K long enough for the accuracy; without cuBLAS f16 and
 * bf16 as well, on other GPUs that have them too, and by mma what wgmma would copy first. */
static void test_tensor_cores(void)
{
    static const struct {
        const char *dtype, *gpu, *a, *b;
        enum gm_precision precision;
        const char *variant; /* NULL: none of them */
    } cases[] = {
        {"f32", "H200", "4096x4096", "4096x4096", GM_PRECISION_FP32, "split_bf16"},
        {"f32", "H200", "1024x1024", "1024x1024", GM_PRECISION_FP32, "split_bf16"},
        {"f32", "H200", "512x16384", "16384x512", GM_PRECISION_FP32, "split_bf16"},
        {"f32", "H200", "4096x4096", "4096x4096", GM_PRECISION_IEEE, NULL},
        {"f32", "H200", "8192x128", "128x8192", GM_PRECISION_FP32, NULL},
        {"f32", "H200", "300x300", "300x300", GM_PRECISION_FP32, NULL},
        {"f32", "H200", "64x8192", "8192x8192", GM_PRECISION_FP32, NULL},
        {"f32", "A100", "4096x4096", "4096x4096", GM_PRECISION_FP32, NULL},
        {"bf16", "H200", "4096x4096", "4096x4096", GM_PRECISION_IEEE, "wgmma"},
        {"f16", "H200", "4095x4095", "4095x4095", GM_PRECISION_FP32, "wgmma"},
        {"f16", "H200", "512x100x100", "512x100x100", GM_PRECISION_FP32, "mma"},
        {"f16", "A100", "4096x4096", "4096x4096", GM_PRECISION_FP32, "mma"},
        {"bf16", "RTX 4090", "4096x4096", "4096x4096", GM_PRECISION_FP32, "mma"},
        {"f16", "T4", "4096x4096", "4096x4096", GM_PRECISION_FP32, NULL},
    };
    struct gm_device_facts facts = {.kind = GM_DEVICE_CUDA, .gpu = gm_gpu_find("H200")};
    const struct gm_variant *variant;
    struct gm_error err = {.detail = ""};
    struct gm_op op;

    if (!parse_op("f16", "64x64", "64x64", GM_PRECISION_FP32, &op) ||
        gm_select(&op, &facts, "wgmma", &variant, NULL) != GM_OK) {
        printf("kernels for compute capability 9.0 are not in this build: not tested\n");
        return;
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        facts.gpu = gm_gpu_find(cases[i].gpu);
        facts.tuned_blas = false;
        if (!CHECK(facts.gpu) ||
            !parse_op(cases[i].dtype, cases[i].a, cases[i].b, cases[i].precision, &op) ||
            !CHECK_STATUS(gm_select(&op, &facts, NULL, &variant, &err), GM_OK, &err))
            continue;
        bool right = cases[i].variant ? strcmp(variant->name, cases[i].variant) == 0
                                      : variant->tensor_products == 0;
        if (!CHECK(right))
            fprintf(stderr, "  %s of %s %s on %s takes %s\n", cases[i].dtype, cases[i].a,
                    cases[i].b, cases[i].gpu, variant->name);
    }
}

static double host_us(const struct gm_op *op, const char *name, unsigned threads)
{
    const struct gm_device_facts facts = {
        .kind = GM_DEVICE_CPU, .compute_units = threads, .vector_bytes = 64};

    return gm_estimate(op, op->kind, name, &facts).us;
}

/* Threads shorten what is divided, and nothing else; wider vectors shorten arithmetic. Each variant
 * for CPUs has an estimate. */
static void test_host(void)
{
    const struct gm_device_facts narrow = {.kind = GM_DEVICE_CPU, .vector_bytes = 16};
    const struct gm_device_facts wide = {.kind = GM_DEVICE_CPU, .vector_bytes = 64};
    const struct gm_variant *variant;
    struct gm_op large, small, sum;

    if (!parse_op("f32", "2000x2000", "2000x2000", GM_PRECISION_FP32, &large) ||
        !parse_op("f32", "40x40", "40x40", GM_PRECISION_FP32, &small))
        return;
    CHECK(host_us(&large, "blocked", 16) < host_us(&large, "blocked", 1) / 8);
    CHECK(host_us(&large, "blocked", 1) > 1e4);
    CHECK(host_us(&large, "naive", 16) == host_us(&large, "naive", 1));
    CHECK(host_us(&small, "blocked", 16) == host_us(&small, "blocked", 1));
    CHECK(gm_estimate(&large, GM_OP_MATMUL, "blocked", &narrow).us >
          2 * gm_estimate(&large, GM_OP_MATMUL, "blocked", &wide).us);
    for (size_t i = 0; (variant = gm_variant_at(i)); i++) {
        sum = large;
        sum.kind = variant->op;
        sum.operands = gm_op_operands_min(variant->op);
        if (variant->run[GM_DEVICE_CPU])
            CHECK(gm_estimate(&sum, variant->op, variant->name, &wide).us > 0);
    }
}

/* A row for each time, where a file has those of all variants of a shape in one. */
static json_t *rows_of(json_t *results)
{
    json_t *rows = json_array(), *shape, *us;
    const char *variant;
    size_t i;

    json_array_foreach (results, i, shape) {
        json_object_foreach (json_object_get(shape, "us"), variant, us) {
            json_t *row = json_copy(shape);
            json_object_set_new(row, "variant", json_string(variant));
            json_object_set(row, "median_us", us);
            json_array_append_new(rows, row);
        }
    }
    return rows;
}

/* Recorded times, by the facts that the file has. */
static void test_recorded_host(const char *path)
{
    json_error_t error;
    json_t *document = json_load_file(path, 0, &error);

    if (!CHECK(document != NULL))
        return;
    const struct gm_device_facts facts = {
        .kind = GM_DEVICE_CPU,
        .compute_units = (unsigned)json_integer_value(json_object_get(document, "cores")),
        .vector_bytes = (unsigned)json_integer_value(json_object_get(document, "vector_bytes")),
        .own_cache_bytes =
            (uint64_t)json_integer_value(json_object_get(document, "own_cache_bytes"))};
    json_t *rows = rows_of(json_object_get(document, "results"));
    test_recorded(rows, &facts, HOST_FAR);
    test_candidates(rows, &facts);
    json_decref(rows);
    json_decref(document);
}

int main(void)
{
    static const char *const files[] = {GM_RESULTS "kernels_h200.json",
                                        GM_RESULTS "random_h200.json"};
    const struct gm_device_facts facts = {.kind = GM_DEVICE_CUDA,
                                          .gpu = gm_gpu_find("H200"),
                                          .cache_bytes = (uint64_t)60 << 20,
                                          .tuned_blas = true};

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        json_error_t error;
        json_t *document = json_load_file(files[i], 0, &error);
        if (CHECK(document != NULL)) {
            json_t *results = json_object_get(document, "results");
            test_recorded(results, &facts, FAR);
            test_candidates(results, &facts);
            test_slower(results, &facts);
            test_cache(results, &facts);
        } else
            fprintf(stderr, "%s: %s\n", files[i], error.text);
        json_decref(document);
    }
    test_recorded_host(GM_RESULTS "drawn_cpu_1.json");
    test_recorded_host(GM_RESULTS "drawn_cpu_2.json");
    test_host();
    test_profile(&facts);
    test_any_shape();
    test_unknown();
    test_transposes(&facts);
    test_data_sheet();
    test_cublas(&facts);
    test_tiles();
    test_tensor_cores();
    test_small_jobs();
    test_jobs(&facts);
    test_all_have_one(&facts);
    return check_report();
}
