/* The parts of an estimate, by the formula of kernels/choose/README.md, with numbers that are made
 * up to be computed by hand: a GPU of 10 multiprocessors at 1 GHz, and shares of 1/2, 1/4, 1/8 and
 * 1/16. */
#include "kernels/choose/estimate.h"
#include "kernels/device_facts.h"
#include "tests/unit/check.h"

#include <string.h>

static const struct gm_gpu gpu = {.name = "made-up",
                                  .capability = 90,
                                  .sms = 10,
                                  .dram_gbs = 100,
                                  .fp32_gflops = 2560,
                                  .fp64_gflops = 1280,
                                  .int32_gflops = 1920,
                                  .tensor_f16_gflops = 24000,
                                  .tensor_tf32_gflops = 12000,
                                  .tensor_fp64_gflops = 5120};
static const struct gm_rates rates = {.math = 0.5,
                                      .shared = 0.25,
                                      .l2 = 0.125,
                                      .dram = 0.0625,
                                      .step = 100,
                                      .start = 1000,
                                      .pass = 3000};
static const struct gm_profile profile = {
    .launch_us = 2, .pass_rate = 0.5, .first_miss = 500, .miss = 200, .cleared = 700, .queued = 4};

static void near(double actual, double expected, int line)
{
    check_that(fabs(actual - expected) <= 1e-9 * fabs(expected), __FILE__, line, "%.12g, not %.12g",
               actual, expected);
}
#define NEAR(actual, expected) near((actual), (expected), __LINE__)

static struct gm_op op_of(enum gm_op_kind kind, enum gm_dtype dtype, struct gm_shape a,
                          struct gm_shape b, const struct gm_op_options *options)
{
    struct gm_matrix operand[GM_OPERANDS_MAX] = {0};
    bool present[GM_OPERANDS_MAX] = {true, b.ndim > 0};
    struct gm_error err = {0};
    struct gm_op op = {0};

    CHECK_STATUS(gm_matrix_init(&operand[0], dtype, GM_ROW_MAJOR, &a, &err), GM_OK, &err);
    if (present[1])
        CHECK_STATUS(gm_matrix_init(&operand[1], dtype, GM_ROW_MAJOR, &b, &err), GM_OK, &err);
    CHECK_STATUS(gm_op_init(&op, kind, options, operand, present, &err), GM_OK, &err);
    return op;
}

#define SHAPE(rows, cols) ((struct gm_shape){2, {rows, cols}})
#define STACK(batch, rows, cols) ((struct gm_shape){3, {batch, rows, cols}})
#define NONE ((struct gm_shape){0})
static const struct gm_op_options plain = {0};

static struct gm_op product(enum gm_dtype dtype)
{
    return op_of(GM_OP_MATMUL, dtype, SHAPE(64, 64), SHAPE(64, 64), &plain);
}

static struct gm_kernel_time time_of(struct gm_asked q, struct gm_work w)
{
    struct gm_kernel_time least = {.us = INFINITY};

    q.least = &least;
    NEAR(gm_work_us(&q, &rates, &w), least.us);
    return least;
}

/* 25 blocks are 3 on the busiest of 10 multiprocessors; two of them share it, so one round is
 * waited for. */
static void test_formula(void)
{
    struct gm_op op = product(GM_F32);
    struct gm_asked q = gm_asked_of(&op, &gpu, 0, &profile);
    struct gm_work w = {.blocks = 25, .resident = 2, .steps = 3};
    struct gm_kernel_time e = time_of(q, w);

    NEAR(q.mhz, 1000);
    NEAR(e.launch, 2 + 1.3); /* 1000 and 3 times 100 cycles */
    NEAR(e.wait, 1.3);
    NEAR(e.us, 2 + 2 * 1.3);
    CHECK(!(e.math > 0) && !(e.shared > 0) && !(e.l2 > 0) && !(e.dram > 0) && !(e.passes > 0));

    w.madds = 12800;
    w.shared = 3200;
    w.l2 = 800;
    w.dram = 25000;
    e = time_of(q, w);
    NEAR(e.math, 3 * 12800 / (128000 * 0.5)); /* 1280000 multiply-adds a microsecond, of 10 */
    NEAR(e.shared, 3 * 3200 / (128000 * 0.25));
    NEAR(e.l2, 3 * 800 / (64000 * 0.125));
    NEAR(e.dram, 25000 / (100000 * 0.0625));
    NEAR(e.us, 3.3 + sqrt(e.math * e.math + e.shared * e.shared + e.l2 * e.l2 + e.dram * e.dram +
                          e.wait * e.wait));

    w.passes = 2;
    w.pass_bytes = 500000;
    w.queued = 250;
    NEAR(time_of(q, w).passes, 2 * 3 + 500000 / (100000 * 0.5));
    NEAR(time_of(q, w).wait, 1.3 + 1);
    q.cold = 0.5;
    NEAR(time_of(q, w).launch, 3.3 + 0.25);
    NEAR(time_of(q, w).wait, 1.3 + 1 + 0.3);
    q.cleared = true;
    NEAR(time_of(q, w).launch, 3.3 + 0.25 + 0.7);

    const struct gm_rates none = {0};
    bool lacks = false;
    q.lacks = &lacks;
    CHECK(isinf(gm_work_us(&q, &none, &w)) && lacks);
}

