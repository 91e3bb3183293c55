/*
 * check.c - checks whether a kernel's result is right.
 *
 * The expected result is the reference, or, if its plain loops would take too long, another
 * kernel's result. All of this loops over elements: it runs on a worker, never on an event thread.
 */
#include "server/api/compare/compare.h"

#include <math.h>
#include <string.h>

static bool is_integer(enum gm_dtype dtype)
{
    return dtype == GM_I32 || dtype == GM_I64;
}

/* Whether only bitwise equality is right. */
static bool is_exact(const struct gm_op *op)
{
    return !gm_op_computes(op->kind) || is_integer(op->result.dtype);
}

bool gm_compare_reference_bytes(const struct gm_op *op, uint64_t *ret)
{
    uint64_t elements = gm_matrix_elements(&op->result), bytes, operands;

    if (is_exact(op))
        bytes = gm_matrix_bytes(&op->result);
    else if (!gm_size_mul(elements, 2 * sizeof(double), &bytes))
        return false;
    /* A product also needs its operands as doubles, 8 bytes per element. */
    if (op->kind == GM_OP_MATMUL &&
        (!gm_size_add(gm_matrix_elements(&op->operand[0]), gm_matrix_elements(&op->operand[1]),
                      &operands) ||
         !gm_size_mul(operands, 8, &operands) || !gm_size_add(bytes, operands, &bytes)))
        return false;
    *ret = bytes;
    return true;
}

enum gm_status gm_compare_make_reference(struct gm_compare *c, struct gm_error *err)
{
    return c->has_reference ? gm_reference_make(&c->op, &c->reference, err) : GM_OK;
}

/* The bytes that a row's result must equal; NULL if unknown, or only known approximately. */
static const void *right_bytes(const struct gm_compare *c, const struct gm_compare_row *row)
{
    if (row->baseline)
        return c->copy.operand[0].data;
    if (c->has_reference)
        return c->reference.exact;
    return c->against && is_exact(&c->op) ? c->expected.buffer.data : NULL;
}

void gm_compare_poison(const struct gm_compare *c, const struct gm_compare_row *row, void *result)
{
    const unsigned char *right = right_bytes(c, row);
    unsigned char *out = result;
    uint64_t bytes = gm_matrix_bytes(&gm_compare_op(c, row)->result);

    if (right)
        for (uint64_t i = 0; i < bytes; i++)
            out[i] = (unsigned char)~right[i];
    else if (bytes > 0)
        memset(out, 0xFF, bytes); /* as a float: NaN */
}

static struct gm_deviation compare_bytes(const struct gm_op *op, const void *right,
                                         const void *result)
{
    const size_t size = gm_dtype_size(op->result.dtype);
    const uint64_t elements = gm_matrix_elements(&op->result);
    struct gm_deviation deviation = {0};

    if (elements == 0 || memcmp(right, result, elements * size) == 0)
        return deviation;
    for (uint64_t i = 0; i < elements; i++)
        if (memcmp((const char *)right + i * size, (const char *)result + i * size, size) != 0 &&
            deviation.wrong++ == 0)
            deviation.first = i;
    return deviation;
}

/* Deviation of two float results. `wrong` counts elements that differ. */
static struct gm_deviation compare_floats(const struct gm_op *op, const void *right,
                                          const void *result)
{
    const uint64_t elements = gm_matrix_elements(&op->result);
    struct gm_deviation deviation = {0};
    double largest = 0;

    for (uint64_t i = 0; i < elements; i++) {
        double value = gm_element_value(op->result.dtype, right, i);
        double got = gm_element_value(op->result.dtype, result, i);
        if (isfinite(value) && isfinite(got)) {
            deviation.absolute = fmax(deviation.absolute, fabs(got - value));
            largest = fmax(largest, fabs(value));
        }
        bool same = got == value || (isnan(got) && isnan(value));
        if (!same && deviation.wrong++ == 0)
            deviation.first = i;
    }
    if (largest > 0)
        deviation.relative = deviation.absolute / largest;
    return deviation;
}

static void check_against_reference(const struct gm_compare *c, struct gm_compare_row *row,
                                    const void *result)
{
    bool exact = is_exact(&c->op) || c->op.kind == GM_OP_ADD;

    row->deviation = gm_reference_compare(&c->reference, &c->op, result);
    row->verdict = row->deviation.wrong > 0 ? GM_VERDICT_WRONG
                   : exact                  ? GM_VERDICT_EXACT
                                            : GM_VERDICT_WITHIN;
}

void gm_compare_check(struct gm_compare *c, struct gm_compare_row *row,
                      struct gm_allocation *result)
{
    const void *data = result->buffer.data;

    if (row->baseline) {
        row->deviation = compare_bytes(&c->copy, right_bytes(c, row), data);
        row->verdict = row->deviation.wrong > 0 ? GM_VERDICT_WRONG : GM_VERDICT_EXACT;
    } else if (c->has_reference) {
        check_against_reference(c, row, data);
    } else if (c->against) {
        row->deviation = is_exact(&c->op) ? compare_bytes(&c->op, c->expected.buffer.data, data)
                                          : compare_floats(&c->op, c->expected.buffer.data, data);
        row->verdict = GM_VERDICT_AGAINST;
    } else {
        struct gm_allocation other = c->expected;
        c->expected = *result;
        *result = other;
        c->against = row->variant;
    }
}
