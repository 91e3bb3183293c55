/*
 * test_gpu_kernels.c - every variant for GPUs, on every element type, over shapes that break
 * things: each is proved against the oracle. 77 where there is no GPU.
 *
 *   test_gpu_kernels [--only VARIANT] [--part PART] [--small]
 *
 * --part: one of the parts that main() lists; several may run at once. The oracle takes most of the
 * time, and has one thread. That each variant has run is checked only without it. --small leaves
 * out what is large and some of what is many: for tools that make it all slow.
 */
#include "prove.h"

#include <math.h>
#include <time.h>

#define SKIPPED 77

static struct device device;
static const char *only, *part;
static bool small;
static uint64_t random_state;

struct request {
    enum gm_op_kind kind;
    enum gm_dtype dtype;
    uint64_t shape[GM_OPERANDS_MAX][3]; /* batch, rows, cols; as written: with trans, transposed */
    enum gm_layout layout[GM_OPERANDS_MAX];
    unsigned operands;
    struct gm_op_options options;
};

static bool make(const struct request *request, struct kernel_case *ret)
{
    struct gm_matrix operand[GM_OPERANDS_MAX] = {0};
    bool present[GM_OPERANDS_MAX] = {false};
    struct gm_error err = {.detail = ""};
    struct gm_op op;

    for (unsigned i = 0; i < request->operands; i++) {
        const uint64_t *dim = request->shape[i];
        struct gm_shape shape = {3, {dim[0], dim[1], dim[2]}};
        present[i] = true;
        if (dim[0] == 1)
            shape = (struct gm_shape){2, {dim[1], dim[2]}};
        if (!CHECK_STATUS(
                gm_matrix_init(&operand[i], request->dtype, request->layout[i], &shape, &err),
                GM_OK, &err))
            return false;
    }
    if (!CHECK_STATUS(gm_op_init(&op, request->kind, &request->options, operand, present, &err),
                      GM_OK, &err))
        return false;
    *ret = case_make(&op, &random_state);
    return true;
}

/* Whether there is something to try: an oracle of what nobody computes takes long as well. */
static bool has_variant(enum gm_op_kind kind)
{
    const struct gm_variant *variant;
    bool has = !only;

    for (size_t i = 0; !has && (variant = gm_variant_at(i)); i++)
        has = strcmp(variant->name, only) == 0 &&
              (variant->op == kind || (variant->op == GM_OP_COPY && kind == GM_OP_TRANSPOSE));
    return has;
}

static void try_request(const struct request *request)
{
    struct kernel_case made;

    if (has_variant(request->kind) && make(request, &made)) {
        case_seal(&made);
        prove_all(&device, &made, only);
        case_free(&made);
    }
}

/* ---- Copies, transposes, flips ------------------------------------------------------------- */

static void try_moves(enum gm_dtype dtype, uint64_t batch, uint64_t rows, uint64_t cols)
{
    static const enum gm_op_kind kinds[] = {GM_OP_COPY, GM_OP_TRANSPOSE, GM_OP_FLIP};

    for (int i = 0; i < 6; i++) {
        struct request request = {.kind = kinds[i / 2],
                                  .dtype = dtype,
                                  .shape = {{batch, rows, cols}},
                                  .layout = {i % 2 == 0 ? GM_ROW_MAJOR : GM_COL_MAJOR},
                                  .operands = 1};
        try_request(&request);
    }
}

