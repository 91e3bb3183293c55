/*
 * products.c - estimates products by tiles of one size: textbook kernels, small_tile, batched, and
 * cuBLAS, which is taken for several of them.
 */
#include "kernels/choose/estimate.h"

/* A kernel of one tile: BM x BN of the result, K in steps of BK, `words` of shared memory that a
 * warp's lanes read for each multiply-add. */
struct kernel {
    double BM, BN, BK, words, resident;
    bool whole; /* K is padded to whole steps */
};

/* Bytes of shared memory that loading an element takes more if K runs along rows in memory: lanes
 * touch a line each. */
#define ACROSS_BYTES 128.0

static struct gm_work tile_work(const struct gm_asked *q, const struct kernel *t, double splits)
{
    const struct gm_sizes *s = &q->s;
    double down = gm_parts(s->m, t->BM), across = gm_parts(s->n, t->BN);
    double steps = gm_parts(gm_parts(s->k, t->BK), splits);
    double k = t->whole ? steps * t->BK : s->k / splits;
    double rows = gm_least_of(s->m, t->BM), cols = gm_least_of(s->n, t->BN);
    double loaded = (rows + cols) * k;
    struct gm_work w = {.blocks = s->batch * down * across * splits,
                        .resident = t->resident,
                        .madds = t->BM * t->BN * k,
                        .steps = steps};

    w.shared = w.madds * t->words * 4 * gm_most_of(1, s->width / 4);
    w.shared += ACROSS_BYTES * k * (s->b_along_k ? cols : 0);
    w.l2 = (loaded + rows * cols) * s->size;
    w.dram = q->bytes;
    if (splits > 1) {
        w.passes = 1;
        w.pass_bytes = (splits + 1) * s->batch * s->m * s->n * s->width;
    }
    return w;
}

static double tile_us(const struct gm_asked *q, const struct gm_rates *r, const struct kernel *t)
{
    struct gm_work w = tile_work(q, t, 1);

    return gm_work_us(q, r, &w);
}

double gm_us_naive(const struct gm_asked *q, const struct gm_rates *r)
{
    const struct kernel t = {.BM = 16,
                             .BN = 16,
                             .BK = 1,
                             .words = q->s.b_along_k ? 34 : 2,
                             .resident = 8,
                             .whole = true};

    return tile_us(q, r, &t);
}

double gm_us_tiled(const struct gm_asked *q, const struct gm_rates *r)
{
    const struct kernel t = {
        .BM = 32, .BN = 32, .BK = 32, .words = 2, .resident = 2, .whole = true};

    return tile_us(q, r, &t);
}

double gm_us_register_tiled(const struct gm_asked *q, const struct gm_rates *r)
{
    const struct kernel t = {
        .BM = 128, .BN = 128, .BK = 8, .words = 0.25, .resident = 2, .whole = true};

    return tile_us(q, r, &t);
}

/* The largest tiles, which asynchronous copies fill. */
double gm_us_multistage(const struct gm_asked *q, const struct gm_rates *r)
{
    bool f64 = q->op->result.dtype == GM_F64, i64 = q->op->result.dtype == GM_I64;
    const struct kernel t = {.BM = i64 ? 64 : 128,
                             .BN = f64 || i64 ? 128 : 256,
                             .BK = 8,
                             .words = 0.19,
                             .resident = 1,
                             .whole = true};

    return tile_us(q, r, &t);
}

#define SHARED_SUM_K 33 /* from which on lanes of small_tile share sums, as its file says */

/* Several matrices a block if they are small; four lanes a sum if there is little of a longer K
 * (small_tile.cu). */
