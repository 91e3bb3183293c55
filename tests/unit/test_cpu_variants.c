/*
 * test_cpu_variants.c - every variant of the cpu on every element type against the oracle.
 *
 * Over shapes that break things. Sums are in test_cpu_add.c.
 */
#include "test_cpu_try.h"

#include <math.h>

/* Copies, transposes and flips of all types, under a sanitizer one of each size; both layouts. */
static void test_moves(void)
{
    static const uint64_t shapes[][3] = {
        {SINGLE, 0, 5},     {SINGLE, 5, 0},    {SINGLE, 1, 1},    {SINGLE, 1, 7},
        {SINGLE, 7, 1},     {SINGLE, 2, 3},    {SINGLE, 4, 4},    {SINGLE, 8, 8},
        {SINGLE, 15, 16},   {SINGLE, 16, 17},  {SINGLE, 31, 33},  {SINGLE, 32, 32},
        {SINGLE, 63, 64},   {SINGLE, 64, 65},  {SINGLE, 65, 127}, {SINGLE, 97, 101},
        {SINGLE, 128, 129}, {SINGLE, 255, 3},  {SINGLE, 3, 257},  {SINGLE, 256, 65},
        {SINGLE, 1, 3000},  {SINGLE, 3000, 1}, {SINGLE, 2, 5000}, {SINGLE, 5000, 2},
        {SINGLE, 515, 33},  {SINGLE, 33, 515}, {0, 3, 4},         {3, 0, 4},
        {1, 3, 5},          {3, 5, 7},         {7, 1, 9},         {7, 9, 1},
        {5, 1, 1},          {2, 33, 65},       {40, 3, 3},        {67, 16, 16},
        {300, 2, 70},       {2, 2, 3000},      {129, 20, 5},
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        for (int dtype = GM_DTYPE_NONE + 1; dtype < GM_DTYPE_COUNT; dtype++) {
            struct request request = {.dtype = (enum gm_dtype)dtype, .operands = 1};
            if (CHECK_SANITIZED && !is_first_of_its_size((enum gm_dtype)dtype))
                continue;
            request.shape[0] = shape_of(shapes[i][0], shapes[i][1], shapes[i][2]);
            for (int j = 0; j < 6; j++) {
                request.kind = j < 2 ? GM_OP_TRANSPOSE : j < 4 ? GM_OP_FLIP : GM_OP_COPY;
                request.layout[0] = j % 2 == 0 ? GM_ROW_MAJOR : GM_COL_MAJOR;
                try_request(&request);
            }
        }
    }
}

