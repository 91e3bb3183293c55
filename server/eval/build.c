/*
 * build.c - gives the values of a syntax tree their types and shapes, as NumPy 2 has them.
 *
 * What is computed twice becomes one value. Transposes and slices become views, by strides. A chain
 * of products without parentheses is computed in the order of the fewest multiplications.
 */
#include "server/eval/eval.h"

#include "proto/number/half.h"

#include <math.h>
#include <string.h>

struct builder {
    const struct gm_syntax_tree *tree;
    struct gm_eval *e;
    struct gm_error *err;
    int value[GM_EVAL_NODES_MAX]; /* of each node */
};

/* ---- Values. ---- */

/* index: of a value; -1: there was no room for it. */
static enum gm_status check_room(struct builder *b, int index, unsigned at)
{
    return index >= 0
               ? GM_OK
               : gm_eval_fail(b->err, GM_COST_LIMIT, at,
                              "the expression computes more than %d values", GM_EVAL_VALUES_MAX);
}

static enum gm_status add(struct builder *b, const struct gm_value *value, int *ret)
{
    *ret = gm_eval_add(b->e, value);
    return check_room(b, *ret, value->at);
}

static const struct gm_value *value_of(const struct builder *b, int index)
{
    return &b->e->value[index];
}

static enum gm_status add_constant(struct builder *b, struct gm_scalar number, enum gm_dtype dtype,
                                   uint8_t weak, unsigned at, int *ret)
{
    struct gm_value value = gm_eval_new(GM_VALUE_CONSTANT, at);

    value.dtype = value.loop_dtype = dtype;
    value.weak = weak;
    value.number.real = number.real;
    value.number.integer = number.integer;
    value.number.is_integer = number.is_integer;
    return add(b, &value, ret);
}

static enum gm_status add_number(struct builder *b, struct gm_scalar number, unsigned at, int *ret)
{
    return number.is_integer ? add_constant(b, number, GM_I64, GM_WEAK_INT, at, ret)
                             : add_constant(b, number, GM_F64, GM_WEAK_FLOAT, at, ret);
}

/* A Python number as one of a type, rounded as NumPy rounds it. Others stay as they are. */
static enum gm_status settle(struct builder *b, int index, enum gm_dtype dtype, int *ret)
{
    const struct gm_value *x = value_of(b, index);
    struct gm_scalar number = x->number;
    unsigned at = x->at;

    *ret = index;
    if (!x->weak)
        return GM_OK;
    if (dtype == GM_I32 && (number.integer < INT32_MIN || number.integer > INT32_MAX))
        return gm_eval_fail(b->err, GM_OUT_OF_RANGE, at,
                            "%lld stands beside i32, which cannot hold it",
                            (long long)number.integer);
    if (gm_eval_is_float(dtype)) {
        double real = number.real;
        number = GM_REAL_NUMBER(dtype == GM_F16    ? (double)gm_f32_of_f16(gm_f16_of_f64(real))
                                : dtype == GM_BF16 ? (double)gm_f32_of_bf16(gm_bf16_of_f64(real))
                                : dtype == GM_F32  ? (double)(float)real
                                                   : real);
    }
    return add_constant(b, number, dtype, GM_WEAK_NOT, at, ret);
}

static enum gm_status strong(struct builder *b, int index, int *ret)
{
    return settle(b, index, value_of(b, index)->dtype, ret);
}

static enum gm_status broadcast(struct builder *b, unsigned n, const int child[], unsigned at,
                                struct gm_shape *ret)
{
    struct gm_shape shape;
    char text[2][GM_EVAL_SHAPE_TEXT];

    memset(&shape, 0, sizeof shape); /* values are compared byte by byte */
    for (unsigned i = 0; i < n; i++) {
        const struct gm_shape *next = &value_of(b, child[i])->shape;
        uint64_t have[GM_DIMS_MAX], more[GM_DIMS_MAX];
        gm_eval_sizes(&shape, have);
        gm_eval_sizes(next, more);
        for (unsigned d = 0; d < GM_DIMS_MAX; d++) {
            if (have[d] != more[d] && have[d] != 1 && more[d] != 1)
                return gm_eval_fail(b->err, GM_BAD_SHAPE, at,
                                    "the shapes %s and %s do not broadcast: sizes must be equal, "
                                    "or 1",
                                    gm_eval_shape_text(&shape, text[0]),
                                    gm_eval_shape_text(next, text[1]));
            have[d] = have[d] == 1 ? more[d] : have[d];
        }
        shape.ndim = shape.ndim > next->ndim ? shape.ndim : next->ndim;
        memcpy(shape.dim, have + GM_DIMS_MAX - shape.ndim, shape.ndim * sizeof *have);
    }
    memcpy(ret, &shape, sizeof shape);
    return GM_OK;
}

