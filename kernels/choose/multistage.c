/*
 * multistage.c - chooses the tile config, the split-K and what is repacked of multistage_tuned, and
 * estimates what that takes.
 *
 * The busiest multiprocessor decides. It runs blocks in rounds of as many as fit, at a rate that
 * depends on the warps of a scheduler; a partial last round runs at the rate of its own warps.
 * Loads that are not 16 bytes wide cost instructions, which count as multiply-adds of the tile. To
 * split K makes more blocks and costs a pass over the splits; to repack an operand makes its loads
 * wide and costs a pass over it.
 */
#include "kernels/choose/estimate.h"

/* What the kernel can do (multistage_tuned.cu), and not what pays. */
#define SCHEDULERS 4.0 /* warp schedulers of a multiprocessor */
#define SPLITS_MAX 256.0
#define SPLIT_K_TILES_MIN 4.0 /* k-tiles of a split */
#define REPACK_ROWS_MIN 64.0  /* of A */
#define REPACK_BYTES_MAX 536870912.0

static const struct gm_tile_config configs[] = {GM_TILE_CONFIGS};

/* Elements per load, 0 if the loader transposes; what is repacked, and the time of that. */
struct loads {
    double a, b, us;
    bool repack_a, repack_b;
};

/* The part of the question that does not depend on the config. */
struct plans {
    const struct gm_asked *q;
    const struct gm_multistage_rates *p;
    struct loads loads[4];
    unsigned count;
};

struct choice {
    double us, passes_us; /* us: without what passes take */
    struct gm_tile_choice tiles;
};

static double load_width(const struct gm_view *view, uint64_t stride, uint64_t stride_k,
                         double size)
{
    uint64_t all = stride_k | view->batch;

    if (stride != 1)
        return 0;
    return all % (uint64_t)(16 / size) == 0 ? 16 / size : all % 2 == 0 ? 2 : 1;
}

/* Repacks one operand; false if that cannot pay. */
static bool repack(const struct plans *plans, double matrices, double span, double *width,
                   double *us)
{
    double vec = 16 / plans->q->s.size;
    double bytes = matrices * plans->q->s.k * gm_parts(span, vec) * 16;

    if (*width == vec || bytes > REPACK_BYTES_MAX)
        return false;
    *width = vec;
    *us += plans->p->repack_us + bytes / plans->p->repack_bytes;
    return true;
}

/* Adds the loads that repack those operands, unless that cannot pay. There is no kernel whose loads
 * of A are wide and those of B narrow. */
static void add_loads(struct plans *plans, bool repack_a, bool repack_b)
{
    const struct gm_sizes *s = &plans->q->s;
    struct loads l = {load_width(&s->a, s->a.row, s->a.col, s->size),
                      load_width(&s->b, s->b.col, s->b.row, s->size), 0, repack_a, repack_b};

    if (repack_a && !repack(plans, s->a.batch ? s->batch : 1, s->m, &l.a, &l.us))
        return;
    if (repack_b && !repack(plans, s->b.batch ? s->batch : 1, s->n, &l.b, &l.us))
        return;
    if (!repack_a || (l.b == 16 / s->size && s->m >= REPACK_ROWS_MIN))
        plans->loads[plans->count++] = l;
}

/* The cost of a tile's loads in a step of K, in multiply-adds. warps: per scheduler. */
static double load_cost(const struct plans *plans, const struct gm_tile_config *c,
                        const struct gm_tile_rates *t, const struct loads *l, double warps)
{
    const struct gm_multistage_rates *p = plans->p;
    double vec = 16 / plans->q->s.size, staged = t->scalar_b + p->staged / warps;
    double each_a = l->a == 0 ? 0 : l->a == vec ? p->a_vec : p->a_narrow / l->a, each_b = 0;

    if (c->staged_max > 0 && l->a != 0 && l->b != 0 && (l->a != vec || l->b != vec))
        return p->both_scalar * (c->BM + c->BN) * staged;
    if (l->b == 0)
        each_b = p->b_narrow;
    else if (l->b != vec && l->a == 0 && l->b <= c->staged_max)
        each_b = staged / l->b;
    else if (l->b != vec)
        each_b = (l->b == 1 ? t->scalar_b : p->b_narrow) / l->b;
    return c->BM * each_a + c->BN * each_b;
}

