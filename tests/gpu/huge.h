/*
 * huge.h - elements computed from their indices, for matrices too large for an oracle on the host.
 *
 * They are filled and checked on the device. Integers have any bits; f32 are whole numbers below
 * 2^16, the sum of two of which is exact.
 */
#ifndef GM_TESTS_GPU_HUGE_H
#define GM_TESTS_GPU_HUGE_H

#include "kernels/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The bits of element `index` of operand `which`; those of a byte are the lowest. */
uint32_t huge_element(enum gm_dtype dtype, unsigned which, uint64_t index);
/* The bits that belong at `index` of the result. */
uint32_t huge_result(const struct gm_op *op, uint64_t index);

/* An operand whose data lies on the device; whether all calls worked. */
bool huge_fill(const struct gm_op *op, unsigned which);
/* How many elements of an operand, or with which < 0 of the result, are not what they should be;
 * UINT64_MAX where a call failed. */
uint64_t huge_wrong(const struct gm_op *op, int which);

#ifdef __cplusplus
}
#endif
#endif
