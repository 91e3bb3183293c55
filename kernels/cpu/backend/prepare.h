/*
 * prepare.h - rearranges an operand whose layout the variant does not take.
 */
#ifndef GM_KERNELS_CPU_BACKEND_PREPARE_H
#define GM_KERNELS_CPU_BACKEND_PREPARE_H

#include "exec.h"
#include "kernels/op.h"

/* Writes the elements of x row-major to `data`, which has room for them; *x is then that matrix.
 * GM_CANCELLED leaves *x as it was. */
enum gm_status gm_prepare(struct gm_matrix *x, void *data, struct gm_exec *exec);

#endif