/* Results large enough to be streamed and to be shared by the threads; one type of each size. */
static void test_large_moves(void)
{
    static const struct {
        enum gm_dtype dtype;
        uint64_t batch, rows, cols;
    } cases[] = {
        {GM_U8, SINGLE, 1031, 1033}, {GM_F16, SINGLE, 733, 1021}, {GM_F32, SINGLE, 701, 709},
        {GM_F64, SINGLE, 509, 521},  {GM_C128, SINGLE, 257, 263}, {GM_F32, SINGLE, 1024, 1024},
        {GM_F32, SINGLE, 3, 180001}, {GM_F32, SINGLE, 180001, 3}, {GM_F32, 40, 97, 101},
        {GM_F32, 3, 300, 303},       {GM_U8, 1000, 33, 37},       {GM_F64, 2, 7, 20011},
        {GM_C128, 31, 47, 53},       {GM_F16, 600, 2, 900},       {GM_U8, SINGLE, 300001, 4},
        {GM_F64, SINGLE, 70001, 2},  {GM_F32, SINGLE, 1, 300001}, {GM_F32, SINGLE, 300001, 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct request request = {.kind = GM_OP_TRANSPOSE, .dtype = cases[i].dtype, .operands = 1};
        request.shape[0] = shape_of(cases[i].batch, cases[i].rows, cases[i].cols);
        try_request(&request);
        request.kind = GM_OP_FLIP;
        try_request(&request);
        request.layout[0] = GM_COL_MAJOR;
        for (int kind = GM_OP_COPY; kind <= GM_OP_FLIP; kind++) {
            request.kind = (enum gm_op_kind)kind;
            if (!gm_op_computes(request.kind))
                try_request(&request);
        }
    }
}

static const struct gm_scalar factors[] = {
    {.real = 1, .integer = 1, .is_integer = true},
    {.real = 0, .integer = 0, .is_integer = true},
    {.real = -3, .integer = -3, .is_integer = true},
    {.real = 0.7},
};

/* One product: op(a) of m x k, op(b) of k x n, with everything else as it is drawn. */
static void try_product(enum gm_dtype dtype, const uint64_t batch[3], uint64_t m, uint64_t k,
                        uint64_t n, unsigned trans)
{
    struct request request = {.kind = GM_OP_MATMUL, .dtype = dtype, .operands = 2};
    bool is_integer = dtype == GM_I32 || dtype == GM_I64;
    unsigned factor_count = is_integer ? 3 : 4;

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

/* Each shape and type is transposed in all four ways; under a sanitizer in one, which take turns.
 */
static bool is_due(size_t which, unsigned trans)
{
    return !CHECK_SANITIZED || trans == which % 4;
}

static void test_products(void)
{
    static const uint64_t shapes[][3] = {
        {0, 5, 3},     {5, 0, 3},     {5, 3, 0},     {1, 1, 1},     {1, 7, 1},     {2, 2, 2},
        {1, 13, 17},   {17, 13, 1},   {3, 1, 5},     {4, 4, 4},     {8, 40, 9},    {9, 40, 8},
        {11, 12, 13},  {12, 12, 12},  {13, 31, 33},  {12, 255, 32}, {12, 256, 32}, {12, 257, 32},
        {24, 64, 24},  {25, 65, 23},  {63, 64, 65},  {64, 64, 64},  {65, 63, 129}, {97, 101, 89},
        {2, 300, 300}, {300, 300, 2}, {4, 513, 517}, {517, 513, 4}, {1, 2049, 3},  {3, 2048, 1},
        {128, 3, 200}, {200, 3, 128}, {8, 8, 600},   {600, 8, 8},
    };
    const uint64_t single[3] = {SINGLE, SINGLE, SINGLE};

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        for (size_t type = 0; type < ARITHMETIC; type++) {
            for (unsigned trans = 0; trans < 4; trans++)
                if (is_due(i + type, trans))
                    try_product(arithmetic[type], single, shapes[i][0], shapes[i][1], shapes[i][2],
                                trans);
        }
    }
}

/* Edges of the kernels' tiles (240 x 256 of them at most, 512 for OpenBLAS) and slices of k. */
static void test_large_products(void)
{
    static const struct {
        enum gm_dtype dtype;
        uint64_t m, k, n;
    } cases[] = {
        {GM_F32, 239, 30, 255},  {GM_F32, 240, 256, 256}, {GM_F16, 241, 70, 257},
        {GM_BF16, 481, 33, 300}, {GM_F64, 121, 257, 129}, {GM_F64, 300, 300, 300},
        {GM_I64, 120, 513, 128}, {GM_I32, 250, 250, 250}, {GM_F32, 513, 40, 515},
        {GM_F64, 515, 17, 1025}, {GM_F32, 5, 20000, 7},   {GM_F32, 1, 100003, 1},
        {GM_F16, 3, 70001, 2},   {GM_I64, 1, 60000, 9},   {GM_F64, 2, 3000, 1025},
        {GM_BF16, 1100, 900, 1}, {GM_F32, 20000, 5, 20},  {GM_F32, 33, 40000, 34},
        {GM_F32, 1, 8388608, 1}, /* as much work as tiles are halved for, in one element */
    };
    const uint64_t single[3] = {SINGLE, SINGLE, SINGLE};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        unsigned trans = (unsigned)random_below(&try_random, 4);
        try_product(cases[i].dtype, single, cases[i].m, cases[i].k, cases[i].n, trans);
        try_product(cases[i].dtype, single, cases[i].m, cases[i].k, cases[i].n, trans ^ 3);
    }
}

static void test_stacks(void)
{
    static const uint64_t cases[][6] = {
        /* batches of a, b, c; m, k, n */
        {3, 3, 3, 4, 5, 6},           {3, SINGLE, SINGLE, 4, 5, 6},
        {SINGLE, 3, SINGLE, 4, 5, 6}, {SINGLE, SINGLE, 3, 4, 5, 6},
        {1, 5, 5, 2, 3, 2},           {5, 1, 1, 1, 3, 2},
        {7, 7, 7, 1, 9, 1},           {7, 7, 7, 1, 1, 1},
        {40, SINGLE, 40, 1, 64, 64},  {40, SINGLE, SINGLE, 3, 20, 9},
        {SINGLE, 40, 40, 9, 20, 3},   {0, 0, 0, 4, 5, 6},
        {0, 1, SINGLE, 4, 5, 6},      {3, 3, 3, 0, 5, 6},
        {3, 3, 3, 4, 0, 6},           {9, 9, 9, 33, 34, 35},
        {300, 300, 300, 3, 3, 3},     {2, 2, 2, 130, 260, 140},
        {3, 3, SINGLE, 36, 40, 64},   {5, SINGLE, SINGLE, 8, 40, 64},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (size_t type = 0; type < ARITHMETIC; type++) {
            for (unsigned trans = 0; trans < 4; trans++)
                if (is_due(i + type, trans))
                    try_product(arithmetic[type], cases[i], cases[i][3], cases[i][4], cases[i][5],
                                trans);
        }
    }
}

