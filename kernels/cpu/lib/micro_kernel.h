/*
 * micro_kernel.h - the innermost loop of the blocked matmul: a small block of accumulators in
 * vector registers for the length of a panel.
 */
#ifndef GM_KERNELS_CPU_LIB_MICRO_KERNEL_H
#define GM_KERNELS_CPU_LIB_MICRO_KERNEL_H

#include "kernels/cpu/backend/isa.h"
#include "sum.h"

#include <stdbool.h>

struct gm_micro {
    unsigned rows, cols; /* of the block; multiples of 4 */
    /*
     * sums[i][j] (+)= sum over p < k of a[p][i] * b[p][j], in the order of p, with i < rows,
     * j < cols; all three 64-byte aligned. first: the sums begin at 0.
     */
    void (*run)(uint64_t k, const void *a, const void *b, void *sums, bool first);
};

/* Limits over all blocks. */
#define GM_MICRO_ROWS_MAX 12u
#define GM_MICRO_COLS_MAX 32u

const struct gm_micro *gm_micro_get(enum gm_sum sum, enum gm_isa isa);

#endif
