/*
 * plus.h - the innermost loop of the vector add, on contiguous elements.
 */
#ifndef GM_KERNELS_CPU_LIB_PLUS_H
#define GM_KERNELS_CPU_LIB_PLUS_H

#include "kernels/cpu/backend/isa.h"
#include "proto/matrix.h"

/* to[i] = a[i] + b[i] for i < count; to overlaps neither. */
typedef void gm_plus_fn(void *to, const void *a, const void *b, uint64_t count);

/* Of one of the arithmetic types. */
gm_plus_fn *gm_plus_get(enum gm_dtype dtype, enum gm_isa isa);

#endif
