/*
 * test_cpu_reference.c - who watches the oracle: answers worked out by hand, and results that it
 * must find wrong.
 */
#include "kernels/cpu/reference.h"
#include "operands.h"

#include <float.h>
#include <math.h>

static struct gm_op make(enum gm_op_kind kind, const struct gm_matrix *a, const struct gm_matrix *b,
                         const struct gm_op_options *options)
{
    struct gm_matrix operand[GM_OPERANDS_MAX] = {*a};
    const bool present[GM_OPERANDS_MAX] = {true, b != NULL};
    struct gm_error err = {.detail = ""};
    struct gm_op op = {0};

    if (b)
        operand[1] = *b;
    CHECK_STATUS(gm_op_init(&op, kind, options, operand, present, &err), GM_OK, &err);
    return op;
}

static const struct gm_op_options none;

/* A column-major stack, against the definition: index (t, i, j) at t + batch * (i + rows * j). */
static void test_stack_by_hand(void)
{
    uint8_t elements[2 * 3 * 4], expected[2 * 4 * 3];
    struct gm_matrix a = {GM_U8, GM_COL_MAJOR, true, 2, 3, 4, elements};
    struct gm_op op = make(GM_OP_TRANSPOSE, &a, NULL, &none);
    struct gm_reference reference = {0};
    struct gm_error err;

    for (int t = 0; t < 2; t++) {
        for (int i = 0; i < 3; i++) {
            for (int j = 0; j < 4; j++) {
                elements[t + 2 * (i + 3 * j)] = (uint8_t)(100 * t + 10 * i + j);
                expected[(t * 4 + j) * 3 + i] = (uint8_t)(100 * t + 10 * i + j);
            }
        }
    }
    CHECK_EQ(gm_reference_make(&op, &reference, &err), GM_OK);
    CHECK(reference.exact && memcmp(reference.exact, expected, sizeof(expected)) == 0);
    CHECK_EQ(gm_reference_compare(&reference, &op, expected).wrong, 0);
    expected[7] ^= 1;
    struct gm_deviation deviation = gm_reference_compare(&reference, &op, expected);
    CHECK_EQ(deviation.wrong, 1);
    CHECK_EQ(deviation.first, 7);
    gm_reference_free(&reference);
    gm_reference_free(&reference); /* an empty one is fine */
}

static void test_flip_by_hand(void)
{
    uint16_t elements[] = {1, 2, 3, 4, 5, 6}, expected[] = {3, 2, 1, 6, 5, 4};
    struct gm_matrix a = {GM_V2, GM_ROW_MAJOR, false, 1, 2, 3, elements};
    struct gm_op op = make(GM_OP_FLIP, &a, NULL, &none);
    struct gm_reference reference = {0};
    struct gm_error err;

    CHECK_EQ(gm_reference_make(&op, &reference, &err), GM_OK);
    CHECK_EQ(gm_reference_compare(&reference, &op, expected).wrong, 0);
    CHECK_EQ(gm_reference_compare(&reference, &op, elements).wrong, 4); /* middles stay */
    gm_reference_free(&reference);
}

/* A row repeated for the matrices of a stack, by hand. */
static void test_sum_by_hand(void)
{
    int32_t a[] = {1, 2, 3, 4, 5, INT32_MAX}, b[] = {10, 20, 1};
    int32_t right[] = {11, 22, 4, 14, 25, INT32_MIN}, wrong[] = {11, 22, 4, 14, 25, INT32_MAX};
    struct gm_matrix ma = {GM_I32, GM_ROW_MAJOR, true, 2, 1, 3, a};
    struct gm_matrix mb = {GM_I32, GM_ROW_MAJOR, false, 1, 1, 3, b};
    struct gm_op op = make(GM_OP_ADD, &ma, &mb, &none);
    struct gm_reference reference = {0};
    struct gm_error err;

    CHECK_EQ(gm_reference_make(&op, &reference, &err), GM_OK);
    CHECK_EQ(gm_reference_compare(&reference, &op, right).wrong, 0);
    CHECK_EQ(gm_reference_compare(&reference, &op, wrong).wrong, 1);
    gm_reference_free(&reference);

    /* A column and a row. */
    float column[] = {1, 2}, row[] = {10, 20, 30}, sums[] = {11, 21, 31, 12, 22, 32};
    ma = (struct gm_matrix){GM_F32, GM_ROW_MAJOR, false, 1, 2, 1, column};
    mb = (struct gm_matrix){GM_F32, GM_ROW_MAJOR, false, 1, 1, 3, row};
    op = make(GM_OP_ADD, &ma, &mb, &none);
    CHECK_EQ(gm_reference_make(&op, &reference, &err), GM_OK);
    CHECK_EQ(gm_reference_compare(&reference, &op, sums).wrong, 0);
    sums[4] = nextafterf(sums[4], 0); /* one digit off is wrong */
    struct gm_deviation deviation = gm_reference_compare(&reference, &op, sums);
    CHECK(deviation.wrong == 1 && deviation.first == 4 && deviation.worst > 1);
    gm_reference_free(&reference);
}