/* Whether the elements of a value, stored or not, can be counted. */
static enum gm_status check_size(const struct builder *b, const struct gm_value *value,
                                 const char *what)
{
    struct gm_matrix matrix;

    return gm_matrix_init(&matrix, value->dtype, GM_ROW_MAJOR, &value->shape, NULL) == GM_OK
               ? GM_OK
               : gm_eval_fail(b->err, GM_BAD_SHAPE, value->at, "the %s has too many elements",
                              what);
}

/* An instruction on values of any types, computed in `type`. */
static enum gm_status compute(struct builder *b, unsigned instruction, enum gm_dtype type,
                              enum gm_dtype dtype, unsigned n, const int children[], unsigned at,
                              int *ret)
{
    struct gm_value value = gm_eval_new(GM_VALUE_COMPUTED, at);
    enum gm_status status = GM_OK;
    int child[3];

    value.instruction = (uint8_t)instruction;
    value.loop_dtype = type;
    value.dtype = dtype;
    for (unsigned i = 0; i < n && status == GM_OK; i++)
        status = settle(b, children[i], type, &child[i]);
    if (status == GM_OK)
        status = broadcast(b, n, child, at, &value.shape);
    if (status == GM_OK)
        status = check_size(b, &value, "result");
    if (status != GM_OK)
        return status;
    for (unsigned i = 0; i < n; i++)
        value.child[i] = (int16_t)child[i];
    return add(b, &value, ret);
}

/* ---- Views. ---- */

static enum gm_status add_view(struct builder *b, const struct gm_reading *reading,
                               const struct gm_shape *shape, unsigned at, int *ret)
{
    *ret = gm_eval_view(b->e, reading, shape, at);
    return check_room(b, *ret, at);
}

static enum gm_status transpose(struct builder *b, const struct gm_syntax *node, int x, int *ret)
{
    const struct gm_value *value = value_of(b, x);
    struct gm_reading reading = gm_eval_reading(b->e, x);
    struct gm_shape shape = value->shape;

    *ret = x;
    if (value->shape.ndim < 2)
        return !node->matrix ? GM_OK
                             : gm_eval_fail(b->err, GM_BAD_SHAPE, node->at,
                                            ".mT needs a matrix, or a stack of them");
    if (value->shape.ndim == 3 && !node->matrix)
        return gm_eval_fail(b->err, GM_KERNEL_UNAVAILABLE, node->at,
                            ".T of a stack reverses all three dimensions in NumPy, which has no "
                            "kernel here: .mT transposes each matrix");
    int64_t row = reading.stride[1];
    shape.dim[shape.ndim - 2] = value->shape.dim[shape.ndim - 1];
    shape.dim[shape.ndim - 1] = value->shape.dim[shape.ndim - 2];
    reading.stride[1] = reading.stride[2];
    reading.stride[2] = row;
    return add_view(b, &reading, &shape, node->at, ret);
}

static enum gm_status slice(struct builder *b, const struct gm_syntax *node, int x, int *ret)
{
    const struct gm_value *value = value_of(b, x);
    struct gm_reading from = gm_eval_reading(b->e, x), reading = from;
    struct gm_shape shape = {0};
    int64_t stride[GM_DIMS_MAX];
    unsigned ndim = value->shape.ndim, first = GM_DIMS_MAX - ndim;
    bool empty = false;

