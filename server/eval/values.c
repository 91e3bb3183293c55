/*
 * values.c - what the values of expressions are made with: types, views, numbers, the order of
 * products.
 */
#include "server/eval/eval.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Shapes and types. ---- */

void gm_eval_sizes(const struct gm_shape *shape, uint64_t ret[GM_DIMS_MAX])
{
    for (unsigned i = 0; i < GM_DIMS_MAX; i++)
        ret[i] = 1;
    for (unsigned i = 0; i < shape->ndim; i++)
        ret[GM_DIMS_MAX - shape->ndim + i] = shape->dim[i];
}

const char *gm_eval_shape_text(const struct gm_shape *shape, char buf[GM_EVAL_SHAPE_TEXT])
{
    size_t at = (size_t)snprintf(buf, GM_EVAL_SHAPE_TEXT, "(");

    for (unsigned i = 0; i < shape->ndim; i++)
        at += (size_t)snprintf(buf + at, GM_EVAL_SHAPE_TEXT - at, "%s%llu", i > 0 ? ", " : "",
                               (unsigned long long)shape->dim[i]);
    snprintf(buf + at, GM_EVAL_SHAPE_TEXT - at, shape->ndim == 1 ? ",)" : ")");
    return buf;
}

bool gm_eval_is_integer(enum gm_dtype dtype)
{
    return dtype == GM_I32 || dtype == GM_I64;
}

bool gm_eval_is_float(enum gm_dtype dtype)
{
    return dtype == GM_F16 || dtype == GM_BF16 || dtype == GM_F32 || dtype == GM_F64;
}

enum gm_compute_type gm_eval_compute_type(enum gm_dtype type)
{
    return gm_eval_is_integer(type) ? GM_COMPUTE_I64
           : type == GM_F64         ? GM_COMPUTE_F64
                                    : GM_COMPUTE_F32;
}

static enum gm_dtype promote(enum gm_dtype a, enum gm_dtype b)
{
    if (a == b || b == GM_BOOL)
        return a;
    if (a == GM_BOOL)
        return b;
    if (gm_eval_is_integer(a) && gm_eval_is_integer(b))
        return GM_I64;
    if (gm_eval_is_integer(a) || gm_eval_is_integer(b) || a == GM_F64 || b == GM_F64)
        return GM_F64;
    return GM_F32; /* of f32, f16 and bf16, two different ones */
}

/* The type of a Python number beside elements of this type. */
static enum gm_dtype beside(enum gm_dtype dtype, uint8_t weak)
{
    if (weak != GM_WEAK_FLOAT)
        return weak == GM_WEAK_INT && dtype == GM_BOOL ? GM_I64 : dtype;
    return gm_eval_is_float(dtype) ? dtype : GM_F64;
}

enum gm_dtype gm_eval_common_type(const struct gm_value *a, const struct gm_value *b)
{
    if (a->weak && b->weak)
        return a->weak > b->weak ? a->dtype : b->dtype;
    if (a->weak)
        return beside(b->dtype, a->weak);
    return b->weak ? beside(a->dtype, b->weak) : promote(a->dtype, b->dtype);
}

/* ---- Values. ---- */

struct gm_value gm_eval_new(enum gm_value_kind kind, unsigned at)
{
    struct gm_value value;

    memset(&value, 0, sizeof value); /* they are compared by their bytes */
    value.kind = (uint8_t)kind;
    value.at = (uint16_t)at;
    for (unsigned i = 0; i < 3; i++)
        value.child[i] = -1;
    return value;
}

/* The index of a value that is there already, or of a new one; -1: there are too many. */
int gm_eval_add(struct gm_eval *e, const struct gm_value *value)
{
    struct gm_value plain;

    memcpy(&plain, value, sizeof plain);
    for (unsigned i = 0; i < e->values; i++) {
        plain.at = e->value[i].at;
        if (memcmp(&plain, &e->value[i], sizeof plain) == 0)
            return (int)i;
    }
    if (e->values == GM_EVAL_VALUES_MAX)
        return -1;
    memcpy(&e->value[e->values], value, sizeof *value);
    return (int)e->values++;
}

int gm_eval_copy(struct gm_eval *e, int index, enum gm_dtype dtype)
{
    struct gm_value value = gm_eval_new(GM_VALUE_COMPUTED, e->value[index].at);

    value.instruction = GM_DO_LOAD;
    value.loop_dtype = value.dtype = dtype;
    memcpy(&value.shape, &e->value[index].shape, sizeof value.shape);
    value.child[0] = (int16_t)index;
    return gm_eval_add(e, &value);
}

