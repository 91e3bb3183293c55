/*
 * test_sim_figures.c - the textbook's figures, for every variant of the list: by hand where whole
 * warps do the same, and by the model (model.h) at the edges of matrices.
 */
#include "explain_variant.h"
#include "model.h"

static void *sim;

/* ---- By hand ----------------------------------------------------------------------------------
 * 64 x 96 elements are 192 warps' worth of them, and no warp is cut by an edge. A warp's 32
 * neighbours of s bytes are 32 s bytes: s sectors. Down a column of the result, which is 64 s bytes
 * or more from one element to the next, each of 32 lanes touches a sector of its own. */

/* Of each request, on the average. */
struct figures {
    double global_load, global_store, shared_load, shared_store;
};

static void check_figures(const struct gm_op *op, const char *name, double requests,
                          struct figures expected)
{
    static const enum gm_access_kind kinds[] = {GM_GLOBAL_LOAD, GM_GLOBAL_STORE, GM_SHARED_LOAD,
                                                GM_SHARED_STORE};
    const double units[] = {expected.global_load, expected.global_store, expected.shared_load,
                            expected.shared_store};
    struct gm_access_report report = {0};
    bool right = explain(sim, op, variant_of(op->kind, name), &report);

    for (int i = 0; i < 4 && right; i++) {
        const struct gm_access_sums *sums = &report.totals.kind[kinds[i]];
        bool some = units[i] > 0;
        right &= CHECK(sums->requests == (some ? requests : 0));
        right &= CHECK(sums->units == units[i] * sums->requests);
        right &= CHECK(sums->lanes == 32 * sums->requests);
        if (!right)
            fprintf(stderr, "  %s %s of %s: %g requests, %g units each, not %g, %g\n",
                    gm_op_name(op->kind), name, gm_access_name(kinds[i]), sums->requests,
                    sums->units / sums->requests, requests, units[i]);
    }
    CHECK(!report.sampled);
    gm_access_report_clear(&report);
}

static void test_moves(void)
{
    static const struct {
        enum gm_dtype dtype;
        double row;            /* sectors of 32 neighbours */
        double column, padded; /* wavefronts of a column of a tile whose rows are 32, or 33 */
        double shared_row;     /* of 32 neighbours */
    } sizes[] = {
        /* A column of a 32-wide tile: elements of 4 bytes lie in one bank, 32 deep. Of 2 bytes they
         * are 16 words apart: two banks, 16 deep; of 1 byte 8 words: four banks, 8 deep. Of 8 bytes
         * 16 lanes go together, whose words are in two banks, 16 deep: 2 x 16; of 16 bytes 8 lanes,
         * 8 deep: 4 x 8. With the 33rd element each row begins an element on, which of 4, 8 and 16
         * bytes spreads a column over all banks. Of 2 bytes a column that begins in the middle of a
         * word comes round: its last word is in the bank of its first, so every other column takes
         * 2; of 1 byte so do three columns of four. */
        {GM_U8, 1, 8, 1.75, 1}, {GM_F16, 2, 16, 1.5, 1}, {GM_F32, 4, 32, 1, 1},
        {GM_F64, 8, 32, 2, 2},  {GM_C128, 16, 32, 4, 4},
    };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        enum gm_dtype dtype = sizes[i].dtype;
        double s = sizes[i].row, shared = sizes[i].shared_row;
        struct gm_op copy = move_of(GM_OP_COPY, dtype, 64, 96);
        struct gm_op transpose = move_of(GM_OP_TRANSPOSE, dtype, 64, 96);
        struct gm_op flip = move_of(GM_OP_FLIP, dtype, 64, 256);
        check_figures(&copy, "direct", 192, (struct figures){s, s, 0, 0});
        /* 16 bytes a lane: s / 16 as many requests, of 16 sectors each */
        check_figures(&copy, "vector", 192 * s / 16, (struct figures){16, 16, 0, 0});
        check_figures(&transpose, "naive", 192, (struct figures){s, 32, 0, 0});
        check_figures(&transpose, "tiled", 192, (struct figures){s, s, sizes[i].column, shared});
        check_figures(&transpose, "padded", 192, (struct figures){s, s, sizes[i].padded, shared});
        /* backwards the banks are the same */
        check_figures(&flip, "shared", 64 * 256 / 32, (struct figures){s, s, shared, shared});
    }
}

/* Of each kind of access: requests, and units (sectors, wavefronts) in all. */
struct totals {
    double requests[4], units[4];
};

