/*
 * test_sim_variants.c - every variant that the simulator runs, on every element type, over shapes
 * that break things, against the oracle; on one host thread and on several, which must give the
 * same bits.
 *
 *   test_sim_variants [--large | --only OPERATION/VARIANT]
 *
 * --large tries shapes of more tiles than a grid can hold, all sums, and products in every
 * transposition, and nothing else. --only tries every transposition too. The first failure ends it,
 * with what to do next. Sizes are near the kernels' own: tiles of 8 to 32, blocks of 256, grids of
 * as many blocks as the device holds (1056 of 256 threads, 264 of 1024) or can be given at once
 * (65535 tiles).
 */
#include "tests/unit/test_cpu_try.h"

#include <math.h>

static bool large, one; /* of the arguments */

/* An eighth of what there is, which take turns; all where they have time. */
static bool is_due(size_t which)
{
    return large || one || which % 8 == 0;
}

/* Moves know an element's size alone: for each shape one type of each size, which take turns; all
 * where they have time. */
static bool is_due_type(size_t which, enum gm_dtype dtype)
{
    size_t rank = 0, count = 0;

    for (enum gm_dtype other = GM_DTYPE_NONE + 1; other < GM_DTYPE_COUNT; other++) {
        bool alike = gm_dtype_size(other) == gm_dtype_size(dtype);
        rank += alike && other < dtype;
        count += alike;
    }
    return large || one || rank == which % count;
}

/* ---- Copies, transposes, flips ------------------------------------------------------------- */

static void try_moves(enum gm_dtype dtype, uint64_t batch, uint64_t rows, uint64_t cols)
{
    static const enum gm_op_kind kinds[] = {GM_OP_COPY, GM_OP_TRANSPOSE, GM_OP_FLIP};

    for (int i = 0; i < 6; i++) {
        struct request request = {.kind = kinds[i / 2], .dtype = dtype, .operands = 1};
        request.layout[0] = i % 2 == 0 ? GM_ROW_MAJOR : GM_COL_MAJOR;
        request.shape[0] = shape_of(batch, rows, cols);
        try_request(&request);
    }
}

static void test_moves(void)
{
    static const uint64_t shapes[][3] = {
        {SINGLE, 0, 5},   {SINGLE, 5, 0},   {SINGLE, 1, 1},   {SINGLE, 1, 7},    {SINGLE, 7, 1},
        {SINGLE, 2, 3},   {SINGLE, 8, 8},   {SINGLE, 7, 31},  {SINGLE, 31, 33},  {SINGLE, 32, 32},
        {SINGLE, 33, 31}, {SINGLE, 64, 65}, {SINGLE, 97, 41}, {SINGLE, 255, 3},  {SINGLE, 3, 257},
        {SINGLE, 2, 256}, {SINGLE, 5, 511}, {SINGLE, 1, 999}, {SINGLE, 1023, 1}, {0, 3, 4},
        {3, 0, 4},        {1, 3, 5},        {3, 5, 7},        {7, 1, 9},         {7, 9, 1},
        {5, 1, 1},        {2, 33, 65},      {40, 3, 3},       {3, 67, 16},
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        for (enum gm_dtype dtype = GM_DTYPE_NONE + 1; dtype < GM_DTYPE_COUNT; dtype++)
            if (is_due_type(i, dtype))
                try_moves(dtype, shapes[i][0], shapes[i][1], shapes[i][2]);
    }
}

/* By the variant that the shape was chosen for, and by all where they have time; NULL: by all. */
static void try_move(enum gm_op_kind kind, const char *variant, enum gm_dtype dtype, uint64_t batch,
                     uint64_t rows, uint64_t cols)
{
    struct request request = {
        .kind = kind, .dtype = dtype, .operands = 1, .variant = one ? NULL : variant};

    request.shape[0] = shape_of(batch, rows, cols);
    try_request(&request);
}