static void test_moves(void)
{
    static const uint64_t shapes[][3] = {
        {1, 1, 1},     {1, 1, 7},    {1, 7, 1},    {1, 2, 3},      {1, 8, 8},     {1, 15, 16},
        {1, 31, 33},   {1, 32, 32},  {1, 33, 31},  {1, 63, 64},    {1, 64, 65},   {1, 65, 127},
        {1, 97, 101},  {1, 255, 3},  {1, 3, 257},  {1, 256, 256},  {1, 5, 511},   {1, 1, 4099},
        {1, 4099, 1},  {1, 2, 5003}, {1, 5003, 2}, {1, 1031, 517}, {1, 257, 513}, {2, 3, 5},
        {3, 5, 7},     {7, 1, 9},    {7, 9, 1},    {5, 1, 1},      {2, 33, 65},   {40, 3, 3},
        {67, 16, 16},  {300, 2, 70}, {2, 2, 3001}, {129, 20, 5},   {4, 97, 255},  {300, 2, 121},
        {512, 5, 123}, {600, 5, 41},
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        for (int dtype = GM_DTYPE_NONE + 1; dtype < GM_DTYPE_COUNT; dtype++)
            try_moves((enum gm_dtype)dtype, shapes[i][0], shapes[i][1], shapes[i][2]);
    }
}

/* More blocks than a grid holds along y, of each tile's height, and along z. */
static void test_long_moves(void)
{
    try_moves(GM_U8, 1, 65535 * 32 + 33, 2);
    try_moves(GM_U16, 1, 65535 * 8 + 9, 3);
    try_moves(GM_U8, 1, 65535 * 64 + 65, 3);
    try_moves(GM_C128, 1, 65535 * 32 + 1, 1);
    try_moves(GM_F32, 1, 65537, 300);
    try_moves(GM_U8, 65536 + 2, 3, 5);
    try_moves(GM_F64, 1, 3, 1000003);
    try_moves(GM_F32, 1, 4099, 4001);
}

/* Rows so many that tiles are taken along them, or in bands. */
static void test_tall_moves(void)
{
    try_moves(GM_F32, 1, 40004, 300);
    try_moves(GM_F32, 1, 20003, 253);
    try_moves(GM_U16, 1, 50008, 264);
    try_moves(GM_U8, 1, 40016, 2064);
    try_moves(GM_F64, 1, 65535 * 32 + 2, 2);
    try_moves(GM_U8, 1, 40003, 777);
    try_moves(GM_F64, 1, 20002, 66);
    try_moves(GM_C128, 2, 39999, 19);
    try_moves(GM_F32, 1, 40004, 1988);
}

/* Enough tiles for the largest: rows of 256 bytes, of whole sectors, of neither; and of neither, so
 * that the last tile of a column is one piece high, or ends with the column. */
