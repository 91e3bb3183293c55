/*
 * choose.h - chooses the variant that runs an operation.
 *
 * It is a pure function of the operation and the device's facts, so it can be tested without the
 * device.
 */
#ifndef GM_KERNELS_CHOOSE_CHOOSE_H
#define GM_KERNELS_CHOOSE_CHOOSE_H

#include "kernels/backend.h"

/*
 * If `name` is NULL, "" or "auto", *ret is the best variant for this shape. Any other name selects
 * that variant, or fails with GM_KERNEL_UNAVAILABLE and a sentence that lists the variants that can
 * run this operation on this device (and a similar name, if there is one).
 *
 * `auto` may select a variant of another operation that computes the same: the transpose of one
 * column-major matrix is a copy of its bytes.
 */
enum gm_status gm_select(const struct gm_op *op, const struct gm_device_facts *facts,
                         const char *name, const struct gm_variant **ret, struct gm_error *err);

#endif