    if (node->slices > ndim)
        return gm_eval_fail(b->err, GM_BAD_SHAPE, b->tree->slice[node->index + ndim].at,
                            "too many indices: %u for %u dimension%s", node->slices, ndim,
                            ndim == 1 ? "" : "s");
    for (unsigned d = 0; d < ndim; d++) {
        struct gm_slice whole = {.step = 1};
        const struct gm_slice *s = d < node->slices ? &b->tree->slice[node->index + d] : &whole;
        int64_t n = (int64_t)value->shape.dim[d], start = s->start;
        uint64_t count = 1;
        if (s->is_index && (start >= n || start < -n))
            return gm_eval_fail(b->err, GM_BAD_SHAPE, s->at,
                                "index %lld is out of bounds: dimension %u has %lld elements",
                                (long long)start, d, (long long)n);
        if (s->is_index)
            start = start < 0 ? start + n : start;
        else
            gm_eval_resolve(s, n, &start, &count);
        empty = empty || count == 0; /* then start may be before the first */
        if (count > 0)
            reading.offset += start * from.stride[first + d];
        if (s->is_index)
            continue;
        /* A step across the whole dimension is taken by one element alone. */
        stride[shape.ndim] = count > 1 ? from.stride[first + d] * s->step : 0;
        shape.dim[shape.ndim++] = count;
    }
    memset(reading.stride, 0, sizeof reading.stride);
    memcpy(reading.stride + GM_DIMS_MAX - shape.ndim, stride, shape.ndim * sizeof *stride);
    reading.offset = empty ? 0 : reading.offset;
    return add_view(b, &reading, &shape, node->at, ret);
}

/* ---- Operators. ---- */

static bool is_comparison(unsigned instruction)
{
    return instruction >= GM_DO_LT && instruction <= GM_DO_NE;
}

static enum gm_status fold(struct builder *b, unsigned instruction, int left, int right,
                           unsigned at, int *ret)
{
    struct gm_scalar number;
    enum gm_status status = gm_eval_fold(instruction, value_of(b, left)->number,
                                         value_of(b, right)->number, at, &number, b->err);

    if (status == GM_OK && is_comparison(instruction))
        return add_constant(b, number, GM_BOOL, GM_WEAK_BOOL, at, ret);
    return status == GM_OK ? add_number(b, number, at, ret) : status;
}

static enum gm_status binary(struct builder *b, unsigned instruction, int left, int right,
                             unsigned at, int *ret)
{
    const struct gm_value *x = value_of(b, left), *y = value_of(b, right);
    const int child[2] = {left, right};
    enum gm_dtype type = gm_eval_common_type(x, y);

    if (x->weak && y->weak && (instruction <= GM_DO_DIV || is_comparison(instruction)))
        return fold(b, instruction, left, right, at, ret);
    if (is_comparison(instruction)) {
        int64_t n = x->weak ? x->number.integer : y->weak ? y->number.integer : 0;
        bool fits = type != GM_I32 || n == (int32_t)n;
        return compute(b, instruction, fits ? type : GM_I64, GM_BOOL, 2, child, at, ret);
    }
    if (instruction == GM_DO_DIV && !gm_eval_is_float(type))
        type = GM_F64;
    if (type == GM_BOOL && instruction == GM_DO_SUB)
        return gm_eval_fail(b->err, GM_BAD_DTYPE, at, "bool has no subtraction, as in NumPy");
    if (type == GM_BOOL && (instruction == GM_DO_ADD || instruction == GM_DO_MUL)) /* or; and */
        instruction = instruction == GM_DO_ADD ? GM_DO_MAX : GM_DO_MIN;
    return compute(b, instruction, type, type, 2, child, at, ret);
}

static enum gm_status unary(struct builder *b, unsigned instruction, int x, unsigned at, int *ret)
{
    struct gm_scalar number = value_of(b, x)->number;
    enum gm_dtype type = value_of(b, x)->dtype;
    bool sign = instruction == GM_DO_NEG || instruction == GM_DO_LOAD;

    if (value_of(b, x)->weak && (sign || instruction == GM_DO_ABS)) {
        bool minus = instruction == GM_DO_NEG || (!sign && signbit(number.real));
        enum gm_status status =
            gm_eval_fold(GM_DO_MUL, number, GM_WHOLE_NUMBER(minus ? -1 : 1), at, &number, b->err);
        return status == GM_OK ? add_number(b, number, at, ret) : status;
    }
    if (type == GM_BOOL && sign)
        return gm_eval_fail(b->err, GM_BAD_DTYPE, at, "bool has no sign, as in NumPy");
    *ret = x;
    if (instruction == GM_DO_LOAD || (type == GM_BOOL && instruction == GM_DO_ABS))
        return GM_OK;
    enum gm_status status = strong(b, x, &x);
    if (instruction != GM_DO_NEG && instruction != GM_DO_ABS && !gm_eval_is_float(type))
        type = type == GM_BOOL ? GM_F16 : GM_F64;
    return status == GM_OK ? compute(b, instruction, type, type, 1, &x, at, ret) : status;
}

