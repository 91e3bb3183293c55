/*
 * layout.c - strides of operands, and what must be rearranged for a variant.
 */
#include "layout.h"

bool gm_lies_row_major(const struct gm_matrix *matrix)
{
    /* The order of the dimensions matters only where two of them are longer than 1. */
    unsigned longer = (matrix->batch > 1) + (matrix->rows > 1) + (matrix->cols > 1);

    return matrix->layout == GM_ROW_MAJOR || longer < 2 || gm_matrix_elements(matrix) == 0;
}

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

bool gm_op_is_copy(const struct gm_op *op)
{
    const struct gm_matrix *a = &op->operand[0];

    if (op->kind == GM_OP_COPY)
        return gm_lies_row_major(a);
    if (op->kind == GM_OP_FLIP)
        return gm_lies_row_major(a) && (a->cols <= 1 || gm_matrix_elements(a) == 0);
    if (op->kind != GM_OP_TRANSPOSE)
        return false;
    if (a->layout == GM_COL_MAJOR && a->batch == 1)
        return true;
    return gm_lies_row_major(a) && (a->rows <= 1 || a->cols <= 1 || a->batch == 0);
}

bool gm_needs_prepare(const struct gm_op *op, const struct gm_variant *variant, unsigned index)
{
    const struct gm_matrix *x = &op->operand[index];

    if (!gm_op_reads(op, index) || gm_lies_row_major(x))
        return false;
    if (variant->op == GM_OP_COPY && gm_op_is_copy(op))
        return false;
    /* trans flags are a's and b's alone */
    return !((variant->folds & GM_FOLDS_TRANS) && index < 2 && x->batch == 1);
}