/* Multiply-adds in a nanosecond, of all multiprocessors. */
static double madds(enum gm_dtype dtype, enum gm_precision precision, unsigned products,
                    struct gm_gpu with)
{
    struct gm_op op = product(dtype);

    op.precision = precision;
    return gm_asked_of(&op, &with, products, &profile).madds * 10 / 1e3;
}

static void test_units(void)
{
    struct gm_gpu unknown = gpu;

    NEAR(madds(GM_F32, GM_PRECISION_FP32, 0, gpu), 1280);
    NEAR(madds(GM_F16, GM_PRECISION_FP32, 0, gpu), 1280);
    NEAR(madds(GM_F64, GM_PRECISION_FP32, 0, gpu), 640);
    NEAR(madds(GM_I32, GM_PRECISION_FP32, 0, gpu), 960);
    NEAR(madds(GM_I64, GM_PRECISION_FP32, 0, gpu), 320);
    NEAR(madds(GM_F32, GM_PRECISION_FP32, 1, gpu), 1280); /* f32 as it is has no tensor cores */
    NEAR(madds(GM_F32, GM_PRECISION_FP32, 6, gpu), 2000);
    NEAR(madds(GM_F16, GM_PRECISION_FP32, 1, gpu), 12000);
    NEAR(madds(GM_BF16, GM_PRECISION_FP32, 1, gpu), 12000);
    NEAR(madds(GM_F32, GM_PRECISION_BF16_PRODUCTS, 1, gpu), 12000);
    NEAR(madds(GM_F32, GM_PRECISION_TF32, 1, gpu), 6000);
    NEAR(madds(GM_F64, GM_PRECISION_FP32, 1, gpu), 2560);
    NEAR(madds(GM_F64, GM_PRECISION_IEEE, 1, gpu), 640);
    unknown.tensor_f16_gflops = 0;
    NEAR(madds(GM_F16, GM_PRECISION_FP32, 1, unknown), 2560);
    unknown.capability = 75;
    NEAR(madds(GM_F16, GM_PRECISION_FP32, 1, unknown), 1280);
}

/* A stack that shares one B is one tall matrix; K runs along rows of A and of a transposed B. */
static void test_sizes(void)
{
    const struct gm_op_options turned = {.transa = true, .transb = true};
    struct gm_op op = op_of(GM_OP_MATMUL, GM_F16, STACK(5, 7, 3), SHAPE(3, 2), &plain);
    struct gm_sizes s = gm_sizes_of(&op);

    CHECK(s.m == 35 && s.n == 2 && s.k == 3 && s.batch == 1 && s.size == 2 && s.width == 4);
    CHECK(s.a.batch == 0 && s.a_along_k && !s.b_along_k);
    op = op_of(GM_OP_MATMUL, GM_F64, STACK(5, 3, 7), STACK(5, 2, 3), &turned);
    s = gm_sizes_of(&op);
    CHECK(s.m == 7 && s.n == 2 && s.k == 3 && s.batch == 5 && s.size == 8 && s.width == 8);
    CHECK(s.a.batch == 21 && !s.a_along_k && s.b_along_k);
    op = op_of(GM_OP_MATMUL, GM_F32, SHAPE(0, 3), SHAPE(3, 2), &plain);
    CHECK(gm_sizes_of(&op).m == 1); /* no size is 0 */
}

/* The cache has operands of which 64 sets fill half of it, and none of those twice as large. A
 * device without a cache was cleared. */