/* The rate with that many warps per scheduler, between the measured ones. */
static double rate_of(const struct gm_tile_config *c, const struct gm_tile_rates *t, double warps)
{
    double all = c->resident * c->warps / SCHEDULERS;
    bool few = warps < 2, two_are_all = all <= 2;
    double from = few ? 1 : 2, to = few && !two_are_all ? 2 : all;
    double low = few ? t->rate_1 : t->rate_2, high = few && !two_are_all ? t->rate_2 : t->rate_full;

    if (warps >= all)
        return t->rate_full;
    return warps <= 1 ? t->rate_1 : low + (high - low) * (warps - from) / (to - from);
}

/* The time of that many blocks on a multiprocessor, relative to one at the peak. */
static double rounds_of(const struct plans *plans, const struct gm_tile_config *c,
                        const struct gm_tile_rates *t, double blocks)
{
    double left = blocks - floor(blocks / c->resident) * c->resident, full = 1 / t->rate_full;

    if (blocks <= c->resident)
        return blocks / rate_of(c, t, blocks * c->warps / SCHEDULERS);
    left = floor(left);
    if (left == 0)
        return blocks * full;
    double own = 1 / rate_of(c, t, left * c->warps / SCHEDULERS);
    return blocks * full + left * plans->p->last_round * (own - full);
}

/* Considers a config with that many splits, with each of the loads. */
static void consider(const struct plans *plans, unsigned config, double tiles, double splits,
                     struct choice *best)
{
    const struct gm_asked *q = plans->q;
    const struct gm_sizes *s = &q->s;
    const struct gm_tile_config *c = &configs[config];
    const struct gm_tile_rates *t = &q->profile->tiles[config];
    double busiest = gm_parts(tiles * splits, q->sms);
    if (c->warps < SCHEDULERS) /* a warp stays on its scheduler: as if all had as many as one */
        busiest = gm_parts(busiest * c->warps, SCHEDULERS) * SCHEDULERS / c->warps;
    double warps = busiest * c->warps / SCHEDULERS;
    double steps = gm_parts(gm_parts(s->k, c->BK), splits) * c->BK;
    bool aligned = (uint64_t)(s->n * s->size) % 16 == 0;
    double start = t->start * (aligned ? 1 : 1 + plans->p->unaligned_start);
    double each = rounds_of(plans, c, t, busiest) / q->madds, reduce = 0;

    if (splits > 1)
        reduce =
            plans->p->reduce_us + s->batch * s->m * s->n * s->size * splits / plans->p->split_bytes;
    for (unsigned i = 0; i < plans->count; i++) {
        const struct loads *l = &plans->loads[i];
        double us =
            each * (c->BM * c->BN * (steps + start) + steps * load_cost(plans, c, t, l, warps)) +
            reduce + l->us;
        if (us < best->us + best->passes_us)
            *best = (struct choice){us - reduce - l->us,
                                    reduce + l->us,
                                    {config, (unsigned)splits, {l->repack_a, l->repack_b}}};
    }
}

/* Splits worth an estimate: 1, and then, for each number of blocks of a multiprocessor, the most
 * that need no more blocks, up to twice what it holds. */
static struct choice choose(const struct gm_asked *q)
{
    const struct gm_sizes *s = &q->s;
    unsigned first = s->size == 8 ? GM_F32_CONFIGS : 0;
    unsigned end = first + (s->size == 8 ? GM_F64_CONFIGS : GM_F32_CONFIGS);
    struct plans plans = {.q = q, .p = &q->profile->multistage};
    struct choice best = {HUGE_VAL, 0, {first, 1, {false, false}}};

