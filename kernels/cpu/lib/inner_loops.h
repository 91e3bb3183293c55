/*
 * inner_loops.h - declares the innermost loops of matmul, add and programs, per type and
 * instruction set.
 */
#ifndef GM_KERNELS_CPU_LIB_INNER_LOOPS_H
#define GM_KERNELS_CPU_LIB_INNER_LOOPS_H

#include "kernels/cpu/backend/exec.h"
#include "kernels/graph.h"

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

/*
 * sums[i][j] (+)= sum over p < k of a[i][p] * b[p][j], in the order of p, for a block's rows i and
 * columns j. The rows of b are b_next elements apart, and the rows of the sums sums_next. They are
 * aligned to elements. first: the sums begin at 0. a is packed (pack.c), or its rows lie a_row
 * elements apart, and p runs along them.
 */
typedef void gm_micro_fn(uint64_t k, const void *a, uint64_t a_row, const void *b, uint64_t b_next,
                         void *sums, uint64_t sums_next, bool first);

/* The block, by the bytes of a vector: its rows, and the vectors of each. */
#define GM_MICRO_ROWS(bytes) ((bytes) == 64 ? 12u : 4u)
#define GM_MICRO_VECTORS(bytes) ((bytes) == 32 ? 3u : 2u)
#define GM_MICRO_ROWS_MAX 12u

struct gm_micro {
    unsigned rows, cols; /* of the block; multiples of 4 */
    /* For the first 4, 8, ... rows of a block. */
    gm_micro_fn *packed[GM_MICRO_ROWS_MAX / 4], *in_place[GM_MICRO_ROWS_MAX / 4];
};

const struct gm_micro *gm_micro_get(enum gm_sum sum, enum gm_isa isa);

/* plus.c: for the vector add, on contiguous elements. */

/* to[i] = a[i] + b[i] for i < count; to overlaps neither. */
typedef void gm_plus_fn(void *to, const void *a, const void *b, uint64_t count);

/* The addition for an arithmetic type. */
gm_plus_fn *gm_plus_get(enum gm_dtype dtype, enum gm_isa isa);

/* evaluate.c: for programs (kernels/graph.h), on blocks of numbers that stay in the first-level
 * cache. The blocks do not overlap. */

/* x[i] = what the instruction makes of x[i], y[i] and z[i], for i < count. */
typedef void gm_instruct_fn(void *x, const void *y, const void *z, uint64_t count);
/* to[i] = from[i * stride], converted. */
typedef void gm_convert_fn(void *to, const void *from, int64_t stride, uint64_t count);

/* NULL for LOAD and STORE, which copy, and for what integers do not have. */
gm_instruct_fn *gm_instruct_get(enum gm_compute_type type, unsigned kind, enum gm_isa isa);
gm_instruct_fn *gm_narrow_get(unsigned narrow, enum gm_isa isa); /* y and z are not used */
/* From elements to numbers, and back; `stride` of the latter is 1. */
gm_convert_fn *gm_load_get(enum gm_compute_type type, enum gm_dtype dtype, enum gm_isa isa);
gm_convert_fn *gm_store_get(enum gm_compute_type type, enum gm_dtype dtype, enum gm_isa isa);

/* The reduction of a block, in an order that depends on count alone. f32 becomes f64. count > 0. */
typedef union gm_number gm_reduce_fn(const void *x, uint64_t count);
gm_reduce_fn *gm_reduce_get(enum gm_compute_type type, enum gm_reduction reduction,
                            enum gm_isa isa);
/* sums[i] = the reduction of sums[i] and x[i]. */
typedef void gm_gather_fn(union gm_number *sums, const void *x, uint64_t count);
gm_gather_fn *gm_gather_get(enum gm_compute_type type, enum gm_reduction reduction,
                            enum gm_isa isa);

#endif
