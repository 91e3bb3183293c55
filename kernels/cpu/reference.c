/*
 * reference.c - the reference results, and how far a right result may differ.
 *
 * Elements are found by the definition of the layouts, not by the strides that kernels use, so that
 * a mistake there cannot hide here. Operands of a matmul are written out as op(a) and the transpose
 * of op(b), in double or 64-bit integers. Then each element is one loop over k.
 *
 * Bound: a sum s of k products in precision u, in any order, fused or not, has |s' - s| <= g(k) *
 * sum|a||b|, g(n) = n u / (1 - n u). Alpha, beta and split-K cost each term a few roundings more
 * (EXTRA). Underflow adds half of the smallest subnormal for each operation; rounding to the
 * element type adds one unit roundoff of the result and half its smallest subnormal; the
 * reference's own error is the first term with double's roundoff. A sum of two is exact, rounded
 * once: its bound is 0 (Figueroa, When is double rounding innocuous?, 1995).
 */
#include "reference.h"

#include "proto/number/half.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EXTRA 4.0

/* A floating-point format: unit roundoff, smallest subnormal, from where on it rounds to
 * infinity. */
struct format {
    double roundoff, smallest, overflow;
};

static const struct format f16 = {0x1p-11, 0x1p-24, 65520.0};
static const struct format bf16 = {0x1p-8, 0x1p-133, 0x1.FFp127};
static const struct format f32 = {0x1p-24, 0x1p-149, 0x1.FFFFFFp127};
static const struct format f64 = {0x1p-53, 0x1p-1074, DBL_MAX};

static const struct format *element_format(enum gm_dtype dtype)
{
    return dtype == GM_F16 ? &f16 : dtype == GM_BF16 ? &bf16 : dtype == GM_F32 ? &f32 : &f64;
}

/* The index of element (i, j) of matrix t. A column-major stack is in Fortran order as a whole: the
 * first index, t, runs fastest. */
static uint64_t place(const struct gm_matrix *x, uint64_t t, uint64_t i, uint64_t j)
{
    if (x->layout == GM_ROW_MAJOR)
        return (t * x->rows + i) * x->cols + j;
    return t + x->batch * (i + x->rows * j);
}

static uint64_t read_integer(enum gm_dtype dtype, const void *data, uint64_t at)
{
    return dtype == GM_I32 ? ((const uint32_t *)data)[at] : ((const uint64_t *)data)[at];
}

static void move_elements(const struct gm_op *op, char *exact)
{
    const struct gm_matrix *a = &op->operand[0], *result = &op->result;
    size_t size = gm_dtype_size(a->dtype);

    for (uint64_t t = 0; t < result->batch; t++) {
        for (uint64_t i = 0; i < result->rows; i++) {
            for (uint64_t j = 0; j < result->cols; j++) {
                uint64_t from = op->kind == GM_OP_TRANSPOSE ? place(a, t, j, i)
                                : op->kind == GM_OP_FLIP    ? place(a, t, i, a->cols - 1 - j)
                                                            : place(a, t, i, j);
                memcpy(exact + place(result, t, i, j) * size, (const char *)a->data + from * size,
                       size);
            }
        }
    }
}

/* One matrix of a product: operands as op(a)[m][k] and op(b)[n][k], one after the other, each
 * element a double or a 64-bit integer. */
union number {
    double real;
    uint64_t integer;
};

struct product {
    const struct gm_op *op;
    uint64_t t, m, n, k;
    union number *a, *b;
};

static union number read_number(const struct gm_matrix *x, uint64_t t, uint64_t i, uint64_t j)
{
    uint64_t at = place(x, x->batch == 1 ? 0 : t, i, j);

    if (x->dtype == GM_I32 || x->dtype == GM_I64)
        return (union number){.integer = read_integer(x->dtype, x->data, at)};
    return (union number){.real = gm_element_value(x->dtype, x->data, at)};
}

static void read_operands(const struct product *p)
{
    const struct gm_op *op = p->op;

    for (uint64_t i = 0; i < p->m; i++) {
        for (uint64_t q = 0; q < p->k; q++)
            p->a[i * p->k + q] = op->transa ? read_number(&op->operand[0], p->t, q, i)
                                            : read_number(&op->operand[0], p->t, i, q);
    }
    for (uint64_t j = 0; j < p->n; j++) {
        for (uint64_t q = 0; q < p->k; q++)
            p->b[j * p->k + q] = op->transb ? read_number(&op->operand[1], p->t, j, q)
                                            : read_number(&op->operand[1], p->t, q, j);
    }
}

