/*
 * tensor.c - estimates products on tensor cores: mma, wgmma and split_bf16.
 *
 * Each is the fastest of its tiles, with K split where that helps. What limits all but the largest
 * tiles is the L2 cache: blocks of a cluster read B once for both. mma and wgmma copy operands
 * whose rows are not aligned to those that are, and split_bf16 splits all.
 */
#include "kernels/choose/estimate.h"

/* A tile of BM x BN by a block, in k-tiles of BK; its operand B is read once by `cluster` blocks,
 * one above the other. Of the blocks, `resident` share a multiprocessor. Then the cycles that one
 * of an H200 takes: for a k-tile where all load at once, the least of it, and for a unit besides.
 * boxes: TMA loads, so rows that do not exist cost nothing. Measured:
 * kernels/EXPERIMENTS.md. */
struct tile {
    double BM, BN, BK, cluster, resident, k_tile, least, unit;
    bool boxes;
};

/* In the order of the kernels' configs. */
static const struct tile mma_tiles[] = {{128, 128, 32, 1, 2, 600, 850, 3000, false},
                                        {64, 64, 32, 1, 3, 275, 450, 2500, false}};
static const struct tile wgmma_tiles[] = {
    {128, 256, 64, 2, 1, 790, 1380, 6100, true}, {128, 192, 64, 2, 1, 690, 1065, 5950, true},
    {128, 128, 64, 2, 1, 745, 745, 3850, true},  {128, 128, 64, 1, 1, 855, 665, 4250, true},
    {64, 128, 64, 1, 1, 530, 365, 5000, true},   {128, 64, 64, 1, 1, 615, 365, 3700, true},
    {64, 64, 64, 1, 3, 355, 630, 3000, true}};
static const struct tile split_bf16_tiles[] = {{128, 128, 32, 1, 1, 1650, 1650, 4000, false},
                                               {128, 64, 32, 1, 1, 900, 900, 3500, false}};
#define COUNT_OF(tiles) (sizeof(tiles) / sizeof((tiles)[0]))

#define TENSOR_SPLITS_MAX 64.0
#define PASS_SHARE 0.75      /* of memory's rate, in passes over operands */
#define SPLIT_BYTES 6.0      /* of an element of f32 as three bf16 */
#define SPLIT_SUM_LEAST 256u /* shorter sums can be less accurate than SGEMM's (EXPERIMENTS.md) */
#define LINE 64.0            /* elements of f16 and bf16, 128 bytes */
#define MEMORY_PER_CYCLE 2000.0 /* bytes of operands, read at once by all */
#define REDUCE_CYCLES 3000.0    /* of the launch that adds the splits */
#define REDUCE_BYTES_PER_CYCLE 2400.0

static double units_of(const struct gm_sizes *s, const struct tile *t)
{
    return s->batch * gm_parts(s->m, t->BM * t->cluster) * gm_parts(s->n, t->BN);
}

/* Requests for a line that a row of a box takes, where so many elements are a row: two where rows
 * begin beside lines. Rows that do not begin at 16 bytes are copied to those that begin at lines
 * (cuda/matmul/multistage/repack.h). By the shape, not by strides, as bits are. */
static double lines_of(double row)
{
    return fmod(row, LINE) == 0 || fmod(row, 8) != 0 ? 1 : 2;
}

/* What a k-tile loads, as a share of what a whole one on lines does. */
static double share_of(const struct gm_sizes *s, const struct tile *t)
{
    double rows = gm_least_of(t->BM, s->m), bn = t->BN / t->cluster;
    double cols = t->cluster > 1 ? bn : gm_least_of(bn, s->n);

    return t->boxes ? (rows * lines_of(s->k) + cols * lines_of(s->n)) / (t->BM + bn) : 1;
}

/* Cycles of the busiest multiprocessor, or some number that is not less than `least`. memory: bytes
 * of operands; near memory's rate neither hides the other. */
