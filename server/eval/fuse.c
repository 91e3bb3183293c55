/*
 * fuse.c - decides which values are stored, and turns the others into instructions of programs.
 *
 * A value that only one program needs becomes a part of it, if it has the same sizes and computes
 * in the same numbers. What is read as a matrix is stored: the operands of products, what views
 * look at, the result. Factors and sums around a product become its alpha, beta and c.
 */
#include "kernels/task.h"
#include "server/eval/eval.h"

#include <string.h>

#define MEMBERS_MAX 40 /* of a program; more would not be faster */

static const struct gm_value *value_of(const struct gm_eval *e, int index)
{
    return &e->value[index];
}

/* ---- Products. ---- */

bool gm_eval_as_matrix(const struct gm_eval *e, int index, struct gm_factor_use *ret)
{
    const struct gm_value *x = value_of(e, index);
    struct gm_reading r = gm_eval_reading(e, index);
    uint64_t size[GM_DIMS_MAX];
    int64_t bytes = (int64_t)gm_dtype_size(x->dtype);

    gm_eval_sizes(&x->shape, size);
    int64_t batch = (int64_t)size[0], rows = (int64_t)size[1], cols = (int64_t)size[2];
    bool empty = batch == 0 || rows == 0 || cols == 0;
    bool dense = batch <= 1 || r.stride[0] == rows * cols;
    bool row_major = (cols <= 1 || r.stride[2] == 1) && (rows <= 1 || r.stride[1] == cols);
    bool col_major = (rows <= 1 || r.stride[1] == 1) && (cols <= 1 || r.stride[2] == rows);

    /* Kernels take matrices that begin at such an address, as buffers do. */
    if (value_of(e, r.base)->kind == GM_VALUE_CONSTANT ||
        r.offset * bytes % (int64_t)GM_DEVICE_ALIGNMENT != 0)
        return false;
    if (!empty && (!dense || (!row_major && !col_major)))
        return false;
    bool transposed = !empty && !row_major;
    *ret = (struct gm_factor_use){
        .base = r.base,
        .offset = r.offset,
        .transposed = transposed,
        .matrix = {.dtype = x->dtype,
                   .layout = GM_ROW_MAJOR,
                   .stacked = x->shape.ndim == 3,
                   .batch = size[0],
                   .rows = transposed ? size[2] : size[1],
                   .cols = transposed ? size[1] : size[2]},
    };
    return true;
}

/* Whether a value is a number that may be a factor of elements of this type. 0 is none: a
 * product with alpha = 0 does not read its operands, and their NaN and infinity would be lost. */
static bool is_factor(const struct gm_eval *e, int index, enum gm_dtype dtype,
                      struct gm_scalar *ret)
{
    const struct gm_value *x = index >= 0 ? value_of(e, index) : NULL;

    if (!x || x->kind != GM_VALUE_CONSTANT || x->dtype != dtype || x->number.real == 0 ||
        !(x->number.real - x->number.real == 0))
        return false;
    *ret = x->number;
    return true;
}

static const struct gm_scalar one = {.real = 1, .integer = 1, .is_integer = true};
static const struct gm_scalar minus_one = {.real = -1, .integer = -1, .is_integer = true};

/* factor * x, or x: *ret is x. `once`: it must be needed once. */
static struct gm_scalar scaled(const struct gm_eval *e, int index, bool once, int *ret)
{
    const struct gm_value *x = value_of(e, index);
    struct gm_scalar factor = one;
    bool taken = x->kind == GM_VALUE_COMPUTED && (!once || e->uses[index] == 1) &&
                 !e->forced[index] && x->loop_dtype == x->dtype;

    *ret = index;
    if (taken && x->instruction == GM_DO_NEG && x->dtype != GM_BOOL) {
        *ret = x->child[0];
        return minus_one;
    }
    if (!taken || x->instruction != GM_DO_MUL)
        return factor;
    if (is_factor(e, x->child[0], x->dtype, &factor))
        *ret = x->child[1];
    else if (is_factor(e, x->child[1], x->dtype, &factor))
        *ret = x->child[0];
    return factor;
}