static void multiply_integers(const struct product *p, void *exact)
{
    const struct gm_op *op = p->op;

    for (uint64_t i = 0; i < p->m; i++) {
        for (uint64_t j = 0; j < p->n; j++) {
            uint64_t sum = 0, at = place(&op->result, p->t, i, j);
            for (uint64_t q = 0; q < p->k; q++)
                sum += p->a[i * p->k + q].integer * p->b[j * p->k + q].integer;
            sum *= (uint64_t)op->alpha.integer;
            if (gm_op_reads(op, 2))
                sum +=
                    (uint64_t)op->beta.integer * read_number(&op->operand[2], p->t, i, j).integer;
            if (op->result.dtype == GM_I32)
                ((uint32_t *)exact)[at] = (uint32_t)sum;
            else
                ((uint64_t *)exact)[at] = sum;
        }
    }
}

/* The error bound of a kernel's value, if its terms' magnitudes add up to `magnitude`. */
static double bound_of(const struct gm_op *op, double k, double value, double magnitude)
{
    const struct format *element = element_format(op->result.dtype);
    const struct format *sums = op->result.dtype == GM_F64 ? &f64 : &f32;
    double terms = k + EXTRA, alpha = fabs(op->alpha.real);

    if (!(terms * sums->roundoff < 0.5))
        return INFINITY;
    double sum_error = terms * sums->roundoff / (1 - terms * sums->roundoff) * magnitude;
    /* Factors of f32 of which 11 bits may be left (tf32), or 8: rounded, or cut off, as a
     * tensor core may do with bits that it has no place for. */
    double factor = op->result.dtype != GM_F32                    ? 0
                    : op->precision == GM_PRECISION_TF32          ? 0x1p-10
                    : op->precision == GM_PRECISION_BF16_PRODUCTS ? 0x1p-7
                                                                  : 0;
    sum_error += 2 * factor / (1 - 2 * factor) * (magnitude + sum_error);
    double own_error = terms * f64.roundoff / (1 - terms * f64.roundoff) * magnitude;
    double underflow = terms * sums->smallest * (alpha > 1 ? alpha : 1);
    /* The sum may be larger than alpha times the sum. */
    double peak = (magnitude + sum_error) * (alpha < 1 && alpha > 0 ? 1 / alpha : 1);
    if (!(peak < sums->overflow))
        return INFINITY;
    double bound = sum_error + own_error + underflow;
    double size = isfinite(value) ? fabs(value) : 0; /* an infinite value has no error */
    return bound + element->roundoff * (size + bound) + element->smallest;
}

/* The magnitude of a term, for the bound. An infinite or NaN operand makes the result certain,
 * without error; a product that overflows by itself makes it uncertain. */
static double magnitude_of(double a, double b)
{
    return isfinite(a) && isfinite(b) ? fabs(a * b) : 0;
}

static void multiply_floats(const struct product *p, const struct gm_reference *reference)
{
    const struct gm_op *op = p->op;

    for (uint64_t i = 0; i < p->m; i++) {
        for (uint64_t j = 0; j < p->n; j++) {
            double sum = 0, magnitude = 0;
            for (uint64_t q = 0; q < p->k; q++) {
                double a = p->a[i * p->k + q].real, b = p->b[j * p->k + q].real;
                sum += a * b;
                magnitude += magnitude_of(a, b);
            }
            double value = p->k > 0 ? op->alpha.real * sum : 0;
            magnitude = p->k > 0 ? fabs(op->alpha.real) * magnitude : 0;
            if (gm_op_reads(op, 2)) {
                double c = read_number(&op->operand[2], p->t, i, j).real;
                value += op->beta.real * c;
                magnitude += magnitude_of(op->beta.real, c);
            }
            uint64_t at = place(&op->result, p->t, i, j);
            reference->value[at] = value;
            reference->bound[at] = bound_of(op, (double)p->k, value, magnitude);
        }
    }
}

static enum gm_status multiply(const struct gm_op *op, const struct gm_reference *reference,
                               struct gm_error *err)
{
    struct product p = {
        .op = op,
        .m = gm_op_m(op),
        .n = gm_op_n(op),
        .k = gm_op_reads(op, 0) ? gm_op_k(op) : 0,
    };
    enum gm_status status = GM_OK;

    p.a = calloc(p.m * p.k + 1, sizeof(*p.a));
    p.b = calloc(p.n * p.k + 1, sizeof(*p.b));
    if (!p.a || !p.b) {
        status = gm_fail(err, GM_MEMORY_FULL, "no memory for the reference's operands");
        goto out;
    }
    for (p.t = 0; p.t < op->result.batch; p.t++) {
        read_operands(&p);
        if (reference->exact)
            multiply_integers(&p, reference->exact);
        else
            multiply_floats(&p, reference);
    }
out:
    free(p.a);
    free(p.b);
    return status;
}