/* ---- Views. ---- */

struct gm_reading gm_eval_reading(const struct gm_eval *e, int index)
{
    const struct gm_value *x = &e->value[index];
    struct gm_reading reading = {.base = index};
    uint64_t size[GM_DIMS_MAX];

    if (x->kind == GM_VALUE_VIEW) {
        reading.base = x->child[0];
        reading.offset = x->offset;
        memcpy(reading.stride, x->stride, sizeof reading.stride);
        return reading;
    }
    gm_eval_sizes(&x->shape, size);
    if (x->kind == GM_VALUE_INPUT && e->operand[x->index].matrix.layout == GM_COL_MAJOR) {
        reading.stride[0] = 1;
        reading.stride[1] = (int64_t)size[0];
        reading.stride[2] = (int64_t)(size[0] * size[1]);
    } else {
        reading.stride[2] = 1;
        reading.stride[1] = (int64_t)size[2];
        reading.stride[0] = (int64_t)(size[1] * size[2]);
    }
    return reading;
}

int gm_eval_view(struct gm_eval *e, const struct gm_reading *reading, const struct gm_shape *shape,
                 unsigned at)
{
    const struct gm_value *base = &e->value[reading->base];
    struct gm_reading whole = gm_eval_reading(e, reading->base);
    struct gm_value value = gm_eval_new(GM_VALUE_VIEW, at);
    uint64_t size[GM_DIMS_MAX];

    value.loop_dtype = value.dtype = base->dtype;
    value.child[0] = (int16_t)reading->base;
    value.offset = reading->offset;
    value.shape.ndim = shape->ndim;
    memcpy(value.shape.dim, shape->dim, shape->ndim * sizeof *shape->dim);
    gm_eval_sizes(shape, size);
    bool same = reading->offset == 0 && memcmp(&value.shape, &base->shape, sizeof value.shape) == 0;
    for (unsigned d = 0; d < GM_DIMS_MAX; d++) {
        value.stride[d] = size[d] > 1 ? reading->stride[d] : 0;
        same = same && (size[d] <= 1 || reading->stride[d] == whole.stride[d]);
    }
    return same ? reading->base : gm_eval_add(e, &value);
}

void gm_eval_resolve(const struct gm_slice *s, int64_t n, int64_t *ret_start, uint64_t *ret_count)
{
    bool down = s->step < 0;
    int64_t least = down ? -1 : 0, most = down ? n - 1 : n;
    int64_t start = s->has_start ? s->start : down ? most : least;
    int64_t stop = s->has_stop ? s->stop : down ? least : most;

    if (s->has_start)
        start = start < 0 ? (start + n < least ? least : start + n) : start > most ? most : start;
    if (s->has_stop)
        stop = stop < 0 ? (stop + n < least ? least : stop + n) : stop > most ? most : stop;
    int64_t span = down ? start - stop : stop - start;
    uint64_t step = down ? -(uint64_t)s->step : (uint64_t)s->step;
    *ret_start = start;
    *ret_count = span > 0 ? ((uint64_t)span - 1) / step + 1 : 0;
}

/* ---- Numbers. ---- */

/* Python's arithmetic on two whole numbers, y not negative in a power. False: i64 cannot hold the
 * outcome. */
static bool fold_integers(unsigned instruction, int64_t x, int64_t y, struct gm_scalar *ret)
{
    int64_t z = 0;
    bool ok = true;

    switch (instruction) {
    case GM_DO_ADD:
        ok = !__builtin_add_overflow(x, y, &z);
        break;
    case GM_DO_SUB:
        ok = !__builtin_sub_overflow(x, y, &z);
        break;
    case GM_DO_MUL:
        ok = !__builtin_mul_overflow(x, y, &z);
        break;
    default: /* a power, y >= 0 */
        for (z = 1; y > 0 && ok && z != 0; y--) {
            ok = !__builtin_mul_overflow(z, x, &z);
            if (x == 1 || (x == -1 && y % 2 == 1 && y > 2))
                y = y % 2 == 1 ? 1 : 2; /* the sign is all that changes */
        }
        break;
    }
    *ret = GM_WHOLE_NUMBER(z);
    return ok;
}

