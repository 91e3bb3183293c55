/*
 * inner_loops.h - declares the innermost loops of matmul and add, per type and instruction set.
 */
#ifndef GM_KERNELS_CPU_LIB_INNER_LOOPS_H
#define GM_KERNELS_CPU_LIB_INNER_LOOPS_H

#include "kernels/cpu/backend/isa.h"
#include "proto/matrix.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * The type of sums: f32 for f16, bf16 and f32, and the type itself for the others. Integers are
 * summed unsigned, because they wrap.
 */
enum gm_sum { GM_SUM_F32, GM_SUM_F64, GM_SUM_U32, GM_SUM_U64, GM_SUM_COUNT };

static inline enum gm_sum gm_sum_of(enum gm_dtype dtype)
{
    return dtype == GM_F64   ? GM_SUM_F64
           : dtype == GM_I32 ? GM_SUM_U32
           : dtype == GM_I64 ? GM_SUM_U64
                             : GM_SUM_F32;
}

static inline size_t gm_sum_size(enum gm_sum sum)
{
    return sum == GM_SUM_F64 || sum == GM_SUM_U64 ? 8 : 4;
}

/*
 * lines.c: for the skinny matmul: lines of a large operand, read once in place, times a few short
 * vectors that stay in the cache.
 */

/* Vectors that share the loads of a line. */
#define GM_LINES_SHARED 4u

struct gm_lines {
    /* sums[v] += line . x[v] for v < count; x[v] is `length` elements at x + v * x_next. */
    void (*dot)(uint64_t length, const void *line, const void *x, uint64_t x_next, unsigned count,
                void *sums);
    /* sums[i] += line[0][i] * x[0] + ... + line[3][i] * x[3], in that order, for i < length. */
    void (*add)(uint64_t length, const void *const line[4], const void *x, void *sums);
};

const struct gm_lines *gm_lines_get(enum gm_sum sum, enum gm_isa isa);

/*
 * micro_kernel.c: for the blocked matmul: a small block of accumulators in vector registers for the
 * length of a panel.
 */

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

/* plus.c: for the vector add, on contiguous elements. */

/* to[i] = a[i] + b[i] for i < count; to overlaps neither. */
typedef void gm_plus_fn(void *to, const void *a, const void *b, uint64_t count);

/* The addition for an arithmetic type. */
gm_plus_fn *gm_plus_get(enum gm_dtype dtype, enum gm_isa isa);

#endif