static bool is_product(const struct gm_eval *e, int index, enum gm_dtype dtype)
{
    return value_of(e, index)->kind == GM_VALUE_PRODUCT && value_of(e, index)->dtype == dtype &&
           e->uses[index] == 1;
}

/* Whether a value can be the c of a product. */
static bool is_c(const struct gm_eval *e, int c, const struct gm_value *product)
{
    const struct gm_value *x = value_of(e, c);
    struct gm_factor_use use;

    /* What has to be computed first is better computed behind the product. */
    return x->dtype == product->dtype && memcmp(&x->shape, &product->shape, sizeof x->shape) == 0 &&
           gm_eval_as_matrix(e, c, &use) && !use.transposed &&
           value_of(e, use.base)->kind != GM_VALUE_COMPUTED;
}

/* Integers wrap around, as those of NumPy do. */
static struct gm_scalar negated(struct gm_scalar x, enum gm_dtype dtype)
{
    x.real = -x.real;
    x.integer = (int64_t) - (uint64_t)x.integer;
    if (dtype == GM_I32 && x.is_integer) {
        x.integer = (int32_t)(uint32_t)(uint64_t)x.integer;
        x.real = (double)x.integer;
    }
    return x;
}

bool gm_eval_as_product(const struct gm_eval *e, int index, struct gm_product_use *ret)
{
    const struct gm_value *x = value_of(e, index);
    struct gm_product_use use = {.product = index, .c = -1, .alpha = one, .beta = one};

    if (x->kind == GM_VALUE_PRODUCT) {
        *ret = use;
        return true;
    }
    if (x->kind != GM_VALUE_COMPUTED || x->loop_dtype != x->dtype || x->loop_dtype == GM_BOOL)
        return false;
    use.has_alpha = true;
    if (x->instruction != GM_DO_ADD && x->instruction != GM_DO_SUB) {
        use.alpha = scaled(e, index, false, &use.product);
        *ret = use;
        return use.product != index && is_product(e, use.product, x->dtype);
    }
    for (unsigned side = 0; side < 2; side++) {
        int left = x->child[side], right = x->child[1 - side];
        use.alpha = scaled(e, left, true, &use.product);
        if (!is_product(e, use.product, x->dtype))
            continue;
        use.beta = scaled(e, right, false, &use.c);
        if (!is_c(e, use.c, value_of(e, use.product))) {
            use.c = right;
            use.beta = one;
        }
        if (!is_c(e, use.c, value_of(e, use.product)) ||
            memcmp(&x->shape, &value_of(e, use.product)->shape, sizeof x->shape) != 0)
            continue;
        if (x->instruction == GM_DO_SUB && side == 0)
            use.beta = negated(use.beta, x->dtype);
        else if (x->instruction == GM_DO_SUB)
            use.alpha = negated(use.alpha, x->dtype);
        *ret = use;
        return true;
    }
    return false;
}

/* ---- Groups. ---- */

#define UNASKED (-1)
#define STORED (-2)

static void count_uses(struct gm_eval *e)
{
    memset(e->uses, 0, sizeof e->uses);
    e->uses[e->root] = 1;
    for (int i = e->root; i >= 0; i--)
        for (unsigned k = 0; k < 3 && e->uses[i] > 0; k++)
            if (e->value[i].child[k] >= 0)
                e->uses[e->value[i].child[k]]++;
}

/* The sizes that a step's program runs over. */
static const struct gm_shape *space_of(const struct gm_eval *e, int root)
{
    const struct gm_value *x = value_of(e, root);

    return x->kind == GM_VALUE_REDUCED ? &value_of(e, x->child[0])->shape : &x->shape;
}

static bool fits(const struct gm_eval *e, int index, int group, const uint8_t members[])
{
    uint64_t size[GM_DIMS_MAX], space[GM_DIMS_MAX];

    gm_eval_sizes(&value_of(e, index)->shape, size);
    gm_eval_sizes(space_of(e, group), space);
    return members[group] < MEMBERS_MAX && memcmp(size, space, sizeof size) == 0 &&
           gm_eval_compute_type(value_of(e, index)->loop_dtype) ==
               gm_eval_compute_type(value_of(e, group)->loop_dtype);
}