static void test_large_moves(void)
{
    static const struct {
        enum gm_dtype dtype;
        uint64_t batch, rows, cols;
    } shapes[] = {
        {GM_F32, 1, 2048, 2112}, {GM_F32, 1, 2056, 2056}, {GM_F32, 1, 4100, 4108},
        {GM_U16, 1, 8200, 4104}, {GM_F64, 1, 2050, 2054}, {GM_U8, 1, 10256, 10272},
        {GM_C128, 1, 1021, 515}, {GM_F32, 1, 2172, 4100}, {GM_U16, 1, 4216, 8200},
        {GM_F64, 1, 2014, 1026}, {GM_U8, 1, 10480, 7008}, {GM_F32, 3, 1028, 1540},
        {GM_F64, 5, 542, 1022},
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        try_moves(shapes[i].dtype, shapes[i].batch, shapes[i].rows, shapes[i].cols);
}

/* ---- Products ---------------------------------------------------------------------------- */

static const struct gm_scalar factors[] = {
    {.real = 1, .integer = 1, .is_integer = true},
    {.real = 0, .integer = 0, .is_integer = true},
    {.real = -3, .integer = -3, .is_integer = true},
    {.real = 0.7},
};

static void set_shape(uint64_t ret[3], uint64_t batch, uint64_t rows, uint64_t cols)
{
    ret[0] = batch;
    ret[1] = rows;
    ret[2] = cols;
}

/* op(a) of m x k, op(b) of k x n, with everything else as it is drawn. */
static struct request draw_product(enum gm_dtype dtype, const uint64_t batch[3], uint64_t m,
                                   uint64_t k, uint64_t n, unsigned trans)
{
    struct request request = {.kind = GM_OP_MATMUL, .dtype = dtype, .operands = 2};
    unsigned factor_count = is_float(dtype) ? 4 : 3;
    bool transa = trans & 1, transb = trans & 2;

    request.options.transa = transa;
    request.options.transb = transb;
    set_shape(request.shape[0], batch[0], transa ? k : m, transa ? m : k);
    set_shape(request.shape[1], batch[1], transb ? n : k, transb ? k : n);
    set_shape(request.shape[2], batch[2], m, n);
    for (int i = 0; i < 2; i++)
        request.layout[i] =
            random_below(&random_state, 3) == 0 && batch[i] == 1 ? GM_COL_MAJOR : GM_ROW_MAJOR;
    if (random_below(&random_state, 2) == 0) {
        request.options.has_alpha = true;
        request.options.alpha = factors[random_below(&random_state, factor_count)];
    }
    if (random_below(&random_state, 2) == 0) {
        request.operands = 3;
        request.options.has_beta = true;
        request.options.beta = factors[random_below(&random_state, factor_count)];
    }
    return request;
}

static void try_product(enum gm_dtype dtype, const uint64_t batch[3], uint64_t m, uint64_t k,
                        uint64_t n, unsigned trans)
{
    struct request request = draw_product(dtype, batch, m, k, n, trans);

    try_request(&request);
}

static const enum gm_dtype arithmetic[] = {GM_F16, GM_BF16, GM_F32, GM_F64, GM_I32, GM_I64};
#define ARITHMETIC (sizeof(arithmetic) / sizeof(arithmetic[0]))

static void test_products(void)
{
    static const uint64_t shapes[][3] = {
        {5, 0, 3},     {1, 1, 1},     {1, 7, 1},     {2, 2, 2},     {1, 13, 17},   {17, 13, 1},
        {3, 1, 5},     {8, 8, 8},     {7, 9, 8},     {8, 40, 9},    {16, 16, 16},  {15, 17, 16},
        {31, 32, 33},  {32, 32, 32},  {33, 31, 32},  {32, 33, 31},  {64, 63, 65},  {97, 101, 89},
        {128, 128, 1}, {1, 300, 70},  {300, 70, 1},  {2, 300, 300}, {300, 300, 2}, {1, 2049, 3},
        {257, 33, 95}, {95, 64, 257}, {200, 3, 128},
    };
    static const uint64_t single[3] = {1, 1, 1};

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        for (size_t type = 0; type < ARITHMETIC; type++) {
            for (unsigned trans = 0; trans < 4; trans++)
                try_product(arithmetic[type], single, shapes[i][0], shapes[i][1], shapes[i][2],
                            trans);
        }
    }
}