static void check_totals(const struct gm_op *op, const char *name, struct totals expected)
{
    static const enum gm_access_kind kinds[] = {GM_GLOBAL_LOAD, GM_GLOBAL_STORE, GM_SHARED_LOAD,
                                                GM_SHARED_STORE};
    struct gm_access_report report = {0};
    bool right = explain(sim, op, variant_of(op->kind, name), &report);

    for (int i = 0; i < 4 && right; i++) {
        const struct gm_access_sums *sums = &report.totals.kind[kinds[i]];
        right &= CHECK(sums->requests == expected.requests[i]);
        right &= CHECK(sums->units == expected.units[i]);
        if (!right)
            fprintf(stderr, "  %s %s of %s: %g requests of %g units, not %g of %g\n",
                    gm_op_name(op->kind), name, gm_access_name(kinds[i]), sums->requests,
                    sums->units, expected.requests[i], expected.units[i]);
    }
    gm_access_report_clear(&report);
}

/* Kernels that move 16 bytes, or as many as a small matrix lets them, on matrices of whole pieces.
 */
static void test_pieces(void)
{
    struct gm_op small = move_of(GM_OP_TRANSPOSE, GM_F32, 64, 96);
    struct gm_op large = move_of(GM_OP_TRANSPOSE, GM_C128, 64, 96);
    struct gm_op tall = move_of(GM_OP_TRANSPOSE, GM_F32, 4096, 3);
    struct gm_op of_banks = move_of(GM_OP_TRANSPOSE, GM_F32, 17408, 64);
    struct gm_op wide = move_of(GM_OP_TRANSPOSE, GM_U8, 64, 4096);
    struct gm_op flip = move_of(GM_OP_FLIP, GM_F32, 64, 256);
    struct gm_op sum = sum_of(GM_F32, 64, 256, 64, 256);
    struct gm_op with_column = sum_of(GM_F32, 64, 256, 64, 1);

    /* 24 tiles of 16 x 16 pieces of 4 bytes: each of 192 warps reads 2 rows of 64 bytes, writes as
     * many, and is in no bank twice. */
    check_totals(&small, "vectorized", (struct totals){{192, 192, 192, 192}, {768, 768, 192, 192}});
    /* Pieces of 16 bytes are elements here: 192 warps, 512 bytes each. */
    check_totals(&large, "vectorized",
                 (struct totals){{192, 192, 192, 192}, {3072, 3072, 768, 768}});
    /* 128 blocks of 32 rows, so few that each multiprocessor has one: 96 words each, in a request
     * of 16 bytes a lane, put down word by word: with a word left out after 32, 4 words apart are
     * 32 banks. 3 columns of 8 lanes are one store of 16 bytes a lane, for which lanes read words
     * 12 apart, four times: each 8 of them are 99 words and 3 banks on, so that some two meet in a
     * bank. */
    check_totals(&tall, "skinny", (struct totals){{128, 128, 512, 512}, {1536, 1536, 1024, 512}});
    /* 136 blocks of 128 rows of 64 words: lanes read 256 words apart, and one is left out after
     * 256, so that they are in no bank twice. It is put down without: 4 words apart, each 4 in a
     * bank. */
    check_totals(&of_banks, "skinny",
                 (struct totals){{8704, 8704, 34816, 34816}, {139264, 139264, 34816, 139264}});
    /* 32 blocks of 64 rows of 8 pieces and place for a ninth: 576 places, in 18 requests, whose
     * ends cut sectors. 16 rows of 9 pieces and one more are 145 pieces: the four lanes of a column
     * are a piece on in the banks, and eight columns are two words of each. */
    check_totals(&wide, "skinny", (struct totals){{576, 512, 8192, 576}, {8448, 8192, 8192, 2304}});
    /* 128 warps, each piece of the result out of one, which is loaded as its own neighbour. */
    check_totals(&flip, "vectorized", (struct totals){{256, 128, 0, 0}, {4096, 2048, 0, 0}});
    check_totals(&sum, "vectorized", (struct totals){{256, 128, 0, 0}, {4096, 2048, 0, 0}});
    /* A warp's 128 elements lie in one row: one element of the column for all lanes. */
    check_totals(&with_column, "vectorized",
                 (struct totals){{256, 128, 0, 0}, {2048 + 128, 2048, 0, 0}});
}

/* Every other row of the result begins within a sector: those sectors are stored twice, once for
 * each row that they hold a part of, and no others, however many tiles a row crosses. */
