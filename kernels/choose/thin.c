/*
 * thin.c - estimates products of few rows or columns, which read the large operand once.
 */
#include "kernels/choose/estimate.h"

#define VECTORS_MAX 8u
#define AHEAD 4.0 /* 16-byte vectors that a lane loads at once (skinny/product.h) */
#define SKINNY_SPLITS_MAX 128.0
#define SUMS_A_TRIP 16.0     /* which take as long as one */
#define VECTORS_ROOM 32768.0 /* bytes of the vectors in shared memory at a time */

/* A product as skinny sees it: `large` of lines x k times k x count. */
struct thin {
    double lines, k, count, batch, size, width, span; /* span: elements of 16 bytes */
    const struct gm_view *large;
    uint64_t pitch;
    bool transposed, along, whole; /* whole: each line begins at a multiple of 16 bytes */
};

/* How lanes, warps and blocks share it. */
struct layout {
    double lanes, deep, wide, splits, several; /* several: lines of a lane */
    double of_warp, round, steps, chunk;       /* lines; k of its requests; of a split; at a time */
};

static unsigned log_of(double x)
{
    return x > 1 ? (unsigned)ceil(log2(x)) : 0;
}

static struct thin thin_of(const struct gm_asked *q)
{
    const struct gm_sizes *s = &q->s;
    double m = s->m, batch = s->batch;

    if (m > VECTORS_MAX && s->n > VECTORS_MAX) { /* as one tall matrix it is not skinny */
        batch *= m / (double)gm_op_m(q->op);
        m = (double)gm_op_m(q->op);
    }
    struct thin t = {.k = s->k, .batch = batch, .size = s->size, .width = s->width};

    t.transposed = s->n > VECTORS_MAX || (m <= VECTORS_MAX && m < s->n);
    t.lines = t.transposed ? s->n : m;
    t.count = gm_least_of(VECTORS_MAX, t.transposed ? m : s->n); /* what it takes */
    t.large = t.transposed ? &s->b : &s->a;
    t.along = t.transposed ? s->b.row == 1 : s->a.col == 1;
    t.pitch = t.large->row > t.large->col ? t.large->row : t.large->col;
    t.span = 16 / s->size;
    t.whole = (t.pitch | t.large->batch) % (uint64_t)t.span == 0;
    return t;
}

static unsigned lanes_log_of(const struct thin *t, double rounds)
{
    double length = t->along ? t->k : t->lines;
    unsigned log = 3;

    if (t->along) {
        for (; rounds >= 0.25 && log > 1; log--) {
            double vectors = length / t->span, lanes = 1u << log;
            if (gm_parts(vectors, lanes) * lanes <= 1.15 * vectors)
                break;
        }
    } else if (rounds < 0.5) {
        log = 2;
    } else if (t->count == 1 && !t->whole && t->size > 2 && rounds >= 4) {
        log = 5;
    } else if (t->size > 4 || (t->count > 2 && (t->size == 4 || (t->whole && rounds >= 2.5)))) {
        log = 4;
    }
    while (log > 2 && (1u << log) * t->span >= 2 * length)
        log--;
    return log;
}

/* As skinny/layout.h lays it out: warps divide the lines, then K within a block, then K among
 * blocks, until the device holds no more. */
static struct layout layout_of(const struct thin *t)
{
    static const struct {
        double warps, several;
        unsigned block_log;
    } along[] = {{3000, HUGE_VAL, 4}, {3000, 1, 3}, {2112, 0.25, 3}, {1500, 1, 4}},
      across = {32 * GM_H200_SMS, HUGE_VAL, 3};
    const unsigned count_log = log_of(t->count), count = 1u << count_log;
    const double most = VECTORS_ROOM / t->width / count, warp_span = 32 * t->span;
    const double warps = t->along ? along[count_log].warps : across.warps;
    const unsigned block_log = t->along ? along[count_log].block_log : across.block_log;
    const unsigned least_log = t->batch >= 100 && t->k <= 384 ? 2 : 3;
    double rounds = t->batch * t->lines * t->k / t->span / 32 / AHEAD / warps;
    struct layout l = {.lanes = exp2(lanes_log_of(t, rounds)), .several = 1};

