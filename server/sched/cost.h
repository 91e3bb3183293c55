/*
 * cost.h - what an operation takes, reckoned before it runs. At the least, for limits: work is
 * bounded by what is known of it, not by how slow somebody's kernel is. And as it is to be
 * expected, for the order of service: that is the least times how much slower the kernel has been
 * of late.
 */
#ifndef GM_SERVER_SCHED_COST_H
#define GM_SERVER_SCHED_COST_H

#include "kernels/backend.h"

#include <stdatomic.h>

#define GM_COST_VARIANTS_MAX 128

/* What a device's kernels have taken, over the least. All zero: none has run. Any thread may learn
 * and ask: two that learn at once leave one's lesson out, and no more. */
struct gm_cost_model {
    _Atomic float log_slowness[GM_COST_VARIANTS_MAX];
    /* Of traces, whose samples have no least: what they take over what is usual. */
    _Atomic float log_trace[GM_COST_VARIANTS_MAX];
};

/* What one run takes at the device's measured ceilings; 0 where they are not known. */
double gm_cost_seconds(const struct gm_op *op, const struct gm_device_facts *facts);

/* What the task will take, all its runs together; more than 0. */
double gm_cost_expected(const struct gm_cost_model *model, const struct gm_task *task,
                        const struct gm_device_facts *facts);
/* It has taken so long; or at least so long, where it was `stopped` before its end. */
void gm_cost_learn(struct gm_cost_model *model, const struct gm_task *task,
                   const struct gm_device_facts *facts, double seconds, bool stopped);
/* What a worker takes to read or write so much text. */
double gm_cost_text(uint64_t bytes);

/* Simulated work has no ceilings to reckon with, and takes thousands of times as long:
 * GM_COST_LIMIT where so many runs are too much for a simulated device. */
enum gm_status gm_cost_simulated(const struct gm_op *op, uint64_t runs, struct gm_error *err);

#endif
