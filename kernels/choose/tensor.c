/*
 * tensor.c - estimates products on tensor cores: mma, wgmma and split_bf16.
 *
 * Each is the fastest of its tiles, with K split where that helps. What limits all but the largest
 * tiles is the L2 cache: blocks of a cluster read B once for both. mma and wgmma copy operands
 * whose rows are not aligned to those that are, and split_bf16 splits all.
 */
#include "kernels/choose/estimate.h"

/* A tile of BM x BN by a block; its operand B is read once by `cluster` blocks, one above the
 * other. */
struct tile {
    double BM, BN, cluster, resident;
};

#define TENSOR_SPLITS_MAX 64
#define STEPS_MIN 4.0        /* k-tiles of 64 of a split */
#define PASS_SHARE 0.75      /* of memory's rate, in passes over operands */
#define SPLIT_BYTES 6.0      /* of an element of f32 as three bf16 */
#define SPLIT_SUM_LEAST 256u /* shorter sums can be less accurate than SGEMM's (EXPERIMENTS.md) */

/* bytes: of an operand's element. passes, us: launches besides, and what those over operands take.
 */
static double least_us(const struct gm_asked *q, const struct gm_rates *r, const struct tile *tiles,
                       size_t count, double bytes, double passes, double us)
{
    const struct gm_sizes *s = &q->s;
    double least = HUGE_VAL, most = gm_most_of(1, floor(s->k / 64 / STEPS_MIN));

    for (size_t i = 0; i < count; i++) {
        const struct tile *t = &tiles[i];
        double down = gm_parts(s->m, t->BM * t->cluster) * t->cluster;
        double blocks = s->batch * down * gm_parts(s->n, t->BN);
        for (double splits = 1; splits <= most && splits <= TENSOR_SPLITS_MAX; splits *= 2) {
            double k = gm_parts(s->k / splits, 64) * 64;
            struct gm_work w = {.blocks = blocks * splits,
                                .resident = t->resident,
                                .madds = t->BM * t->BN * k,
                                .l2 = (t->BM + t->BN / t->cluster) * k * bytes +
                                      t->BM * t->BN * s->size,
                                .steps = k / 64,
                                .dram = q->bytes,
                                .passes = passes + us * q->mhz / r->pass};
            if (splits > 1) {
                w.passes += 1;
                w.pass_bytes = (splits + 1) * s->batch * s->m * s->n * s->width;
            }
            least = gm_least_of(least, gm_work_us(q, r, &w));
        }
    }
    return least;
}

/* The time of passes that read and write operands, and how many there are. `aligned`: elements
 * whose multiples rows must begin at. */
static double repack_us(const struct gm_asked *q, uint64_t aligned, double *passes)
{
    const struct gm_view *views[] = {&q->s.a, &q->s.b};
    const double lines[] = {q->s.m, q->s.n};
    double bytes = 0;

    for (int i = 0; i < 2; i++) {
        const struct gm_view *x = views[i];
        if (((x->row > x->col ? x->row : x->col) | x->batch) % aligned == 0)
            continue;
        bytes += 2 * q->s.size * lines[i] * q->s.k * (x->batch ? q->s.batch : 1);
        *passes += 1;
    }
    return bytes / (PASS_SHARE * q->dram);
}

double gm_us_mma(const struct gm_asked *q, const struct gm_rates *r)
{
    static const struct tile tiles[] = {{.BM = 128, .BN = 128, .cluster = 1, .resident = 2},
                                        {.BM = 64, .BN = 64, .cluster = 1, .resident = 3}};
    double passes = 0, us = repack_us(q, 2, &passes);

    return least_us(q, r, tiles, sizeof(tiles) / sizeof(tiles[0]), q->s.size, passes, us);
}

double gm_us_wgmma(const struct gm_asked *q, const struct gm_rates *r)
{
    static const struct tile tiles[] = {{.BM = 128, .BN = 256, .cluster = 2, .resident = 1},
                                        {.BM = 128, .BN = 192, .cluster = 2, .resident = 1},
                                        {.BM = 128, .BN = 128, .cluster = 2, .resident = 1},
                                        {.BM = 128, .BN = 128, .cluster = 1, .resident = 1},
                                        {.BM = 64, .BN = 64, .cluster = 1, .resident = 3}};
    double passes = 0, us = repack_us(q, 8, &passes);

    return least_us(q, r, tiles, sizeof(tiles) / sizeof(tiles[0]), q->s.size, passes, us);
}

/* Besides the product: a pass that splits both operands, and one that repairs what is not finite.
 */
double gm_us_split_bf16(const struct gm_asked *q, const struct gm_rates *r)
{
    static const struct tile tiles[] = {{.BM = 128, .BN = 128, .cluster = 1, .resident = 1},
                                        {.BM = 128, .BN = 64, .cluster = 1, .resident = 1}};
    const struct gm_sizes *s = &q->s;
    double elements =
        s->m * s->k * (s->a.batch ? s->batch : 1) + s->n * s->k * (s->b.batch ? s->batch : 1);
    double us = elements * (s->size + SPLIT_BYTES) / (PASS_SHARE * q->dram);

    if (s->k < SPLIT_SUM_LEAST)
        return HUGE_VAL;
    return least_us(q, r, tiles, sizeof(tiles) / sizeof(tiles[0]), SPLIT_BYTES, 2, us);
}