/* Grids that go round more than once. */
static void test_round_moves(void)
{
    const uint64_t resident = 1056 * 256; /* threads that the device holds */

    try_move(GM_OP_COPY, "vector", GM_U8, SINGLE, 1, 16 * (4 * resident + 1000) + 7);
    try_move(GM_OP_COPY, "vector", GM_U8, SINGLE, 1, 16 * (3 * resident + 1000));
    try_move(GM_OP_COPY, NULL, GM_F32, SINGLE, 3, 4 * resident / 3 + 1);
    try_move(GM_OP_FLIP, NULL, GM_F64, 300, 7, 300);
    try_move(GM_OP_TRANSPOSE, NULL, GM_F32, SINGLE, 517, 343);
    /* Of `packed_u8` tiles with neighbours on all sides, and down to within a tile's overlap. */
    try_move(GM_OP_TRANSPOSE, "packed_u8", GM_U8, 2, 741, 535);
    try_move(GM_OP_TRANSPOSE, "packed_u8", GM_I8, SINGLE, 490, 512);
    /* Of `vectorized` tiles that overlap: the last of a column is one piece high, or ends with it.
     */
    try_move(GM_OP_TRANSPOSE, "vectorized", GM_F64, SINGLE, 450, 454);
    try_move(GM_OP_TRANSPOSE, "vectorized", GM_F64, 2, 478, 320);
    /* Of its tiles that do not, in rows of whole 256 bytes. */
    try_move(GM_OP_TRANSPOSE, "vectorized", GM_F64, SINGLE, 240, 224);
    try_move(GM_OP_TRANSPOSE, "vectorized", GM_C128, SINGLE, 24, 48);
    /* Tall: tiles along the rows. */
    try_move(GM_OP_TRANSPOSE, "skinny", GM_F64, SINGLE, 20002, 34);
    try_move(GM_OP_TRANSPOSE, "skinny", GM_U16, SINGLE, 20001, 17);
    try_move(GM_OP_TRANSPOSE, "skinny", GM_U8, SINGLE, 39063, 19);
    /* Rows of whole rows of banks. */
    try_move(GM_OP_TRANSPOSE, "skinny", GM_F32, SINGLE, 300, 64);
    /* Wide, with a gap after as many rows as a piece has elements: columns that end soon behind
     * one, with one, and just before. */
    try_move(GM_OP_TRANSPOSE, "skinny", GM_U8, 3, 33, 150);
    try_move(GM_OP_TRANSPOSE, "skinny", GM_U8, SINGLE, 48, 264);
    try_move(GM_OP_TRANSPOSE, "skinny", GM_U16, 2, 23, 150);
    try_move(GM_OP_TRANSPOSE, "skinny", GM_F32, SINGLE, 133, 258);
    /* 16 a block of `batched`, less one; then blocks whose run begins late in a piece and ends
     * early in another. */
    try_move(GM_OP_TRANSPOSE, "batched", GM_F32, 2 * 16 - 1, 16, 16);
    try_move(GM_OP_TRANSPOSE, "batched", GM_U8, 300, 2, 121);
    try_move(GM_OP_TRANSPOSE, "batched", GM_U16, 110, 3, 81);
}

/* More tiles than a grid can hold along y, and matrices along z. */
static void test_large_moves(void)
{
    try_move(GM_OP_TRANSPOSE, NULL, GM_U8, SINGLE, 65535 * 8 + 9, 2);
    try_move(GM_OP_TRANSPOSE, NULL, GM_U16, SINGLE, 65535 * 32 + 33, 1);
    try_move(GM_OP_TRANSPOSE, NULL, GM_F32, 65535 + 2, 2, 3);
    try_move(GM_OP_TRANSPOSE, NULL, GM_C128, SINGLE, 1, 65535 * 16 + 5);
    try_move(GM_OP_FLIP, NULL, GM_U8, SINGLE, 65535 * 64 + 70, 3);
    try_move(GM_OP_FLIP, "grouped", GM_U8, SINGLE, 1023, 2047); /* as large as it takes */
}

/* ---- Sums ------------------------------------------------------------------------------------ */

/* The operand of a result: its dimensions, of which `ones` (1: batch, 2: rows, 4: cols) are 1. */
static struct gm_shape repeated(const uint64_t shape[3], unsigned ones)
{
    uint64_t batch = ones & 1 && shape[0] != SINGLE ? 1 : shape[0];

    return shape_of(batch, ones & 2 ? 1 : shape[1], ones & 4 ? 1 : shape[2]);
}

static void try_sum(enum gm_dtype dtype, const uint64_t shape[3], unsigned ones_a, unsigned ones_b,
                    unsigned layouts)
{
    struct request request = {.kind = GM_OP_ADD, .dtype = dtype, .operands = 2};

    request.shape[0] = repeated(shape, ones_a);
    request.shape[1] = repeated(shape, ones_b);
    request.layout[0] = layouts & 1 ? GM_COL_MAJOR : GM_ROW_MAJOR;
    request.layout[1] = layouts & 2 ? GM_COL_MAJOR : GM_ROW_MAJOR;
    try_request(&request);
}

