/*
 * rearrange.h - makes column-major operands row-major on the CPU, for backends whose operands are
 * on the host before they go to their device.
 */
#ifndef GM_KERNELS_CPU_BACKEND_REARRANGE_H
#define GM_KERNELS_CPU_BACKEND_REARRANGE_H

#include "kernels/op.h"
#include "pool.h"

/* Bytes of scratch that each thread of the pool must have. */
size_t gm_rearrange_scratch(void);

/* As gm_prepare (prepare.h), on the threads of `pool`. */
enum gm_status gm_rearrange(struct gm_matrix *x, void *data, struct gm_pool *pool,
                            const atomic_bool *stop);

#endif