/* A sum is rounded once: where f16 ends, at a tie, and where nothing is left but a NaN. */
static void test_sums_are_rounded_once(void)
{
    static const struct {
        double a, b;
        uint16_t right, wrong;
    } cases[] = {
        {65504, 15.99, 0x7BFF, 0x7C00},       {65504, 16, 0x7C00, 0x7BFF},
        {1, 0x1p-11, 0x3C00, 0x3C01},         {1 + 0x1p-10, 0x1p-11, 0x3C02, 0x3C01},
        {0x1p-24, 0x1p-24, 0x0002, 0x0000},   {INFINITY, -INFINITY, 0x7E00, 0x0000},
        {INFINITY, INFINITY, 0x7C00, 0x7BFF}, {NAN, 1, 0xFE01, 0x3C00},
        {-65504, 65504, 0x8000, 0x0001},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint16_t a = gm_f16_of_f64(cases[i].a), b = gm_f16_of_f64(cases[i].b);
        struct gm_matrix ma = {GM_F16, GM_ROW_MAJOR, false, 1, 1, 1, &a};
        struct gm_matrix mb = {GM_F16, GM_ROW_MAJOR, false, 1, 1, 1, &b};
        struct gm_op op = make(GM_OP_ADD, &ma, &mb, &none);
        struct gm_reference reference = {0};
        struct gm_error err;
        CHECK_EQ(gm_reference_make(&op, &reference, &err), GM_OK);
        if (!CHECK_EQ(gm_reference_compare(&reference, &op, &cases[i].right).wrong, 0) ||
            !CHECK_EQ(gm_reference_compare(&reference, &op, &cases[i].wrong).wrong, 1))
            fprintf(stderr, "  in case %zu\n", i);
        gm_reference_free(&reference);
    }
}

static void test_product_by_hand(void)
{
    float a[] = {1, 2, 3, 4, 5, 6}, b[] = {7, 8, 9, 10, 11, 12};
    struct gm_matrix ma = {GM_F32, GM_ROW_MAJOR, false, 1, 2, 3, a};
    struct gm_matrix mb = {GM_F32, GM_ROW_MAJOR, false, 1, 3, 2, b};
    struct gm_op_options options = {.has_alpha = true, .alpha = {.real = 2}};
    struct gm_op op = make(GM_OP_MATMUL, &ma, &mb, &options);
    struct gm_reference reference = {0};
    const float right[] = {116, 128, 278, 308};
    struct gm_error err;

    CHECK_EQ(gm_reference_make(&op, &reference, &err), GM_OK);
    for (int i = 0; i < 4; i++)
        CHECK(reference.value[i] == (double)right[i] && reference.bound[i] < 1e-3);
    CHECK_EQ(gm_reference_compare(&reference, &op, right).wrong, 0);
    gm_reference_free(&reference);

    /* Transposed operands: a^T is 3x2 written as 2x3. */
    options = (struct gm_op_options){.transa = true, .transb = true};
    op = make(GM_OP_MATMUL, &ma, &mb, &options);
    const double transposed[] = {1 * 7 + 4 * 8, 1 * 9 + 4 * 10, 1 * 11 + 4 * 12,
                                 2 * 7 + 5 * 8, 2 * 9 + 5 * 10, 2 * 11 + 5 * 12,
                                 3 * 7 + 6 * 8, 3 * 9 + 6 * 10, 3 * 11 + 6 * 12};
    CHECK_EQ(gm_reference_make(&op, &reference, &err), GM_OK);
    for (int i = 0; i < 9; i++)
        CHECK(reference.value[i] == transposed[i]);
    gm_reference_free(&reference);
}

static void test_integers_wrap(void)
{
    int32_t a[] = {INT32_MAX, 2}, b[] = {2, INT32_MAX};
    struct gm_matrix ma = {GM_I32, GM_ROW_MAJOR, false, 1, 1, 2, a};
    struct gm_matrix mb = {GM_I32, GM_ROW_MAJOR, false, 1, 2, 1, b};
    struct gm_op op = make(GM_OP_MATMUL, &ma, &mb, &none);
    struct gm_reference reference = {0};
    const int32_t right = -4, wrong = INT32_MAX;
    struct gm_error err;

    CHECK_EQ(gm_reference_make(&op, &reference, &err), GM_OK);
    CHECK_EQ(gm_reference_compare(&reference, &op, &right).wrong, 0);
    CHECK_EQ(gm_reference_compare(&reference, &op, &wrong).wrong, 1);
    gm_reference_free(&reference);
}

