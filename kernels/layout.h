/*
 * layout.h - strides of operands, and which operands a variant needs rearranged first.
 */
#ifndef GM_KERNELS_LAYOUT_H
#define GM_KERNELS_LAYOUT_H

#include "variant.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Element (i, j) of matrix t is data[t * batch + i * row + j * col]. */
struct gm_view {
    const void *data;
    uint64_t batch, row, col; /* strides, in elements; batch is 0 for an operand that broadcasts */
};

/*
 * op(x) of operand `index`: its transposition and a single matrix's column-major layout are in
 * the strides, of which one is 1 then. A column-major stack, which no such strides describe, is
 * taken for row-major: that is what it is when it has been rearranged for a kernel. In add a
 * stride is 0 where the operand's dimension is 1 and the result's is not: its one row or column
 * stands for each of the result's.
 */
struct gm_view gm_op_view(const struct gm_op *op, unsigned index);

/*
 * How many matrices of a product's stack can be computed as one: all, if each of a's goes with the
 * one b, and rows of a, of c and of the result lie at one distance through the whole stack, as
 * those of one tall matrix; else 1. Stacks beyond what kernels and cuBLAS count and address in one
 * matrix (GM_TALL_...) stay stacks.
 */
uint64_t gm_op_joined(const struct gm_op *op);

#define GM_TALL_ROWS_MAX ((uint64_t)INT32_MAX)   /* as cuBLAS counts */
#define GM_TALL_ELEMENTS_MAX ((uint64_t)1 << 32) /* of a result: at most 2^28 tiles of 16 x 16 */
#define GM_TALL_K_MAX ((uint64_t)1 << 24) /* longer rows are addressed in small matrices alone */

/* Whether operand `index` must be made row-major before `variant` can run op. */
bool gm_needs_prepare(const struct gm_op *op, const struct gm_variant *variant, unsigned index);

#ifdef __cplusplus
}
#endif
#endif
