/* What an operation is expected to take: at the least, and as its kernel has been of late. */
#include "kernels/device_facts.h"
#include "server/sched/cost.h"
#include "tests/unit/check.h"

#include <math.h>
#include <string.h>

static const struct gm_device_facts facts = {
    .kind = GM_DEVICE_CPU, .copy_gbs = 10, .peak_gflops = {[GM_F32] = 100}};
static const struct gm_device_facts unknown = {.kind = GM_DEVICE_SIM};

static struct gm_task make_task(uint64_t n, size_t variant)
{
    const struct gm_shape shape = {.ndim = 2, .dim = {n, n}};
    const bool present[GM_OPERANDS_MAX] = {true, true};
    const struct gm_op_options options = {0};
    struct gm_matrix operand[GM_OPERANDS_MAX];
    struct gm_error error;
    struct gm_task task;

    memset(&task, 0, sizeof task);
    for (int i = 0; i < 2; i++)
        CHECK_STATUS(gm_matrix_init(&operand[i], GM_F32, GM_ROW_MAJOR, &shape, &error), GM_OK,
                     &error);
    CHECK_STATUS(gm_op_init(&task.op, GM_OP_MATMUL, &options, operand, present, &error), GM_OK,
                 &error);
    task.variant = gm_variant_at(variant);
    task.repeat = 1;
    return task;
}

static bool near(double value, double expected, double tolerance)
{
    return fabs(value - expected) <= tolerance * expected;
}

static void test_least(void)
{
    struct gm_task large = make_task(1000, 0), small = make_task(1, 0);
    struct gm_cost_model model = {0};

    CHECK(near(gm_cost_seconds(&large.op, &facts), 0.02, 1e-6));      /* 2e9 operations at 1e11 */
    CHECK(near(gm_cost_seconds(&small.op, &facts), 12 / 1e10, 1e-6)); /* bytes, not arithmetic */
    CHECK(near(gm_cost_expected(&model, &large, &facts), 0.02, 0.01));
    large.repeat = 10;
    CHECK(near(gm_cost_expected(&model, &large, &facts), 0.2, 0.01));
    /* Launching takes its time too. */
    CHECK(gm_cost_expected(&model, &small, &facts) > 1e-6);
    /* Without ceilings there is an order of magnitude. */
    large.repeat = 1;
    CHECK(gm_cost_seconds(&large.op, &unknown) == 0);
    CHECK(gm_cost_expected(&model, &large, &unknown) > 1);
    /* Any work: the slower of arithmetic and memory, by what is known. */
    CHECK(near(gm_cost_work(2e9, 12e6, GM_F32, &facts), 0.02, 1e-6));
    CHECK(near(gm_cost_work(2e9, 12e9, GM_F32, &facts), 1.2, 1e-6));
    CHECK(near(gm_cost_work(2e9, 0, GM_I64, &facts), 0.02, 1e-6));
    CHECK(near(gm_cost_work(2e9, 0, GM_F32, &unknown), 20, 1e-6));
    CHECK(near(gm_cost_work(0, 5e9, GM_F32, &unknown), 10, 1e-6));
    CHECK(gm_cost_work(0, 0, GM_F32, &unknown) == 0);
    const struct gm_gpu gpu = {.dram_gbs = 1000};
    const struct gm_device_facts unmeasured = {.kind = GM_DEVICE_CUDA, .gpu = &gpu};
    CHECK(near(gm_cost_work(0, 5e12, GM_F32, &unmeasured), 5, 1e-6));
    const struct gm_device_facts slow = {.kind = GM_DEVICE_CPU, .copy_gbs = 0.25};
    CHECK(near(gm_cost_work(0, 5e9, GM_F32, &slow), 20, 1e-6));
    /* A trace for a report looks at a sample. */
    struct gm_access_report report;
    large.report = &report;
    CHECK(gm_cost_expected(&model, &large, &unknown) < 1);
    /* It has its own cost, which is learned, and is not the operation's. */
    for (int i = 0; i < 8; i++)
        gm_cost_learn(&model, &large, &unknown, 1.5, false);
    CHECK(near(gm_cost_expected(&model, &large, &unknown), 1.5, 0.1));
    for (int i = 0; i < 8; i++)
        gm_cost_learn(&model, &large, &unknown, 0.001, false);
    CHECK(near(gm_cost_expected(&model, &large, &unknown), 0.001, 0.1));
    large.report = NULL;
    CHECK(near(gm_cost_expected(&model, &large, &facts), 0.02, 0.01));
}

/* What was stopped took at least so long: it raises what is expected, and never lowers it. */
static void test_stopped(void)
{
    struct gm_task task = make_task(1000, 3);
    struct gm_cost_model model = {0};

    for (int i = 0; i < 8; i++)
        gm_cost_learn(&model, &task, &facts, 10, true);
    CHECK(near(gm_cost_expected(&model, &task, &facts), 10, 0.1));
    for (int i = 0; i < 8; i++)
        gm_cost_learn(&model, &task, &facts, 0.1, true);
    CHECK(near(gm_cost_expected(&model, &task, &facts), 10, 0.1));
}

/* A slow kernel is known for it after a few runs, of whatever size; others are not. */
static void test_learning(void)
{
    struct gm_task slow = make_task(1000, 1), other = make_task(1000, 2), half = make_task(500, 1);
    struct gm_cost_model model = {0};

    gm_cost_learn(&model, &slow, &facts, 4, true);
    CHECK(!gm_cost_is_learnt(&model, slow.variant)); /* it was stopped */
    for (int i = 0; i < 8; i++)
        gm_cost_learn(&model, &slow, &facts, 4, false);
    CHECK(gm_cost_is_learnt(&model, slow.variant) && !gm_cost_is_learnt(&model, other.variant));
    CHECK(near(gm_cost_expected(&model, &slow, &facts), 4, 0.1));
    CHECK(near(gm_cost_expected(&model, &half, &facts), 0.5, 0.1));
    CHECK(near(gm_cost_expected(&model, &other, &facts), 0.02, 0.01));
    /* One run that was disturbed is soon forgotten. */
    gm_cost_learn(&model, &other, &facts, 2, false);
    for (int i = 0; i < 6; i++)
        gm_cost_learn(&model, &other, &facts, 0.02, false);
    CHECK(near(gm_cost_expected(&model, &other, &facts), 0.02, 0.2));
    /* Nothing is faster than the ceiling, nor slower than anything. */
    for (int i = 0; i < 8; i++)
        gm_cost_learn(&model, &other, &facts, i % 2 ? 0 : 1e-9, false);
    CHECK(near(gm_cost_expected(&model, &other, &facts), 0.02, 0.02));
    for (int i = 0; i < 60; i++)
        gm_cost_learn(&model, &other, &facts, 1e30, false);
    CHECK(gm_cost_expected(&model, &other, &facts) < 0.02 * 2e6);
}

/* Whoever is not on the list, or beyond what is kept, has a place all the same. */
static void test_unlisted(void)
{
    struct gm_task task = make_task(1000, 0);
    struct gm_cost_model model = {0};

    task.variant = NULL;
    for (int i = 0; i < 8; i++)
        gm_cost_learn(&model, &task, &facts, 4, false);
    CHECK(near(gm_cost_expected(&model, &task, &facts), 4, 0.1));
    size_t variants = 0;
    while (gm_variant_at(variants))
        variants++;
    CHECK(variants < GM_COST_VARIANTS_MAX);
}

int main(void)
{
    test_least();
    test_stopped();
    test_learning();
    test_unlisted();
    return check_report();
}