/* Says that the step of `group` needs a value; STORED: as a matrix. */
static void ask(const struct gm_eval *e, int asked[], int index, int group)
{
    const struct gm_value *x = value_of(e, index);

    if (x->kind == GM_VALUE_VIEW) {
        asked[index] = STORED; /* a view has no step: this only says that it is needed */
        index = x->child[0];
        group = STORED;
    }
    asked[index] = asked[index] == UNASKED || asked[index] == group ? group : STORED;
}

static void assign(struct gm_eval *e)
{
    int asked[GM_EVAL_VALUES_MAX];
    uint8_t members[GM_EVAL_VALUES_MAX] = {0};
    struct gm_product_use use;

    for (unsigned i = 0; i < e->values; i++) {
        asked[i] = UNASKED;
        e->group[i] = -1;
    }
    asked[e->root] = STORED;
    for (int i = e->root; i >= 0; i--) {
        const struct gm_value *x = value_of(e, i);
        if (asked[i] == UNASKED || x->kind < GM_VALUE_COMPUTED)
            continue;
        if (gm_eval_as_product(e, i, &use)) {
            const struct gm_value *product = value_of(e, use.product);
            e->group[i] = (int16_t)i;
            ask(e, asked, product->child[0], STORED);
            ask(e, asked, product->child[1], STORED);
            if (use.c >= 0)
                ask(e, asked, use.c, STORED);
            continue;
        }
        bool joins = x->kind == GM_VALUE_COMPUTED && !e->forced[i] && asked[i] >= 0 &&
                     fits(e, i, asked[i], members);
        e->group[i] = (int16_t)(joins ? asked[i] : i);
        members[e->group[i]]++;
        for (unsigned k = 0; k < 3; k++)
            if (x->child[k] >= 0)
                ask(e, asked, x->child[k], e->group[i]);
    }
}

/* A program that exceeds its limits is divided: the middle one of its values becomes a step. */
static bool divide(struct gm_eval *e, int root)
{
    int member[GM_EVAL_VALUES_MAX], n = 0;

    for (int i = 0; i < root; i++)
        if (e->group[i] == root)
            member[n++] = i;
    if (n == 0)
        return false;
    e->forced[member[n / 2]] = true;
    return true;
}

enum gm_status gm_eval_fuse(struct gm_eval *e, struct gm_error *err)
{
    struct gm_product_use use;
    struct gm_program program;
    int reads[GM_PROGRAM_INPUTS_MAX];
    bool again = true;
    int steps = 0;

    memset(e->forced, 0, sizeof e->forced);
    count_uses(e);
    while (again) {
        again = false;
        assign(e);
        for (int i = 0; i <= e->root && !again; i++)
            if (e->group[i] == i && !gm_eval_as_product(e, i, &use) &&
                !gm_eval_program(e, i, &program, reads))
                again = divide(e, i);
    }
    for (unsigned i = 0; i < e->values; i++)
        e->stored[i] = e->group[i] == (int)i ? (int16_t)steps++ : -1;
    if (steps > GM_EVAL_STEPS_MAX)
        return gm_eval_fail(err, GM_COST_LIMIT, e->value[e->root].at,
                            "the expression takes %d steps, and %d is the limit: divide it, and "
                            "keep the parts (keep=NAME)",
                            steps, GM_EVAL_STEPS_MAX);
    return GM_OK;
}

/* ---- Programs. ---- */

struct writer {
    const struct gm_eval *e;
    struct gm_program *p;
    int *reads;
    int root;
    int16_t saved[GM_EVAL_VALUES_MAX]; /* the temporary that has a value; -1: none */
    uint16_t left[GM_EVAL_VALUES_MAX]; /* uses to come */
    bool taken[GM_PROGRAM_TEMPORARIES_MAX];
    bool failed;
};

/* Where an instruction's y or z comes from. A use of a value is over when the instruction that
 * reads it is written: what is written before that must not take its temporary. */
struct operand {
    uint8_t from, index;
    bool is_use;   /* of a value that is in a temporary */
    int16_t value; /* which */
};