static enum gm_status multiply_up(struct builder *b, int x, int64_t n, unsigned at, int *ret)
{
    enum gm_status status = GM_OK;
    int square = x, power = -1;

    for (; n > 0 && status == GM_OK; n /= 2) {
        if (n % 2 == 1 && power >= 0)
            status = binary(b, GM_DO_MUL, power, square, at, &power);
        else if (n % 2 == 1)
            power = square;
        if (status == GM_OK && n > 1)
            status = binary(b, GM_DO_MUL, square, square, at, &square);
    }
    *ret = power;
    return status;
}

/* x ** n of integers, by multiplications. */
static enum gm_status integer_power(struct builder *b, int left, int right, enum gm_dtype type,
                                    unsigned at, int *ret)
{
    const struct gm_value *n = value_of(b, right);
    int child[3] = {left};

    if (!n->weak)
        return gm_eval_fail(b->err, GM_KERNEL_UNAVAILABLE, at,
                            "powers of integers have a kernel where the exponent is a number");
    if (n->number.integer < 0)
        return gm_eval_fail(b->err, GM_OUT_OF_RANGE, at,
                            "integers have no negative powers, as in NumPy");
    enum gm_status status = settle(b, right, type, &child[1]);
    if (status == GM_OK && n->number.integer > 0)
        return multiply_up(b, left, n->number.integer, at, ret);
    if (status == GM_OK) /* as many ones */
        status = add_number(b, GM_WHOLE_NUMBER(1), at, &child[1]);
    child[2] = child[1];
    return status == GM_OK ? compute(b, GM_DO_WHERE, type, type, 3, child, at, ret) : status;
}

static enum gm_status power(struct builder *b, int left, int right, unsigned at, int *ret)
{
    const struct gm_value *x = value_of(b, left), *y = value_of(b, right);
    enum gm_dtype type = gm_eval_common_type(x, y);
    const int child[2] = {left, right}, twice[2] = {left, left};
    double n = y->weak && gm_eval_is_float(type) ? y->number.real : 0;

    if (x->weak && y->weak)
        return fold(b, GM_DO_POW, left, right, at, ret);
    if (type == GM_BOOL || (gm_eval_is_integer(type) && x->dtype == GM_BOOL))
        return gm_eval_fail(b->err, GM_KERNEL_UNAVAILABLE, at, "powers of bool have no kernel");
    if (gm_eval_is_integer(type))
        return integer_power(b, left, right, type, at, ret);
    *ret = left;
    if (n == 1 && type == x->dtype)
        return GM_OK;
    if (n == 1 || n == 2) /* exact, as NumPy's are: a GPU's pow() may be off in the last place */
        return compute(b, GM_DO_MUL, type, type, 2, n == 1 ? child : twice, at, ret);
    if (n == 0.5)
        return compute(b, GM_DO_SQRT, type, type, 1, &left, at, ret);
    return compute(b, GM_DO_POW, type, type, 2, child, at, ret);
}

static enum gm_status where(struct builder *b, const struct gm_syntax *node, int *ret)
{
    int condition = b->value[node->child[0]], x = b->value[node->child[1]],
        y = b->value[node->child[2]];
    enum gm_status status = strong(b, condition, &condition);

    if (status != GM_OK)
        return status;
    enum gm_dtype of = value_of(b, condition)->dtype;
    if (of != GM_BOOL)
        status = compute(b, GM_DO_TRUTH, of, GM_BOOL, 1, &condition, node->at, &condition);
    if (status != GM_OK)
        return status;
    enum gm_dtype type = gm_eval_common_type(value_of(b, x), value_of(b, y));
    const int child[3] = {condition, x, y};
    return compute(b, GM_DO_WHERE, type, type, 3, child, node->at, ret);
}

/* ---- Reductions. ---- */

/* Whether every element is 0, or every one NaN: what sums and means of nothing come to. Then that
 * is also what any reduction of it comes to. */