/* Large enough for each tile's width to be the best, on any device; and stacks. */
static void test_large_products(void)
{
    static const uint64_t cases[][6] = {
        /* batches of a, b, c; m, k, n */
        {1, 1, 1, 513, 65, 515},
        {1, 1, 1, 1025, 33, 700},
        {1, 1, 1, 130, 3000, 129},
        {1, 1, 1, 3, 20001, 5},
        {1, 1, 1, 2097153, 2, 1},
        {1, 1, 1, 1, 2, 100003},
        {3, 3, 3, 4, 5, 6},
        {3, 1, 1, 4, 5, 6},
        {1, 3, 1, 4, 5, 6},
        {1, 1, 3, 4, 5, 6},
        {1, 5, 5, 2, 3, 2},
        {7, 7, 7, 1, 9, 1},
        {9, 9, 9, 33, 34, 35},
        {300, 300, 300, 3, 3, 3},
        {2, 2, 2, 130, 260, 140},
        {65537, 1, 1, 2, 3, 2},
        {1, 65537, 65537, 1, 2, 3},
        /* one tall matrix: of many tiles; few vectors; more than `skinny` takes; transposed too */
        {5, 1, 5, 9, 5, 17},
        {2, 1, 2, 3, 20, 10},
        {64, 1, 64, 1, 1024, 700},
        {4, 1, 4, 6, 1, 9},
        /* split_k_dot: splits of K; batched: each size of parts, rows in tiles, k-tiles */
        {1, 1, 1, 1, 20001, 1},
        {1, 1, 1, 3, 20001, 4},
        {3, 3, 3, 1, 5000, 2},
        {529, 529, 529, 5, 3, 7},
        {530, 530, 530, 17, 17, 17},
        {1057, 1057, 1057, 4, 6, 15},
        {600, 600, 600, 24, 24, 24},
        {700, 700, 700, 33, 33, 33},
        {300, 300, 300, 40, 40, 40},
        {530, 530, 530, 48, 48, 48},
        {300, 300, 300, 50, 50, 50},
        {300, 300, 300, 65, 65, 65},
        {140, 140, 140, 80, 72, 96},
        {64, 64, 64, 100, 100, 100},
        {9, 9, 9, 250, 70, 250},
        {5, 5, 5, 100, 131, 43},
        {7, 7, 7, 127, 127, 127},
        {6, 6, 6, 33, 150, 112},
        {11, 11, 11, 61, 300, 31},
        {40, 40, 40, 16, 129, 160},
        /* by skinny: blocks of 4 warps, and of 8; lines of all products at once */
        {200, 200, 200, 90, 150, 3},
        {100, 100, 100, 5, 384, 130},
        {120, 120, 120, 40, 500, 1},
        {12, 12, 12, 1, 700, 600},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (size_t type = 0; type < ARITHMETIC; type++) {
            unsigned trans = (unsigned)random_below(&random_state, 4);
            try_product(arithmetic[type], cases[i], cases[i][3], cases[i][4], cases[i][5], trans);
            try_product(arithmetic[type], cases[i], cases[i][3], cases[i][4], cases[i][5],
                        trans ^ 3);
        }
    }
}

/* By kernels that load whole vectors along the rows of a and b, with tiles of 128 x 128: one tile,
 * several, ragged on each side; sums of less than a k-tile, of several; stacks, also with one a or
 * b. Each is drawn three times: with and without c, alpha and beta, in either order. */
static void test_products_of_vectors(void)
{
    static const uint64_t cases[][6] = {
        {1, 1, 1, 1, 4, 4},        {1, 1, 1, 128, 16, 128}, {1, 1, 1, 129, 20, 132},
        {1, 1, 1, 127, 12, 124},   {1, 1, 1, 67, 100, 260}, {1, 1, 1, 300, 8, 36},
        {1, 1, 1, 1000, 516, 772}, {1, 1, 1, 513, 64, 516}, {2, 2, 2, 130, 28, 68},
        {3, 1, 3, 50, 36, 8},      {1, 3, 3, 5, 24, 140},   {7, 7, 7, 128, 256, 384},
    };
    for (size_t i = 0; i < 3 * sizeof(cases) / sizeof(cases[0]); i++) {
        const uint64_t *of = cases[i / 3];
        try_product(GM_F32, of, of[3], of[4], of[5], 0);
    }
}

/* On tensor cores, by the smallest tiles, and by those of one block a tile: one, several, ragged;
 * rows that begin at multiples of 16, 8, 4 and 2 bytes; K in one k-tile, in several, in splits, and
 * less than a vector; stacks, also with one a or b. Each in all four transpositions. */
static void test_products_on_tensor_cores(void)
{
    static const uint64_t cases[][6] = {
        {1, 1, 1, 256, 64, 256},  {1, 1, 1, 257, 72, 264},  {1, 1, 1, 512, 256, 512},
        {1, 1, 1, 100, 100, 100}, {1, 1, 1, 130, 66, 198},  {1, 1, 1, 131, 129, 133},
        {1, 1, 1, 64, 8192, 64},  {1, 1, 1, 200, 5003, 56}, {1, 1, 1, 1000, 3, 1000},
        {1, 1, 1, 640, 520, 776}, {4, 4, 4, 72, 136, 200},  {3, 1, 3, 60, 68, 300},
        {1, 5, 5, 129, 96, 40},   {140, 140, 1, 65, 9, 33}, {2, 2, 2, 1029, 257, 515},
    };
    static const enum gm_dtype types[] = {GM_F16, GM_BF16, GM_F32};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (unsigned trans = 0; trans < 4; trans++)
            try_product(types[(i + trans) % 3], cases[i], cases[i][3], cases[i][4], cases[i][5],
                        trans);
        for (unsigned trans = 0; trans < 4; trans++)
            try_product(types[(i + trans + 1) % 3], cases[i], cases[i][3], cases[i][4], cases[i][5],
                        trans);
    }
}