static bool is_member(const struct writer *w, int index)
{
    return w->e->group[index] == w->root && index != w->root;
}

static void write_instruction(struct writer *w, unsigned kind, unsigned narrow, struct operand y,
                              struct operand z)
{
    struct gm_program *p = w->p;

    if (p->code == GM_PROGRAM_CODE_MAX) {
        w->failed = true;
        return;
    }
    p->instruction[p->code++] = (struct gm_instruction){.kind = (uint8_t)kind,
                                                        .narrow = (uint8_t)narrow,
                                                        .from = y.from,
                                                        .index = y.index,
                                                        .from_z = z.from,
                                                        .index_z = z.index};
}

static struct operand constant(struct writer *w, const struct gm_scalar *number)
{
    struct gm_program *p = w->p;
    union gm_number value = {.real = number->real};
    unsigned i = 0;

    if (p->compute_type == GM_COMPUTE_I64)
        value.integer = number->integer;
    while (i < p->constants && memcmp(&p->constant[i], &value, sizeof value) != 0)
        i++;
    if (i == GM_PROGRAM_CONSTANTS_MAX) {
        w->failed = true;
        return (struct operand){0};
    }
    p->constant[i] = value;
    p->constants += i == p->constants;
    return (struct operand){.from = GM_FROM_CONSTANT, .index = (uint8_t)i};
}

static struct operand input(struct writer *w, int index)
{
    struct gm_program *p = w->p;
    const struct gm_value *x = value_of(w->e, index);
    struct gm_reading r = gm_eval_reading(w->e, index);
    uint64_t size[GM_DIMS_MAX];
    unsigned i = 0;

    while (i < p->inputs && w->reads[i] != index)
        i++;
    if (i == GM_PROGRAM_INPUTS_MAX) {
        w->failed = true;
        return (struct operand){0};
    }
    gm_eval_sizes(&x->shape, size);
    w->reads[i] = index;
    p->inputs += i == p->inputs;
    p->input[i] = (struct gm_program_input){.batch = size[0] > 1 ? r.stride[0] : 0,
                                            .row = size[1] > 1 ? r.stride[1] : 0,
                                            .col = size[2] > 1 ? r.stride[2] : 0,
                                            .dtype = x->dtype};
    return (struct operand){.from = GM_FROM_INPUT, .index = (uint8_t)i};
}

/* Puts the accumulator into a temporary. */
static struct operand save(struct writer *w)
{
    unsigned i = 0;

    while (i < GM_PROGRAM_TEMPORARIES_MAX && w->taken[i])
        i++;
    if (i == GM_PROGRAM_TEMPORARIES_MAX) {
        w->failed = true;
        return (struct operand){0};
    }
    w->taken[i] = true;
    struct operand slot = {.from = GM_FROM_TEMPORARY, .index = (uint8_t)i};
    write_instruction(w, GM_DO_STORE, GM_NARROW_NOT, slot, (struct operand){0});
    return slot;
}

/* Whether a value is at hand without computing it. */
static bool is_at_hand(const struct writer *w, int index)
{
    return !is_member(w, index) || w->saved[index] >= 0;
}

/* One use of a value that is at hand. Call end_use when it is over. */
static struct operand at_hand(struct writer *w, int index)
{
    const struct gm_value *x = value_of(w->e, index);

    if (!is_member(w, index))
        return x->kind == GM_VALUE_CONSTANT ? constant(w, &x->number) : input(w, index);
    return (struct operand){.from = GM_FROM_TEMPORARY,
                            .index = (uint8_t)w->saved[index],
                            .is_use = true,
                            .value = (int16_t)index};
}

/* The last use of a value frees its temporary. */
static void end_use(struct writer *w, struct operand x)
{
    if (x.is_use && --w->left[x.value] == 0)
        w->taken[x.index] = false;
}

static void write_value(struct writer *w, int index);

/* The accumulator becomes a value: one use of it. */
static void load(struct writer *w, int index)
{
    if (!is_at_hand(w, index)) {
        write_value(w, index);
        if (--w->left[index] > 0)
            w->saved[index] = save(w).index;
        return;
    }
    struct operand x = at_hand(w, index);
    write_instruction(w, GM_DO_LOAD, GM_NARROW_NOT, x, (struct operand){0});
    end_use(w, x);
}

