/*
 * explain_variant.h - access reports of the list's variants, for the tests of their figures.
 */
#ifndef GM_TESTS_SIM_EXPLAIN_VARIANT_H
#define GM_TESTS_SIM_EXPLAIN_VARIANT_H

#include "kernels/backend.h"
#include "tests/unit/check.h"

/* An operation on two-dimensional operands; of matmul the result is m x n and sums have length k.
 */
struct gm_op move_of(enum gm_op_kind kind, enum gm_dtype dtype, uint64_t rows, uint64_t cols);
struct gm_op sum_of(enum gm_dtype dtype, uint64_t rows, uint64_t cols, uint64_t rows_b,
                    uint64_t cols_b);
struct gm_op product_of(enum gm_dtype dtype, uint64_t m, uint64_t k, uint64_t n, bool transa,
                        bool transb);

/* Of a stack of such by a stack of such. */
struct gm_op products_of(enum gm_dtype dtype, uint64_t batch, uint64_t m, uint64_t k, uint64_t n);

/* The simulator's variant of that name; exits where there is none. */
const struct gm_variant *variant_of(enum gm_op_kind kind, const char *name);

/* Its report, the caller's to clear; operands are zeros. */
bool explain(void *sim, const struct gm_op *op, const struct gm_variant *variant,
             struct gm_access_report *ret);
/* Runs all of it, on zeros: what it touched. */
bool run_whole(void *sim, const struct gm_op *op, const struct gm_variant *variant,
               struct gm_access_totals *ret);

/* Equal, but for a share `off` of the larger. Says which kind differs. */
bool totals_equal(const struct gm_access_totals *actual, const struct gm_access_totals *expected,
                  double off);

#endif