static bool is_filled(const struct builder *b, int x, double *ret)
{
    int from = value_of(b, x)->child[0];

    if (value_of(b, x)->kind != GM_VALUE_COMPUTED || value_of(b, x)->instruction != GM_DO_LOAD ||
        value_of(b, from)->kind != GM_VALUE_CONSTANT)
        return false;
    *ret = value_of(b, from)->number.real;
    return !(*ret < 0 || *ret > 0);
}

/* One reduction along adjacent dimensions, from `first` to before `end`. */
static enum gm_status reduce(struct builder *b, const struct gm_syntax *node, int x, unsigned first,
                             unsigned end, bool keep, int *ret)
{
    const struct gm_value *from = value_of(b, x);
    struct gm_value value = gm_eval_new(GM_VALUE_REDUCED, node->at);
    bool sums = node->reduction == GM_REDUCE_SUM, means = node->reduction == GM_REDUCE_MEAN;
    bool nothing = false, empty = false; /* along it; no place */
    double fill = 0;
    int number = 0;

    value.outer = value.along = value.inner = 1;
    for (unsigned d = 0; d < from->shape.ndim; d++) {
        uint64_t size = from->shape.dim[d];
        bool reduced = d >= first && d < end;
        *(reduced ? &nothing : &empty) |= size == 0;
        *(d < first ? &value.outer : reduced ? &value.along : &value.inner) *= size;
        if (!reduced || keep)
            value.shape.dim[value.shape.ndim++] = reduced ? 1 : size;
    }
    value.reduction = node->reduction;
    value.dtype = from->dtype;
    if (!gm_eval_is_float(value.dtype) && (sums || means))
        value.dtype = sums ? GM_I64 : GM_F64;
    value.loop_dtype = value.dtype;
    enum gm_status status = check_size(b, &value, "result");
    if (status == GM_OK && nothing && !sums && !means)
        status = gm_eval_fail(b->err, GM_BAD_SHAPE, node->at, "%s of no elements is not defined",
                              node->reduction == GM_REDUCE_MAX ? "max" : "min");
    if (status != GM_OK)
        return status;
    if (!nothing && !empty && !is_filled(b, x, &fill)) {
        value.child[0] = (int16_t)x;
        return add(b, &value, ret);
    }
    if (nothing)
        fill = means ? NAN : 0;
    /* A number in each place: no element is read. */
    status =
        add_constant(b, gm_eval_is_integer(value.dtype) ? GM_WHOLE_NUMBER(0) : GM_REAL_NUMBER(fill),
                     value.dtype, GM_WEAK_NOT, node->at, &number);
    value.kind = GM_VALUE_COMPUTED;
    value.instruction = GM_DO_LOAD;
    value.reduction = 0;
    value.outer = value.along = value.inner = 0;
    value.child[0] = (int16_t)number;
    return status == GM_OK ? add(b, &value, ret) : status;
}

static enum gm_status find_axes(struct builder *b, const struct gm_syntax *node, unsigned ndim,
                                bool ret[GM_DIMS_MAX])
{
    for (unsigned d = 0; d < GM_DIMS_MAX; d++)
        ret[d] = !node->has_axes && d < ndim;
    for (unsigned i = 0; i < node->axes; i++) {
        int axis = node->axis[i] < 0 ? node->axis[i] + (int)ndim : node->axis[i];
        if (axis < 0 || axis >= (int)ndim)
            return gm_eval_fail(b->err, GM_BAD_SHAPE, node->at,
                                "axis %d is out of bounds: there %s %u dimension%s", node->axis[i],
                                ndim == 1 ? "is" : "are", ndim, ndim == 1 ? "" : "s");
        if (ret[axis])
            return gm_eval_fail(b->err, GM_BAD_SHAPE, node->at, "axis %d is stated twice", axis);
        ret[axis] = true;
    }
    return GM_OK;
}

static enum gm_status reduction(struct builder *b, const struct gm_syntax *node, int *ret)
{
    int x = b->value[node->child[0]];
    enum gm_status status = strong(b, x, &x);
    unsigned ndim = status == GM_OK ? value_of(b, x)->shape.ndim : 0, first = 0, end = 0;
    bool axis[GM_DIMS_MAX];

