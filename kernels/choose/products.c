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
    bool several = s->batch * down * across * splits > q->sms;
    double rows = gm_filled(s->m, t->BM, several), cols = gm_filled(s->n, t->BN, several);
    double loaded = (rows + cols) * k;
    struct gm_work w = {.blocks = s->batch * down * across * splits,
                        .resident = t->resident,
                        .madds = t->BM * t->BN * k,
                        .steps = steps};

    /* a wavefront is 128 bytes of a row of the tile */
    w.shared = w.madds * t->words * 4 * gm_most_of(1, gm_least_of(t->BN, 32) * s->width / 128);
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

/* Wavefronts of a request whose lanes each have a line: the tags of four are looked up at once, and
 * words of one bank are read in turn. */
static double lines_of(double lanes, const struct gm_view *x, double size)
{
    uint64_t pitch = (x->row > x->col ? x->row : x->col) * (uint64_t)size / 4 | 32;

    return gm_most_of(lanes / 4, lanes * (double)(pitch & (~pitch + 1)) / 32);
}

/* A thread for each element, a warp for each row of a tile, of which some may not exist. */
double gm_us_naive(const struct gm_asked *q, const struct gm_rates *r)
{
    const struct gm_sizes *s = &q->s;
    const struct kernel t = {.BM = 32, .BN = 32, .BK = 1, .resident = 2, .whole = true};
    struct gm_work w = tile_work(q, &t, 1);
    double warps = gm_least_of(s->m, t.BM), lanes = gm_least_of(s->n, t.BN);

    w.madds = 32 * warps * s->k;
    w.steps = gm_parts(s->k, 4);
    w.shared = 128 * warps * s->k *
               (1 + (s->b_along_k ? lines_of(lanes, &s->b, s->size) : gm_most_of(1, s->size / 4)));
    return gm_work_us(q, r, &w);
}

/* What a warp's lanes take of shared memory: a multiply-add reads a word of A that many share, of
 * which `wide` come at once, and one of B for each of `across` lanes. And loading a k-tile: lanes
 * run along K in rows of A, and along rows of B, `across` and `lanes` of a warp. */
static void set_shared(const struct gm_sizes *s, double rows, double cols, double k, double wide,
                       double across, double lanes, struct gm_work *w)
{
    double a = s->a_along_k ? 32 / across : lines_of(across, &s->a, s->size);
    double b = s->b_along_k ? lines_of(lanes, &s->b, s->size) : 32 / lanes;

    w->shared = w->madds * 4 * (1 / wide + gm_most_of(1, across * s->width / 128));
    w->shared += 4 * k * (rows * (1 + a) + cols * (1 + b));
}

/* Square tiles, a thread for each element. */
static double square_us(const struct gm_asked *q, const struct gm_rates *r, double side,
                        double wide)
{
    const struct gm_sizes *s = &q->s;
    const struct kernel t = {
        .BM = side, .BN = side, .BK = side, .resident = 2048 / side / side, .whole = true};
    struct gm_work w = tile_work(q, &t, 1);

    set_shared(s, gm_least_of(s->m, side), gm_least_of(s->n, side), w.steps * side, wide, side,
               side, &w);
    return gm_work_us(q, r, &w);
}

double gm_us_tiled(const struct gm_asked *q, const struct gm_rates *r)
{
    return square_us(q, r, 32, 16 / q->s.width);
}

/* The widest tiles that leave the fewest multiprocessors idle (dynamic_tile.cu). */
double gm_us_dynamic_tile(const struct gm_asked *q, const struct gm_rates *r)
{
    double best = 8, most = 0;

    for (double side = best; side <= 32; side *= 2) {
        double tiles = q->s.batch * gm_parts(q->s.m, side) * gm_parts(q->s.n, side);
        double score = side * gm_least_of(1, tiles / q->sms);
        best = score >= most ? side : best;
        most = gm_most_of(score, most);
    }
    return square_us(q, r, best, 1);
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
                             .resident = 4,
                             .whole = false};
    struct gm_work w = tile_work(q, &t, 1);
    double many = shares ? 1 : 256 / side / side;

    set_shared(s, gm_least_of(s->m, side), gm_least_of(s->n, side), s->k, 1, shares ? 32 : side,
               side, &w);

    w.blocks = gm_parts(w.blocks, many);
    w.madds *= many;
    w.shared *= many;
    w.l2 *= many;
    return gm_work_us(q, shares ? r + 1 : r, &w);
}

