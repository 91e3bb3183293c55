/*
 * profiled.h - the runs on which the simulator's counts are set against a GPU's own counters: each
 * SIMT variant on these operands, once, in this order.
 */
#ifndef GM_TESTS_GPU_PROFILED_H
#define GM_TESTS_GPU_PROFILED_H

#include "kernels/backend.h"

struct profiled {
    enum gm_op_kind kind;
    enum gm_dtype dtype;
    uint64_t batch, rows, cols, n; /* n: columns of a product's b; 0: b is as a is */
};

/* The operation, without data. */
bool profiled_op(const struct profiled *profiled, struct gm_op *ret);

/* Calls fn for each run; op has no data. Stops when fn says false; returns what it said. */
bool profiled_each(const struct gm_device_facts *facts,
                   bool (*fn)(void *cls, const struct gm_op *op, const struct gm_variant *variant),
                   void *cls);

/* The same for runs as large as those that are timed, one of each variant, and some more. */
bool profiled_rows(const struct gm_device_facts *facts,
                   bool (*fn)(void *cls, const struct gm_op *op, const struct gm_variant *variant),
                   void *cls);

/* "transpose naive f32 1000x1001", "matmul tiled f32 200x300 300x100" */
#define PROFILED_NAME_MAX 256
const char *profiled_name(const struct gm_op *op, const struct gm_variant *variant,
                          char buf[PROFILED_NAME_MAX]);

#endif