static void test_sums(void)
{
    static const uint64_t shapes[][3] = {
        {SINGLE, 0, 5},  {SINGLE, 1, 1},  {SINGLE, 3, 5},    {SINGLE, 1, 257},  {SINGLE, 33, 70},
        {2, 3, 5},       {3, 17, 33},     {5, 2, 3},         {1, 4, 4},         {SINGLE, 5, 3},
        {SINGLE, 96, 3}, {SINGLE, 86, 3}, {SINGLE, 1000, 3}, {SINGLE, 2, 1025}, {4, 171, 3},
        {0, 3, 4},       {3, 8, 5}, /* rows that together are whole pieces */
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        for (size_t type = 0; type < ARITHMETIC; type++) {
            for (unsigned ones = 0; ones < 64; ones++) {
                /* Both repeated along one dimension: it is a smaller result's own shape. */
                if ((ones % 8 & ones / 8) == 0 && is_due(i + type + ones))
                    try_sum(arithmetic[type], shapes[i], ones % 8, ones / 8,
                            (unsigned)random_below(&try_random, 4));
            }
        }
        try_sum(GM_F32, shapes[i], 0, 0, 0);
    }
}

struct large_sum {
    uint64_t shape[3];
    unsigned ones; /* of b */
    enum gm_dtype dtype;
};

static void try_sums(const struct large_sum *cases, size_t count)
{
    for (size_t i = 0; i < count; i++)
        try_sum(cases[i].dtype, cases[i].shape, 0, cases[i].ones, 0);
}

/* Grids that go round along a row, down the columns, and over the stack. */
static void test_round_sums(void)
{
    static const struct large_sum cases[] = {
        {{SINGLE, 1, 1056 * 256 + 300}, 0, GM_F32},
        {{SINGLE, 3, 1056 * 256 + 64}, 2, GM_F32},
        {{SINGLE, 40, 64 * 256}, 2, GM_I32},
        {{SINGLE, 1056 * 64 + 100, 3}, 2, GM_F16},
        {{32 * 132 + 70, 2, 3}, 6, GM_I32}, /* blocks of 8 threads */
        {{SINGLE, 300, 700}, 4, GM_F64},
        {{SINGLE, 50003, 3}, 0, GM_F32},
    };
    try_sums(cases, sizeof(cases) / sizeof(cases[0]));
}

static void test_large_sums(void)
{
    static const struct large_sum cases[] = {
        {{SINGLE, 65535 * 64 + 70, 3}, 2, GM_BF16},
        {{65535 + 3, 2, 2}, 2, GM_F32},
    };
    try_sums(cases, sizeof(cases) / sizeof(cases[0]));
}

/* ---- Products -------------------------------------------------------------------------------- */

static const struct gm_scalar factors[] = {
    {.real = 1, .integer = 1, .is_integer = true},
    {.real = 0, .integer = 0, .is_integer = true},
    {.real = -3, .integer = -3, .is_integer = true},
    {.real = 0.7},
};

/* op(a) of m x k, op(b) of k x n, with everything else as it is drawn. */
static void try_product(enum gm_dtype dtype, const uint64_t batch[3], uint64_t m, uint64_t k,
                        uint64_t n, unsigned trans, const char *variant)
{
    struct request request = {
        .kind = GM_OP_MATMUL, .dtype = dtype, .operands = 2, .variant = variant};
    unsigned factor_count = is_float(dtype) ? 4 : 3;

    request.options.transa = trans & 1;
    request.options.transb = trans & 2;
    request.shape[0] = trans & 1 ? shape_of(batch[0], k, m) : shape_of(batch[0], m, k);
    request.shape[1] = trans & 2 ? shape_of(batch[1], n, k) : shape_of(batch[1], k, n);
    request.shape[2] = shape_of(batch[2], m, n);
    for (int i = 0; i < 3; i++)
        request.layout[i] = random_below(&try_random, 3) == 0 ? GM_COL_MAJOR : GM_ROW_MAJOR;
    if (random_below(&try_random, 2) == 0) {
        request.options.has_alpha = true;
        request.options.alpha = factors[random_below(&try_random, factor_count)];
    }
    if (random_below(&try_random, 2) == 0) {
        request.operands = 3;
        request.options.has_beta = true;
        request.options.beta = factors[random_below(&try_random, factor_count)];
    }
    try_request(&request);
}

