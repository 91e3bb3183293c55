/*
 * draw.c - draws operations at random, so that what is fitted and judged is nobody's choice.
 *
 * Six tenths are products, a quarter transposes, the others sums, flips and copies; of all types,
 * by the logarithms of their sides: squares and thin ones, single ones and stacks, a third of them
 * of whole vectors, and a third of any number. What is drawn for a slower device than a large GPU
 * begins with single elements.
 */
#include "kernels/choose/fit.h"

#include "proto/status.h"

#include <math.h>

#define MOVED_BYTES_MIN 1e3
#define MOVED_BYTES_MAX 4e8

/* splitmix64 */
static uint64_t next(uint64_t *random)
{
    uint64_t z = *random += 0x9E3779B97F4A7C15;

    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
}

/* From 0 to below 1. */
static double share(uint64_t *random)
{
    return (double)(next(random) >> 11) * 0x1p-53;
}

/* An index, by weights that sum to 100. */
static unsigned weighted(uint64_t *random, const unsigned *weights)
{
    double at = 100 * share(random);
    unsigned i = 0;

    for (; at >= weights[i]; i++)
        at -= weights[i];
    return i;
}

static uint64_t number(uint64_t *random, double low, double high, uint64_t multiple)
{
    double value = exp(log(low) + share(random) * log(high / low));
    uint64_t whole = (uint64_t)(value / (double)multiple + 0.5) * multiple;

    return whole > 0 ? whole : multiple;
}

/* Any number, one of whole vectors, or one of whole tiles. */
static uint64_t side(uint64_t *random, double low, double high)
{
    static const uint64_t multiples[] = {1, 4, 16};
    static const unsigned weights[] = {40, 30, 30};

    return number(random, low, high, multiples[weighted(random, weights)]);
}

static struct gm_shape shape_of(uint64_t batch, uint64_t rows, uint64_t cols)
{
    return batch > 1 ? (struct gm_shape){.ndim = 3, .dim = {batch, rows, cols}}
                     : (struct gm_shape){.ndim = 2, .dim = {rows, cols}};
}

static bool make(struct gm_op *ret, enum gm_op_kind kind, enum gm_dtype dtype,
                 const struct gm_shape *shape, unsigned operands, bool transa, bool transb)
{
    const struct gm_op_options options = {.transa = transa, .transb = transb};
    struct gm_matrix operand[GM_OPERANDS_MAX] = {0};
    bool present[GM_OPERANDS_MAX] = {false};

    for (unsigned i = 0; i < operands; i++) {
        present[i] = true;
        if (gm_matrix_init(&operand[i], dtype, GM_ROW_MAJOR, &shape[i], NULL) != GM_OK)
            return false;
    }
    return gm_op_init(ret, kind, &options, operand, present, NULL) == GM_OK;
}

static bool draw_product(uint64_t *random, double part, struct gm_op *ret)
{
    enum kind { SINGLE, SQUARE, THIN, STACK, THIN_STACK, INNER };
    static const unsigned kinds[] = {35, 15, 20, 18, 7, 5}, types[] = {50, 12, 12, 8, 12, 6};
    /* Multiply-adds that take a few milliseconds of a large GPU's slowest kernels. */
    static const struct {
        enum gm_dtype dtype;
        double madds_max;
    } of[] = {{GM_F32, 2e10}, {GM_F64, 5e9}, {GM_F16, 4e9},
              {GM_BF16, 4e9}, {GM_I32, 5e9}, {GM_I64, 2e9}};
    unsigned type = weighted(random, types);
    enum kind kind = (enum kind)weighted(random, kinds);
    bool stack = kind == STACK || kind == THIN_STACK;
    uint64_t batch = stack ? number(random, 2, 4000, 1) : 1;
    double most = kind == STACK ? 320 : kind == THIN_STACK ? 1500 : 5000;
    double least = part < 1 ? 1 : 8;
    uint64_t m = side(random, least, most), n = side(random, least, most);
    uint64_t k = side(random, least, most);

    if (kind == SQUARE)
        n = k = m;
    if (kind == THIN || kind == THIN_STACK) {
        uint64_t few = 1 + next(random) % 8, lines = number(random, least, stack ? 1500 : 20000, 1);
        bool tall = next(random) % 2;
        m = tall ? lines : few;
        n = tall ? few : lines;
    }
    if (kind == INNER) {
        m = 1 + next(random) % 4;
        n = 1 + next(random) % 4;
        k = number(random, 100 * part, 1e7, 1);
    }
    bool transa = share(random) < 0.2, transb = share(random) < 0.2;
    const struct gm_shape shape[] = {shape_of(batch, transa ? k : m, transa ? m : k),
                                     shape_of(batch, transb ? n : k, transb ? k : n)};
    double stacked = (double)batch * (double)m;
    return stacked * (double)n * (double)k <= part * of[type].madds_max &&
           make(ret, GM_OP_MATMUL, of[type].dtype, shape, 2, transa, transb);
}

static bool draw_move(uint64_t *random, enum gm_op_kind kind, double part, struct gm_op *ret)
{
    static const enum gm_dtype moved[] = {GM_F32, GM_F32, GM_F16, GM_F64, GM_U8, GM_C128},
                               added[] = {GM_F32, GM_F32, GM_F16, GM_F64, GM_I32, GM_I32};
    static const unsigned kinds[] = {45, 35, 20}, others[] = {60, 20, 20};
    enum gm_dtype dtype = (kind == GM_OP_ADD ? added : moved)[next(random) % 6];
    double least = part < 1 ? 1 : 8;
    uint64_t batch = 1, rows = side(random, least, 12000), cols = side(random, least, 12000);
    unsigned form = weighted(random, kinds), other = weighted(random, others);

    if (form == 1) { /* thin */
        rows = number(random, 2, 300, 1);
        cols = number(random, 1000 * part, 4e6, 1);
    }
    if (form == 1 && next(random) % 2) {
        uint64_t kept = rows;
        rows = cols;
        cols = kept;
    }
    if (form == 2) { /* a stack */
        batch = number(random, 2, 20000, 1);
        rows = number(random, 2, 300, 1);
        cols = number(random, 2, 300, 1);
    }
    const struct gm_shape shape[] = {
        shape_of(batch, rows, cols),
        other == 0 ? shape_of(batch, rows, cols)
                   : shape_of(1, other == 1 ? 1 : rows, other == 1 ? cols : 1)};
    return make(ret, kind, dtype, shape, kind == GM_OP_ADD ? 2 : 1, false, false);
}

struct gm_op gm_draw_op(uint64_t *random, double part)
{
    static const unsigned ops[] = {58, 24, 8, 7, 3};
    static const enum gm_op_kind kinds[] = {GM_OP_MATMUL, GM_OP_TRANSPOSE, GM_OP_ADD, GM_OP_FLIP,
                                            GM_OP_COPY};
    enum gm_op_kind kind = kinds[weighted(random, ops)];
    struct gm_op op;

    for (;;) {
        bool made = kind == GM_OP_MATMUL ? draw_product(random, part, &op)
                                         : draw_move(random, kind, part, &op);
        double bytes = made ? (double)gm_op_bytes_min(&op) : 0;
        /* arithmetic grows faster than what it is done with */
        if (bytes >= (part < 1 ? 1 : MOVED_BYTES_MIN) && bytes <= sqrt(part) * MOVED_BYTES_MAX)
            return op;
    }
}
