/*
 * product.c - sets up a matmul for all kernels, and turns sums into elements for most.
 */
#include "product.h"

#include "proto/number/half.h"

#include <math.h>
#include <string.h>

struct gm_product gm_product_make(const struct gm_op *op, bool join)
{
    struct gm_product product = {
        .op = *op,
        .batch = op->result.batch,
        .m = gm_op_m(op),
        .n = gm_op_n(op),
        .k = gm_op_reads(op, 0) ? gm_op_k(op) : 0,
        .adds = gm_op_reads(op, 2),
        .a = gm_op_view(op, 0),
        .b = gm_op_view(op, 1),
    };

    if (product.adds)
        product.c = gm_op_view(op, 2);
    if (product.k == 0 && !isfinite(op->alpha.real)) /* an empty sum is 0 all the same */
        product.op.alpha = (struct gm_scalar){.is_integer = op->alpha.is_integer};
    uint64_t joined = join ? gm_op_joined(op) : 1;
    product.m *= joined;
    product.batch /= joined;
    return product;
}

/* element: the type in memory; sum: what it is computed in; load and store turn one into the
 * other; factor: the member of a factor that is meant. Integers are computed unsigned: they
 * wrap. */
#define FINISH(name, element, sum, load, store, factor)                                            \
    static void name(const struct gm_op *op, void *to, const void *sums, const void *c,            \
                     uint64_t count)                                                               \
    {                                                                                              \
        sum alpha = (sum)op->alpha.factor, beta = (sum)op->beta.factor;                            \
        element *restrict elements = to;                                                           \
        const sum *restrict from = sums;                                                           \
        const element *restrict more = c;                                                          \
                                                                                                   \
        if (c) {                                                                                   \
            for (uint64_t i = 0; i < count; i++)                                                   \
                elements[i] = (element)store(alpha * from[i] + beta * (sum)load(more[i]));         \
        } else if (sizeof(element) == sizeof(sum) && alpha == 1) {                                 \
            memcpy(elements, from, count * sizeof(element));                                       \
        } else {                                                                                   \
            for (uint64_t i = 0; i < count; i++)                                                   \
                elements[i] = (element)store(alpha * from[i]);                                     \
        }                                                                                          \
    }

FINISH(finish_f16, uint16_t, float, gm_f32_of_f16, gm_f16_of_f32, real)
FINISH(finish_bf16, uint16_t, float, gm_f32_of_bf16, gm_bf16_of_f32, real)
FINISH(finish_f32, float, float, , , real)
FINISH(finish_f64, double, double, , , real)
FINISH(finish_i32, uint32_t, uint32_t, , , integer)
FINISH(finish_i64, uint64_t, uint64_t, , , integer)

gm_finish_fn *gm_finish_get(enum gm_dtype dtype)
{
    switch (dtype) {
    case GM_F16:
        return finish_f16;
    case GM_BF16:
        return finish_bf16;
    case GM_F32:
        return finish_f32;
    case GM_F64:
        return finish_f64;
    case GM_I32:
        return finish_i32;
    default:
        return finish_i64;
    }
}