/* Each shape by a fifth of the types, which take turns, and transposed in one of the four ways; by
 * all of both where they have time. */
static unsigned first_trans(size_t which)
{
    return large ? 0 : (unsigned)(which / 5 % 4);
}
static unsigned trans_step(void)
{
    return large ? 1 : 4;
}

static void test_products(void)
{
    static const uint64_t shapes[][3] = {
        {0, 5, 3},    {5, 0, 3},    {1, 1, 1},    {1, 7, 1},   {2, 2, 2},
        {1, 13, 17},  {17, 13, 1},  {3, 1, 5},    {8, 8, 8},   {7, 9, 8},
        {8, 40, 9},   {15, 17, 16}, {31, 32, 33}, {32, 32, 1}, {33, 31, 32},
        {32, 33, 31}, {40, 65, 35}, {1, 200, 33}, {65, 3, 1},  {2, 70, 64},
    };
    const uint64_t single[3] = {SINGLE, SINGLE, SINGLE};

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        for (size_t type = 0; type < ARITHMETIC; type++) {
            if (!is_due(i + type))
                continue;
            for (unsigned trans = first_trans(i + type); trans < 4; trans += trans_step())
                try_product(arithmetic[type], single, shapes[i][0], shapes[i][1], shapes[i][2],
                            trans, NULL);
        }
    }
}

static void test_stacks(void)
{
    static const uint64_t cases[][6] = {
        /* batches of a, b, c; m, k, n. The last four are one tall matrix each: of many tiles; of
           few rows, which are few vectors; of more than `skinny` takes, where each has few;
           transposed too. */
        {3, 3, 3, 4, 5, 6},  {3, SINGLE, SINGLE, 4, 5, 6}, {SINGLE, 3, SINGLE, 4, 5, 6},
        {1, 5, 5, 2, 3, 2},  {SINGLE, SINGLE, 3, 4, 5, 6}, {0, 0, 0, 4, 5, 6},
        {3, 3, 3, 4, 0, 6},  {2, 2, 2, 33, 34, 35},        {40, SINGLE, 40, 1, 9, 3},
        {5, 1, 5, 9, 5, 17}, {2, SINGLE, 2, 3, 20, 10},    {5, 1, 5, 3, 33, 20},
        {4, 1, 4, 6, 1, 9},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (size_t type = 0; type < ARITHMETIC; type++) {
            if (!is_due(i + type))
                continue;
            for (unsigned trans = first_trans(i + type); trans < 4; trans += trans_step())
                try_product(arithmetic[type], cases[i], cases[i][3], cases[i][4], cases[i][5],
                            trans, NULL);
        }
    }
}

/* Each tile width of `dynamic_tile`, whose choice depends on how many tiles there are; and grids
 * that go round, as those of `grid_stride` do. */
static void test_round_products(void)
{
    static const uint64_t cases[][6] = {
        {SINGLE, SINGLE, SINGLE, 1, 2, 264 * 32 + 40},
        {SINGLE, SINGLE, SINGLE, 264 * 32 + 40, 2, 1},
        {SINGLE, 270, SINGLE, 2, 3, 2},
        {SINGLE, SINGLE, SINGLE, 200, 9, 190},
        {SINGLE, SINGLE, SINGLE, 400, 5, 390},
        {SINGLE, SINGLE, SINGLE, 288, 1, 33 * 32},
        {SINGLE, SINGLE, SINGLE, 33, 1, 264 * 32 + 2},
        {SINGLE, SINGLE, SINGLE, 100, 17, 90},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        enum gm_dtype dtype = arithmetic[i % ARITHMETIC];
        try_product(dtype, cases[i], cases[i][3], cases[i][4], cases[i][5], i % 4,
                    one ? NULL : "dynamic_tile");
        if (i % 2 == 0 && !one)
            try_product(dtype, cases[i], cases[i][3], cases[i][4], cases[i][5], i % 4,
                        "grid_stride");
    }
}

/* By `batched`: each of its warps' sizes; several matrices a block, the last one with fewer; rows
 * in tiles; b in k-tiles, the last one shorter. */