/* A config of batched, as batched/config.h has it: whole matrices of a stack, or parts of one, by
 * warps of 4 x 8 lanes with TM x TN sums each, `vec` of them in neighbouring columns. */
struct batched {
    double lda, steps, BK;     /* of rows of A; of K that it reads at once, and of a k-tile */
    double TM, TN, vec, warps; /* warps: at most */
    double many, tiles, BM, bytes, warps_taken; /* of a block: matrices, rows, .. */
    double cycles, busy, alone; /* of a multiprocessor; of a block: that it computes; and waits */
    double together;            /* blocks of a multiprocessor */
};

#define BATCHED_BYTES 115712.0 /* of shared memory: two blocks a multiprocessor */
#define SEVERAL_BYTES 40960.0
#define WHOLE_BYTES 32768.0
#define LOADED_A_CYCLE 140.0
#define STORED_A_CYCLE 12.0
#define TRIP 1000.0 /* cycles: what a step is for a block that waits */

static void set_cycles(const struct gm_asked *q, struct batched *c)
{
    const struct gm_sizes *s = &q->s;
    double words = c->TM * c->TN * s->size / 4, loads = c->TM / c->steps + c->TN / c->vec;
    double needs = words + (4 * c->TM + c->TN) * s->size / 4 + (c->vec > 1 ? 2 : 0);
    double issued = words + loads + c->TM / 2 + 2;
    double waves = c->TM / (c->steps > 1 ? 2 : 1) + c->TN / (c->vec > 1 ? 2 : 1);
    double by_warps = floor((needs <= 46   ? 32
                             : needs <= 57 ? 24
                             : needs <= 70 ? 20
                                           : 16) /
                            c->warps_taken);
    double blocks = gm_parts(gm_parts(s->batch, c->many) * c->tiles, q->sms);
    double loaded = c->many * (c->BM + s->n) * s->k * s->size;
    double stored = c->many * c->BM * s->n * s->size;

    c->together = gm_least_of(blocks, gm_least_of(floor(233472 / (c->bytes + 1024)), by_warps));
    c->busy = s->k * c->warps_taken * gm_most_of(issued / 4, waves);
    c->alone = s->k * (0.7 * issued + 1.75 * loads + 22) + 64 * words;
    c->cycles = blocks * (c->busy + loaded / LOADED_A_CYCLE + stored / STORED_A_CYCLE +
                          c->alone / c->together);
}

static void set_config(const struct gm_asked *q, struct batched *c)
{
    const struct gm_sizes *s = &q->s;
    double across = gm_parts(s->n, 8 * c->TN), all = gm_parts(s->m, 4 * c->TM);

    c->cycles = HUGE_VAL;
    if (across > c->warps)
        return;
    c->tiles = gm_parts(all, floor(c->warps / across));
    double down = gm_parts(all, c->tiles);
    c->BM = c->tiles == 1 ? s->m : down * 4 * c->TM;
    c->many = c->tiles == 1 && c->BK == s->k ? floor(c->warps / down / across) : 1;
    c->many = gm_least_of(c->many, s->batch);
    for (;; c->many--) {
        c->bytes = c->many * (c->BM * c->lda + c->BK * s->n * (c->BK < s->k ? 2 : 1)) * s->size;
        if (c->many <= 1 || c->bytes <= SEVERAL_BYTES)
            break;
    }
    c->warps_taken = c->many * down * across;
    if (c->bytes <= BATCHED_BYTES)
        set_cycles(q, c);
}

