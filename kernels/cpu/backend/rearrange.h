/*
 * rearrange.h - makes column-major operands row-major, on the CPU.
 */
#ifndef GM_KERNELS_CPU_BACKEND_REARRANGE_H
#define GM_KERNELS_CPU_BACKEND_REARRANGE_H

#include "kernels/variant.h"
#include "pool.h"

/* Writes the elements of x row-major to `data`, which has room for them, for a variant that does
 * not accept the layout of x. *x then describes that matrix. GM_CANCELLED leaves *x unchanged. */
enum gm_status gm_prepare(struct gm_matrix *x, void *data, struct gm_exec *exec);

/* The same for backends that rearrange operands on the host before they copy them to the device. */

/* Bytes of scratch that each thread of the pool must have. */
size_t gm_rearrange_scratch(void);

/* As gm_prepare, on the threads of `pool`. */
enum gm_status gm_rearrange(struct gm_matrix *x, void *data, struct gm_pool *pool,
                            const atomic_bool *stop);

#endif