static void test_sectors(void)
{
    struct gm_op within = move_of(GM_OP_TRANSPOSE, GM_F64, 450, 454);
    struct gm_access_report report = {0};

    if (explain(sim, &within, variant_of(GM_OP_TRANSPOSE, "vectorized"), &report)) {
        double stored = report.totals.kind[GM_GLOBAL_STORE].units;
        CHECK(!report.sampled);
        if (!CHECK(stored == 450 * 454 * 8 / 32 + 454 / 2))
            fprintf(stderr, "  %g sectors stored\n", stored);
    }
    gm_access_report_clear(&report);
}

/* Products that are cut by their shape. */
static void test_cut_products(void)
{
    struct gm_op stack = products_of(GM_F32, 2, 16, 16, 16);
    struct gm_op sum = product_of(GM_F32, 1, 2048, 1, false, false);

    /* One block, a warp for each of two matrices, with 4 x 2 sums a lane. a comes by 16 bytes, in 4
     * requests. b, which is as long and brings a piece more, ends with the operand: by elements. A
     * step reads 2 of b, and each fourth 4 of a, by 16 bytes, in no bank twice. Results go from
     * where they are, 4 rows of 32 bytes a request. Rows of a are 5 pieces apart: those that 8
     * lanes store beside each other meet in 4 banks. */
    check_totals(&stack, "batched",
                 (struct totals){{4 + 16, 16, 2 * (16 + 32), 4 + 17}, {128, 64, 128, 32 + 17}});
    /* One block: 8 warps, each with 8 steps of a and of b a lane; then 8 sums in shared memory. */
    check_totals(&sum, "split_k_dot", (struct totals){{128, 1, 8, 8}, {512, 1, 8, 8}});
}

/* N x 3 f32, 1024 points: 32 warps. */
static void check_same(const struct gm_op *op, const struct gm_op *other, const char *name)
{
    const struct gm_variant *variant = variant_of(op->kind, name);
    struct gm_access_report report = {0}, expected = {0};

    if (explain(sim, op, variant, &report) && explain(sim, other, variant, &expected) &&
        !CHECK(totals_equal(&report.totals, &expected.totals, 0)))
        fprintf(stderr, "  %s of a stack\n", name);
    gm_access_report_clear(&report);
    gm_access_report_clear(&expected);
}

/* A stack that goes with one b costs what one tall matrix does; and one matrix added to each of a
 * stack what a row does that is as long, though its own rows are no whole pieces. */
static void test_joined(void)
{
    static const char *const products[] = {"naive",        "tiled",      "register_tiled",
                                           "multistage",   "small_tile", "multistage_tuned",
                                           "dynamic_tile", "grid_stride"};
    struct gm_op stack = products_of(GM_F32, 16, 4, 32, 64);
    struct gm_op tall = product_of(GM_F32, 64, 32, 64, false, false);
    struct gm_op vectors = products_of(GM_F32, 16, 4, 32, 3);
    struct gm_op tall_vectors = product_of(GM_F32, 64, 32, 3, false, false);
    struct gm_op matrices = sum_of(GM_F32, 8, 10, 8, 10), rows = sum_of(GM_F32, 30, 80, 1, 80);

    stack.operand[1].batch = vectors.operand[1].batch = 1;
    matrices.operand[0].batch = matrices.result.batch = 30;
    for (size_t i = 0; i < sizeof(products) / sizeof(products[0]); i++)
        check_same(&stack, &tall, products[i]);
    check_same(&vectors, &tall_vectors, "skinny");
    check_same(&matrices, &rows, "vectorized");
}