/* On tensor cores, by the large tiles, and by those that two blocks of a cluster load together.
 * Which tile and how many splits a row takes is choose/tensor.c's choice:
 *
 *                     mma        wgmma       split_bf16 */
static void test_products_of_large_tiles(void)
{
    static const uint64_t cases[][3] = {
        {3080, 72, 2080},  /* large      large       large      more tiles than run at once */
        {1719, 40, 2281},  /* large      large       large      odd rows of the result */
        {2056, 72, 1192},  /* large      wide        large */
        {3300, 40, 641},   /* large      wide        large */
        {1024, 160, 1800}, /* large      square      large */
        {2993, 135, 519},  /* large      square      large */
        {601, 74, 2890},   /* large      lone        large */
        {145, 4750, 3121}, /* large / 5  low         large / 5  / splits */
        {9, 11117, 3026},  /* small / 5  low / 5     large / 11 boxes of 16 rows */
        {67, 916, 3082},   /* large / 5  narrow      large / 5 */
        {813, 8896, 130},  /* large / 18 narrow / 4  small / 6 */
        {683, 2689, 132},  /* small / 8  narrow / 4  small / 7 */
        {143, 4039, 1549}, /* large / 10 square / 5  large / 5 */
        {424, 4176, 1272}, /* large / 6  large / 6   large / 3 */
        {1288, 3312, 360}, /* large / 8  wide / 4    large / 4 */
        {2860, 3756, 71},  /* large / 11 lone / 5    large / 5 */
        {8, 627, 10},      /* small / 20 small / 10  small / 20 */
    };
    static const enum gm_dtype types[] = {GM_F16, GM_BF16, GM_F32};
    static const uint64_t single[3] = {1, 1, 1};

    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (unsigned type = 0; type < 3; type++) {
            struct request request = draw_product(types[type], single, cases[i][0], cases[i][1],
                                                  cases[i][2], (i + type) % 4);
            if (request.options.alpha.real == 0) /* they refuse alpha 0 */
                request.options.has_alpha = false;
            try_request(&request);
        }
    }
}

/* Where `multistage_tuned` repacks operands first: a, b, both, of a stack, one for
 * all. */
static void test_repacked_products(void)
{
    static const uint64_t cases[][6] = {
        {1, 1, 1, 333, 777, 555},  {1, 1, 1, 1000, 3400, 31}, {5, 5, 5, 321, 640, 129},
        {6, 1, 6, 321, 640, 101},  {1, 6, 1, 101, 640, 321},  {1, 1, 1, 1281, 128, 769},
        {1, 1, 1, 1281, 2048, 31}, {1, 1, 1, 641, 320, 769},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (unsigned trans = 0; trans < 4; trans++)
            try_product(trans % 2 ? GM_F64 : GM_F32, cases[i], cases[i][3], cases[i][4],
                        cases[i][5], trans);
        try_product(GM_F32, cases[i], cases[i][3], cases[i][4], cases[i][5], 1);
        try_product(GM_F64, cases[i], cases[i][3], cases[i][4], cases[i][5], 0);
    }
}

/* Where it transposes them too: b, of which many tiles take the same; a that a stack has in common.
 */
