/*
 * test_untimed.c - a variant that has a row in estimate.c and no numbers in the profile, for it was
 * not timed: it has no estimate and is not chosen, nor where its kernel for this shape, or for this
 * type, has a row of its own. And one that has numbers, the best of all, and is not chosen:
 * cuBLAS's transpose, which changes the bits of a NaN.
 */
#include "kernels/choose/estimate.h"
#include "kernels/device_facts.h"
#include "tests/unit/check.h"

static void test_baseline(const struct gm_device_facts *facts)
{
    const struct gm_matrix a[GM_OPERANDS_MAX] = {
        {.dtype = GM_F32, .batch = 1, .rows = 2048, .cols = 2048}};
    const bool present[GM_OPERANDS_MAX] = {true};
    struct gm_profile profile = *gm_profile_at(0);
    struct gm_device_facts device = *facts;
    struct gm_candidate found[GM_CANDIDATES_MAX];
    const struct gm_variant *variant;
    struct gm_op_options options = {0};
    struct gm_op op;

    profile.rates[GM_RATES_transpose_cublas] =
        (struct gm_rates){.math = 9, .shared = 9, .l2 = 9, .dram = 9};
    device.profile = &profile;
    if (!CHECK_EQ(gm_op_init(&op, GM_OP_TRANSPOSE, &options, a, present, NULL), GM_OK))
        return;
    CHECK(gm_candidates(&op, &device, found) > 1 && strcmp(found[0].name, "cublas") == 0);
    CHECK_EQ(gm_select(&op, &device, NULL, &variant, NULL), GM_OK);
    CHECK_STR(variant->name, found[1].name);
}

int main(void)
{
    const struct gm_device_facts facts = {.kind = GM_DEVICE_CUDA,
                                          .gpu = gm_gpu_find("H200"),
                                          .cache_bytes = (uint64_t)60 << 20,
                                          .tuned_blas = true};
    static const struct {
        enum gm_dtype dtype;
        uint64_t rows, cols;
        const char *name;
        enum gm_rates_row row;
    } cases[] = {{GM_F32, 2048, 2048, "vectorized", GM_RATES_transpose_vectorized},
                 {GM_F32, 100000, 7, "skinny", GM_RATES_transpose_tall},
                 {GM_F32, 7, 100000, "skinny", GM_RATES_transpose_wide},
                 {GM_F64, 256, 256, "multistage", GM_RATES_multistage_f64}};
    const struct gm_variant *variant;
    struct gm_op_options options = {0};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gm_matrix one = {
            .dtype = cases[i].dtype, .batch = 1, .rows = cases[i].rows, .cols = cases[i].cols};
        const struct gm_matrix operand[GM_OPERANDS_MAX] = {one, one};
        enum gm_op_kind kind = cases[i].dtype == GM_F64 ? GM_OP_MATMUL : GM_OP_TRANSPOSE;
        const bool present[GM_OPERANDS_MAX] = {true, kind == GM_OP_MATMUL};
        struct gm_profile untimed = *gm_profile_at(0);
        struct gm_device_facts device = facts;
        struct gm_candidate found[GM_CANDIDATES_MAX];
        struct gm_op op;
        if (!CHECK_EQ(gm_op_init(&op, kind, &options, operand, present, NULL), GM_OK))
            continue;
        CHECK(gm_estimate(&op, kind, cases[i].name, &device).us > 0);
        CHECK(!gm_lacks_numbers(&op, kind, cases[i].name, &device));
        untimed.rates[cases[i].row] = (struct gm_rates){0};
        device.profile = &untimed;
        CHECK(gm_estimate(&op, kind, cases[i].name, &device).us == -1);
        CHECK(gm_lacks_numbers(&op, kind, cases[i].name, &device));
        CHECK(gm_estimate(&op, kind, "naive", &device).us > 0);
        CHECK(!gm_lacks_numbers(&op, kind, "grouped", &device)); /* which has no row */
        CHECK_EQ(gm_select(&op, &device, NULL, &variant, NULL), GM_OK);
        CHECK(strcmp(variant->name, cases[i].name) != 0);
        unsigned count = gm_candidates(&op, &device, found);
        for (unsigned j = 0; j < count; j++)
            if (strcmp(found[j].name, cases[i].name) == 0)
                CHECK(found[j].estimate.us == -1 && j > 0);
    }
    test_baseline(&facts);
    return check_report();
}