static void test_float3(void)
{
    struct gm_op sum = sum_of(GM_F32, 1024, 3, 1024, 3);
    struct gm_access_report report = {0};

    /* 3072 floats in a row: 96 warps' worth, of a and of b */
    static const char *const plain[] = {"direct", "grid_stride"};
    for (int i = 0; i < 2; i++) {
        if (explain(sim, &sum, variant_of(GM_OP_ADD, plain[i]), &report)) {
            CHECK(report.totals.kind[GM_GLOBAL_LOAD].requests == 192);
            CHECK(report.totals.kind[GM_GLOBAL_LOAD].units == 192 * 4);
            CHECK(report.totals.kind[GM_GLOBAL_STORE].units == 96 * 4);
            gm_access_report_clear(&report);
        }
    }
    /* x, y and z one by one, 12 bytes apart: 384 bytes, 12 sectors; of a, of b, of the result */
    if (explain(sim, &sum, variant_of(GM_OP_ADD, "float3"), &report)) {
        CHECK(report.totals.kind[GM_GLOBAL_LOAD].requests == 32 * 3 * 2);
        CHECK(report.totals.kind[GM_GLOBAL_LOAD].units == 32 * 3 * 2 * 12);
        CHECK(report.totals.kind[GM_GLOBAL_LOAD].units_ideal == 32 * 3 * 2 * 4);
        CHECK(report.totals.kind[GM_GLOBAL_STORE].units == 32 * 3 * 12);
        CHECK_EQ(report.launches, 1);
        gm_access_report_clear(&report);
    }
    /* the cures: through shared memory, where 3 words apart is 32 banks; */
    if (explain(sim, &sum, variant_of(GM_OP_ADD, "float3_staged"), &report)) {
        CHECK(report.totals.kind[GM_GLOBAL_LOAD].requests == 32 * 3 * 2);
        CHECK(report.totals.kind[GM_GLOBAL_LOAD].units == 32 * 3 * 2 * 4);
        CHECK(report.totals.kind[GM_GLOBAL_STORE].units == 32 * 3 * 4);
        const struct gm_access_sums *load = &report.totals.kind[GM_SHARED_LOAD];
        CHECK(load->units == load->requests && load->requests == 32 * (6 + 3));
        gm_access_report_clear(&report);
    }
    /* three arrays; and in both the passes that rearrange are not the kernel's; */
    if (explain(sim, &sum, variant_of(GM_OP_ADD, "float3_soa"), &report)) {
        CHECK(report.totals.kind[GM_GLOBAL_LOAD].requests == 32 * 3 * 2);
        CHECK(report.totals.kind[GM_GLOBAL_LOAD].units == 32 * 3 * 2 * 4);
        CHECK(report.totals.kind[GM_SHARED_LOAD].requests == 0);
        CHECK(report.launches >= 3 && report.launch[0].prepares);
        gm_access_report_clear(&report);
    }
    /* 16 bytes a point: one request for three, of 16 sectors, all of them asked for */
    if (explain(sim, &sum, variant_of(GM_OP_ADD, "float3_aligned"), &report)) {
        CHECK(report.totals.kind[GM_GLOBAL_LOAD].requests == 32 * 2);
        CHECK(report.totals.kind[GM_GLOBAL_LOAD].units == 32 * 2 * 16);
        CHECK(report.totals.kind[GM_GLOBAL_LOAD].units_ideal == 32 * 2 * 16);
        CHECK(report.totals.kind[GM_GLOBAL_STORE].requests == 32);
        gm_access_report_clear(&report);
    }
}

/* 64 x 64 x 64: 128 warps of the result, each with 64 steps of two loads. */
static void test_products(void)
{
    struct gm_op plain = product_of(GM_F32, 64, 64, 64, false, false);
    struct gm_op transposed = product_of(GM_F32, 64, 64, 64, true, false);
    struct gm_access_report naive = {0}, report = {0};
    static const struct {
        const char *name;
        double width;
    } tiles[] = {{"tiled", 32}, {"dynamic_tile", 8}};

    if (!explain(sim, &plain, variant_of(GM_OP_MATMUL, "naive"), &naive))
        return;
    /* an element of a for all lanes: 1 sector; 32 of b: 4 */
    CHECK(naive.totals.kind[GM_GLOBAL_LOAD].requests == 128 * 64 * 2);
    CHECK(naive.totals.kind[GM_GLOBAL_LOAD].units == 128 * 64 * (1 + 4));
    CHECK(naive.totals.kind[GM_GLOBAL_STORE].units == 128 * 4);
    if (explain(sim, &plain, variant_of(GM_OP_MATMUL, "grid_stride"), &report)) {
        CHECK(totals_equal(&report.totals, &naive.totals, 0));
        gm_access_report_clear(&report);
    }
    for (int i = 0; i < 2; i++) {
        if (!explain(sim, &plain, variant_of(GM_OP_MATMUL, tiles[i].name), &report))
            continue;
        /* loads fall by the tile's width; each of 4 sectors: 32 neighbours, or 4 rows of 8 */
        const struct gm_access_sums *load = &report.totals.kind[GM_GLOBAL_LOAD];
        CHECK(load->requests == naive.totals.kind[GM_GLOBAL_LOAD].requests / tiles[i].width);
        CHECK(load->units == 4 * load->requests);
        /* two reads a step: the same word for a row of lanes, and neighbours; 1 wavefront each */
        CHECK(report.totals.kind[GM_SHARED_LOAD].requests == 128 * 64 * 2);
        CHECK(report.totals.kind[GM_SHARED_LOAD].units == 128 * 64 * 2);
        CHECK(report.totals.kind[GM_SHARED_STORE].units == load->requests);
        gm_access_report_clear(&report);
    }
    /* With transa the rows of tile_a are columns of a: 32 sectors; naive reads one element for all
     * lanes still. */
    if (explain(sim, &transposed, variant_of(GM_OP_MATMUL, "tiled"), &report)) {
        double requests = 128 * 2;
        CHECK(report.totals.kind[GM_GLOBAL_LOAD].requests == 2 * requests);
        CHECK(report.totals.kind[GM_GLOBAL_LOAD].units == requests * 32 + requests * 4);
        gm_access_report_clear(&report);
    }
    if (explain(sim, &transposed, variant_of(GM_OP_MATMUL, "naive"), &report)) {
        CHECK(totals_equal(&report.totals, &naive.totals, 0));
        gm_access_report_clear(&report);
    }
    gm_access_report_clear(&naive);
}