/* Both kinds of numbers exactly, where long double has 64 bits or more. */
static long double exact(struct gm_scalar x)
{
    return x.is_integer ? (long double)x.integer : (long double)x.real;
}

/* Rounded once, as Python divides whole numbers. */
static double divide_whole(int64_t a, int64_t b)
{
    __extension__ typedef unsigned __int128 wide;
    uint64_t x = a < 0 ? -(uint64_t)a : (uint64_t)a, y = b < 0 ? -(uint64_t)b : (uint64_t)b;
    int bits_x = x > 0 ? 64 - __builtin_clzll(x) : 0, bits_y = 64 - __builtin_clzll(y);
    int shift = 55 + bits_y - bits_x > 0 ? 55 + bits_y - bits_x : 0;
    wide up = (wide)x << shift;
    uint64_t quotient =
        (uint64_t)(up / y) | (up % y != 0); /* 55 bits or more: the last says that more follows */
    double real = ldexp((double)quotient, -shift);

    return (a < 0) != (b < 0) ? -real : real;
}

/* Python's, which fails where f64 has inf or NaN: powers, and divisions by 0. */
static enum gm_status fold_reals(unsigned instruction, struct gm_scalar x, struct gm_scalar y,
                                 unsigned at, double *ret, struct gm_error *err)
{
    bool finite = isfinite(x.real) && isfinite(y.real);

    if (instruction == GM_DO_DIV && y.real == 0)
        return gm_eval_fail(err, GM_OUT_OF_RANGE, at, "a division by 0");
    *ret = instruction == GM_DO_ADD       ? x.real + y.real
           : instruction == GM_DO_SUB     ? x.real - y.real
           : instruction == GM_DO_MUL     ? x.real * y.real
           : instruction != GM_DO_DIV     ? pow(x.real, y.real)
           : x.is_integer && y.is_integer ? divide_whole(x.integer, y.integer)
                                          : x.real / y.real;
    if (instruction != GM_DO_POW || !finite || isfinite(*ret))
        return GM_OK;
    return gm_eval_fail(err, GM_OUT_OF_RANGE, at, "%s",
                        x.real == 0   ? "0 has no negative powers"
                        : isnan(*ret) ? "such powers of a negative number are complex"
                                      : "this power is greater than any of f64");
}

enum gm_status gm_eval_fold(unsigned instruction, struct gm_scalar x, struct gm_scalar y,
                            unsigned at, struct gm_scalar *ret, struct gm_error *err)
{
    int order = (exact(x) > exact(y)) - (exact(x) < exact(y));
    bool ordered = !isnan(x.real) && !isnan(y.real);
    const bool holds[] = {order < 0,
                          ordered && order <= 0,
                          order > 0,
                          ordered && order >= 0,
                          ordered && order == 0,
                          !ordered || order != 0};
    bool integers = x.is_integer && y.is_integer && instruction != GM_DO_DIV &&
                    !(instruction == GM_DO_POW && y.integer < 0);
    double real = 0;

    if (instruction >= GM_DO_LT && instruction <= GM_DO_NE) {
        *ret = GM_WHOLE_NUMBER(holds[instruction - GM_DO_LT]);
        return GM_OK;
    }
    if (integers && fold_integers(instruction, x.integer, y.integer, ret))
        return GM_OK;
    if (integers)
        return gm_eval_fail(err, GM_OUT_OF_RANGE, at, "this number does not fit in i64");
    enum gm_status status = fold_reals(instruction, x, y, at, &real, err);
    if (status == GM_OK)
        *ret = GM_REAL_NUMBER(real);
    return status;
}

/* ---- The order of products. ---- */

void gm_eval_order(const uint64_t size[], unsigned n,
                   uint8_t ret[GM_EVAL_CHAIN_MAX][GM_EVAL_CHAIN_MAX])
{
    double cost[GM_EVAL_CHAIN_MAX][GM_EVAL_CHAIN_MAX] = {{0}};

    for (unsigned length = 2; length <= n; length++) {
        for (unsigned i = 0; i + length <= n; i++) {
            unsigned j = i + length - 1;
            cost[i][j] = INFINITY;
            for (unsigned k = j; k-- > i;) {
                double all = cost[i][k] + cost[k + 1][j] +
                             (double)size[i] * (double)size[k + 1] * (double)size[j + 1];
                if (all < cost[i][j]) {
                    cost[i][j] = all;
                    ret[i][j] = (uint8_t)k;
                }
            }
        }
    }
}
