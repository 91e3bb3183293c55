/*
 * run_kernel.h - one kernel of these tests on the simulated device, by the backend's table: 32-bit
 * integers in, as many out.
 */
#ifndef GM_TESTS_SIM_RUN_KERNEL_H
#define GM_TESTS_SIM_RUN_KERNEL_H

#include "kernels/backend.h"
#include "tests/unit/check.h"

/* Opens the backend with so many host threads; exits if it cannot. Close it with sim_close. */
void *sim_open(unsigned threads);
void sim_close(void *sim);

/* What came of a run. */
struct sim_ran {
    enum gm_status status;
    struct gm_error error;
    struct gm_access_totals totals; /* of a run that computed */
};

/* Runs `kernel` on `count` integers; out begins as zeros. */
struct sim_ran sim_run(void *sim, gm_kernel_fn *kernel, uint64_t count, const int32_t *in,
                       int32_t *out);
/* A report of it, the caller's to clear; where `in` is NULL the kernel reads zeros. */
struct sim_ran sim_explain(void *sim, gm_kernel_fn *kernel, uint64_t count, const int32_t *in,
                           struct gm_access_report *ret);
/* One or the other (where `report` is NULL the first), told to stop `after` microseconds. */
struct sim_ran sim_stopped(void *sim, gm_kernel_fn *kernel, uint64_t count, const int32_t *in,
                           int32_t *out, struct gm_access_report *report, unsigned after);

#endif
