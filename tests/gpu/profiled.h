/*
 * profiled.h - the runs on which the simulator's counts are set against a GPU's own counters: each
 * SIMT variant on these operands, once, in this order.
 */
#ifndef GM_TESTS_GPU_PROFILED_H
#define GM_TESTS_GPU_PROFILED_H

#include "kernels/backend.h"

/* Calls fn for each run; op has no data. Stops when fn says false; returns what it said. */
bool profiled_each(const struct gm_device_facts *facts,
                   bool (*fn)(void *cls, const struct gm_op *op, const struct gm_variant *variant),
                   void *cls);

/* "transpose naive f32 1000x1001" */
const char *profiled_name(const struct gm_op *op, const struct gm_variant *variant, char buf[160]);

#endif