/* One block of 128 x 128, 32 steps. All that touches global memory is 16 bytes a lane, of whole
 * sectors. Warps of 16 x 128 (8 of them) read 2 vectors of a and 2 of b a lane in each step; warps
 * of 64 x 64 (4 of them) 2 and 4. a is stored element by element, b by vectors; where there are two
 * buffers, so are the zeros beyond the last k-tile. */
static void test_products_of_vectors(void)
{
    static const struct {
        const char *name;
        double shared_loads, shared_stores;
    } cases[] = {{"vector_loads", 8 * 32 * 4, 128 + 32},
                 {"warp_tiled", 4 * 32 * 6, 128 + 32},
                 {"double_buffered", 4 * 32 * 6, 128 + 32 + 32 + 8}};
    struct gm_op op = product_of(GM_F32, 128, 32, 128, false, false);

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gm_access_report report = {0};
        if (!explain(sim, &op, variant_of(GM_OP_MATMUL, cases[i].name), &report))
            continue;
        const struct gm_access_sums *sums = report.totals.kind;
        CHECK(sums[GM_GLOBAL_LOAD].requests == 32 + 32);
        CHECK(sums[GM_GLOBAL_LOAD].units == 16 * sums[GM_GLOBAL_LOAD].requests);
        CHECK(sums[GM_GLOBAL_STORE].requests == 128);
        CHECK(sums[GM_GLOBAL_STORE].units == 16 * sums[GM_GLOBAL_STORE].requests);
        CHECK(sums[GM_SHARED_LOAD].requests == cases[i].shared_loads);
        CHECK(sums[GM_SHARED_STORE].requests == cases[i].shared_stores);
        CHECK(sums[GM_SHARED_STORE].units == sums[GM_SHARED_STORE].units_ideal);
        gm_access_report_clear(&report);
    }
}

/* Three files have an instance of gm_reduce_splits_kernel, each with a shared array of 1024 vectors
 * of 4 floats: a launch takes one of them. */
static void test_shared_of_one_file(void)
{
    struct gm_op sum = product_of(GM_F32, 2, 600, 3, false, false);
    struct gm_access_report report = {0};
    unsigned found = 0;

    if (!explain(sim, &sum, variant_of(GM_OP_MATMUL, "split_k_dot"), &report))
        return;
    for (size_t i = 0; i < report.launches; i++) {
        if (strcmp(report.launch[i].kernel, "gm_reduce_splits_kernel") == 0) {
            CHECK_EQ(report.launch[i].shared, 1024 * 4 * sizeof(float));
            found++;
        }
    }
    CHECK(found > 0);
    gm_access_report_clear(&report);
}

/* ---- By the model: edges ------------------------------------------------------------------ */

#define MODELS_MAX 64u

/* The models that ran. Most kernels have none: how they go about a matrix's edges would be written
 * twice. Their figures are those above where a matrix is made of whole tiles; what they do is
 * proved by their results (test_sim_variants). */
static bool ran[MODELS_MAX];

/* Where the model of a variant is; MODELS_MAX: nowhere. */
static size_t model_of(const struct gm_variant *variant)
{
    const char *model;
    char name[96];

    snprintf(name, sizeof(name), "%s_%s", gm_op_name(variant->op), variant->name);
    for (size_t i = 0; i < MODELS_MAX && (model = model_name(i)); i++)
        if (strcmp(model, name) == 0)
            return i;
    return MODELS_MAX;
}