    for (unsigned i = 0; i < 4; i++)
        add_loads(&plans, i & 1, i & 2);
    for (unsigned i = first; i < end; i++) {
        const struct gm_tile_config *c = &configs[i];
        double tiles = s->batch * gm_parts(s->m, c->BM) * gm_parts(s->n, c->BN);
        double whole = floor(gm_parts(s->k, c->BK) / SPLIT_K_TILES_MIN);
        double most = gm_least_of(whole, SPLITS_MAX), before = 1;
        consider(&plans, i, tiles, 1, &best);
        for (double blocks = floor(2 * tiles / q->sms); blocks <= 2 * c->resident && before < most;
             blocks++) {
            double splits = gm_least_of(floor(blocks * q->sms / tiles), most);
            if (splits > before)
                consider(&plans, i, tiles, before = splits, &best);
        }
    }
    return best;
}

struct gm_tile_choice gm_choose_tiles(const struct gm_op *op, const struct gm_device_facts *facts)
{
    const struct gm_gpu *gpu = facts && facts->gpu ? facts->gpu : gm_gpu_at(0);
    struct gm_asked q =
        gm_asked_of(op, gpu, 0, facts && facts->profile ? facts->profile : gm_profile_at(0));

    return choose(&q).tiles;
}

/* Rows along K are read by so many elements at a time, and memory reads no fewer bytes. */
#define LANES_K 8.0
#define BURST 64.0

/* Requests of a block for one sector in each k-tile, beyond the first: lanes beyond the last column
 * load the last vector again. span: of the tile; extent: of the operand, in elements. */
static double again(double span, double extent, double size)
{
    double last = extent - (gm_parts(extent, span) - 1) * span;

    return (span - last) * size / 16 * gm_most_of(1, GM_SECTOR / (extent * size));
}

/* Beside the arithmetic of the choice, which hides all trips to memory but the first: the queue for
 * an operand of which there is only one tile across or down. */
double gm_us_multistage_tuned(const struct gm_asked *q, const struct gm_rates *r)
{
    const struct gm_sizes *s = &q->s;
    struct choice best = choose(q);
    const struct gm_tile_choice *tiles = &best.tiles;
    const struct gm_tile_config *c = &configs[tiles->config];
    double down = gm_parts(s->m, c->BM), across = gm_parts(s->n, c->BN), splits = tiles->splits;
    double result = s->m * s->n * s->size, k_tiles = gm_parts(s->k / splits, c->BK);
    bool vectors_a =
        tiles->repack[0] || load_width(&s->a, s->a.row, s->a.col, s->size) * s->size == 16;
    bool vectors_b =
        tiles->repack[1] || load_width(&s->b, s->b.col, s->b.row, s->size) * s->size == 16;
    struct gm_work w = {.blocks = s->batch * down * across * splits,
                        .resident = c->resident,
                        .steps = 1,
                        .dram = q->bytes,
                        .passes = (splits > 1) + tiles->repack[0] + tiles->repack[1]};

    double bytes_a = s->m * s->k * s->size * (s->a.batch ? s->batch : 1);
    double bytes_b = s->n * s->k * s->size * (s->b.batch ? s->batch : 1);
    w.madds = best.us * q->madds / gm_parts(w.blocks, q->sms);
    w.dram += gm_most_of(0, 1 - LANES_K * s->size / BURST) *
              ((s->a_along_k ? bytes_a : 0) + (s->b_along_k ? bytes_b : 0));
    if (vectors_a)
        w.queued += across / down * k_tiles * again(c->BM, s->m, s->size);
    if (vectors_b)
        w.queued += down / across * k_tiles * again(c->BN, s->n, s->size);
    w.pass_bytes = (splits > 1 ? (splits + 1) * result * s->batch : 0) +
                   (tiles->repack[0] ? 2 * bytes_a : 0) + (tiles->repack[1] ? 2 * bytes_b : 0);
    return gm_work_us(q, r, &w);
}