static void test_whole_stacks(void)
{
    static const uint64_t shapes[][4] = {
        /* batch; m, k, n */
        {2, 16, 1, 16},  {529, 5, 3, 7},    {530, 17, 17, 17}, {3, 33, 33, 33}, {1057, 4, 6, 15},
        {3, 20, 50, 50}, {2, 30, 9, 56},    {2, 64, 64, 64},   {3, 63, 5, 24},  {2, 61, 7, 31},
        {2, 33, 12, 45}, {2, 80, 100, 130}, {3, 100, 131, 43}, {2, 300, 8, 21}, {2, 250, 70, 250},
        {2, 9, 300, 40}, {2, 31, 40, 112},  {2, 127, 127, 20}, {529, 1, 2, 1},
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        const uint64_t *of = shapes[i], batch[3] = {of[0], of[0], of[0]};
        for (unsigned trans = 0; trans < 4; trans++)
            if (is_due(i + trans))
                try_product(trans == i % 4 ? GM_F64 : GM_F32, batch, of[1], of[2], of[3], trans,
                            "batched");
    }
}

/* By `grouped`: whole tiles whose last step along k is no whole vector; the end of c in a tile that
 * is not the first; a stack with one c, whose vectors begin elsewhere than the results'; the
 * longest sum. */
static void test_grouped_products(void)
{
    static const uint64_t cases[][6] = {
        {SINGLE, SINGLE, SINGLE, 64, 75, 64}, {SINGLE, SINGLE, SINGLE, 65, 5, 63},
        {SINGLE, SINGLE, SINGLE, 70, 3, 130}, {3, 3, SINGLE, 9, 5, 7},
        {2, SINGLE, SINGLE, 65, 40, 67},      {3, 3, 3, 67, 33, 5},
        {SINGLE, SINGLE, SINGLE, 2, 1024, 3}, {SINGLE, SINGLE, SINGLE, 128, 131, 128},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (size_t type = 0; type < ARITHMETIC; type++) {
            if (!is_due(i + type))
                continue;
            for (unsigned trans = first_trans(i + type); trans < 4; trans += trans_step()) {
                for (unsigned drawn = 0; drawn < 3; drawn++)
                    try_product(arithmetic[type], cases[i], cases[i][3], cases[i][4], cases[i][5],
                                trans, "grouped");
            }
        }
    }
}

/* By kernels that load whole vectors along rows: tiles with a ragged edge at each side, k-tiles of
 * 8 and 16 steps whose last is shorter, many of them; stacks, also with one a or b; what they
 * refuse. With alpha 0 they read neither a nor b. */
static void test_products_of_vectors(void)
{
    static const char *const variants[] = {"vector_loads", "warp_tiled", "double_buffered"};
    static const uint64_t cases[][6] = {
        {SINGLE, SINGLE, SINGLE, 1, 4, 4},
        {SINGLE, SINGLE, SINGLE, 128, 16, 128},
        {SINGLE, SINGLE, SINGLE, 129, 20, 132},
        {SINGLE, SINGLE, SINGLE, 127, 12, 124},
        {SINGLE, SINGLE, SINGLE, 67, 100, 260},
        {SINGLE, SINGLE, SINGLE, 300, 8, 36},
        {SINGLE, SINGLE, SINGLE, 5, 0, 8},
        {2, 2, 2, 130, 28, 68},
        {3, SINGLE, 3, 50, 36, 8},
        {SINGLE, 3, 3, 5, 24, 140},
        {SINGLE, SINGLE, SINGLE, 9, 6, 8},
        {SINGLE, SINGLE, SINGLE, 9, 8, 6},
    };

    for (size_t i = 0; i < 3 * sizeof(cases) / sizeof(cases[0]); i++) {
        const uint64_t *of = cases[i / 3];
        for (unsigned drawn = 0; drawn < 2; drawn++)
            try_product(GM_F32, of, of[3], of[4], of[5], 0, variants[i % 3]);
        try_product(GM_F32, of, of[3], of[4], of[5], 1 + (unsigned)(i % 3), variants[i % 3]);
    }
}