static void test_turned_products(void)
{
    const struct request b = {.kind = GM_OP_MATMUL,
                              .dtype = GM_F32,
                              .shape = {{1, 1030, 601}, {1, 1003, 601}},
                              .layout = {GM_ROW_MAJOR, GM_ROW_MAJOR},
                              .operands = 2,
                              .options = {.transb = true}};
    const struct request a = {.kind = GM_OP_MATMUL,
                              .dtype = GM_F32,
                              .shape = {{1, 400, 400}, {130, 400, 32}},
                              .layout = {GM_ROW_MAJOR, GM_ROW_MAJOR},
                              .operands = 2};

    try_request(&b);
    try_request(&a);
}

/* NaN and infinity reach every element they belong to, and no other; c is not read where beta is
 * 0, a and b are not where alpha is. */
static void test_specials(void)
{
    static const uint64_t shapes[][3] = {{1, 5, 1}, {7, 9, 11}, {33, 70, 40}, {100, 20, 5}};
    static const double values[] = {NAN, INFINITY, -INFINITY, 0, -0.0};

    for (size_t i = 0; i < 16 * sizeof(shapes) / sizeof(shapes[0]); i++) {
        const uint64_t *shape = shapes[i / 16];
        unsigned variety = i / 4 % 4;
        struct request request = {.kind = GM_OP_MATMUL,
                                  .dtype = arithmetic[i % 4],
                                  .operands = 3,
                                  .options = {.has_alpha = true, .has_beta = true}};
        struct kernel_case made;

        request.options.alpha.real = variety == 2 ? 0 : 1;
        request.options.beta.real = variety == 1 ? 0 : 1;
        set_shape(request.shape[0], 1, shape[0], shape[1]);
        set_shape(request.shape[1], 1, shape[1], shape[2]);
        set_shape(request.shape[2], 1, shape[0], shape[2]);
        if (!make(&request, &made))
            continue;
        for (int j = 0; j < 9; j++) {
            struct gm_matrix *x = &made.op.operand[j % 3];
            put_float(x->dtype, x->data, random_below(&random_state, gm_matrix_elements(x)),
                      values[random_below(&random_state, 5)]);
        }
        case_seal(&made);
        prove_all(&device, &made, only);
        case_free(&made);
    }
}

/* ---- Sums ---------------------------------------------------------------------------------- */

#define SHAPES_SMALL 6 /* of sums: each is 27 cases, of every type */

/* All ways in which one operand, or both, may be a scalar, a row, a column or a single matrix. */
static void try_sums(enum gm_dtype dtype, uint64_t batch, uint64_t rows, uint64_t cols)
{
    for (unsigned shrunk = 0; shrunk < 64; shrunk++) {
        struct request request = {.kind = GM_OP_ADD, .dtype = dtype, .operands = 2};
        for (int i = 0; i < 2; i++) {
            unsigned which = shrunk >> 3 * i;
            set_shape(request.shape[i], which & 4 ? 1 : batch, which & 1 ? 1 : rows,
                      which & 2 ? 1 : cols);
            request.layout[i] = request.shape[i][0] == 1 && random_below(&random_state, 3) == 0
                                    ? GM_COL_MAJOR
                                    : GM_ROW_MAJOR;
        }
        if (shrunk & shrunk >> 3)
            continue; /* a dimension that neither has is another shape's case */
        try_request(&request);
    }
}

static void test_sums(void)
{
    static const uint64_t shapes[][3] = {
        {1, 1, 1},   {1, 1, 300}, {1, 300, 1}, {1, 3, 5},    {1, 16, 16},   {1, 33, 31},
        {1, 257, 3}, {1, 3, 257}, {1, 5, 513}, {1, 1000, 3}, {2, 3, 5},     {3, 33, 3},
        {7, 1, 9},   {5, 255, 3}, {300, 2, 2}, {2, 20, 70},  {9, 100, 101}, {1, 61, 1031},
    };
    size_t count = small ? SHAPES_SMALL : sizeof(shapes) / sizeof(shapes[0]);

    for (size_t i = 0; i < count; i++) {
        for (size_t type = 0; type < ARITHMETIC; type++)
            try_sums(arithmetic[type], shapes[i][0], shapes[i][1], shapes[i][2]);
    }
    if (small)
        return;
    try_sums(GM_F32, 1, 300007, 3);
    try_sums(GM_F32, 65537, 2, 3);
    try_sums(GM_I32, 1, 65535 * 64 + 65, 3);
}

