/*
 * finish.h - from sums to elements of the result: alpha, beta and c, and the one rounding.
 */
#ifndef GM_KERNELS_CPU_LIB_FINISH_H
#define GM_KERNELS_CPU_LIB_FINISH_H

#include "kernels/op.h"

/* to[i] = alpha * sums[i] + beta * c[i] for i < count; without the second term where c is NULL. The
 * sums are of the type that the elements are computed in. */
typedef void gm_finish_fn(const struct gm_op *op, void *to, const void *sums, const void *c,
                          uint64_t count);

gm_finish_fn *gm_finish_get(enum gm_dtype dtype);

#endif
