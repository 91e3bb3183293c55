/*
 * grouped.c - says which jobs are so small that they run with others, over the link.
 *
 * The limits are those of an H200 on PCIe 5: tests/bench/results/groups_h200.json.
 */
#include "kernels/choose/choose.h"
#include "kernels/layout.h"

#include <math.h>

/* Operands and result together. Up to there `grouped` takes two thirds of the time of copies and a
 * kernel for a lone job, and half of it for many: tests/bench/results/groups_h200.json. Rows that
 * are not whole vectors of 16 bytes cost more, and were not timed beyond the second. */
#define GROUPED_BYTES ((uint64_t)1 << 20)
#define GROUPED_UNEVEN_BYTES ((uint64_t)128 << 10)

/* `grouped` reads A and B over the link once for each 64 columns and rows of the result, and waits
 * for it once for each 256 bytes of accumulators along K, of which 16 tiles do so at once. Up to
 * these limits it is at least as fast as copies and another kernel for a lone product, and for many
 * takes half of the time or less: tests/bench/results/groups_h200.json. */
#define GROUPED_TILE 64.0
#define GROUPED_TILES 16.0
#define GROUPED_WAITS 8.0
#define GROUPED_LINK_BYTES 720e3

static bool is_small_product(const struct gm_op *op)
{
    double joined = (double)gm_op_joined(op), m = (double)gm_op_m(op) * joined;
    double n = (double)gm_op_n(op), k = (double)gm_op_k(op);
    double size = (double)gm_dtype_size(op->result.dtype);
    double batch = (double)op->result.batch / joined;
    double down = ceil(m / GROUPED_TILE), across = ceil(n / GROUPED_TILE);
    double waits = k * (size < 4 ? 4 : size) / 256;
    double rounds = batch * down * across / GROUPED_TILES;
    double bytes = batch * size * (across * m * k + down * n * k + m * n);

    return bytes <= GROUPED_LINK_BYTES && (rounds > 1 ? rounds : 1) * waits <= GROUPED_WAITS;
}

bool gm_is_small_job(const struct gm_op *op, const struct gm_device_facts *facts)
{
    uint64_t size = gm_dtype_size(op->result.dtype);
    bool even = op->kind == GM_OP_ADD ||
                (op->result.cols * size % 16 == 0 && op->result.rows * size % 16 == 0);

    if (facts->batch_max <= 1 || op->kind == GM_OP_COPY)
        return false;
    if (op->kind == GM_OP_MATMUL)
        return is_small_product(op);
    return gm_op_bytes_min(op) <= (even ? GROUPED_BYTES : GROUPED_UNEVEN_BYTES);
}