static double cycles_of(const struct gm_sizes *s, const struct tile *t, double splits,
                        double memory, double least)
{
    double each = units_of(s, t) * splits * t->cluster / GM_H200_SMS;
    double units = each < 1 ? each : ceil(each), full = floor(units / t->resident);
    double rest = units - full * t->resident;
    double k_tile = t->k_tile * share_of(s, t);
    double step = full * gm_most_of(t->resident * k_tile, t->least) +
                  (rest > 0 ? gm_most_of(rest * k_tile, t->least) : 0);
    double loop = ceil(gm_parts(s->k, t->BK) / splits) * step;
    double besides = ceil(units / t->resident) * t->unit;

    memory /= MEMORY_PER_CYCLE;
    if (t->boxes && loop + besides < least)
        loop = cbrt(loop * loop * loop + memory * memory * memory);
    return loop + besides;
}

/* The config and the number of splits of least estimated time, of at most two rounds of units. */
static const struct tile *plan_of(const struct gm_sizes *s, const struct tile *tiles, size_t count,
                                  double *ret_splits)
{
    const struct tile *best = tiles;
    double least = HUGE_VAL, operands = s->batch * (s->m + s->n) * s->k * s->size;

    for (size_t i = 0; i < count; i++) {
        const struct tile *t = &tiles[i];
        double most =
            gm_least_of(TENSOR_SPLITS_MAX, 2.0 * GM_H200_SMS / (units_of(s, t) * t->cluster));
        double k_tiles = gm_parts(s->k, t->BK), before = HUGE_VAL;
        for (double splits = 1; splits == 1 || splits <= most; splits++) {
            double each = gm_parts(k_tiles, splits);
            if (each == before)
                continue;
            before = each;
            double cycles = cycles_of(s, t, splits, operands, least);
            if (splits > 1)
                cycles +=
                    REDUCE_CYCLES + splits * 8 * s->batch * s->m * s->n / REDUCE_BYTES_PER_CYCLE;
            if (cycles < least) {
                least = cycles;
                best = t;
                *ret_splits = splits;
            }
        }
    }
    return best;
}

/* Requests that store a row of 16 bytes. */
static double stores_of(double n)
{
    return fmod(n, 8) == 0 ? 1 : fmod(n, 2) == 0 ? 4 : 8;
}

/* Trips to shared memory of a warp that stores a tile, in trips to memory: four rows at a time if
 * they are of whole vectors. */
#define SHARED_TRIP 0.05
static double stored_of(const struct gm_sizes *s, const struct tile *t)
{
    double parts = t->BN / 64 * (t->boxes ? 1 : t->BM / 64); /* of 16 x 64 */

    return SHARED_TRIP * parts * 4 * stores_of(s->n) * gm_least_of(1, s->m / t->BM);
}

/* bytes: of an operand's element. passes, us: launches besides, and what those over operands take.
 * loads: of 8 elements of an operand. */
static double least_us(const struct gm_asked *q, const struct gm_rates *r, const struct tile *tiles,
                       size_t count, double bytes, double passes, double us, double loads_a,
                       double loads_b)
{
    const struct gm_sizes *s = &q->s;
    double splits = 1;
    const struct tile *t = plan_of(s, tiles, count, &splits);
    double each = gm_parts(gm_parts(s->k, t->BK), splits), k = each * t->BK;
    double rows = gm_least_of(s->m, t->BM), cols = gm_least_of(s->n, t->BN);
    splits = gm_parts(gm_parts(s->k, t->BK), each);
    struct gm_work w = {.blocks = units_of(s, t) * t->cluster * splits,
                        .resident = t->resident,
                        .madds = t->BM * t->BN * k,
                        .shared = (t->BM * loads_a + t->BN * loads_b) * k * bytes +
                                  (splits > 1 ? 0 : t->BM * t->BN * s->size * stores_of(s->n)),
                        .l2 = (rows + cols / t->cluster) * gm_least_of(k, s->k) * bytes +
                              rows * cols * (splits > 1 ? s->width : s->size),
                        .steps = 1 + (t->boxes ? 0 : each / 4) + (splits > 1 ? 0 : stored_of(s, t)),
                        .dram = q->bytes,
                        .passes = passes + us * q->mhz / r->pass};
    if (splits > 1) {
        w.passes += 1;
        w.pass_bytes = (splits + 1) * s->batch * s->m * s->n * s->width;
    }
    return gm_work_us(q, r, &w);
}