/* Element (t, i, j) of an operand of add; dimensions of size 1 are repeated. */
static union number read_repeated(const struct gm_matrix *x, uint64_t t, uint64_t i, uint64_t j)
{
    return read_number(x, t, x->rows == 1 ? 0 : i, x->cols == 1 ? 0 : j);
}

/* The element nearest to a sum. */
static double rounded(enum gm_dtype dtype, double sum)
{
    switch (dtype) {
    case GM_F16:
        return (double)gm_f32_of_f16(gm_f16_of_f64(sum));
    case GM_BF16:
        return (double)gm_f32_of_bf16(gm_bf16_of_f64(sum));
    case GM_F32:
        return (double)(float)sum;
    default:
        return sum;
    }
}

static void add_elements(const struct gm_op *op, const struct gm_reference *reference)
{
    const struct gm_matrix *result = &op->result;

    for (uint64_t t = 0; t < result->batch; t++) {
        for (uint64_t i = 0; i < result->rows; i++) {
            for (uint64_t j = 0; j < result->cols; j++) {
                union number a = read_repeated(&op->operand[0], t, i, j);
                union number b = read_repeated(&op->operand[1], t, i, j);
                uint64_t at = place(result, t, i, j);
                if (!reference->exact)
                    reference->value[at] = rounded(result->dtype, a.real + b.real);
                else if (result->dtype == GM_I32)
                    ((uint32_t *)reference->exact)[at] = (uint32_t)(a.integer + b.integer);
                else
                    ((uint64_t *)reference->exact)[at] = a.integer + b.integer;
            }
        }
    }
}

enum gm_status gm_reference_make(const struct gm_op *op, struct gm_reference *ret,
                                 struct gm_error *err)
{
    uint64_t elements = gm_matrix_elements(&op->result);
    bool integers = op->result.dtype == GM_I32 || op->result.dtype == GM_I64;
    bool floats = gm_op_computes(op->kind) && !integers;
    struct gm_reference reference = {0};
    enum gm_status status = GM_OK;

    if (floats) {
        reference.value = calloc(elements + 1, sizeof(double));
        reference.bound = calloc(elements + 1, sizeof(double));
    } else {
        reference.exact = calloc(elements + 1, gm_dtype_size(op->result.dtype));
    }
    if (floats ? !reference.value || !reference.bound : !reference.exact)
        status = gm_fail(err, GM_MEMORY_FULL, "no memory for the reference's result");
    else if (elements > 0 && op->kind == GM_OP_MATMUL)
        status = multiply(op, &reference, err);
    else if (elements > 0 && op->kind == GM_OP_ADD)
        add_elements(op, &reference);
    else if (elements > 0)
        move_elements(op, reference.exact);

    if (status == GM_OK)
        *ret = reference;
    else
        gm_reference_free(&reference);
    return status;
}

void gm_reference_free(struct gm_reference *reference)
{
    free(reference->exact);
    free(reference->value);
    free(reference->bound);
    *reference = (struct gm_reference){0};
}

/* Whether `got` is a right result for `value`. A NaN where none belongs compares as wrong. */
static bool agrees(const struct format *element, double got, double value, double bound)
{
    if (isinf(bound))
        return true; /* intermediate results may have overflowed */
    if (isnan(value))
        return isnan(got);
    if (isinf(value))
        return got == value;
    if (isinf(got))
        return (got > 0) == (value > 0) && fabs(value) + bound >= element->overflow;
    return fabs(got - value) <= bound;
}

struct gm_deviation gm_reference_compare(const struct gm_reference *reference,
                                         const struct gm_op *op, const void *result)
{
    const struct format *element = element_format(op->result.dtype);
    size_t size = gm_dtype_size(op->result.dtype);
    uint64_t elements = gm_matrix_elements(&op->result);
    struct gm_deviation deviation = {0};
    double largest = 0;

    for (uint64_t at = 0; at < elements; at++) {
        bool right;
        if (reference->exact) {
            right = memcmp((const char *)reference->exact + at * size,
                           (const char *)result + at * size, size) == 0;
        } else {
            double got = gm_element_value(op->result.dtype, result, at);
            double value = reference->value[at], bound = reference->bound[at];
            right = agrees(element, got, value, bound);
            if (isfinite(got) && isfinite(value)) {
                double difference = fabs(got - value);
                deviation.absolute = fmax(deviation.absolute, difference);
                if (isfinite(bound))
                    deviation.worst = fmax(deviation.worst, difference / bound);
                largest = fmax(largest, fabs(value));
            }
        }
        if (!right && deviation.wrong++ == 0)
            deviation.first = at;
    }
    if (largest > 0)
        deviation.relative = deviation.absolute / largest;
    return deviation;
}
