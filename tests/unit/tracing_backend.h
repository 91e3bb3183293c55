/*
 * tracing_backend.h - a simulated device that runs nothing: it answers a task that wants a report
 * with a small one, and any other with a count. There is one in a process.
 */
#ifndef GM_TESTS_UNIT_TRACING_BACKEND_H
#define GM_TESTS_UNIT_TRACING_BACKEND_H

#include "kernels/backend.h"

struct tracing_plan {
    atomic_bool hold;      /* runs wait until it is false, or they are told to stop */
    enum gm_status status; /* how runs end */
    uint64_t scratch;      /* what a task says to need */
    atomic_uint running, runs, reports, buffers; /* buffers: that are out */
    /* Of the last task: */
    struct gm_op op;
    const struct gm_variant *variant;
    bool wants_report;
};

extern struct tracing_plan tracing_plan;
extern const struct gm_backend tracing_backend; /* "sim" */

#endif