/* NaN and infinity in the operands reach every element they belong to, and no other. */
static void test_specials(void)
{
    static const uint64_t shapes[][3] = {{1, 5, 1},    {1, 40, 30},  {30, 40, 1}, {7, 9, 11},
                                         {33, 70, 40}, {300, 20, 5}, {3, 3000, 3}};
    static const double values[] = {NAN, INFINITY, -INFINITY, 0, -0.0};

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        for (size_t type = 0; type < 4; type++) {
            for (unsigned trans = 0; trans < 4; trans++) {
                uint64_t m = shapes[i][0], k = shapes[i][1], n = shapes[i][2];
                struct request request = {.kind = GM_OP_MATMUL, .dtype = arithmetic[type]};
                struct kernel_case made;
                request.operands = 3;
                request.options.transa = trans & 1;
                request.options.transb = trans & 2;
                request.options.has_beta = true;
                request.options.beta.real = trans == 1 ? 0 : 1; /* 0: c's NaN stays unread */
                request.shape[0] = trans & 1 ? shape_of(SINGLE, k, m) : shape_of(SINGLE, m, k);
                request.shape[1] = trans & 2 ? shape_of(SINGLE, n, k) : shape_of(SINGLE, k, n);
                request.shape[2] = shape_of(SINGLE, m, n);
                if (!try_make(&request, &made))
                    continue;
                for (int j = 0; j < 9; j++) {
                    struct gm_matrix *x = &made.op.operand[j % 3];
                    put_float(x->dtype, x->data, random_below(&try_random, gm_matrix_elements(x)),
                              values[random_below(&try_random, 5)]);
                }
                try_case(&made);
            }
        }
    }
}

/* alpha = 0 leaves a and b unread, whatever they hold. */
static void test_unread(void)
{
    for (size_t type = 0; type < 4; type++) {
        struct request request = {.kind = GM_OP_MATMUL, .dtype = arithmetic[type], .operands = 3};
        struct kernel_case made;
        request.options.has_alpha = true;
        for (int i = 0; i < 3; i++)
            request.shape[i] = shape_of(SINGLE, 6, 6);
        if (!try_make(&request, &made))
            continue;
        for (uint64_t i = 0; i < 36; i++)
            put_float(arithmetic[type], made.op.operand[0].data, i, i % 2 ? NAN : INFINITY);
        try_case(&made);
    }
}

/* f16 of all bits: subnormals, numbers near the end of the range, results beyond it. */
static void test_wide_halves(void)
{
    for (int round = 0; round < 4; round++) {
        struct request request = {.kind = GM_OP_MATMUL, .dtype = GM_F16, .operands = 2};
        struct kernel_case made;
        request.shape[0] = shape_of(SINGLE, round < 2 ? 40 : 1, round % 2 ? 3 : 300);
        request.shape[1] = shape_of(SINGLE, round % 2 ? 3 : 300, 50);
        if (!try_make(&request, &made))
            continue;
        for (int j = 0; j < 2; j++) {
            uint16_t *bits = made.op.operand[j].data;
            for (uint64_t i = 0; i < gm_matrix_elements(&made.op.operand[j]); i++) {
                bits[i] = (uint16_t)check_random(&try_random);
                if ((bits[i] & 0x7C00) == 0x7C00)
                    bits[i] &= 0xBFFF; /* finite */
            }
        }
        try_case(&made);
    }
}

int main(void)
{
    const unsigned ops =
        1u << GM_OP_COPY | 1u << GM_OP_TRANSPOSE | 1u << GM_OP_MATMUL | 1u << GM_OP_FLIP;
    static const unsigned threads[] = {3, 0};

    if (try_begin(&gm_backend_cpu, threads)) {
        test_moves();
        test_large_moves();
        test_products();
        test_large_products();
        test_stacks();
        test_specials();
        test_unread();
        test_wide_halves();
    }
    return try_end(ops);
}
