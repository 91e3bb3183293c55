/*
 * test_sim_start.c - simulated threads that the system does not start: the run ends as a failure,
 * and not as a result that nobody computed. The two calls that it takes are stood in for here.
 */
#include "run_kernel.h"

#include <dlfcn.h>
#include <limits.h>
#include <ucontext.h>

#define COUNT 2016

/* How often each may still succeed. */
static atomic_long gets, sets;

int getcontext(ucontext_t *ret)
{
    int (*real)(ucontext_t *) = (int (*)(ucontext_t *))dlsym(RTLD_NEXT, "getcontext");

    return atomic_fetch_sub(&gets, 1) > 0 ? real(ret) : -1;
}

int setcontext(const ucontext_t *to)
{
    int (*real)(const ucontext_t *) = (int (*)(const ucontext_t *))dlsym(RTLD_NEXT, "setcontext");

    return atomic_fetch_sub(&sets, 1) > 0 ? real(to) : -1;
}

gm_kernel_fn gm_sim_sound_early_return;

static void check_refused(void *sim, const int32_t *in, int32_t *out)
{
    struct gm_access_report report = {0};
    struct sim_ran ran = sim_run(sim, gm_sim_sound_early_return, COUNT, in, out);

    CHECK_EQ(ran.status, GM_INTERNAL);
    CHECK(strstr(ran.error.detail, "does not start"));
    ran = sim_explain(sim, gm_sim_sound_early_return, COUNT, in, &report);
    CHECK_EQ(ran.status, GM_INTERNAL);
    gm_access_report_clear(&report);
}

int main(void)
{
    static const long until[] = {0, 1, 40, 200}; /* of 256 threads a block */
    static int32_t in[COUNT], out[COUNT];

    for (unsigned threads = 1; threads <= 2; threads++) {
        for (size_t i = 0; i < 2 * sizeof(until) / sizeof(until[0]); i++) {
            void *sim = sim_open(threads);
            atomic_store(&gets, i % 2 == 0 ? until[i / 2] : LONG_MAX);
            atomic_store(&sets, i % 2 == 1 ? until[i / 2] : LONG_MAX);
            check_refused(sim, in, out);
            /* What failed before does not stay. */
            atomic_store(&gets, LONG_MAX);
            atomic_store(&sets, LONG_MAX);
            struct sim_ran ran = sim_run(sim, gm_sim_sound_early_return, COUNT, in, out);
            CHECK_STATUS(ran.status, GM_OK, &ran.error);
            CHECK_EQ(out[COUNT - 1], in[COUNT - 1] + 1);
            sim_close(sim);
        }
    }
    return check_report();
}
