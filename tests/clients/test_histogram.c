/*
 * Percentiles of gemmctl's histogram, against those of the sorted values: never below, and above by
 * less than a step.
 */
#include "clients/c/gemmctl/histogram.h"
#include "tests/unit/check.h"

#define COUNT 20000

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static struct gm_histogram whole, part;
static uint64_t value[COUNT];

static void test_percentiles(void)
{
    static const double percents[] = {0, 0.01, 1, 25, 50, 90, 99, 99.9, 99.99, 100};
    uint64_t state = check_seed(), sum = 0;

    for (size_t i = 0; i < COUNT; i++) { /* of all magnitudes */
        value[i] = check_random(&state) >> (20 + check_random(&state) % 44);
        sum += value[i];
        gm_histogram_add(i % 2 ? &part : &whole, value[i]);
    }
    gm_histogram_merge(&whole, &part);
    qsort(value, COUNT, sizeof *value, compare);
    CHECK_EQ(whole.count, COUNT);
    CHECK_EQ(whole.sum, sum);
    CHECK_EQ(whole.min, value[0]);
    CHECK_EQ(whole.max, value[COUNT - 1]);
    for (size_t i = 0; i < sizeof percents / sizeof *percents; i++) {
        size_t rank = (size_t)(percents[i] / 100 * COUNT + 0.9999999);
        uint64_t exact = value[rank > 0 ? rank - 1 : 0];
        uint64_t got = gm_histogram_percentile(&whole, percents[i]);
        CHECK(got >= exact);
        CHECK(got - exact <= exact / GM_HISTOGRAM_STEPS);
    }
}

static void test_edges(void)
{
    static struct gm_histogram none, one, some;

    CHECK_EQ(gm_histogram_percentile(&none, 50), 0);
    gm_histogram_merge(&none, &one);
    CHECK_EQ(none.count, 0);
    gm_histogram_add(&some, 5);
    gm_histogram_merge(&none, &some);
    CHECK_EQ(none.min, 5);
    gm_histogram_add(&one, UINT64_MAX);
    CHECK(gm_histogram_percentile(&one, 50) == UINT64_MAX);
    gm_histogram_add(&one, 0);
    CHECK_EQ(gm_histogram_percentile(&one, 50), 0);
    CHECK_EQ(one.min, 0);
}

int main(void)
{
    test_percentiles();
    test_edges();
    return check_report();
}