/* All variants that take it and have a model: the report, and the account of a whole run. */
static void try_model(const struct gm_op *op)
{
    const struct gm_variant *variant;
    struct gm_device_facts facts = *gm_backend_sim.describe(sim, 0);
    struct gm_error err;

    for (size_t i = 0; (variant = gm_variant_at(i)); i++) {
        struct gm_access_totals expected, whole;
        struct gm_access_report report = {0};
        size_t model = model_of(variant);
        if (variant->op != op->kind || model == MODELS_MAX ||
            gm_variant_check(variant, op, &facts, &err) != GM_OK)
            continue;
        const char *name = model_name(model);
        if (!explain(sim, op, variant, &report) || !run_whole(sim, op, variant, &whole) ||
            !CHECK(model_variant(name, op, report.launch[0].block[0], &expected)))
            continue;
        bool right = CHECK(totals_equal(&report.totals, &expected, 0));
        right &= CHECK(totals_equal(&whole, &expected, 0));
        right &= CHECK(!report.sampled);
        if (!right)
            fprintf(stderr, "  %s of %s, %" PRIu64 " x %" PRIu64 " x %" PRIu64 "\n", name,
                    gm_dtype_name(op->result.dtype), op->operand[0].rows, op->operand[0].cols,
                    op->result.cols);
        gm_access_report_clear(&report);
        ran[model] = true;
    }
}

static void test_edges(void)
{
    static const enum gm_dtype sizes[] = {GM_U8, GM_F16, GM_F32, GM_F64, GM_C128};
    static const uint64_t shapes[][2] = {{1, 1},   {33, 31}, {50, 37}, {31, 65}, {97, 3},
                                         {5, 300}, {1, 700}, {700, 1}, {40, 40}, {13, 257}};
    static const uint64_t products[][3] = {{1, 1, 1},    {33, 5, 31}, {20, 40, 50},
                                           {65, 33, 10}, {7, 64, 9},  {32, 31, 33}};

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        uint64_t rows = shapes[i][0], cols = shapes[i][1];
        for (size_t j = 0; j < sizeof(sizes) / sizeof(sizes[0]); j++) {
            struct gm_op copy = move_of(GM_OP_COPY, sizes[j], rows, cols);
            struct gm_op transpose = move_of(GM_OP_TRANSPOSE, sizes[j], rows, cols);
            struct gm_op flip = move_of(GM_OP_FLIP, sizes[j], rows, cols);
            try_model(&copy);
            try_model(&transpose);
            try_model(&flip);
            if (!(GM_TYPES_ARITHMETIC & GM_DTYPE_BIT(sizes[j])))
                continue;
            struct gm_op sum = sum_of(sizes[j], rows, cols, rows, cols);
            struct gm_op with_row = sum_of(sizes[j], rows, cols, 1, cols);
            struct gm_op with_column = sum_of(sizes[j], rows, cols, rows, 1);
            struct gm_op with_scalar = sum_of(sizes[j], rows, cols, 1, 1);
            try_model(&sum);
            try_model(&with_row);
            try_model(&with_column);
            try_model(&with_scalar);
        }
    }
    for (uint64_t points = 1; points < 2000; points += 333) {
        struct gm_op sum = sum_of(GM_F32, points, 3, points, 3);
        try_model(&sum);
    }
    for (size_t i = 0; i < sizeof(products) / sizeof(products[0]); i++) {
        for (size_t j = 1; j < 4; j++) {
            for (int trans = 0; trans < 4; trans++) {
                struct gm_op product = product_of(sizes[j], products[i][0], products[i][1],
                                                  products[i][2], trans & 1, trans & 2);
                try_model(&product);
            }
        }
    }
    const char *model;
    for (size_t i = 0; (model = model_name(i)); i++)
        if (!CHECK(i < MODELS_MAX) || !CHECK(ran[i]))
            fprintf(stderr, "  no variant ran that the model %s is of\n", model);
}

int main(void)
{
    struct gm_backend_options options = {.threads = 2};
    struct gm_error err = {.detail = ""};

    if (!CHECK_STATUS(gm_backend_sim.open(&options, &sim, &err), GM_OK, &err))
        return check_report();
    test_moves();
    test_pieces();
    test_sectors();
    test_cut_products();
    test_joined();
    test_float3();
    test_products();
    test_products_of_vectors();
    test_shared_of_one_file();
    test_edges();
    gm_backend_sim.close(sim);
    return check_report();
}
