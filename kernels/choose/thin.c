/*
 * thin.c - estimates products of few rows or columns, which read the large operand once.
 */
#include "kernels/choose/estimate.h"

#define LOADS_AHEAD 4.0 /* vectors that a lane loads at once (skinny/product.h) */
#define BLOCK_WARPS 8.0 /* the fewest warps of a block, and the most that share K */
#define BLOCK_WARPS_MAX 16.0
#define VECTORS_ROOM 32768.0 /* bytes of the vectors in shared memory */
#define LANES 8.0            /* that share a line */

static double power_of_two(double x)
{
    return exp2(ceil(log2(gm_most_of(1, x))));
}

/* As skinny/layout.h lays it out: warps divide the lines, then K within a block, then K among
 * blocks, until the device holds no more. */
double gm_us_skinny(const struct gm_asked *q, const struct gm_rates *r)
{
    const struct gm_sizes *s = &q->s;
    bool few_columns = s->n <= s->m;
    double lines = few_columns ? s->m : s->n, few = few_columns ? s->n : s->m;
    const struct gm_view *large = few_columns ? &s->a : &s->b;
    bool along = few_columns ? s->a.col == 1 : s->b.row == 1;
    uint64_t pitch = large->row > large->col ? large->row : large->col;
    double span = 16 / s->size, count = power_of_two(few);
    bool whole = (pitch | large->batch) % (uint64_t)span == 0;
    double room = along ? count <= 2 ? 3000 : count == 4 ? 2112 : 1500 : 32 * q->sms;
    double rounds = s->batch * lines * s->k / span / 32 / LOADS_AHEAD / room;
    double lanes = along || rounds >= 0.5 ? LANES : LANES / 2;
    double of_warp = along ? 32 / lanes : lanes * span;
    double round = along ? LOADS_AHEAD * lanes * span : LOADS_AHEAD * 32 / lanes;
    bool several = along && count > 1 && rounds >= (count > 2 && count < 8 ? 0.25 : 1);
    if (several) {
        of_warp *= LOADS_AHEAD;
        round /= LOADS_AHEAD;
    }
    double line_warps = gm_parts(lines, of_warp), most = VECTORS_ROOM / s->width / count;
    double share = gm_least_of(room / s->batch / line_warps, s->k / round / (along ? 0.35 : 0.5));
    share = power_of_two(share * (along ? 0.71 : 0.5));
    bool is_split = share > BLOCK_WARPS_MAX || s->k > most;
    double deep = gm_least_of(share, is_split ? along ? 2 : 4 : BLOCK_WARPS_MAX);
    double splits = gm_least_of(gm_most_of(share / deep, gm_parts(s->k, most)), 128);
    double wide = gm_least_of(gm_most_of(1, BLOCK_WARPS / deep), power_of_two(line_warps));
    deep = gm_most_of(deep, BLOCK_WARPS / wide);
    double warps = deep * wide, k = s->k / splits;
    struct gm_work w = {.blocks = s->batch * gm_parts(line_warps, wide) * splits,
                        .resident = gm_most_of(
                            1, floor((several || count * span * s->width > 64 ? 16 : 32) / warps))};

    double held = gm_least_of(lines, of_warp * wide);
    /* four of them, or two steps of all, in flight a thread (load_vectors) */
    bool together = count > 1 && (few_columns ? !s->b_along_k : !s->a_along_k);
    double vectors = together ? gm_parts(count * k, 128 * warps) : gm_parts(k, 64 * warps);
    w.steps = 1 + vectors + gm_parts(k, round * deep);
    w.madds = of_warp * wide * gm_parts(k, round / LOADS_AHEAD * deep) * round / LOADS_AHEAD *
              deep * count;
    w.shared = 128 * (held * k / span / 32 * (4 + (whole ? 0 : 4)) + count * k / 32) +
               held * k * count * s->width / (along ? 1 : span);
    w.l2 = ((along ? held * gm_sectors(k * s->size, (double)pitch * s->size)
                   : k * gm_sectors(held * s->size, (double)pitch * s->size)) +
            count * k * s->size);
    w.dram = q->bytes;
    if (splits > 1) {
        w.passes = 1;
        w.pass_bytes = splits * s->batch * lines * few * s->width;
    }
    return gm_work_us(q, along ? r : r + 1, &w);
}

/* Few sums, K split over the device's threads. */
double gm_us_split_k_dot(const struct gm_asked *q, const struct gm_rates *r)
{
    const struct gm_sizes *s = &q->s;
    double rows = s->m == 1 ? 1 : 4, cols = s->n == 1 ? 1 : 4;
    double block = 256 * floor(16 / (rows + cols)), blocks = 8 * q->sms / s->batch;
    double splits = gm_least_of(gm_least_of(blocks, gm_parts(s->k, block)), 512);
    splits = gm_most_of(1, floor(splits));
    double k = gm_parts(gm_parts(s->k, block), splits) * block;
    struct gm_work w = {.blocks = s->batch * splits, .resident = 8};

    w.steps = k / block;
    w.madds = rows * cols * k;
    w.shared = (s->m + s->n) * k * gm_most_of(4, s->size);
    w.l2 = (s->m + s->n) * gm_least_of(k, s->k) * s->size;
    w.dram = q->bytes;
    w.passes = splits > 1;
    w.pass_bytes = splits * s->batch * s->m * s->n * s->width;
    return gm_work_us(q, r, &w);
}
