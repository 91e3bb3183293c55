/* measured.c - finds measured times by operation, type and shape. */
#include "gpu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct gm_measured rows[] = {
#define GM_MEASURED(op, dtype, shape, copy_us, times) {"H200", op, dtype, shape, copy_us, times},
#include "measured_h200.def"
#undef GM_MEASURED
};

/* Dimensions of operands, with 1 for what is not there, and whether they are transposed. */
struct dims {
    double dim[2][3];
    bool transposed[2];
};

static struct dims dims_of(const struct gm_op *op)
{
    struct dims ret = {{{1, 1, 1}, {1, 1, 1}}, {op->transa, op->transb}};

    for (unsigned i = 0; i < op->operands && i < 2; i++) {
        const struct gm_matrix *x = &op->operand[i];
        ret.dim[i][0] = x->stacked ? (double)x->batch : 1;
        ret.dim[i][1] = (double)x->rows;
        ret.dim[i][2] = (double)x->cols;
    }
    return ret;
}

/* Reads "64x16x16 64x16x16^T". */
static struct dims read_dims(const char *at)
{
    struct dims ret = {{{1, 1, 1}, {1, 1, 1}}, {false, false}};

    for (unsigned i = 0; i < 2 && *at; i++) {
        double dim[3];
        unsigned n = 0;
        for (char *end; n < 3; at = end + 1) {
            dim[n++] = strtod(at, &end);
            if (*end != 'x') {
                at = end;
                break;
            }
        }
        for (unsigned j = 0; j < n; j++)
            ret.dim[i][3 - n + j] = dim[j];
        ret.transposed[i] = strncmp(at, "^T", 2) == 0;
        at += ret.transposed[i] ? 2 : 0;
        at += strspn(at, " ");
    }
    return ret;
}

/* Whether rows and columns of operand a are whole vectors of 16 bytes, in bits. */
static unsigned alignment(const struct dims *d, double size)
{
    return (unsigned)(fmod(d->dim[0][1] * size, 16) == 0) |
           (unsigned)(fmod(d->dim[0][2] * size, 16) == 0) << 1;
}

/* How far apart two shapes are: the sum of the logarithms of ratios; infinite where they are not of
 * one kind. */
static double distance(const struct dims *a, const struct dims *b, double size)
{
    double sum = 0;

    for (unsigned i = 0; i < 2; i++) {
        if (a->transposed[i] != b->transposed[i])
            return HUGE_VAL;
        for (unsigned j = 0; j < 3; j++) {
            double apart = fabs(log2(a->dim[i][j]) - log2(b->dim[i][j]));
            bool repeats = (a->dim[i][j] == 1) != (b->dim[i][j] == 1);
            if (!(apart <= 1) || repeats)
                return HUGE_VAL;
            sum += apart;
        }
    }
    return alignment(a, size) == alignment(b, size) ? sum : HUGE_VAL;
}

/* Whether it is of the kind that was measured: rows of whole operands, and products of a and b
 * alone. */
static bool is_as_measured(const struct gm_op *op)
{
    bool is_as = op->kind != GM_OP_MATMUL || !gm_op_reads(op, 2);

    for (unsigned i = 0; i < op->operands && i < 2; i++)
        is_as = is_as && gm_op_reads(op, i) && gm_lies_row_major(&op->operand[i]);
    return is_as;
}

const struct gm_measured *gm_measured_find(const struct gm_gpu *gpu, const struct gm_op *op,
                                           bool *same)
{
    double size = (double)gm_dtype_size(op->result.dtype), least = HUGE_VAL;
    const struct gm_measured *nearest = NULL;
    struct dims dims = dims_of(op);

    *same = false;
    if (!is_as_measured(op))
        return NULL;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct gm_measured *row = &rows[i];
        bool type = gm_op_computes(op->kind) ? row->dtype == op->result.dtype
                                             : (double)gm_dtype_size(row->dtype) == size;
        if (row->op != op->kind || !type || strcmp(row->gpu, gpu->name) != 0)
            continue;
        struct dims other = read_dims(row->shape);
        double apart = distance(&dims, &other, size);
        if (apart < least) {
            least = apart;
            nearest = row;
        }
    }
    *same = least == 0;
    return nearest;
}

double gm_measured_us(const struct gm_measured *measured, const char *variant)
{
    size_t len = strlen(variant);

    for (const char *at = measured->times; *at; at += strspn(at, " ")) {
        const char *time = at + strcspn(at, " ");
        if ((size_t)(time - at) == len && memcmp(at, variant, len) == 0)
            return strtod(time, NULL);
        at = time + strspn(time, " ");
        at += strcspn(at, " ");
    }
    return -1;
}
