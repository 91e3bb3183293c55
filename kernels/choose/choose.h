/*
 * choose.h - chooses the variant that runs an operation: a pure function of the operation and the
 * device's facts, testable without the device.
 */
#ifndef GM_KERNELS_CHOOSE_CHOOSE_H
#define GM_KERNELS_CHOOSE_CHOOSE_H

#include "kernels/backend.h"

/*
 * name NULL, "" or "auto": the variant that is best for this shape. Any other name: that
 * variant, or GM_KERNEL_UNAVAILABLE with a sentence that names the variants that can run this
 * operation on this device (and, if the name is close to one, that one).
 *
 * `auto` may answer with a variant of another operation that computes the same: the transpose
 * of one column-major matrix is a copy of its bytes.
 */
enum gm_status gm_select(const struct gm_op *op, const struct gm_device_facts *facts,
                         const char *name, const struct gm_variant **ret, struct gm_error *err);

#endif