double gm_us_small_tile(const struct gm_asked *q, const struct gm_rates *r)
{
    const struct gm_sizes *s = &q->s;
    double longer = gm_most_of(s->m, s->n);
    bool shares = s->k >= SHARED_SUM_K &&
                  s->batch * gm_parts(s->m, 8) * gm_parts(s->n, 8) <= 2.0 * GM_H200_SMS;
    double side = shares ? 8 : longer <= 4 ? 4 : longer <= 8 ? 8 : 16;
    const struct kernel t = {.BM = side,
                             .BN = side,
                             .BK = side == 4              ? 16
                                   : side == 8 && !shares ? 32
                                                          : 64,
                             .words = 2,
                             .resident = 8,
                             .whole = false};
    struct gm_work w = tile_work(q, &t, 1);
    double many = shares ? 1 : 256 / side / side;

    w.blocks = gm_parts(w.blocks, many);
    w.madds *= many;
    w.shared *= many;
    w.l2 *= many;
    return gm_work_us(q, shares ? r + 1 : r, &w);
}

/*
 * Whole matrices of a stack by warps of 4 x 8 lanes with TM x TN sums each, `vec` of them in
 * neighbouring columns (batched.h, which chooses among the same): the cheapest.
 */
static double batched_us(const struct gm_asked *q, const struct gm_rates *r, double TM, double TN,
                         double vec, double most)
{
    const struct gm_sizes *s = &q->s;
    double words = TM * TN * s->size / 4, span = 16 / s->size;
    double across = gm_parts(s->n, 8 * TN), all = gm_parts(s->m, 4 * TM);
    if (across > most || fmod(s->n, vec) != 0 || (vec > 1 && s->b_along_k))
        return HUGE_VAL;
    double tiles = gm_parts(all, floor(most / across)), down = gm_parts(all, tiles);
    double BM = tiles == 1 ? s->m : down * 4 * TM;
    bool padded = fmod(s->k, span) == 0 || !s->a_along_k;
    double lda = padded ? s->k + span : s->k, ahead = padded ? span : fmod(s->k, 2) == 0 ? 2 : 1;
    double BK = s->k * s->n * s->size <= 32768 ? s->k : 8 * floor(4096 / s->n / 8 + (s->n > 512));
    double many = tiles == 1 && BK == s->k ? gm_least_of(s->batch, floor(most / down / across)) : 1;
    double bytes;

    for (;; many--) {
        bytes = (many * BM * lda + many * BK * s->n * (BK < s->k ? 2 : 1)) * s->size;
        if (many <= 1 || bytes <= 40960)
            break;
    }
    if (bytes > 115000)
        return HUGE_VAL;
    double warps = many * down * across, loads = TM / ahead + TN / vec;
    double fit = floor(228e3 / (bytes + 1024)), by_registers = floor((words > 32   ? 16
                                                                      : words > 20 ? 20
                                                                                   : 32) /
                                                                     warps);
    struct gm_work w = {.blocks = gm_parts(s->batch, many) * tiles,
                        .resident = gm_most_of(1, gm_least_of(fit, by_registers)),
                        .steps = s->k * (0.7 * (words + loads) + 1.75 * loads + 22) / 32 + 16};

    w.madds = 32 * warps * s->k * (words + loads + TM / 2 + 2) * 4 / s->size;
    w.shared =
        128 * warps * s->k * (TM / (ahead > 1 ? 2 : 1) + TN / (vec > 1 ? 2 : 1)) * s->size / 4;
    w.shared += ACROSS_BYTES * many * s->k * ((s->a_along_k ? 0 : BM) + (s->b_along_k ? s->n : 0));
    w.l2 = many * (BM * s->k + s->k * s->n + BM * s->n) * s->size;
    w.dram = q->bytes;
    return gm_work_us(q, r, &w);
}

double gm_us_batched(const struct gm_asked *q, const struct gm_rates *r)
{
    double least = HUGE_VAL;

    for (double TM = 4; TM <= 8; TM += TM < 6 ? 1 : 2) {
        for (double TN = 2; TN <= 8; TN++) {
            double vec = fmod(TN, 4) == 0 && fmod(q->s.n, 4) == 0   ? 4
                         : fmod(TN, 2) == 0 && fmod(q->s.n, 2) == 0 ? 2
                                                                    : 1;
            double words = TM * TN * q->s.size / 4, most = words <= 32 ? 16 : 8;
            if (q->s.size == 8 && TM > 4)
                continue;
            for (double warps = most; warps >= most / 4; warps /= 2)
                least = gm_least_of(least, batched_us(q, r, TM, TN, vec, warps));
        }
    }
    return least;
}

