/*
 * layout.h - describes operands by strides, and says which ones a variant needs rearranged first.
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
    uint64_t batch, row, col; /* strides in elements; batch is 0 if the operand broadcasts */
};

/*
 * Describes op(x) of operand `index`. The strides express its transposition, and the column-major
 * layout of a single matrix; one of them is 1. No such strides describe a column-major stack: it is
 * treated as row-major, which it is after it has been rearranged for a kernel. In add a stride is 0
 * if the operand's dimension is 1 and the result's is not: the one row or column stands for all of
 * the result's.
 */
struct gm_view gm_op_view(const struct gm_op *op, unsigned index);

/*
 * The number of matrices of a product's stack that can be computed as one tall matrix: all or 1.
 * All, if every matrix of A shares one B, and the rows of A, C and the result have one stride
 * through the whole stack. Stacks that exceed what kernels and cuBLAS count and address in one
 * matrix (GM_TALL_...) stay stacks.
 */
uint64_t gm_op_joined(const struct gm_op *op);

#define GM_TALL_ROWS_MAX ((uint64_t)INT32_MAX)   /* cuBLAS counts rows in an int */
#define GM_TALL_ELEMENTS_MAX ((uint64_t)1 << 32) /* at most 2^28 tiles of 16 x 16 in a result */
#define GM_TALL_K_MAX ((uint64_t)1 << 24) /* kernels address longer rows in small matrices only */

/* Whether operand `index` must be made row-major before `variant` can run op. */
bool gm_needs_prepare(const struct gm_op *op, const struct gm_variant *variant, unsigned index);

/* Writes the elements of a column-major x row-major to `data`, which has room for them. Both are in
 * device memory; x is unchanged. cuda/transpose/rearrange.cu, and the same in the simulator. */
enum gm_status gm_cuda_rearrange(const struct gm_matrix *x, void *data, struct gm_exec *exec);
enum gm_status gm_sim_rearrange(const struct gm_matrix *x, void *data, struct gm_exec *exec);

/*
 * Products of one row by the same matrix become one product of several rows, so that the
 * matrix is read once for all. Columns that the same matrix multiplies are the rows of its
 * transposed product.
 *
 *     [x0] B -> [y0]          [x0]     [y0]
 *     [x1] B -> [y1]          [x1] B = [y1]
 */

/* The most rows: as many as the kernel `skinny` has sums for in a multiprocessor's registers. */
#define GM_GATHERED_MAX 32u

/* What the columns of the matrix must exceed: the most vectors of the kernel `skinny`, which
 * would take a narrower matrix for the vectors. */
#define GM_GATHERED_NARROW 8u

/* The index of the matrix, in a product of one row or one column; GM_OPERANDS_MAX where op is none,
 * adds a C, or has no more than GM_GATHERED_NARROW rows or columns in its matrix. */
unsigned gm_gather_matrix(const struct gm_op *op);

/* Whether two such products have the same matrix, at the same address, and the same factors. */
bool gm_gather_alike(const struct gm_op *one, const struct gm_op *other);
/* The same for alike products; for others hardly ever. */
uint64_t gm_gather_hash(const struct gm_op *op);

/* The rows that a product of `rows` rows has in all: beyond a few, zeros make each of its columns
 * whole vectors of 16 bytes, for elements of 2 bytes and more. */
unsigned gm_gather_padded(unsigned rows);

/* The product of `rows` such rows: *ret has a column-major a of `rows` x K and a row-major result,
 * both without data, and the matrix as b. Row i of a and of the result are operation i's own. */
void gm_gather_op(const struct gm_op *op, unsigned rows, struct gm_op *ret);

/* Rows or columns of several operations, each where it is: memory that the device can reach. */
struct gm_rows {
    void *row[GM_GATHERED_MAX];
    unsigned count;
    uint64_t length; /* elements of each */
    enum gm_dtype dtype;
};

/* Copies the rows to a column-major matrix of `padded` rows, the others zero; or out of a row-major
 * one. One launch each, which takes the host less time than a copy for each row.
 * cuda/copy/rows.cu, and the same in the simulator. */
enum gm_status gm_cuda_gather_rows(const struct gm_rows *rows, unsigned padded, void *matrix,
                                   struct gm_exec *exec);
enum gm_status gm_sim_gather_rows(const struct gm_rows *rows, unsigned padded, void *matrix,
                                  struct gm_exec *exec);
enum gm_status gm_cuda_scatter_rows(const void *matrix, const struct gm_rows *rows,
                                    struct gm_exec *exec);
enum gm_status gm_sim_scatter_rows(const void *matrix, const struct gm_rows *rows,
                                   struct gm_exec *exec);

#ifdef __cplusplus
}
#endif
#endif
