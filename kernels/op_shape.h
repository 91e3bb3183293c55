/*
 * op_shape.h - the shape of an operation's result.
 */
#ifndef GM_KERNELS_OP_SHAPE_H
#define GM_KERNELS_OP_SHAPE_H

#include "op.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Of an operation whose operands, flags and kind are set: what its result has as dimensions.
 * GM_BAD_SHAPE, naming the shapes, where the operands do not fit together.
 */
enum gm_status gm_op_shape(const struct gm_op *op, struct gm_shape *ret, struct gm_error *err);

#ifdef __cplusplus
}
#endif
#endif