/* A result rounded as it should be passes; one that is off by more than its bound does not. */
static void test_bounds(enum gm_dtype dtype, uint64_t k)
{
    uint64_t random = check_seed() + k;
    void *a = malloc(k * 8), *b = malloc(k * 8);
    struct gm_matrix ma = {dtype, GM_ROW_MAJOR, false, 1, 1, k, a};
    struct gm_matrix mb = {dtype, GM_ROW_MAJOR, false, 1, k, 1, b};
    struct gm_op op = make(GM_OP_MATMUL, &ma, &mb, &none);
    struct gm_reference reference = {0};
    struct gm_error err;
    uint64_t got = 0;

    random_fill(&random, dtype, a, k);
    random_fill(&random, dtype, b, k);
    CHECK_EQ(gm_reference_make(&op, &reference, &err), GM_OK);
    double value = reference.value[0], bound = reference.bound[0];
    CHECK(isfinite(bound) && bound > 0);
    CHECK(bound < 0.05 * sqrt((double)k)); /* it means something: a lost term would show */

    put_float(dtype, &got, 0, value);
    CHECK_EQ(gm_reference_compare(&reference, &op, &got).wrong, 0);
    const double wrong[] = {value + 2.1 * bound + fabs(value) / 50,
                            value - 2.1 * bound - fabs(value) / 50, NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 5; i++) {
        put_float(dtype, &got, 0, wrong[i]);
        struct gm_deviation deviation = gm_reference_compare(&reference, &op, &got);
        CHECK_EQ(deviation.wrong, 1);
        CHECK(!isfinite(wrong[i]) || deviation.worst > 1);
    }
    gm_reference_free(&reference);
    free(a);
    free(b);
}

static void test_specials(void)
{
    float a[] = {1, 1}, b[] = {NAN, 1};
    struct gm_matrix ma = {GM_F32, GM_ROW_MAJOR, false, 1, 1, 2, a};
    struct gm_matrix mb = {GM_F32, GM_ROW_MAJOR, false, 1, 2, 1, b};
    struct gm_op op = make(GM_OP_MATMUL, &ma, &mb, &none);
    struct gm_reference reference = {0};
    const float one = 1, nan = NAN, infinite = INFINITY, negative = -INFINITY;
    struct gm_error err;

    CHECK_EQ(gm_reference_make(&op, &reference, &err), GM_OK);
    CHECK_EQ(gm_reference_compare(&reference, &op, &nan).wrong, 0);
    CHECK_EQ(gm_reference_compare(&reference, &op, &one).wrong, 1);
    CHECK_EQ(gm_reference_compare(&reference, &op, &infinite).wrong, 1);
    gm_reference_free(&reference);

    b[0] = INFINITY; /* inf + 1 */
    CHECK_EQ(gm_reference_make(&op, &reference, &err), GM_OK);
    CHECK_EQ(gm_reference_compare(&reference, &op, &infinite).wrong, 0);
    CHECK_EQ(gm_reference_compare(&reference, &op, &negative).wrong, 1);
    CHECK_EQ(gm_reference_compare(&reference, &op, &nan).wrong, 1);
    CHECK_EQ(gm_reference_compare(&reference, &op, &one).wrong, 1);
    gm_reference_free(&reference);

    a[0] = 0; /* 0 * inf is NaN: nobody may skip zeros */
    CHECK_EQ(gm_reference_make(&op, &reference, &err), GM_OK);
    CHECK_EQ(gm_reference_compare(&reference, &op, &nan).wrong, 0);
    CHECK_EQ(gm_reference_compare(&reference, &op, &one).wrong, 1);
    gm_reference_free(&reference);

    a[0] = b[0] = FLT_MAX; /* overflow on the way: anything goes */
    CHECK_EQ(gm_reference_make(&op, &reference, &err), GM_OK);
    CHECK(isinf(reference.bound[0]));
    CHECK_EQ(gm_reference_compare(&reference, &op, &infinite).wrong, 0);
    gm_reference_free(&reference);
}