    if (status == GM_OK)
        status = find_axes(b, node, ndim, axis);
    if (status != GM_OK)
        return status;
    if (ndim == 3 && axis[0] && !axis[1] && axis[2]) { /* not adjacent: those of a view are */
        struct gm_reading reading = gm_eval_reading(b->e, x);
        const struct gm_shape *of = &value_of(b, x)->shape;
        struct gm_shape turned = {.ndim = 3, .dim = {of->dim[1], of->dim[0], of->dim[2]}};
        struct gm_shape shape = {.ndim = 3, .dim = {1, of->dim[1], 1}};
        int64_t first_stride = reading.stride[0];
        reading.stride[0] = reading.stride[1];
        reading.stride[1] = first_stride;
        status = add_view(b, &reading, &turned, node->at, &x);
        if (status == GM_OK)
            status = reduce(b, node, x, 1, 3, false, ret);
        if (status != GM_OK || !node->keepdims)
            return status;
        reading = gm_eval_reading(b->e, *ret);
        reading.stride[1] = reading.stride[2];
        return add_view(b, &reading, &shape, node->at, ret);
    }
    while (first < ndim && !axis[first])
        first++;
    for (end = first; end < ndim && axis[end];)
        end++;
    return reduce(b, node, x, first, end, node->keepdims, ret);
}

/* ---- Products. ---- */

/* A vector becomes a row on the left, and a column on the right. */
static enum gm_status to_matrix(struct builder *b, int x, bool right, unsigned at, int *ret)
{
    const struct gm_value *value = value_of(b, x);
    struct gm_reading reading = gm_eval_reading(b->e, x);
    struct gm_shape shape = {.ndim = 2, .dim = {1, 1}};

    *ret = x;
    if (value->shape.ndim != 1)
        return GM_OK;
    shape.dim[right ? 0 : 1] = value->shape.dim[0];
    if (right)
        reading.stride[1] = reading.stride[2];
    return add_view(b, &reading, &shape, at, ret);
}

static enum gm_status product_shape(struct builder *b, int left, int right, unsigned at,
                                    struct gm_shape *ret)
{
    const struct gm_shape *x = &value_of(b, left)->shape, *y = &value_of(b, right)->shape;
    uint64_t xs[GM_DIMS_MAX], ys[GM_DIMS_MAX];
    char text[2][GM_EVAL_SHAPE_TEXT];

    gm_eval_sizes(x, xs);
    gm_eval_sizes(y, ys);
    if (xs[2] != ys[1])
        return gm_eval_fail(b->err, GM_BAD_SHAPE, at,
                            "%s @ %s: the columns on the left (%llu) must equal the rows on the "
                            "right (%llu)",
                            gm_eval_shape_text(x, text[0]), gm_eval_shape_text(y, text[1]),
                            (unsigned long long)xs[2], (unsigned long long)ys[1]);
    if (xs[0] != ys[0] && xs[0] != 1 && ys[0] != 1)
        return gm_eval_fail(b->err, GM_BAD_SHAPE, at, "%s @ %s: the stacks have different sizes",
                            gm_eval_shape_text(x, text[0]), gm_eval_shape_text(y, text[1]));
    ret->ndim = x->ndim > y->ndim ? x->ndim : y->ndim;
    ret->dim[0] = xs[0] == 1 ? ys[0] : xs[0];
    ret->dim[ret->ndim - 2] = xs[1];
    ret->dim[ret->ndim - 1] = ys[2];
    return GM_OK;
}

static enum gm_status check_factor(struct builder *b, int x, unsigned at)
{
    const struct gm_value *value = value_of(b, x);

    if (value->shape.ndim == 0)
        return gm_eval_fail(b->err, GM_BAD_SHAPE, at,
                            "@ multiplies matrices, and one side is a number: * does that");
    if (value->dtype == GM_BOOL)
        return gm_eval_fail(b->err, GM_BAD_DTYPE, at, "products of bool have no kernel");
    return GM_OK;
}

/* An operand of a product: of its type, and lying as a matrix. */
static enum gm_status convert(struct builder *b, int x, enum gm_dtype dtype, unsigned at, int *ret)
{
    struct gm_factor_use use;
    bool fits = value_of(b, x)->dtype == dtype && gm_eval_as_matrix(b->e, x, &use);

    *ret = fits ? x : gm_eval_copy(b->e, x, dtype);
    return check_room(b, *ret, at);
}

static enum gm_status product(struct builder *b, int left, int right, unsigned at, int *ret)
{
    enum gm_status status = check_factor(b, left, at);
    struct gm_value value = gm_eval_new(GM_VALUE_PRODUCT, at);

