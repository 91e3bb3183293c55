/*
 * layout.c - computes operands' strides, decides what must be rearranged for a variant, and gathers
 * products of one row by the same matrix.
 */
#include "layout.h"

#include <string.h>

struct gm_view gm_op_view(const struct gm_op *op, unsigned index)
{
    const struct gm_matrix *x = &op->operand[index];
    bool trans = index == 0 ? op->transa : index == 1 && op->transb;
    bool col_major = x->batch == 1 && !gm_lies_row_major(x);
    struct gm_view view = {
        .data = x->data,
        .batch = x->batch == 1 ? 0 : x->rows * x->cols,
        .row = col_major ? 1 : x->cols,
        .col = col_major ? x->rows : 1,
    };

    if (trans) {
        uint64_t row = view.row;
        view.row = view.col;
        view.col = row;
    }
    if (op->kind == GM_OP_ADD) {
        view.row = x->rows == 1 && op->result.rows != 1 ? 0 : view.row;
        view.col = x->cols == 1 && op->result.cols != 1 ? 0 : view.col;
    }
    return view;
}

uint64_t gm_op_joined(const struct gm_op *op)
{
    struct gm_view a = gm_op_view(op, 0), c = gm_op_view(op, 2);
    uint64_t m = gm_op_m(op), batch = op->result.batch;
    bool one = op->kind == GM_OP_MATMUL && batch > 1 && op->operand[1].batch == 1 &&
               a.batch == m * a.row && (!gm_op_reads(op, 2) || c.batch == m * c.row) &&
               m <= GM_TALL_ROWS_MAX / batch && gm_op_k(op) <= GM_TALL_K_MAX &&
               gm_matrix_elements(&op->result) <= GM_TALL_ELEMENTS_MAX;

    return one ? batch : 1;
}

bool gm_needs_prepare(const struct gm_op *op, const struct gm_variant *variant, unsigned index)
{
    const struct gm_matrix *x = &op->operand[index];

    if (!gm_op_reads(op, index) || gm_lies_row_major(x))
        return false;
    if (variant->op == GM_OP_COPY && gm_op_is_copy(op))
        return false;
    /* only a and b have transpose flags */
    return !((variant->folds & GM_FOLDS_TRANS) && index < 2 && x->batch == 1);
}

/*
 * ---- Rows of several products ----
 *
 * The matrix is compared by its address: two live tasks have the same one only if it is the same
 * memory, because what a task uses is not given back before its end.
 */

unsigned gm_gather_matrix(const struct gm_op *op)
{
    const struct gm_matrix *a = &op->operand[0], *b = &op->operand[1];

    if (op->kind != GM_OP_MATMUL || a->batch != 1 || b->batch != 1 || !gm_op_reads(op, 0) ||
        gm_op_reads(op, 2) || gm_op_k(op) == 0)
        return GM_OPERANDS_MAX;
    if (op->result.rows == 1 && op->result.cols > GM_GATHERED_NARROW)
        return 1;
    return op->result.cols == 1 && op->result.rows > GM_GATHERED_NARROW ? 0 : GM_OPERANDS_MAX;
}

/* All that the products have in common. */
#define WORDS 6
static void words_of(const struct gm_op *op, uint64_t words[WORDS])
{
    const unsigned matrix = gm_gather_matrix(op);
    const struct gm_matrix *x = &op->operand[matrix];
    uint64_t bits = matrix;

    bits = bits << 1 | (matrix == 0 ? op->transa : op->transb);
    bits = bits << 8 | (uint64_t)x->layout;
    bits = bits << 8 | (uint64_t)x->dtype;
    bits = bits << 8 | (uint64_t)op->precision;
    words[0] = bits;
    words[1] = (uint64_t)(uintptr_t)x->data;
    words[2] = x->rows;
    words[3] = x->cols;
    memcpy(&words[4], &op->alpha.real, sizeof(words[4]));
    words[5] = (uint64_t)op->alpha.integer;
}

bool gm_gather_alike(const struct gm_op *one, const struct gm_op *other)
{
    uint64_t words[2][WORDS];

    if (gm_gather_matrix(one) == GM_OPERANDS_MAX || gm_gather_matrix(other) == GM_OPERANDS_MAX)
        return false;
    words_of(one, words[0]);
    words_of(other, words[1]);
    return memcmp(words[0], words[1], sizeof(words[0])) == 0;
}

uint64_t gm_gather_hash(const struct gm_op *op)
{
    uint64_t words[WORDS], hash = 14695981039346656037u;

    words_of(op, words); /* FNV-1a, by words */
    for (unsigned i = 0; i < WORDS; i++)
        hash = (hash ^ words[i]) * 1099511628211u;
    return hash ^ hash >> 32;
}

unsigned gm_gather_padded(unsigned rows)
{
    return rows <= 2 ? rows : rows <= 4 ? 4 : (rows + 7) / 8 * 8;
}

/* A matrix like x, of other sides and without data. */
static struct gm_matrix rows_like(const struct gm_matrix *x, enum gm_layout layout, uint64_t rows,
                                  uint64_t cols)
{
    struct gm_matrix made = *x;

    made.data = NULL;
    made.layout = layout;
    made.rows = rows;
    made.cols = cols;
    return made;
}

void gm_gather_op(const struct gm_op *op, unsigned rows, struct gm_op *ret)
{
    const unsigned matrix = gm_gather_matrix(op);
    const struct gm_matrix *vector = &op->operand[1 - matrix];

    *ret = *op;
    ret->gathered = true;
    ret->transa = false;
    ret->transb = matrix == 1 ? op->transb : !op->transa;
    ret->operands = 2;
    ret->operand[0] = rows_like(vector, GM_COL_MAJOR, rows, gm_op_k(op));
    ret->operand[1] = op->operand[matrix];
    ret->result = rows_like(&op->result, GM_ROW_MAJOR, rows, gm_matrix_elements(&op->result));
}