/* N x 3 matrices as points: whole blocks of them, one more, one less. */
static void test_points(void)
{
    static const uint64_t shapes[][2] = {{1, 1},   {1, 2},    {1, 85},     {1, 86},  {1, 255},
                                         {1, 256}, {1, 257},  {1, 511},    {1, 513}, {1, 1000},
                                         {2, 128}, {3, 1001}, {1, 100003}, {70, 11}};

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct request request = {.kind = GM_OP_ADD, .dtype = GM_F32, .operands = 2};
        set_shape(request.shape[0], shapes[i][0], shapes[i][1], 3);
        set_shape(request.shape[1], shapes[i][0], shapes[i][1], 3);
        try_request(&request);
    }
}

/* Sums beyond what the type holds, of NaN, of infinities of either sign. */
static void test_special_sums(void)
{
    static const double values[] = {NAN, INFINITY, -INFINITY, 0, -0.0, 60000, 3e38, -3e38};

    for (size_t type = 0; type < 4; type++) {
        struct request request = {.kind = GM_OP_ADD,
                                  .dtype = arithmetic[type],
                                  .shape = {{1, 100, 3}, {1, 100, 3}},
                                  .operands = 2};
        struct kernel_case made;
        if (!make(&request, &made))
            continue;
        for (uint64_t i = 0; i < 2 * 300; i++)
            put_float(arithmetic[type], made.op.operand[i % 2].data, i / 2,
                      values[random_below(&random_state, 8)]);
        case_seal(&made);
        prove_all(&device, &made, only);
        case_free(&made);
    }
}

/* large: --small leaves it out. */
static const struct part {
    const char *name;
    void (*test)(void);
    bool large;
} parts[] = {{"moves", test_moves, false},
             {"long_moves", test_long_moves, true},
             {"tall_moves", test_tall_moves, true},
             {"large_moves", test_large_moves, true},
             {"large_products", test_large_products, true},
             {"products_of_large_tiles", test_products_of_large_tiles, true},
             {"products", test_products, false},
             {"products_of_vectors", test_products_of_vectors, false},
             {"products_on_tensor_cores", test_products_on_tensor_cores, false},
             {"repacked_products", test_repacked_products, false},
             {"turned_products", test_turned_products, false},
             {"specials", test_specials, false},
             {"sums", test_sums, false},
             {"points", test_points, false},
             {"special_sums", test_special_sums, false}};

static int usage(void)
{
    fprintf(stderr, "usage: test_gpu_kernels [--only VARIANT] [--part PART] [--small]\nparts:");
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        fprintf(stderr, " %s", parts[i].name);
    fprintf(stderr, "\n");
    return 2;
}

int main(int argc, char **argv)
{
    unsigned tested = 0;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            only = argv[++i];
        else if (strcmp(argv[i], "--part") == 0 && i + 1 < argc)
            part = argv[++i];
        else if (strcmp(argv[i], "--small") == 0)
            small = true;
        else
            return usage();
    }
    if (!device_open(&device)) {
        printf("%s: the kernels for GPUs are not tested\n", device.error);
        return SKIPPED;
    }
    printf("%s, compute capability %u, driver %s\n", device.facts.name, device.gpu.capability,
           device.driver);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if ((part && strcmp(part, parts[i].name) != 0) || (small && parts[i].large))
            continue;
        time_t begun = time(NULL);
        random_state = check_seed(); /* each part begins with the seed, whatever ran before */
        parts[i].test();
        printf("%s: %ld s\n", parts[i].name, (long)(time(NULL) - begun));
        fflush(stdout);
        tested++;
    }
    if (!part)
        prove_ran(&device, only);
    device_close(&device);
    if (tested == 0)
        fprintf(stderr, "%s is no part%s\n", part, small ? ", or one that --small leaves out" : "");
    return tested > 0 ? check_report() : usage();
}