/* A vector: the matrix is read once, by warps that each take a part of it. */
static double vector_us(const struct gm_asked *q, const struct gm_rates *r)
{
    const struct gm_sizes *s = &q->s;
    double bytes = q->bytes;
    struct gm_work w = {.blocks = gm_parts(s->batch * s->m * s->n * s->k, 256 * 16),
                        .resident = 8,
                        .steps = 2,
                        .dram = bytes};

    w.l2 = bytes / w.blocks;
    w.shared = 2 * w.l2;
    return gm_work_us(q, r, &w);
}

/*
 * cuBLAS does not say what it runs. It is taken for the fastest of a few tiles, with K split where
 * that helps, or for a kernel of its own if there is a single vector. Seen on an H200: where K runs
 * along A's rows it takes a second launch, but for a tile's 16 rows. On an H100: f16 and bf16 whose
 * rows do not begin at multiples of 16 bytes have kernels of their own.
 */
#define CUBLAS_ROW_BYTES 16.0
double gm_us_cublas(const struct gm_asked *q, const struct gm_rates *r)
{
    static const struct kernel tiles[] = {
        {.BM = 128, .BN = 128, .BK = 8, .words = 0.25, .resident = 1, .whole = true},
        {.BM = 64, .BN = 64, .BK = 8, .words = 0.25, .resident = 2, .whole = true},
        {.BM = 32, .BN = 32, .BK = 8, .words = 0.5, .resident = 4, .whole = true}};
    static const struct kernel on_tensor_cores[] = {
        {.BM = 128, .BN = 256, .BK = 64, .words = 0, .resident = 1, .whole = true},
        {.BM = 128, .BN = 128, .BK = 64, .words = 0, .resident = 1, .whole = true},
        {.BM = 64, .BN = 64, .BK = 64, .words = 0, .resident = 2, .whole = true}};
    static const struct kernel unaligned[] = {
        {.BM = 128, .BN = 128, .BK = 32, .words = 0, .resident = 1, .whole = true},
        {.BM = 64, .BN = 64, .BK = 32, .words = 0, .resident = 2, .whole = true}};
    const struct kernel *list = q->tensor ? on_tensor_cores : tiles;
    const struct gm_rates *rates = r;
    size_t count = sizeof(tiles) / sizeof(tiles[0]);
    bool again = q->s.a_along_k && q->s.m > 16;
    uint64_t lda = q->s.a.row > q->s.a.col ? q->s.a.row : q->s.a.col;
    uint64_t ldb = q->s.b.row > q->s.b.col ? q->s.b.row : q->s.b.col;
    double least = HUGE_VAL, wide = (double)(((lda | ldb) & -(lda | ldb)));
    wide = gm_least_of(wide, 16 / q->s.size);

    if (q->s.m == 1 || q->s.n == 1)
        least = vector_us(q, &r[3]);
    if (q->tensor && q->s.size == 2 &&
        fmod((double)(lda | ldb) * q->s.size, CUBLAS_ROW_BYTES) != 0) {
        list = unaligned;
        rates = &r[4];
        count = sizeof(unaligned) / sizeof(unaligned[0]);
    }
    for (size_t i = 0; i < count; i++) {
        double most = gm_most_of(1, floor(q->s.k / 256));
        for (double splits = 1; splits <= most && splits <= 128; splits *= 2) {
            struct gm_work w = tile_work(q, &list[i], splits);
            w.shared = q->s.size == 2 ? (list[i].BM + list[i].BN) * w.madds / list[i].BM /
                                            list[i].BN * 16 / wide
                                      : w.madds * list[i].words * q->s.width;
            if (again)
                w.passes = 1;
            least = gm_least_of(least, gm_work_us(q, &rates[i], &w));
        }
    }
    return least;
}