/* Elements whose multiples an operand's rows begin at, up to 8: a single row begins at 0. */
static unsigned beginnings_of(const struct gm_asked *q, int operand)
{
    const struct gm_view *x = operand == 0 ? &q->s.a : &q->s.b;
    const uint64_t stride = operand == 0 ? x->row : x->col, of_k = operand == 0 ? x->col : x->row;
    double rows = of_k != 1 ? q->s.k : operand == 0 ? q->s.m : q->s.n;
    uint64_t all = (of_k == 1 ? stride : of_k) | x->batch | 8;

    return rows == 1 && x->batch == 0 ? 8 : (unsigned)(all & (~all + 1));
}

/* The time of passes that read and write operands, and how many there are. `aligned`: elements
 * whose multiples rows must begin at. */
static double repack_us(const struct gm_asked *q, unsigned aligned, double *passes)
{
    double bytes = 0;

    for (int i = 0; i < 2; i++) {
        if (beginnings_of(q, i) >= aligned)
            continue;
        const struct gm_view *x = i == 0 ? &q->s.a : &q->s.b;
        double across = i == 0 ? q->s.m : q->s.n;
        bool along = i == 0 ? q->s.a_along_k : q->s.b_along_k;
        double rows = along ? across : q->s.k, cols = along ? q->s.k : across;
        bytes +=
            q->s.size * (x->batch ? q->s.batch : 1) * rows * (cols + gm_parts(cols, LINE) * LINE);
        *passes += 1;
    }
    return bytes / (PASS_SHARE * q->dram);
}

/* Loads of 8 elements: by as many as each row begins at a multiple of, or all of a copy. */
static double loads_of(const struct gm_asked *q, int operand)
{
    unsigned width = beginnings_of(q, operand);

    return width == 1 ? 1 : 8.0 / width;
}

double gm_us_mma(const struct gm_asked *q, const struct gm_rates *r)
{
    double passes = 0, us = repack_us(q, 2, &passes);

    return least_us(q, r, mma_tiles, COUNT_OF(mma_tiles), q->s.size, passes, us, loads_of(q, 0),
                    loads_of(q, 1));
}

double gm_us_wgmma(const struct gm_asked *q, const struct gm_rates *r)
{
    double passes = 0, us = repack_us(q, 8, &passes);

    return least_us(q, r, wgmma_tiles, COUNT_OF(wgmma_tiles), q->s.size, passes, us, 1, 1);
}

/* Besides the product: a pass that splits both operands, and one that repairs what is not finite.
 */
double gm_us_split_bf16(const struct gm_asked *q, const struct gm_rates *r)
{
    const struct gm_sizes *s = &q->s;
    double elements =
        s->m * s->k * (s->a.batch ? s->batch : 1) + s->n * s->k * (s->b.batch ? s->batch : 1);
    double us = elements * (s->size + SPLIT_BYTES) / (PASS_SHARE * q->dram);

    if (s->k < SPLIT_SUM_LEAST)
        return HUGE_VAL;
    return least_us(q, r, split_bf16_tiles, COUNT_OF(split_bf16_tiles), SPLIT_BYTES, 2, us, 1, 1);
}

static struct gm_tile_choice chosen(const struct gm_op *op, const struct tile *tiles, size_t count)
{
    struct gm_sizes s = gm_sizes_of(op);
    double splits = 1;
    const struct tile *best = plan_of(&s, tiles, count, &splits);

    return (struct gm_tile_choice){.config = (unsigned)(best - tiles), .splits = (unsigned)splits};
}

struct gm_tile_choice gm_mma_tiles(const struct gm_op *op)
{
    return chosen(op, mma_tiles, COUNT_OF(mma_tiles));
}

struct gm_tile_choice gm_wgmma_tiles(const struct gm_op *op)
{
    return chosen(op, wgmma_tiles, COUNT_OF(wgmma_tiles));
}

struct gm_tile_choice gm_split_bf16_tiles(const struct gm_op *op)
{
    return chosen(op, split_bf16_tiles, COUNT_OF(split_bf16_tiles));
}