    if (t->along && count > 1 && rounds >= along[count_log].several)
        l.several = t->width == 8 && count == VECTORS_MAX ? AHEAD / 2 : AHEAD;
    l.of_warp = t->along ? 32 / l.lanes * l.several : l.lanes * t->span;
    l.round = AHEAD * (t->along ? l.lanes * t->span : 32 / l.lanes) / l.several;
    double line_warps = t->lines / l.of_warp, share = warps / t->batch / gm_most_of(1, line_warps);
    double fill = t->k / (l.round * (t->along ? 0.35 : 0.5));
    unsigned share_log = log_of(gm_least_of(share, fill) * (t->along ? 0.71 : 0.5));
    unsigned most_log = share_log > 4 || t->k > most ? t->along ? 1 : 2 : 4;
    unsigned deep = share_log < most_log ? share_log : most_log, wide = 0;
    l.splits = exp2(share_log - deep);
    while (deep + wide < block_log && line_warps >= exp2(wide + 1))
        wide++;
    while (deep + wide < least_log)
        deep++;
    if (l.splits * most < t->k)
        l.splits = gm_parts(t->k, most);
    l.splits = gm_least_of(l.splits, SKINNY_SPLITS_MAX);
    l.steps = gm_parts(gm_parts(t->k, l.splits), warp_span) * warp_span;
    l.chunk = gm_least_of(l.steps, most);
    l.splits = gm_parts(t->k, l.steps);
    l.deep = exp2(deep);
    l.wide = exp2(wide);
    return l;
}

double gm_us_skinny(const struct gm_asked *q, const struct gm_rates *r)
{
    const struct thin t = thin_of(q);
    const struct layout l = layout_of(&t);
    double count = exp2(log_of(t.count)), warps = l.deep * l.wide, k = gm_least_of(l.steps, t.k);
    double chunk = gm_least_of(l.chunk, k), chunks = gm_parts(k, chunk);
    double held = gm_least_of(t.lines, l.of_warp * l.wide),
           each = l.round / AHEAD * l.several * l.deep;
    bool two_fit = l.several == 1 && count * t.span * t.width <= 64;
    /* four of them, or two steps of all, in flight a thread (load_vectors) */
    bool together = count > 1 && (t.transposed ? !q->s.a_along_k : !q->s.b_along_k);
    double vectors = together ? gm_parts(count * chunk, 128 * warps) : gm_parts(chunk, 64 * warps);
    struct gm_work w = {.blocks = t.batch * gm_parts(t.lines, l.of_warp * l.wide) * l.splits,
                        .resident = gm_most_of(1, floor((two_fit ? 32 : 16) / warps)),
                        /* the first request is under way while the vectors are loaded; in the
                         * end a lane's sums go round, one after the other */
                        .steps = 1 + chunks * (vectors + gm_parts(chunk, l.round * l.deep) - 1) +
                                 count * (t.along ? l.several : t.span) / SUMS_A_TRIP,
                        .dram = q->bytes};

    /* multiply-adds and, if rows are not whole vectors, loads of elements; then the lanes' sums go
     * round in shuffles, of which a multiprocessor does a quarter as many */
    w.madds = l.of_warp * l.wide * gm_parts(k, each) * each * (count + (t.whole ? 0 : 1)) +
              4 * 32 * warps * count * (t.along ? l.several : t.span);
    w.shared = 128 * (held * k / t.span / 32 * (4 + (t.whole ? 0 : 4)) + count * k / 32) +
               128 * l.wide * count * k *
                   (t.along ? (t.whole ? t.width / 16 : 1) / l.lanes : l.lanes / 32);
    w.l2 = (t.along ? held * gm_sectors(k * t.size, (double)t.pitch * t.size)
                    : k * gm_sectors(held * t.size, (double)t.pitch * t.size)) +
           count * k * t.size + held * t.count * t.size;
    w.shared += 128 * held * t.count / 32;
    if (l.splits > 1) {
        w.passes = 1;
        w.pass_bytes = l.splits * t.batch * t.lines * t.count * t.width;
    }
    return gm_work_us(q, t.along ? r : r + 1, &w);
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