double gm_us_batched(const struct gm_asked *q, const struct gm_rates *r)
{
    const struct gm_sizes *s = &q->s;
    double span = 16 / s->size, vectors = gm_parts(s->k, span);
    bool padded = fmod(s->k, span) == 0 || !s->a_along_k;
    struct batched best = {.cycles = HUGE_VAL,
                           /* an odd number of vectors */
                           .lda = padded ? (vectors + (fmod(vectors, 2) == 0)) * span : s->k,
                           .steps = padded                            ? span
                                    : fmod(s->k, 2) == 0 && span == 4 ? 2
                                                                      : 1,
                           .BK = s->k * s->n * s->size <= WHOLE_BYTES
                                     ? s->k
                                     : 8 * floor(4096 / s->n / 8 + (s->n > 512))};
    struct batched c = best;

    for (c.vec = 1; c.vec <= span && (c.vec == 1 || !s->b_along_k) && fmod(s->n, c.vec) == 0;
         c.vec *= 2) {
        for (c.TM = 4; c.TM <= (s->size == 8 ? 4 : 8); c.TM += c.TM < 6 ? 1 : 2) {
            for (c.TN = c.vec == 1 ? c.TM == 4 ? 2 : 3 : 4;
                 c.TN <= 8 + (c.vec == 1 && c.TM > 4 && c.TM < 8); c.TN += c.vec) {
                double most = c.TM * c.TN * s->size / 4 <= 32 ? 16 : 8;
                for (c.warps = most; c.warps >= most / 4; c.warps /= 2) {
                    set_config(q, &c);
                    best = c.cycles < best.cycles ? c : best;
                }
            }
        }
    }
    if (isinf(best.cycles))
        return HUGE_VAL;
    struct gm_work w = {.blocks = gm_parts(s->batch, best.many) * best.tiles,
                        .resident = best.together,
                        .madds = best.busy * q->madds / q->mhz,
                        .steps = best.alone / TRIP,
                        .l2 = best.many * (best.BM * s->k + s->k * s->n + best.BM * s->n) * s->size,
                        .dram = q->bytes};
    w.shared = ACROSS_BYTES * best.many * s->k *
               ((s->a_along_k ? 0 : best.BM) + (s->b_along_k ? s->n : 0));
    return gm_work_us(q, r, &w);
}

#define CUBLAS_SPLIT_LEAST 64.0 /* of K, in a split: what most of its times go by */
#define CUBLAS_SPLITS_MAX 128.0
#define CUBLAS_ROWS 16.0 /* at most, for a kernel of its own */
#define CUBLAS_SUMS 4.0  /* rows and columns at most, by what has times that vary tenfold */

/* A vector, or a few rows of f32: the matrix is read once, by blocks that each take some lines, or
 * parts of a vector's K, whose sums a second launch adds. */
static double few_us(const struct gm_asked *q, const struct gm_rates *r)
{
    const struct gm_sizes *s = &q->s;
    double rows = s->n == 1 ? 1 : s->m, lines = s->n == 1 ? s->m : s->n, least = HUGE_VAL;
    bool along = s->n == 1 ? s->a_along_k : s->b_along_k;
    double high = gm_least_of(rows, along ? 8 : 4), wide = along ? 8 : rows > 1 ? 64 : 256;
    double most = rows > 1 ? 1 : gm_most_of(1, floor(s->k / CUBLAS_SPLIT_LEAST));

    for (double splits = 1; splits <= most && splits <= CUBLAS_SPLITS_MAX; splits *= 2) {
        double k = gm_parts(s->k, splits);
        struct gm_work w = {
            .blocks = s->batch * gm_parts(lines, wide) * gm_parts(rows, high) * splits,
            .resident = 8,
            .madds = rows > 1 ? high * wide * k : 0,
            .l2 = (gm_least_of(lines, wide) + high) * k * s->size,
            .steps = gm_parts(k, along ? 128 : 32),
            .dram = q->bytes,
            .passes = splits > 1,
            .pass_bytes = splits > 1 ? (splits + 1) * s->batch * lines * s->width : 0};
        w.shared = 2 * w.l2;
        least = gm_least_of(least, gm_work_us(q, r, &w));
    }
    return least;
}

/*
 * cuBLAS does not say what it runs. Its kernels' names and grids were read beside 1689 of the
 * products that are recorded (kernels/EXPERIMENTS.md): the fastest of a few tiles, with K split
 * where that helps, or a kernel for a few rows. Products of f32 of less than CUBLAS_SMALL are split
 * and take a second launch where tiles of 32 x 32 leave multiprocessors idle; not those of a few
 * rows of A, nor of wide rows of a B with K along its rows, nor with A transposed and B not. So are
 * those of bf16 with rows of an odd length. On tensor cores, types other than f32 have kernels of
 * their own where rows do not begin at multiples of 16 bytes; there times of few sums, and of bf16
 * of few rows, follow no rule: they have no estimate.
 */