    if (status == GM_OK)
        status = check_factor(b, right, at);
    if (status != GM_OK)
        return status;
    bool row = value_of(b, left)->shape.ndim == 1, column = value_of(b, right)->shape.ndim == 1;
    enum gm_dtype type = gm_eval_common_type(value_of(b, left), value_of(b, right));
    value.loop_dtype = value.dtype = type;
    if ((status = to_matrix(b, left, false, at, &left)) != GM_OK ||
        (status = to_matrix(b, right, true, at, &right)) != GM_OK ||
        (status = product_shape(b, left, right, at, &value.shape)) != GM_OK ||
        (status = convert(b, left, type, at, &left)) != GM_OK ||
        (status = convert(b, right, type, at, &right)) != GM_OK ||
        (status = check_size(b, &value, "product")) != GM_OK)
        return status;
    unsigned ndim = value.shape.ndim;
    if (column)
        value.shape.dim[--ndim] = 0;
    if (row) { /* what is behind it moves up */
        value.shape.dim[ndim - (column ? 1 : 2)] = column ? 0 : value.shape.dim[ndim - 1];
        value.shape.dim[--ndim] = 0;
    }
    value.shape.ndim = ndim;
    value.child[0] = (int16_t)left;
    value.child[1] = (int16_t)right;
    return add(b, &value, ret);
}

/* A chain of products of matrices: x[0] @ ... @ x[n - 1], the operators at `at`. */
struct chain {
    unsigned n;
    int x[GM_EVAL_NODES_MAX];
    unsigned at[GM_EVAL_NODES_MAX];
};

static void collect(const struct builder *b, int node, struct chain *chain)
{
    const struct gm_syntax *s = &b->tree->node[node];
    const struct gm_syntax *left = &b->tree->node[s->child[0]];

    if (left->kind == GM_SYNTAX_MATMUL && !left->in_parentheses)
        collect(b, s->child[0], chain);
    else
        chain->x[chain->n++] = b->value[s->child[0]];
    chain->at[chain->n] = s->at;
    chain->x[chain->n++] = b->value[s->child[1]];
}

/* Whether the order does not matter but for rounding: matrices of one type. */
static bool is_free(const struct builder *b, const struct chain *chain)
{
    for (unsigned i = 0; i < chain->n; i++) {
        const struct gm_value *x = value_of(b, chain->x[i]);
        if (x->shape.ndim != 2 || x->dtype != value_of(b, chain->x[0])->dtype ||
            (i > 0 && value_of(b, chain->x[i - 1])->shape.dim[1] != x->shape.dim[0]))
            return false;
    }
    return chain->n > 2 && chain->n <= GM_EVAL_CHAIN_MAX;
}

static enum gm_status multiply_chain(struct builder *b, const struct chain *chain,
                                     const uint8_t split[GM_EVAL_CHAIN_MAX][GM_EVAL_CHAIN_MAX],
                                     unsigned first, unsigned last, int *ret)
{
    int left = 0, right = 0;

    *ret = chain->x[first];
    if (first == last)
        return GM_OK;
    unsigned k = split[first][last];
    enum gm_status status = multiply_chain(b, chain, split, first, k, &left);
    if (status == GM_OK)
        status = multiply_chain(b, chain, split, k + 1, last, &right);
    return status == GM_OK ? product(b, left, right, chain->at[k + 1], ret) : status;
}

/* The order with the fewest multiplications. */
static enum gm_status cheapest(struct builder *b, const struct chain *chain, int *ret)
{
    uint8_t split[GM_EVAL_CHAIN_MAX][GM_EVAL_CHAIN_MAX];
    uint64_t size[GM_EVAL_CHAIN_MAX + 1];

    for (unsigned i = 0; i < chain->n; i++)
        size[i] = value_of(b, chain->x[i])->shape.dim[0];
    size[chain->n] = value_of(b, chain->x[chain->n - 1])->shape.dim[1];
    gm_eval_order(size, chain->n, split);
    return multiply_chain(b, chain, split, 0, chain->n - 1, ret);
}

static enum gm_status products(struct builder *b, int node, int *ret)
{
    struct chain chain = {0};
    enum gm_status status = GM_OK;

