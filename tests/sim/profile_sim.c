/*
 * profile_sim.c - what the simulator counts in each run of tests/gpu/profiled.c, or with --rows in
 * its large ones: a line of JSON a run, to be set against a GPU's counters (tests/gpu/counters.py).
 */
#include "tests/gpu/profiled.h"

#include <stdio.h>
#include <string.h>

struct simulated {
    void *context;
    const struct gm_device_facts *facts;
};

static bool run(void *cls, const struct gm_op *op, const struct gm_variant *variant)
{
    const struct simulated *sim = cls;
    struct gm_access_report report = {0};
    struct gm_task task = {.op = *op, .variant = variant, .repeat = 1, .report = &report};
    struct gm_task *tasks[1] = {&task};
    char name[PROFILED_NAME_MAX];

    if (gm_backend_sim.run(sim->context, 0, 0, tasks, 1) != GM_OK || task.status != GM_OK) {
        fprintf(stderr, "%s: %s\n", profiled_name(op, variant, name), task.error.detail);
        return false;
    }
    printf("{\"run\": \"%s\", \"exact\": %s, \"computes\": [", profiled_name(op, variant, name),
           report.sampled ? "false" : "true");
    for (size_t i = 0; i < report.launches; i++) {
        const struct gm_launch_report *launch = &report.launch[i];
        double grid = (double)launch->grid[0] * launch->grid[1] * launch->grid[2];
        for (double left = launch->blocks; left > 0; left -= grid) /* alike ones are one in it */
            printf("%s%s", i > 0 || left < launch->blocks ? ", " : "",
                   launch->prepares ? "false" : "true");
    }
    printf("]");
    for (unsigned i = 0; i < GM_ACCESS_KINDS; i++)
        printf(", \"%s_requests\": %.0f, \"%s_%s\": %.0f", gm_access_name((enum gm_access_kind)i),
               report.totals.kind[i].requests, gm_access_name((enum gm_access_kind)i),
               gm_access_is_shared((enum gm_access_kind)i) ? "wavefronts" : "sectors",
               report.totals.kind[i].units);
    printf("}\n");
    gm_access_report_clear(&report);
    return true;
}

int main(int argc, char **argv)
{
    struct gm_backend_options options = {.threads = 0};
    struct gm_error error;
    struct simulated sim;
    bool large = argc == 2 && strcmp(argv[1], "--rows") == 0;

    if (argc > 1 && !large) {
        fprintf(stderr, "usage: profile_sim [--rows]\n");
        return 2;
    }
    if (gm_backend_sim.open(&options, &sim.context, &error) != GM_OK) {
        fprintf(stderr, "profile_sim: %s\n", error.detail);
        return 1;
    }
    sim.facts = gm_backend_sim.describe(sim.context, 0);
    bool done = large ? profiled_rows(sim.facts, run, &sim) : profiled_each(sim.facts, run, &sim);
    gm_backend_sim.close(sim.context);
    return done ? 0 : 1;
}