/* By `split_k_dot`: one slice of k and several, sums in one row, in one column, and both. */
static void test_long_sums(void)
{
    static const uint64_t shapes[][3] = {{1, 5000, 1}, {1, 1500, 3}, {4, 1100, 1}, {2, 1030, 4},
                                         {3, 100, 2},  {1, 257, 1},  {1, 4095, 1}, {4, 511, 4}};

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        for (size_t type = 0; type < ARITHMETIC; type++) {
            const uint64_t batch[3] = {type % 2 ? SINGLE : 2, type % 3 ? 2 : SINGLE, 2};
            try_product(arithmetic[type], batch, shapes[i][0], shapes[i][1], shapes[i][2],
                        (unsigned)(type + i) % 4, "split_k_dot");
        }
    }
}

/* So large that copying an operand first is worth it, into scratch memory, where partial sums are
 * too: a and b repacked; b, with split-K; b transposed, of which many tiles take the same; a that
 * a stack has in common. By nothing but `multistage_tuned`: each takes seconds. */
static void test_repacked_products(void)
{
    static const struct {
        uint64_t batch, m, k, n, floats; /* of the copies, and of slices */
        bool transa, transb;
    } cases[] = {
        {SINGLE, 321, 320, 769, 320 * (324 + 772), true, false},
        {SINGLE, 796, 1713, 19, 1713 * 20 + 10 * 796 * 19, true, false},
        {SINGLE, 641, 320, 769, 320 * 772, false, true},
        {400, 128, 400, 8, 128 * 400, false, false},
    };
    for (size_t i = 0; i < (large ? sizeof(cases) / sizeof(cases[0]) : 1); i++) {
        struct request request = {.kind = GM_OP_MATMUL,
                                  .dtype = GM_F32,
                                  .operands = 2,
                                  .variant = "multistage_tuned",
                                  .scratch = cases[i].floats * sizeof(float)};
        uint64_t m = cases[i].m, k = cases[i].k, n = cases[i].n;
        request.options.transa = cases[i].transa;
        request.options.transb = cases[i].transb;
        request.shape[0] = shape_of(SINGLE, cases[i].transa ? k : m, cases[i].transa ? m : k);
        request.shape[1] =
            shape_of(cases[i].batch, cases[i].transb ? n : k, cases[i].transb ? k : n);
        try_request(&request);
    }
}

/* Results of few columns and rows by `skinny` as its layouts have them: lanes with several lines;
 * lines that are cut into slices, and slices of several pieces of the vectors; two lanes a line,
 * and 32; each with runs that are aligned and that are not. */
static void test_thin_products(void)
{
    static const struct {
        enum gm_dtype dtype;
        uint64_t m, k, n;
    } shapes[] = {
        {GM_F32, 17000, 520, 1}, {GM_F32, 2, 1201, 2003}, {GM_F32, 1300, 604, 7},
        {GM_F64, 1201, 404, 5},  {GM_F32, 37, 9000, 3},   {GM_F64, 41, 2600, 8},
        {GM_F16, 3, 5001, 70},   {GM_F64, 9, 66000, 8},   {GM_F64, 9, 66001, 8},
        {GM_F32, 5000, 40, 8},   {GM_F64, 8651, 501, 1},
    };

    for (size_t i = 0; i < 2 * sizeof(shapes) / sizeof(shapes[0]); i++) {
        if (!is_due(i / 2 + i))
            continue;
        uint64_t m = shapes[i / 2].m, k = shapes[i / 2].k, n = shapes[i / 2].n;
        bool trans = i % 2; /* which is along k, and which across */
        struct request request = {
            .kind = GM_OP_MATMUL, .dtype = shapes[i / 2].dtype, .operands = 2, .variant = "skinny"};
        request.options.transa = request.options.transb = trans;
        request.shape[0] = trans ? shape_of(SINGLE, k, m) : shape_of(SINGLE, m, k);
        request.shape[1] = trans ? shape_of(SINGLE, n, k) : shape_of(SINGLE, k, n);
        try_request(&request);
    }
}

/* Stacks of them: of many products of short sums, whose blocks are of 4 warps; of as many, but
 * longer ones; of lines that share no k, for there are enough of all products; of slices that each
 * product has. */
