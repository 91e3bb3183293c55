/*
 * test_cpu_add.c - sums by every variant of the cpu: every way in which two operands may be
 * repeated, every element type, both layouts, over shapes that break things.
 */
#include "test_cpu_try.h"

#include <math.h>

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

/* Each dimension of each operand there or repeated, in stacks and matrices. */
static void test_every_broadcast(void)
{
    static const uint64_t shapes[][3] = {
        {SINGLE, 3, 5}, {SINGLE, 19, 21}, {2, 3, 5}, {3, 9, 17}, {5, 2, 3}, {1, 4, 4},
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        for (size_t type = 0; type < ARITHMETIC; type++) {
            for (unsigned ones = 0; ones < 64; ones++) {
                for (unsigned layouts = 0; layouts < 4; layouts++)
                    try_sum(arithmetic[type], shapes[i], ones % 8, ones / 8, layouts);
            }
        }
    }
    /* A matrix, a row, a column and a scalar with a stack. */
    for (unsigned ones = 0; ones < 8; ones += 2) {
        struct request request = {.kind = GM_OP_ADD, .dtype = GM_F32, .operands = 2};
        request.shape[0] = repeated(shapes[0], ones);
        request.shape[1] = shape_of(7, 3, 5);
        try_request(&request);
    }
}

/* Edges of the kernel's tiles: 8192 bytes of a row, or, column-major, 1024 by 128 KiB / 1024. */
static void test_shapes(void)
{
    static const uint64_t shapes[][3] = {
        {SINGLE, 0, 5},     {SINGLE, 5, 0},     {SINGLE, 1, 1},     {SINGLE, 1, 1023},
        {SINGLE, 1, 1024},  {SINGLE, 1, 1025},  {SINGLE, 2, 2047},  {SINGLE, 2, 2048},
        {SINGLE, 2, 2049},  {SINGLE, 2, 4095},  {SINGLE, 2, 4097},  {SINGLE, 683, 3},
        {SINGLE, 2049, 2},  {SINGLE, 4100, 1},  {SINGLE, 127, 255}, {SINGLE, 128, 256},
        {SINGLE, 129, 257}, {SINGLE, 257, 129}, {SINGLE, 97, 101},  {0, 3, 4},
        {3, 0, 4},          {3, 4, 0},          {1, 3, 5},          {7, 1, 9},
        {7, 9, 1},          {5, 1, 1},          {67, 16, 16},       {300, 2, 70},
        {1000, 3, 3},
    };
    /* None repeated, a scalar, a row, a column, a row and a column, one matrix for the stack. */
    static const unsigned ones[][2] = {{0, 0}, {0, 7}, {6, 0}, {0, 2}, {4, 0}, {2, 4}, {1, 0}};

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        for (size_t type = 0; type < ARITHMETIC; type++) {
            for (size_t j = 0; j < sizeof(ones) / sizeof(ones[0]); j++) {
                unsigned layouts = (unsigned)random_below(&try_random, 4);
                try_sum(arithmetic[type], shapes[i], ones[j][0], ones[j][1], layouts);
                try_sum(arithmetic[type], shapes[i], ones[j][0], ones[j][1], layouts ^ 3);
            }
        }
    }
}

/* Results large enough to be streamed and to be shared by the threads. */
static void test_large(void)
{
    static const struct {
        enum gm_dtype dtype;
        uint64_t shape[3];
    } cases[] = {
        {GM_F32, {SINGLE, 517, 521}},  {GM_F32, {SINGLE, 1, 300001}},
        {GM_F32, {SINGLE, 100003, 3}}, {GM_F64, {SINGLE, 371, 383}},
        {GM_F16, {SINGLE, 733, 1021}}, {GM_BF16, {SINGLE, 3, 200003}},
        {GM_I64, {SINGLE, 140001, 1}}, {GM_I32, {40, 97, 101}},
        {GM_F64, {3, 259, 303}},       {GM_F32, {20011, 4, 4}},
        {GM_F16, {2, 301, 1100}},
    };
    static const unsigned ones[][2] = {{0, 0}, {0, 7}, {0, 6}, {2, 0}, {0, 4},
                                       {2, 4}, {0, 1}, {3, 0}, {5, 2}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (size_t j = 0; j < sizeof(ones) / sizeof(ones[0]); j++) {
            try_sum(cases[i].dtype, cases[i].shape, ones[j][0], ones[j][1], 0);
            if (cases[i].shape[1] < 1000)
                try_sum(cases[i].dtype, cases[i].shape, ones[j][0], ones[j][1],
                        1 + (unsigned)random_below(&try_random, 3));
        }
    }
}

/* What a tile may find written out from the tile before: chunks of three narrow tiles in a band,
 * the last band of which is one row. */
static void test_bands(void)
{
    static const struct {
        enum gm_dtype dtype;
        uint64_t shape[3];
    } cases[] = {{GM_F32, {SINGLE, 129, 600}}, {GM_F16, {2, 65, 3100}}, {GM_I64, {3, 129, 300}}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (unsigned ones = 0; ones < 8; ones++) {
            try_sum(cases[i].dtype, cases[i].shape, cases[i].shape[0] == SINGLE ? 0 : 1, ones, 1);
            try_sum(cases[i].dtype, cases[i].shape, ones, 0, 2);
        }
    }
}

/* NaN, infinities, sums that overflow, that cancel, that are subnormal, that are ties. */
static void test_specials(void)
{
    static const double values[] = {NAN,   INFINITY, -INFINITY, 0,       -0.0,      1,
                                    1e308, 65504,    16,        3.38e38, 0x1p-1074, 0x1p-24,
                                    1e-40, 0x1p-133, 0x1p-11,   0x1p-8};
    const uint64_t count = sizeof(values) / sizeof(values[0]), signs = 2 * count;

    for (size_t type = 0; type < 4; type++) {
        struct request request = {.kind = GM_OP_ADD, .dtype = arithmetic[type], .operands = 2};
        struct kernel_case made;
        request.shape[0] = shape_of(SINGLE, signs, 1);
        request.shape[1] = shape_of(SINGLE, 1, signs);
        if (!try_make(&request, &made))
            continue;
        for (unsigned j = 0; j < 2; j++) {
            for (uint64_t i = 0; i < signs; i++)
                put_float(arithmetic[type], made.op.operand[j].data, i,
                          i < count ? values[i] : -values[i - count]);
        }
        try_case(&made);
    }
}

/* Types of 16 bits, of all bits there are: subnormals, NaNs of every kind, results beyond the
 * range. */
static void test_any_bits(void)
{
    for (int round = 0; round < 2; round++) {
        enum gm_dtype dtype = round == 0 ? GM_F16 : GM_BF16;
        struct request request = {.kind = GM_OP_ADD, .dtype = dtype, .operands = 2};
        struct kernel_case made;
        request.shape[0] = shape_of(SINGLE, 1, 65536);
        request.shape[1] = shape_of(SINGLE, 16, 65536);
        if (!try_make(&request, &made))
            continue;
        uint16_t *a = made.op.operand[0].data, *b = made.op.operand[1].data;
        for (uint64_t i = 0; i < 65536; i++)
            a[i] = (uint16_t)i;
        for (uint64_t i = 0; i < 16 * 65536; i++)
            b[i] = (uint16_t)check_random(&try_random);
        try_case(&made);
    }
}

int main(void)
{
    static const unsigned threads[] = {3, 0};

    if (try_begin(&gm_backend_cpu, threads)) {
        test_every_broadcast();
        test_shapes();
        test_large();
        test_bands();
        test_specials();
        test_any_bits();
    }
    return try_end(1u << GM_OP_ADD);
}
