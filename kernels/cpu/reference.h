/*
 * reference.h - the reference: an operation's result by the plainest means, and how far a right
 * kernel's result may be from it.
 *
 * For tests and comparisons. It is slow on purpose: plainness matters more.
 */
#ifndef GM_KERNELS_CPU_REFERENCE_H
#define GM_KERNELS_CPU_REFERENCE_H

#include "kernels/op.h"

/*
 * Of each element of the result, row-major. Where elements are moved, and for integers, `exact`
 * holds their bytes. For floats that are computed it is NULL. In add `value` is the sum, rounded to
 * the element type as every right kernel must, and `bound` is 0. In matmul it is in double, and
 * `bound` what any order of the sum, any use of fused multiply-add and the rounding to the element
 * type may change, computed from k, the unit roundoffs, and the sum of the terms' magnitudes.
 * The bound is infinite where finite operands may take intermediate results beyond the range
 * of what they are kept in: then any result is right.
 */
struct gm_reference {
    void *exact;
    double *value, *bound;
};

/* GM_MEMORY_FULL, with nothing to free. */
enum gm_status gm_reference_make(const struct gm_op *op, struct gm_reference *ret,
                                 struct gm_error *err);
/* Zeroes *reference; an empty one is fine. */
void gm_reference_free(struct gm_reference *reference);

struct gm_deviation {
    uint64_t wrong;  /* elements beyond their bound, or not equal where they must be */
    uint64_t first;  /* the first of them */
    double worst;    /* largest |difference| / bound over finite elements; <= 1 if all is well */
    double absolute; /* largest |difference| over finite elements */
    double relative; /* the same over the largest |value|; 0 where all values are 0 */
};

/* Compares a result of op with its reference. What is NaN must be NaN, and what is infinite
 * must be that infinity. */
struct gm_deviation gm_reference_compare(const struct gm_reference *reference,
                                         const struct gm_op *op, const void *result);

#endif
