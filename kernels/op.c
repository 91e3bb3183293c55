/*
 * op.c - names operations, validates operands, decides which shapes fit together, and computes the
 * sizes that follow.
 *
 * Kernels check nothing: what gm_op_init accepts is valid for all of them, except for limits that a
 * variant states itself.
 */
#include "op.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const char *const op_names[GM_OP_COUNT] = {
#define X(name, text) [GM_OP_##name] = text,
    GM_OP_LIST(X)
#undef X
};

static const char *const precision_names[GM_PRECISION_COUNT] = {
#define X(name, text) [GM_PRECISION_##name] = text,
    GM_PRECISION_LIST(X)
#undef X
};

static const char *const operand_names[GM_OPERANDS_MAX] = {"a", "b", "c"};

const char *gm_op_name(enum gm_op_kind kind)
{
    return op_names[kind];
}

bool gm_op_from_name(const char *name, enum gm_op_kind *ret)
{
    for (int kind = 0; kind < GM_OP_COUNT; kind++) {
        if (strcmp(name, op_names[kind]) == 0) {
            *ret = (enum gm_op_kind)kind;
            return true;
        }
    }
    return false;
}

bool gm_precision_from_name(const char *name, size_t len, enum gm_precision *ret)
{
    for (int i = 0; i < GM_PRECISION_COUNT; i++) {
        if (strlen(precision_names[i]) == len && memcmp(name, precision_names[i], len) == 0) {
            *ret = (enum gm_precision)i;
            return true;
        }
    }
    return false;
}

unsigned gm_op_operands_min(enum gm_op_kind kind)
{
    if (kind == GM_OP_EVAL)
        return 0;
    return gm_op_computes(kind) ? 2 : 1;
}

unsigned gm_op_operands_max(enum gm_op_kind kind)
{
    return kind == GM_OP_MATMUL ? 3 : gm_op_operands_min(kind);
}

bool gm_op_computes(enum gm_op_kind kind)
{
    return kind == GM_OP_MATMUL || kind == GM_OP_ADD;
}

static enum gm_status check_operands(enum gm_op_kind kind, const bool present[GM_OPERANDS_MAX],
                                     struct gm_error *err)
{
    unsigned min = gm_op_operands_min(kind), max = gm_op_operands_max(kind);
    const char *needed = min == 1 ? "one operand, a" : "two operands, a and b";

    for (unsigned i = 0; i < GM_OPERANDS_MAX; i++) {
        if (i < min && !present[i])
            return gm_fail(err, GM_MISSING_OPERAND, "%s needs %s, and %s is missing",
                           op_names[kind], needed, operand_names[i]);
        if (i >= max && present[i])
            return gm_fail(err, GM_EXTRA_OPERAND, "%s takes %s, and %s was given too",
                           op_names[kind], needed, operand_names[i]);
    }
    return GM_OK;
}

static enum gm_status check_options(enum gm_op_kind kind, const struct gm_op_options *options,
                                    bool has_c, struct gm_error *err)
{
    if (kind != GM_OP_MATMUL) {
        const char *name = options->transa      ? "transa"
                           : options->transb    ? "transb"
                           : options->has_alpha ? "alpha"
                           : options->has_beta  ? "beta"
                                                : NULL;
        if (name)
            return gm_fail(err, GM_BAD_PARAMETER, "%s has no %s: it is a parameter of matmul",
                           op_names[kind], name);
    }
    if (options->has_beta && !has_c)
        return gm_fail(err, GM_MISSING_OPERAND,
                       "beta is the factor of a third operand, c, and c is missing");
    return GM_OK;
}

static enum gm_status check_types(enum gm_op_kind kind,
                                  const struct gm_matrix operand[GM_OPERANDS_MAX],
                                  const bool present[GM_OPERANDS_MAX], struct gm_error *err)
{
    enum gm_dtype dtype = operand[0].dtype;

    if (dtype <= GM_DTYPE_NONE || dtype >= GM_DTYPE_COUNT)
        return gm_fail(err, GM_BAD_DTYPE, "the element type of a is not stated");
    for (unsigned i = 1; i < GM_OPERANDS_MAX; i++) {
        if (present[i] && operand[i].dtype != dtype)
            return gm_fail(err, GM_BAD_DTYPE,
                           "a is %s and %s is %s: the operands must have one element type; convert "
                           "one, or use eval, which converts as NumPy does",
                           gm_dtype_name(dtype), operand_names[i], gm_dtype_name(operand[i].dtype));
    }
    if (gm_op_computes(kind) && !gm_dtype_arithmetic(dtype))
        return gm_fail(err, GM_BAD_DTYPE,
                       "%s computes in f16, bf16, f32, f64, i32 and i64, and the operands are %s",
                       op_names[kind], gm_dtype_name(dtype));
    return GM_OK;
}

/* A factor for an integer type: exact, or an error. */
static enum gm_status integer_factor(const char *name, enum gm_dtype dtype,
                                     const struct gm_scalar *given, struct gm_scalar *ret,
                                     struct gm_error *err)
{
    int64_t integer = given->integer;

    if (!given->is_integer) {
        /* Integers as other programs write them: 2.0, 1e3. NaN fails these comparisons. */
        if (!(given->real >= -0x1p63 && given->real < 0x1p63) || trunc(given->real) != given->real)
            return gm_fail(err, GM_OUT_OF_RANGE, "%s is %g: %s matrices take integer factors", name,
                           given->real, gm_dtype_name(dtype));
        integer = (int64_t)given->real;
    }
    if (dtype == GM_I32 && (integer < INT32_MIN || integer > INT32_MAX))
        return gm_fail(err, GM_OUT_OF_RANGE, "%s is %lld: i32 holds %d to %d", name,
                       (long long)integer, INT32_MIN, INT32_MAX);
    *ret = (struct gm_scalar){.real = (double)integer, .integer = integer, .is_integer = true};
    return GM_OK;
}