static void test_cold(void)
{
    struct gm_op op = op_of(GM_OP_TRANSPOSE, GM_F32, SHAPE(64, 64), NONE, &plain);
    struct gm_profile all = profile;
    struct gm_device_facts facts = {.kind = GM_DEVICE_CUDA, .gpu = &gpu, .profile = &all};
    const double sets = 2 * 64 * 4096 * 4 * 2; /* twice 64 of 32 KB */

    for (int i = 0; i < GM_RATES_COUNT; i++)
        all.rates[i] = rates;
    static const double cold[][2] = {{1, 0}, {4.0 / 5, 0.25}, {2.0 / 3, 0.5}, {0.5, 1}, {0.4, 1}};
    for (size_t i = 0; i < sizeof cold / sizeof *cold; i++) {
        facts.cache_bytes = (uint64_t)(sets * cold[i][0]);
        struct gm_kernel_time e = gm_estimate(&op, GM_OP_COPY, "vector", &facts);
        check_that(fabs(e.launch - (2 + 1.1 + cold[i][1] * 0.5)) < 1e-5, __FILE__, __LINE__,
                   "%.12g with %g of the cache", e.launch, cold[i][0]);
        NEAR(e.dram, 32768 / (100000 * 0.0625));
    }
    facts.cache_bytes = 0;
    NEAR(gm_estimate(&op, GM_OP_COPY, "vector", &facts).launch, 2 + 1.1 + 0.5 + 0.7);
}

/* Types have rows of their own, where their kernels differ. */
static void test_rows(void)
{
    static const struct {
        const char *name;
        enum gm_dtype dtype;
        size_t row;
    } cases[] = {{"naive", GM_F32, GM_RATES_naive},
                 {"naive", GM_BF16, GM_RATES_naive_half},
                 {"naive", GM_F64, GM_RATES_naive},
                 {"small_tile", GM_F16, GM_RATES_small_tile_half},
                 {"skinny", GM_F16, GM_RATES_skinny_half_along},
                 {"multistage", GM_F64, GM_RATES_multistage_f64},
                 {"multistage", GM_I64, GM_RATES_multistage_i64},
                 {"multistage", GM_I32, GM_RATES_multistage},
                 {"multistage_tuned", GM_F64, GM_RATES_multistage_tuned_f64},
                 {"cublas", GM_F64, GM_RATES_cublas_f64_64},
                 {"cublas", GM_BF16, GM_RATES_cublas_half_256},
                 {"blocked", GM_F32, GM_RATES_COUNT}}; /* which is a CPU's */
    struct gm_device_facts facts = {.kind = GM_DEVICE_CUDA, .gpu = &gpu};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gm_op op = product(cases[i].dtype);
        CHECK_EQ(gm_rates_of(&op, GM_OP_MATMUL, cases[i].name, &facts), cases[i].row);
    }
}

/* Jobs whose operands are the host's: link 10 GB/s in and 5 out. */
static void test_link(void)
{
    const struct gm_link_rates link = {.in_gbs = 10,
                                       .out_gbs = 5,
                                       .copies_us = 20,
                                       .copy_us = 3,
                                       .grouped_us = 4,
                                       .trip_us = 2,
                                       .uneven = 1.5};
    struct gm_op op = op_of(GM_OP_MATMUL, GM_F32, SHAPE(100, 50), SHAPE(50, 200), &plain);

    NEAR(gm_copied_us(&op, &link, 7), 20 + 3 * 3 + (20000 + 40000) / 1e4 + 80000 / 5e3 + 7);
    /* A for each of 4 columns of tiles, B for each of 2 rows; 8 tiles wait together, for 200 bytes
     * along K. */
    NEAR(gm_grouped_us(&op, &link), 4 + 2 * 200 / 256.0 + sqrt(16.0 * 16 + 16 * 16));
    op = op_of(GM_OP_MATMUL, GM_F32, SHAPE(512, 64), SHAPE(64, 256), &plain);
    NEAR(gm_grouped_us(&op, &link), /* 32 tiles: 16 wait together */
         4 + 2 * 2 + sqrt(pow((4 * 131072 + 8 * 65536) / 1e4, 2) + pow(524288 / 5e3, 2)));
    op = op_of(GM_OP_TRANSPOSE, GM_F32, SHAPE(64, 64), NONE, &plain);
    NEAR(gm_grouped_us(&op, &link), 4 + 2 + sqrt(pow(16384 / 1e4, 2) + pow(16384 / 5e3, 2)));
    op = op_of(GM_OP_FLIP, GM_F32, SHAPE(64, 63), NONE, &plain); /* not whole vectors */
    NEAR(gm_grouped_us(&op, &link), 4 + 2 + 1.5 * sqrt(pow(16128 / 1e4, 2) + pow(16128 / 5e3, 2)));
    op = op_of(GM_OP_ADD, GM_F32, SHAPE(64, 63), SHAPE(64, 63),
               &plain); /* by vectors all the same */
    NEAR(gm_grouped_us(&op, &link), 4 + 2 + sqrt(pow(32256 / 1e4, 2) + pow(16128 / 5e3, 2)));
}

int main(void)
{
    test_formula();
    test_units();
    test_sizes();
    test_cold();
    test_rows();
    test_link();
    return check_report();
}
