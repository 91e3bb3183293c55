/*
 * grouped.c - which small jobs take `grouped`, which reads and writes memory of the host. A job
 * takes it where that is faster, for the job alone, than copies and another kernel.
 *
 * By the rates of the profile, and not by those that were measured when the device was opened: the
 * same request is to have the same bits.
 */
#include "kernels/choose/estimate.h"
#include "kernels/device_facts.h"

/* As cuda/matmul/grouped.cu divides a product. */
#define TILE 64.0        /* A and B are read once for each 64 columns and rows of the result */
#define TILES 16.0       /* that wait for the link at the same time */
#define TRIP_BYTES 256.0 /* of accumulators along K, in a trip */
#define VECTOR 16

double gm_copied_us(const struct gm_op *op, const struct gm_link_rates *l, double kernel_us)
{
    double out = (double)gm_matrix_bytes(&op->result), in = (double)gm_op_bytes_min(op) - out;

    return l->copies_us + l->copy_us * (op->operands + 1) + in / (l->in_gbs * 1e3) +
           out / (l->out_gbs * 1e3) + kernel_us;
}

double gm_grouped_us(const struct gm_op *op, const struct gm_link_rates *l)
{
    uint64_t size = gm_dtype_size(op->result.dtype);
    double out = (double)gm_matrix_bytes(&op->result), in = (double)gm_op_bytes_min(op) - out;
    double trips = 1;
    bool whole = op->result.cols * size % VECTOR == 0 && op->result.rows * size % VECTOR == 0;

    if (op->kind == GM_OP_MATMUL) {
        double joined = (double)gm_op_joined(op), m = (double)gm_op_m(op) * joined;
        double n = (double)gm_op_n(op), k = (double)gm_op_k(op);
        double batch = (double)op->result.batch / joined;
        double down = gm_parts(m, TILE), across = gm_parts(n, TILE);
        in = batch * (double)size * (across * m * k + down * n * k);
        trips = gm_most_of(1, batch * down * across / TILES) * k * gm_most_of((double)size, 4) /
                TRIP_BYTES;
    } else if (op->kind != GM_OP_ADD && !whole) { /* element by element */
        in *= l->uneven;
        out *= l->uneven;
    }
    in /= l->in_gbs * 1e3;
    out /= l->out_gbs * 1e3;
    return l->grouped_us + trips * l->trip_us + sqrt(in * in + out * out);
}

static const struct gm_link_rates *link_of(const struct gm_device_facts *facts)
{
    return &gm_profile_for(NULL, facts)->link;
}

bool gm_is_small_job(const struct gm_op *op, const struct gm_device_facts *facts, double kernel_us)
{
    return facts->batch_max > 1 && op->kind != GM_OP_COPY && kernel_us >= 0 &&
           gm_grouped_us(op, link_of(facts)) < gm_copied_us(op, link_of(facts), kernel_us);
}

double gm_job_us(const struct gm_op *op, const struct gm_device_facts *facts)
{
    double in_gbs = gm_rate(&facts->link_in_gbs), out_gbs = gm_rate(&facts->link_out_gbs);
    struct gm_link_rates link = *link_of(facts);
    const struct gm_variant *variant;

    if (facts->kind == GM_DEVICE_SIM || gm_select(op, facts, NULL, &variant, NULL) != GM_OK)
        return INFINITY;
    if (in_gbs > 0 && out_gbs > 0) {
        link.in_gbs = in_gbs;
        link.out_gbs = out_gbs;
    }
    if (variant->groups)
        return gm_grouped_us(op, &link);
    double kernel_us = gm_estimate(op, variant->op, variant->name, facts).us;
    if (kernel_us < 0)
        return INFINITY;
    return facts->kind == GM_DEVICE_CPU ? kernel_us : gm_copied_us(op, &link, kernel_us);
}
