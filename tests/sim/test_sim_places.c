/*
 * test_sim_places.c - where reports say that memory is touched: for every variant and element type
 * (arithmetic in turns) in a line of a kernel's own code, not of what it is written in (the
 * language, elements' own conversions), and with that line to read.
 */
#include "explain_variant.h"
#include "tests/unit/operands.h"

static void *sim;
static unsigned seen;

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static void check_site(const struct gm_access_site *site)
{
    bool right = CHECK(begins(site->file, "kernels/cuda/"));

    right &= CHECK(!begins(site->file, "kernels/cuda/lib/element.h"));
    right &= CHECK(site->line > 0 && site->source[0] != '\0');
    if (!right)
        fprintf(stderr, "  %s:%u\n", site->file, site->line);
}

static void check_places(const struct gm_op *op)
{
    const struct gm_device_facts *facts = gm_backend_sim.describe(sim, 0);
    const struct gm_variant *variant;

    for (size_t i = 0; (variant = gm_variant_at(i)); i++) {
        struct gm_access_report report = {0};
        struct gm_error err = {.detail = ""};
        if (!variant->run[GM_DEVICE_SIM] || gm_variant_check(variant, op, facts, &err) != GM_OK ||
            !explain(sim, op, variant, &report))
            continue;
        unsigned long failed = atomic_load(&check_failed);
        CHECK(report.sites > 0);
        for (size_t j = 0; j < report.sites; j++)
            check_site(&report.site[j]);
        if (atomic_load(&check_failed) > failed)
            fprintf(stderr, "  in %s %s of %s\n", gm_op_name(op->kind), variant->name,
                    gm_dtype_name(op->result.dtype));
        seen++;
        gm_access_report_clear(&report);
    }
}

int main(void)
{
    const struct gm_backend_options options = {.threads = 1};
    struct gm_error err = {.detail = ""};

    if (!CHECK_STATUS(gm_backend_sim.open(&options, &sim, &err), GM_OK, &err))
        return check_report();
    for (int i = GM_DTYPE_NONE + 1; i < GM_DTYPE_COUNT; i++) {
        enum gm_dtype dtype = (enum gm_dtype)i;
        bool is_first = is_first_of_its_size(dtype);
        const struct gm_op moves[] = {
            move_of(GM_OP_COPY, dtype, 33, 70), move_of(GM_OP_TRANSPOSE, dtype, 128, 144),
            move_of(GM_OP_TRANSPOSE, dtype, 131, 35), move_of(GM_OP_FLIP, dtype, 33, 70)};
        for (size_t j = 0; j < sizeof(moves) / sizeof(moves[0]) && is_first; j++)
            check_places(&moves[j]);
        if (!(GM_TYPES_ARITHMETIC & GM_DTYPE_BIT(dtype)))
            continue;
        const struct gm_op sums[] = {sum_of(dtype, 96, 3, 96, 3),
                                     sum_of(dtype, 40, 50, 1, 50),
                                     product_of(dtype, 64, 16, 64, false, false),
                                     product_of(dtype, 37, 70, 41, true, true),
                                     product_of(dtype, 3, 100, 60, false, false),
                                     product_of(dtype, 60, 100, 3, false, false),
                                     product_of(dtype, 2, 150, 3, false, false),
                                     products_of(dtype, 5, 9, 21, 19)};
        for (size_t j = (size_t)i % 2; j < sizeof(sums) / sizeof(sums[0]); j += 2)
            check_places(&sums[j]);
    }
    printf("%u reports\n", seen);
    CHECK(seen > 200);
    gm_backend_sim.close(sim);
    return check_report();
}