static void test_stacks_of_thin_products(void)
{
    static const struct {
        enum gm_dtype dtype;
        uint64_t batch, m, k, n;
    } shapes[] = {
        {GM_F32, 101, 19, 37, 3}, {GM_F32, 100, 9, 390, 5},  {GM_F64, 40, 64, 130, 1},
        {GM_F16, 130, 12, 40, 2}, {GM_I32, 100, 33, 384, 1}, {GM_F32, 3, 21, 5000, 6},
    };

    for (size_t i = 0; i < 4 * sizeof(shapes) / sizeof(shapes[0]); i++) {
        if (!is_due(i / 4 + i))
            continue;
        uint64_t batch = shapes[i / 4].batch, k = shapes[i / 4].k;
        uint64_t m = i & 2 ? shapes[i / 4].n : shapes[i / 4].m;
        uint64_t n = i & 2 ? shapes[i / 4].m : shapes[i / 4].n;
        bool trans = i % 2;
        struct request request = {
            .kind = GM_OP_MATMUL, .dtype = shapes[i / 4].dtype, .operands = 2, .variant = "skinny"};
        request.options.transa = request.options.transb = trans;
        request.shape[0] = trans ? shape_of(batch, k, m) : shape_of(batch, m, k);
        request.shape[1] = trans ? shape_of(batch, n, k) : shape_of(batch, k, n);
        try_request(&request);
    }
}

/* NaN and infinity reach every element they belong to, and no other: c is not read where beta is
 * 0, a and b are not where alpha is. */
static void test_specials(void)
{
    static const double values[] = {NAN, INFINITY, -INFINITY, 0, -0.0};
    static const uint64_t shapes[][3] = {{1, 5, 1}, {7, 9, 11}, {33, 40, 35}};

    for (size_t i = 0; i < 3 * 4 * 3; i++) {
        const uint64_t *shape = shapes[i / 12];
        enum gm_dtype dtype = arithmetic[i / 3 % 4];
        struct request request = {.kind = GM_OP_MATMUL, .dtype = dtype, .operands = 3};
        struct kernel_case made;
        request.options.has_alpha = request.options.has_beta = true;
        request.options.alpha.real = i % 3 == 1 ? 0 : 1;
        request.options.beta.real = i % 3 == 2 ? 0 : 1;
        request.shape[0] = shape_of(SINGLE, shape[0], shape[1]);
        request.shape[1] = shape_of(SINGLE, shape[1], shape[2]);
        request.shape[2] = shape_of(SINGLE, shape[0], shape[2]);
        if (!try_make(&request, &made))
            continue;
        for (int j = 0; j < 9; j++) {
            struct gm_matrix *x = &made.op.operand[j % 3];
            put_float(dtype, x->data, random_below(&try_random, gm_matrix_elements(x)),
                      values[random_below(&try_random, 5)]);
        }
        try_case(&made);
    }
}

/* --large, or --only OPERATION/VARIANT: then *ret_only is the variant. */
static bool read_arguments(int argc, char **argv, enum gm_op_kind *ret_op, const char **ret_only)
{
    static char name[64];

    *ret_only = NULL;
    large = argc == 2 && strcmp(argv[1], "--large") == 0;
    if (argc == 1 || large)
        return true;
    if (argc != 3 || strcmp(argv[1], "--only") != 0 || strlen(argv[2]) >= sizeof(name))
        return false;
    strcpy(name, argv[2]);
    char *variant = strchr(name, '/');
    if (!variant)
        return false;
    *variant++ = '\0';
    one = true;
    *ret_only = variant;
    return gm_op_from_name(name, ret_op);
}

static void test_all(void)
{
    test_moves();
    test_sums();
    test_products();
    test_stacks();
    test_specials();
    test_round_moves();
    test_round_sums();
    test_round_products();
    test_whole_stacks();
    test_grouped_products();
    test_products_of_vectors();
    test_long_sums();
    test_repacked_products();
    test_thin_products();
    test_stacks_of_thin_products();
}

int main(int argc, char **argv)
{
    static const unsigned threads[] = {2, 1, 3, 0};

    enum gm_op_kind op;
    const char *only;

    if (!read_arguments(argc, argv, &op, &only)) {
        fprintf(stderr, "usage: test_sim_variants [--large | --only OPERATION/VARIANT]\n");
        return 2;
    }
    if (!try_begin(&gm_backend_sim, threads) || (only && !try_only(op, only)))
        return try_end(0);
    if (!large) {
        test_all();
        return try_end((1u << GM_OP_COUNT) - 1);
    }
    test_large_moves();
    test_large_sums();
    test_sums();
    test_products();
    test_stacks();
    test_whole_stacks();
    test_grouped_products();
    test_repacked_products();
    test_thin_products();
    test_stacks_of_thin_products();
    return try_end(1u << GM_OP_TRANSPOSE | 1u << GM_OP_FLIP);
}