/* A value as the source of an instruction to come; what computes it is written now. */
static struct operand source(struct writer *w, int index)
{
    if (!is_at_hand(w, index)) {
        write_value(w, index);
        w->saved[index] = save(w).index;
    }
    return at_hand(w, index);
}

static unsigned reversed(unsigned kind)
{
    switch (kind) {
    case GM_DO_SUB:
        return GM_DO_RSUB;
    case GM_DO_DIV:
        return GM_DO_RDIV;
    case GM_DO_POW:
        return GM_DO_RPOW;
    case GM_DO_LT:
        return GM_DO_GT;
    case GM_DO_GT:
        return GM_DO_LT;
    case GM_DO_LE:
        return GM_DO_GE;
    case GM_DO_GE:
        return GM_DO_LE;
    default:
        return kind;
    }
}

/* Of equal numbers, which zeros of either sign are, the second is the greater and the lesser one:
 * what is computed first must not decide. */
static bool can_reverse(const struct writer *w, unsigned kind)
{
    return (kind != GM_DO_MAX && kind != GM_DO_MIN) || w->p->compute_type == GM_COMPUTE_I64;
}

/* What makes the accumulator the element that NumPy would store. */
static unsigned narrow_of(const struct gm_value *x)
{
    unsigned kind = x->instruction;
    bool moves =
        kind == GM_DO_LOAD || kind == GM_DO_WHERE || kind == GM_DO_MAX || kind == GM_DO_MIN;

    if (moves || x->dtype != x->loop_dtype)
        return GM_NARROW_NOT;
    return x->dtype == GM_F16    ? GM_NARROW_F16
           : x->dtype == GM_BF16 ? GM_NARROW_BF16
           : x->dtype == GM_I32  ? GM_NARROW_I32
                                 : GM_NARROW_NOT;
}

static void write_value(struct writer *w, int index)
{
    const struct gm_value *x = value_of(w->e, index);
    const struct operand none = {0};
    unsigned kind = x->instruction, narrow = narrow_of(x);
    struct operand y = none, z = none;

    if (w->failed)
        return;
    if (kind == GM_DO_WHERE) {
        y = source(w, x->child[1]);
        z = source(w, x->child[2]);
        load(w, x->child[0]);
    } else if (x->child[1] < 0) {
        load(w, x->child[0]);
        if (kind == GM_DO_LOAD)
            return;
    } else if (can_reverse(w, kind) && is_at_hand(w, x->child[0]) && !is_at_hand(w, x->child[1])) {
        kind = reversed(kind);
        y = at_hand(w, x->child[0]);
        load(w, x->child[1]);
    } else {
        y = source(w, x->child[1]);
        load(w, x->child[0]);
    }
    write_instruction(w, kind, narrow, y, z);
    end_use(w, y);
    end_use(w, z);
}

bool gm_eval_program(const struct gm_eval *e, int root, struct gm_program *ret,
                     int ret_reads[GM_PROGRAM_INPUTS_MAX])
{
    const struct gm_value *x = value_of(e, root);
    struct writer w = {.e = e, .p = ret, .reads = ret_reads, .root = root};
    uint64_t size[GM_DIMS_MAX];

    gm_eval_sizes(space_of(e, root), size);
    memset(ret, 0, sizeof *ret);
    ret->compute_type = gm_eval_compute_type(x->loop_dtype);
    ret->dtype = x->dtype;
    ret->batch = size[0];
    ret->rows = size[1];
    ret->cols = size[2];
    memset(w.saved, -1, sizeof w.saved);
    memcpy(w.left, e->uses, sizeof w.left);
    if (x->kind == GM_VALUE_REDUCED) {
        ret->reduction = (enum gm_reduction)x->reduction;
        ret->outer = x->outer;
        ret->along = x->along;
        ret->inner = x->inner;
        load(&w, x->child[0]);
    } else {
        write_value(&w, root);
    }
    return !w.failed;
}