#define CUBLAS_SMALL 2e6 /* multiply-adds */
static bool launches_again(const struct gm_asked *q, bool odd)
{
    const struct gm_sizes *s = &q->s;
    bool few = s->m * s->k < 300 || (s->a_along_k && s->m <= CUBLAS_ROWS && s->k < 100);

    if (s->batch > 1 || s->m * s->n * s->k >= CUBLAS_SMALL)
        return false;
    if (s->size == 2)
        return q->op->result.dtype == GM_BF16 && odd && s->m > CUBLAS_ROWS;
    return s->size == 4 && !q->tensor && !few && (s->b_along_k ? s->n < 256 : s->a_along_k) &&
           gm_parts(s->m, 32) * gm_parts(s->n, 32) <= 1.5 * q->sms;
}

/* For each alignment and type the largest tile first, in the order of the rates. A k-tile of those
 * of f32 is in shared memory, of which a multiply-add reads so many words. */
static const struct kernel
    of_f32[] = {{.BM = 128, .BN = 128, .BK = 8, .words = 0.25, .resident = 1, .whole = true},
                {.BM = 64, .BN = 64, .BK = 8, .words = 0.25, .resident = 4, .whole = true},
                {.BM = 32, .BN = 32, .BK = 8, .words = 0.5, .resident = 8, .whole = true}},
    of_half[] = {{.BM = 128, .BN = 256, .BK = 64, .resident = 1, .whole = true},
                 {.BM = 128, .BN = 128, .BK = 64, .resident = 1, .whole = true},
                 {.BM = 64, .BN = 64, .BK = 64, .resident = 2, .whole = true}},
    unaligned[] = {{.BM = 128, .BN = 128, .BK = 32, .resident = 1, .whole = true},
                   {.BM = 64, .BN = 64, .BK = 32, .resident = 2, .whole = true},
                   {.BM = 32, .BN = 32, .BK = 64, .resident = 8, .whole = true}},
    of_f64[] = {{.BM = 64, .BN = 64, .BK = 16, .resident = 2, .whole = true},
                {.BM = 32, .BN = 32, .BK = 32, .resident = 4, .whole = true}};
#define STACK_STEPS 3.0 /* k-tiles in the time that a stack's blocks take to find their matrix */

double gm_us_cublas(const struct gm_asked *q, const struct gm_rates *r)
{
    const struct gm_sizes *s = &q->s;
    const struct kernel *tile = !q->tensor ? of_f32 : s->size == 8 ? of_f64 : of_half;
    const uint64_t all = (s->a.row > s->a.col ? s->a.row : s->a.col) |
                         (s->b.row > s->b.col ? s->b.row : s->b.col) | (uint64_t)s->n;
    double least = HUGE_VAL, wide = gm_least_of((double)(all & -all), 16 / s->size);
    bool again = launches_again(q, all % 2 != 0);
    bool misaligned = q->tensor && s->size == 2 && wide < 8;
    double few = misaligned ? CUBLAS_ROWS : CUBLAS_SUMS;
    unsigned count = tile == of_f64 ? 2 : 3;

    if (s->m <= few && (s->n <= few || (misaligned && q->op->result.dtype == GM_BF16)))
        return HUGE_VAL; /* others take less, and at times a tenth */
    if (s->m == 1 || s->n == 1 || (s->size == 4 && s->m <= CUBLAS_ROWS && s->a_along_k))
        least = few_us(q, &r[count]);
    if (misaligned) {
        tile = unaligned;
        wide = gm_least_of(wide, 2);
        r += 4;
    }
    for (unsigned i = 0; i < count; i++, tile++, r++) {
        double most = gm_most_of(1, floor(s->k / CUBLAS_SPLIT_LEAST));
        for (double splits = 1; splits <= most && splits <= CUBLAS_SPLITS_MAX; splits *= 2) {
            struct gm_work w = tile_work(q, tile, splits);
            double loaded = gm_least_of(s->m, tile->BM) + gm_least_of(s->n, tile->BN);
            w.shared = q->tensor ? loaded * w.madds / tile->BM / tile->BN * 16 / wide
                                 : w.madds * tile->words * s->width;
            if (again)
                w.passes = 1;
            if (s->batch > 1)
                w.steps += STACK_STEPS;
            least = gm_least_of(least, gm_work_us(q, r, &w));
        }
    }
    return least;
}
