/*
 * op_shape.c - decides which shapes fit together, and derives the result's shape.
 */
#include "op.h"

static const char *const operand_names[GM_OPERANDS_MAX] = {"a", "b", "c"};

/* The size of the common stack: operands have equal sizes, or 1, which broadcasts. */
static enum gm_status join_stacks(const struct gm_op *op, struct gm_shape *shape,
                                  struct gm_error *err)
{
    unsigned largest = 0;
    bool stacked = false;

    for (unsigned i = 0; i < op->operands; i++) {
        uint64_t batch = op->operand[i].batch, joined = op->operand[largest].batch;
        stacked |= op->operand[i].stacked;
        if (batch == joined || batch == 1)
            continue;
        if (joined != 1)
            return gm_fail(err, GM_BAD_SHAPE,
                           "%s is a stack of %llu matrices and %s one of %llu: stacks must have "
                           "equal sizes, unless one is a single matrix, which broadcasts",
                           operand_names[largest], (unsigned long long)joined, operand_names[i],
                           (unsigned long long)batch);
        largest = i;
    }
    shape->ndim = stacked ? 3 : 2;
    shape->dim[0] = op->operand[largest].batch;
    return GM_OK;
}

static enum gm_status matmul_shape(const struct gm_op *op, struct gm_shape *shape,
                                   struct gm_error *err)
{
    const struct gm_matrix *a = &op->operand[0], *b = &op->operand[1], *c = &op->operand[2];
    uint64_t m = op->transa ? a->cols : a->rows, k = op->transa ? a->rows : a->cols;
    uint64_t n = op->transb ? b->rows : b->cols, k_of_b = op->transb ? b->cols : b->rows;
    char text[3][GM_SHAPE_TEXT_MAX];

    if (k != k_of_b)
        return gm_fail(err, GM_BAD_SHAPE,
                       "a is %s and b is %s: %s of a (%llu%s) must equal %s of b (%llu%s)",
                       gm_matrix_shape_text(a, text[0]), gm_matrix_shape_text(b, text[1]),
                       op->transa ? "the rows" : "the columns", (unsigned long long)k,
                       op->transa ? ", with transa" : "", op->transb ? "the columns" : "the rows",
                       (unsigned long long)k_of_b, op->transb ? ", with transb" : "");
    if (op->operands == 3 && (c->rows != m || c->cols != n))
        return gm_fail(
            err, GM_BAD_SHAPE, "c is %s, and the product of a (%s) and b (%s) is %llux%llu",
            gm_matrix_shape_text(c, text[2]), gm_matrix_shape_text(a, text[0]),
            gm_matrix_shape_text(b, text[1]), (unsigned long long)m, (unsigned long long)n);

    enum gm_status status = join_stacks(op, shape, err);
    if (status != GM_OK)
        return status;
    shape->dim[shape->ndim - 2] = m;
    shape->dim[shape->ndim - 1] = n;
    return GM_OK;
}

/* Broadcasts the sizes of a and b in one dimension, which `what` names. */
static enum gm_status broadcast(const struct gm_op *op, const char *what, uint64_t a, uint64_t b,
                                uint64_t *ret, struct gm_error *err)
{
    char text[2][GM_SHAPE_TEXT_MAX];

    if (a != b && a != 1 && b != 1)
        return gm_fail(
            err, GM_BAD_SHAPE,
            "a is %s and b is %s: add needs as many %s in a (%llu) as in b (%llu), or 1 in "
            "either, which is repeated",
            gm_matrix_shape_text(&op->operand[0], text[0]),
            gm_matrix_shape_text(&op->operand[1], text[1]), what, (unsigned long long)a,
            (unsigned long long)b);
    *ret = a == 1 ? b : a;
    return GM_OK;
}

static enum gm_status add_shape(const struct gm_op *op, struct gm_shape *shape,
                                struct gm_error *err)
{
    const struct gm_matrix *a = &op->operand[0], *b = &op->operand[1];
    enum gm_status status;

    shape->ndim = a->stacked || b->stacked ? 3 : 2;
    if ((status = broadcast(op, "matrices", a->batch, b->batch, &shape->dim[0], err)) != GM_OK ||
        (status = broadcast(op, "rows", a->rows, b->rows, &shape->dim[shape->ndim - 2], err)) !=
            GM_OK)
        return status;
    return broadcast(op, "columns", a->cols, b->cols, &shape->dim[shape->ndim - 1], err);
}

static void moved_shape(const struct gm_op *op, struct gm_shape *shape)
{
    const struct gm_matrix *a = &op->operand[0];
    bool swap = op->kind == GM_OP_TRANSPOSE;

    shape->ndim = a->stacked ? 3 : 2;
    shape->dim[0] = a->batch;
    shape->dim[shape->ndim - 2] = swap ? a->cols : a->rows;
    shape->dim[shape->ndim - 1] = swap ? a->rows : a->cols;
}

enum gm_status gm_op_shape(const struct gm_op *op, struct gm_shape *ret, struct gm_error *err)
{
    struct gm_shape shape = {0};
    enum gm_status status = GM_OK;

    if (op->kind == GM_OP_MATMUL)
        status = matmul_shape(op, &shape, err);
    else if (op->kind == GM_OP_ADD)
        status = add_shape(op, &shape, err);
    else
        moved_shape(op, &shape);
    if (status == GM_OK)
        *ret = shape;
    return status;
}
