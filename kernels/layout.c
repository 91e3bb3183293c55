/*
 * layout.c - computes operands' strides, and decides what must be rearranged for a variant.
 */
#include "layout.h"

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
