/*
 * test_sim_divergence.c - requests of warps whose lanes part and meet again
 * (language/divergence.cu): by hand, from the rule that lanes meet at the end of each branch and of
 * each loop.
 */
#include "marks.h"
#include "run_kernel.h"

#define COUNT 1024

/* kernel, marked line, requests made there, lanes in all of them. */
#define SITES(X)                                                                                   \
    X(alternate, alternate, 3, 48)                                                                 \
    X(continued, continued, 3, 48)                                                                 \
    X(uneven, uneven, 4, 32 + 24 + 16 + 8)                                                         \
    X(uneven, uneven_after, 2, 64) /* a load and a store */                                        \
    X(broken_off, broken_off, 2, 21 + 10)                                                          \
    X(broken_off, broken_off_after, 1, 32)                                                         \
    X(inner, inner, 6, 2 * (24 + 16 + 8))                                                          \
    X(inner, inner_after, 2, 64)                                                                   \
    X(switched, switched, 1, 7)                                                                    \
    X(switched, switched_two, 1, 12)                                                               \
    X(switched, switched_after, 1, 32)                                                             \
    X(short_circuit, short_circuit, 2, 32 + 16)                                                    \
    X(short_circuit, short_circuit_both, 1, 8)                                                     \
    X(short_circuit, short_circuit_else, 1, 24)                                                    \
    X(short_circuit, short_circuit_after, 1, 32)                                                   \
    X(returned, returned, 1, 8)                                                                    \
    X(returned, returned_last, 1, 16)                                                              \
    X(returned, returned_after, 1, 32)                                                             \
    X(until, until_even, 2, 32)                                                                    \
    X(until, until_odd, 3, 48)                                                                     \
    X(until, until_after, 1, 32)                                                                   \
    X(rows_of_twelve, rows_of_twelve, 2 + 2, 2 * 30)

#define X(kernel, mark, requests, lanes) gm_kernel_fn gm_sim_##kernel;
SITES(X)
#undef X

static const struct {
    const char *kernel, *mark;
    gm_kernel_fn *run;
    double requests, lanes;
} sites[] = {
#define X(kernel, mark, requests, lanes) {#kernel, #mark, gm_sim_##kernel, requests, lanes},
    SITES(X)
#undef X
};

int main(void)
{
    static int32_t in[COUNT];
    void *sim = sim_open(1);

    for (int i = 0; i < COUNT; i++)
        in[i] = i;
    for (size_t i = 0; i < sizeof(sites) / sizeof(sites[0]); i++) {
        unsigned line = marked_line(GM_TEST_SIM "/language", "divergence", "here", sites[i].mark);
        struct gm_access_report report = {0};
        struct sim_ran ran = sim_explain(sim, sites[i].run, COUNT, in, &report);
        struct gm_access_sums sums = {0};
        for (size_t j = 0; j < report.sites; j++) {
            CHECK_STR(report.site[j].kernel, sites[i].kernel);
            if (report.site[j].line == line)
                gm_access_add(&sums, &report.site[j].sums);
        }
        CHECK_STATUS(ran.status, GM_OK, &ran.error);
        if (!CHECK(sums.requests == sites[i].requests) | !CHECK(sums.lanes == sites[i].lanes))
            fprintf(stderr, "  %s: %g requests of %g lanes, not %g of %g\n", sites[i].mark,
                    sums.requests, sums.lanes, sites[i].requests, sites[i].lanes);
        gm_access_report_clear(&report);
    }
    sim_close(sim);
    return check_report();
}
