/*
 * product.c - the set-up that all matmul kernels share.
 */
#include "product.h"

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
    if (product.k == 0) /* even if alpha is infinite: an empty sum is 0 */
        product.op.alpha = (struct gm_scalar){.is_integer = op->alpha.is_integer};
    uint64_t joined = join ? gm_op_joined(op) : 1;
    product.m *= joined;
    product.batch /= joined;
    return product;
}