/* A factor as the arithmetic will use it: if it rounds to 0 in the type, it is 0 for every
 * kernel. */
static enum gm_status factor(const char *name, enum gm_dtype dtype, const struct gm_scalar *given,
                             struct gm_scalar *ret, struct gm_error *err)
{
    if (dtype == GM_I32 || dtype == GM_I64)
        return integer_factor(name, dtype, given, ret, err);

    *ret = (struct gm_scalar){.real = given->real};
    if (dtype == GM_F64)
        return GM_OK;
    if (isfinite(given->real) && fabs(given->real) > (double)FLT_MAX)
        return gm_fail(err, GM_OUT_OF_RANGE, "%s is %g: %s computes in f32, which ends at %g", name,
                       given->real, gm_dtype_name(dtype), (double)FLT_MAX);
    ret->real = (float)given->real;
    return GM_OK;
}

/* Sets alpha and beta, or their defaults. */
static enum gm_status set_factors(struct gm_op *op, const struct gm_op_options *options, bool has_c,
                                  struct gm_error *err)
{
    const struct gm_scalar zero = {.is_integer = true};
    const struct gm_scalar one = {.real = 1, .integer = 1, .is_integer = true};
    enum gm_dtype dtype = op->operand[0].dtype;
    struct gm_scalar alpha, beta;

    enum gm_status status =
        factor("alpha", dtype, options->has_alpha ? &options->alpha : &one, &alpha, err);
    if (status != GM_OK)
        return status;
    status = factor("beta", dtype,
                    options->has_beta ? &options->beta
                    : has_c           ? &one
                                      : &zero,
                    &beta, err);
    if (status != GM_OK)
        return status;
    op->alpha = alpha;
    op->beta = beta;
    return GM_OK;
}

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

enum gm_status gm_op_init(struct gm_op *ret, enum gm_op_kind kind,
                          const struct gm_op_options *options,
                          const struct gm_matrix operand[GM_OPERANDS_MAX],
                          const bool present[GM_OPERANDS_MAX], struct gm_error *err)
{
    struct gm_op op = {.kind = kind,
                       .precision = options->precision,
                       .transa = options->transa,
                       .transb = options->transb};
    bool has_c = present[2];
    struct gm_shape shape;
    enum gm_status status;

    if ((status = check_operands(kind, present, err)) != GM_OK ||
        (status = check_options(kind, options, has_c, err)) != GM_OK ||
        (status = check_types(kind, operand, present, err)) != GM_OK)
        return status;

    op.operands = has_c ? 3 : gm_op_operands_min(kind);
    for (unsigned i = 0; i < op.operands; i++)
        op.operand[i] = operand[i];

    if (kind == GM_OP_MATMUL && (status = set_factors(&op, options, has_c, err)) != GM_OK)
        return status;
    if ((status = gm_op_shape(&op, &shape, err)) != GM_OK ||
        (status = gm_matrix_init(&op.result, operand[0].dtype, GM_ROW_MAJOR, &shape, err)) != GM_OK)
        return status;
    *ret = op;
    return GM_OK;
}

uint64_t gm_op_m(const struct gm_op *op)
{
    return op->result.rows;
}

uint64_t gm_op_n(const struct gm_op *op)
{
    return op->result.cols;
}

uint64_t gm_op_k(const struct gm_op *op)
{
    return op->transa ? op->operand[0].rows : op->operand[0].cols;
}

/* For integer types `real` is only an approximation of `integer`. */
static bool is_zero(const struct gm_scalar *factor)
{
    return factor->is_integer ? factor->integer == 0 : factor->real == 0;
}

bool gm_op_reads(const struct gm_op *op, unsigned index)
{
    if (index >= op->operands)
        return false;
    return op->kind != GM_OP_MATMUL || !is_zero(index < 2 ? &op->alpha : &op->beta);
}

double gm_op_flops(const struct gm_op *op)
{
    double elements = (double)gm_matrix_elements(&op->result);

    if (op->kind == GM_OP_EVAL)
        return op->graph_flops;
    if (op->kind == GM_OP_ADD)
        return elements;
    if (op->kind != GM_OP_MATMUL || !gm_op_reads(op, 0))
        return 0;
    return 2.0 * elements * (double)gm_op_k(op);
}

uint64_t gm_op_bytes_min(const struct gm_op *op)
{
    uint64_t bytes = op->kind == GM_OP_EVAL ? op->graph_bytes : gm_matrix_bytes(&op->result);

    for (unsigned i = 0; i < op->operands; i++) {
        /* Each is below 2^63, but four of them together need not be. */
        if (gm_op_reads(op, i) && !gm_size_add(bytes, gm_matrix_bytes(&op->operand[i]), &bytes))
            return UINT64_MAX;
    }
    return bytes;
}

bool gm_lies_row_major(const struct gm_matrix *matrix)
{
    /* The order of the dimensions matters only where two of them are longer than 1. */
    unsigned longer = (matrix->batch > 1) + (matrix->rows > 1) + (matrix->cols > 1);

    return matrix->layout == GM_ROW_MAJOR || longer < 2 || gm_matrix_elements(matrix) == 0;
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
