/*
 * reference.h - computes an operation's result by the plainest means, and the error that kernels
 * may have.
 *
 * For tests and comparisons. It is slow on purpose: plainness matters more.
 */
#ifndef GM_KERNELS_CPU_REFERENCE_H
#define GM_KERNELS_CPU_REFERENCE_H

#include "kernels/op.h"

/*
 * The reference for each element of the result, row-major. For operations that only move elements,
 * and for integers, `exact` holds their bytes; for computed floats it is NULL. In add `value` is
 * the sum, rounded to the element type as every right kernel must, and `bound` is 0. In matmul
 * `value` is in double. `bound` is the largest change by any order of the sum, any use of fused
 * multiply-add, and rounding to the element type, computed from k, the unit roundoffs and the sum
 * of the terms' magnitudes. It is infinite if finite operands may overflow in intermediate results:
 * then any result is right.
 */
struct gm_reference {
    void *exact;
    double *value, *bound;
};

/* GM_MEMORY_FULL, with nothing to free. */
enum gm_status gm_reference_make(const struct gm_op *op, struct gm_reference *ret,
                                 struct gm_error *err);
/* Frees it and zeroes *reference. An empty one is allowed. */
void gm_reference_free(struct gm_reference *reference);

struct gm_deviation {
    uint64_t wrong;  /* elements beyond their bound, or not equal where they must be */
    uint64_t first;  /* index of the first */
    double worst;    /* largest |difference| / bound over finite elements; <= 1 if all is well */
    double absolute; /* largest |difference| over finite elements */
    double relative; /* the same over the largest |value|; 0 where all values are 0 */
};

/* Compares a result of op with its reference. What is NaN must be NaN, and what is infinite
 * must be that infinity. */
struct gm_deviation gm_reference_compare(const struct gm_reference *reference,
                                         const struct gm_op *op, const void *result);

#endif