/* f16 ends at 65504: from 65520 on it is infinity, and below it is not. */
static void test_half_range(void)
{
    uint16_t a, b, got;
    struct gm_matrix ma = {GM_F16, GM_ROW_MAJOR, false, 1, 1, 1, &a};
    struct gm_matrix mb = {GM_F16, GM_ROW_MAJOR, false, 1, 1, 1, &b};
    struct gm_op op = make(GM_OP_MATMUL, &ma, &mb, &none);
    struct gm_reference reference = {0};
    struct gm_error err;

    a = gm_f16_of_f32(1000);
    b = gm_f16_of_f32(1000);
    got = 0x7C00;
    CHECK_EQ(gm_reference_make(&op, &reference, &err), GM_OK);
    CHECK_EQ(gm_reference_compare(&reference, &op, &got).wrong, 0);
    got = 0xFC00;
    CHECK_EQ(gm_reference_compare(&reference, &op, &got).wrong, 1);
    got = gm_f16_of_f32(65504);
    CHECK_EQ(gm_reference_compare(&reference, &op, &got).wrong, 1);
    gm_reference_free(&reference);

    b = gm_f16_of_f32(60);
    got = 0x7C00;
    CHECK_EQ(gm_reference_make(&op, &reference, &err), GM_OK);
    CHECK_EQ(gm_reference_compare(&reference, &op, &got).wrong, 1);
    got = gm_f16_of_f32(60000);
    CHECK_EQ(gm_reference_compare(&reference, &op, &got).wrong, 0);
    gm_reference_free(&reference);
}

/* x of which `bits` are left, the others cut off. */
static float cut(float x, unsigned bits)
{
    uint32_t word;

    memcpy(&word, &x, sizeof(word));
    word &= ~((UINT32_C(1) << (24 - bits)) - 1);
    memcpy(&x, &word, sizeof(x));
    return x;
}

/* x with `bits`, rounded. */
static float rounded(float x, unsigned bits)
{
    return cut(x + ldexpf(x, -(int)bits), bits);
}

/* k products of the same two factors, each of which is what `left` makes of it. */
static bool is_right(float a, float b, uint64_t k, enum gm_precision precision,
                     float (*left)(float x, unsigned bits), unsigned bits)
{
    struct gm_op_options options = {.precision = precision};
    float many_a[100], many_b[100], got = 0;
    struct gm_matrix ma = {GM_F32, GM_ROW_MAJOR, false, 1, 1, k, many_a};
    struct gm_matrix mb = {GM_F32, GM_ROW_MAJOR, false, 1, k, 1, many_b};
    struct gm_op op = make(GM_OP_MATMUL, &ma, &mb, &options);
    struct gm_reference reference = {0};
    struct gm_error err;

    for (uint64_t i = 0; i < k; i++) {
        many_a[i] = a;
        many_b[i] = b;
        got += left(a, bits) * left(b, bits);
    }
    CHECK_EQ(gm_reference_make(&op, &reference, &err), GM_OK);
    bool right = gm_reference_compare(&reference, &op, &got).wrong == 0;
    gm_reference_free(&reference);
    return right;
}

/* Factors with as many bits as the precision leaves, rounded or cut off, are right; with one fewer
 * some are not. The farthest from itself is what is just below one such number more than 1. */
static void test_precisions(void)
{
    static const struct {
        enum gm_precision precision;
        unsigned bits;
    } of[] = {{GM_PRECISION_TF32, 11}, {GM_PRECISION_BF16_PRODUCTS, 8}};
    uint64_t random = check_seed();

    for (int i = 0; i < 2; i++) {
        enum gm_precision precision = of[i].precision;
        unsigned bits = of[i].bits;
        float far = 1 + ldexpf(1, 1 - (int)bits) - ldexpf(1, -23);
        float farther = 1 + ldexpf(1, 2 - (int)bits) - ldexpf(1, -23);
        for (uint64_t k = 1; k <= 100; k += 33) {
            CHECK(is_right(far, far, k, precision, cut, bits));
            CHECK(is_right(-far, far, k, precision, cut, bits));
            CHECK(!is_right(farther, farther, k, precision, cut, bits - 1));
            CHECK(!is_right(far, far, k, GM_PRECISION_FP32, cut, bits));
            for (int j = 0; j < 100; j++) {
                float a, b;
                random_fill(&random, GM_F32, &a, 1);
                random_fill(&random, GM_F32, &b, 1);
                CHECK(is_right(a, b, k, precision, cut, bits));
                CHECK(is_right(a, b, k, precision, rounded, bits));
            }
        }
    }
}

int main(void)
{
    const enum gm_dtype floats[] = {GM_F16, GM_BF16, GM_F32, GM_F64};

    test_stack_by_hand();
    test_flip_by_hand();
    test_sum_by_hand();
    test_sums_are_rounded_once();
    test_product_by_hand();
    test_integers_wrap();
    for (int i = 0; i < 4; i++) {
        test_bounds(floats[i], 1);
        test_bounds(floats[i], 17);
        test_bounds(floats[i], 1000);
    }
    test_specials();
    test_half_range();
    test_precisions();
    return check_report();
}
