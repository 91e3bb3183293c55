/*
 * lines.h - the inner loops of the skinny matmul: lines of a large operand, read once in place,
 * times a few short vectors that stay in the cache.
 */
#ifndef GM_KERNELS_CPU_LIB_LINES_H
#define GM_KERNELS_CPU_LIB_LINES_H

#include "kernels/cpu/backend/isa.h"
#include "sum.h"

#include <stddef.h>

/* Vectors at a time that share the loads of a line. */
#define GM_LINES_SHARED 4u

struct gm_lines {
    /* sums[v] += line . x[v] for v < count; x[v] is `length` elements at x + v * x_next. */
    void (*dot)(uint64_t length, const void *line, const void *x, uint64_t x_next, unsigned count,
                void *sums);
    /* sums[i] += line[0][i] * x[0] + ... + line[3][i] * x[3], in that order, for i < length. */
    void (*add)(uint64_t length, const void *const line[4], const void *x, void *sums);
};

const struct gm_lines *gm_lines_get(enum gm_sum sum, enum gm_isa isa);

#endif
