/*
 * grouped.c - which small jobs go over the link with others: those that take less so, alone, than
 * with copies and another kernel.
 *
 * By the rates of the profile, and not by those that were measured when the device was opened: the
 * same request is to have the same bits.
 */
#include "kernels/choose/estimate.h"
#include "kernels/roof.h"

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

static const struct gm_profile *profile_of(const struct gm_device_facts *facts)
{
    return facts->profile ? facts->profile : gm_profile_at(0);
}

bool gm_is_small_job(const struct gm_op *op, const struct gm_device_facts *facts, double kernel_us)
{
    const struct gm_link_rates *link = &profile_of(facts)->link;

    return facts->batch_max > 1 && op->kind != GM_OP_COPY && kernel_us >= 0 &&
           gm_grouped_us(op, link) < gm_copied_us(op, link, kernel_us);
}

double gm_job_us(const struct gm_op *op, const struct gm_device_facts *facts)
{
    struct gm_candidate candidates[GM_CANDIDATES_MAX];
    struct gm_link_rates link = profile_of(facts)->link;
    unsigned count = gm_candidates(op, facts, candidates), i = 0;

    while (i < count && !gm_may_be_automatic(candidates[i].variant))
        i++;
    if (i == count || candidates[i].estimate.us < 0)
        return -1;
    bool small = gm_is_small_job(op, facts, candidates[i].estimate.us);
    if (gm_rate(&facts->link_in_gbs) > 0 && gm_rate(&facts->link_out_gbs) > 0) {
        link.in_gbs = gm_rate(&facts->link_in_gbs);
        link.out_gbs = gm_rate(&facts->link_out_gbs);
    }
    return small ? gm_grouped_us(op, &link) : gm_copied_us(op, &link, candidates[i].estimate.us);
}