    collect(b, node, &chain);
    if (is_free(b, &chain))
        return cheapest(b, &chain, ret);
    *ret = chain.x[0];
    for (unsigned i = 1; i < chain.n && status == GM_OK; i++)
        status = product(b, *ret, chain.x[i], chain.at[i], ret);
    return status;
}

/* ---- Nodes. ---- */

static enum gm_status name(struct builder *b, const struct gm_syntax *node, int *ret)
{
    const struct gm_eval_operand *operand = &b->e->operand[node->index];
    const struct gm_matrix *matrix = &operand->matrix;
    struct gm_value value = gm_eval_new(GM_VALUE_INPUT, node->at);

    if (operand->is_number)
        return add_number(b, operand->number, node->at, ret);
    if (!gm_eval_is_float(matrix->dtype) && !gm_eval_is_integer(matrix->dtype) &&
        matrix->dtype != GM_BOOL)
        return gm_eval_fail(b->err, GM_BAD_DTYPE, node->at,
                            "%s is %s; expressions have kernels for f16, bf16, f32, f64, i32, i64 "
                            "and bool",
                            b->tree->name[node->index], gm_dtype_name(matrix->dtype));
    value.index = node->index;
    value.loop_dtype = value.dtype = matrix->dtype;
    value.shape.ndim = matrix->stacked ? 3 : 2;
    value.shape.dim[0] = matrix->batch;
    value.shape.dim[value.shape.ndim - 2] = matrix->rows;
    value.shape.dim[value.shape.ndim - 1] = matrix->cols;
    return add(b, &value, ret);
}

/* Whether a product is a part of another one's chain, which computes it. */
static bool in_chain(const struct builder *b, unsigned index)
{
    const struct gm_syntax *s = &b->tree->node[index];

    if (s->kind != GM_SYNTAX_MATMUL || s->in_parentheses)
        return false;
    for (unsigned i = index + 1; i < b->tree->nodes; i++)
        if (b->tree->node[i].kind == GM_SYNTAX_MATMUL &&
            b->tree->node[i].child[0] == (int16_t)index)
            return true;
    return false;
}

static enum gm_status visit(struct builder *b, unsigned index, int *ret)
{
    const struct gm_syntax *s = &b->tree->node[index];
    int left = s->kind > GM_SYNTAX_NUMBER ? b->value[s->child[0]] : 0;

    if (s->method && value_of(b, left)->weak)
        return gm_eval_fail(b->err, GM_BAD_DTYPE, s->at, "a Python number has no T and no methods");
    switch (s->kind) {
    case GM_SYNTAX_NAME:
        return name(b, s, ret);
    case GM_SYNTAX_NUMBER:
        return add_number(b, s->number, s->at, ret);
    case GM_SYNTAX_UNARY:
        return unary(b, s->instruction, left, s->at, ret);
    case GM_SYNTAX_BINARY:
        return binary(b, s->instruction, left, b->value[s->child[1]], s->at, ret);
    case GM_SYNTAX_POWER:
        return power(b, left, b->value[s->child[1]], s->at, ret);
    case GM_SYNTAX_WHERE:
        return where(b, s, ret);
    case GM_SYNTAX_REDUCE:
        return reduction(b, s, ret);
    case GM_SYNTAX_MATMUL:
        return in_chain(b, index) ? GM_OK : products(b, (int)index, ret);
    }
    enum gm_status status = strong(b, left, &left);
    if (status != GM_OK)
        return status;
    return s->kind == GM_SYNTAX_SLICE ? slice(b, s, left, ret) : transpose(b, s, left, ret);
}

enum gm_status gm_eval_build(const struct gm_syntax_tree *tree,
                             const struct gm_eval_operand *operand, struct gm_eval *ret,
                             struct gm_error *err)
{
    struct builder b = {.tree = tree, .e = ret, .err = err};
    enum gm_status status = GM_OK;

    ret->operand = operand;
    ret->values = 0;
    for (unsigned i = 0; i < tree->nodes && status == GM_OK; i++)
        status = visit(&b, i, &b.value[i]);
    if (status == GM_OK)
        status = strong(&b, b.value[tree->nodes - 1], &ret->root);
    if (status != GM_OK || ret->value[ret->root].kind >= GM_VALUE_COMPUTED)
        return status;
    ret->root = gm_eval_copy(ret, ret->root, ret->value[ret->root].dtype);
    return check_room(&b, ret->root, 1);
}
