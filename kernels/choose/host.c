/*
 * host.c - what the CPU's variants ask of its busiest core.
 *
 * The formula is the GPU's (estimate.h), for one block: all that one core does of the operation.
 * Rates and cycles are of a core whose clock is 4 GHz, whatever the processor's is; what that is
 * wrong by, the profile's shares have in them. A step is a call of an inner loop, or an element; a
 * pass packs operands; what waits in a queue are other threads, which are woken. How large tiles
 * and chunks are, the kernels ask, too (kernels/cpu/lib/grid.h).
 */
#include "kernels/choose/estimate.h"
#include "kernels/cpu/lib/grid.h"
#include "kernels/cpu/lib/inner_loops.h"
#include "kernels/cpu/lib/stream.h"
#include "kernels/device_facts.h"

#define CLOCK_MHZ 4000.0
#define MADDS_PER_CLOCK 2.0 /* of whole vectors */
#define L1_BYTES_PER_CLOCK 128.0
#define L2_BYTES_PER_CLOCK 64.0
#define MEMORY_BYTES_PER_CLOCK 16.0
#define LINE 64.0
#define VECTOR 16.0 /* bytes: of any processor, and of a BLAS that is not tuned for it */
#define L1_BYTES 32768.0
#define OWN_CACHE 0x1p20 /* of a core, where it is not known */
#define HELD_SETS 64.0   /* operands that come in turn, as for GPUs */
#define FAR                                                                                        \
    4.0 /* operations of a quarter of its own cache begin to leave the one that cores share */

/* The part of so many bytes that a cache does not have, by degrees. */
static double beyond(double bytes, double cache)
{
    return gm_least_of(1, gm_most_of(0, bytes / cache - 1));
}

struct gm_asked gm_asked_of_host(const struct gm_op *op, const struct gm_device_facts *facts,
                                 const struct gm_profile *profile)
{
    struct gm_asked q = {.op = op, .profile = profile, .sms = gm_most_of(1, facts->compute_units)};

    q.mhz = CLOCK_MHZ;
    q.shared = L1_BYTES_PER_CLOCK * q.mhz;
    q.l2 = L2_BYTES_PER_CLOCK * q.mhz;
    q.dram = MEMORY_BYTES_PER_CLOCK * q.mhz;
    q.bytes = gm_most_of(1, (double)gm_op_bytes_min(op));
    q.own_cache = facts->own_cache_bytes > 0 ? (double)facts->own_cache_bytes : OWN_CACHE;
    q.cold = beyond(q.bytes * HELD_SETS, q.own_cache);
    q.s = gm_sizes_of(op);
    q.vector = gm_most_of(VECTOR, facts->vector_bytes) / q.s.width;
    q.blas_vector = facts->tuned_blas ? q.vector : VECTOR / q.s.width;
    q.madds = MADDS_PER_CLOCK * q.vector * q.mhz;
    return q;
}

/* Bytes of the result that are not in the cache when they are written: of large operations. */
static double far_bytes(const struct gm_asked *q)
{
    return beyond(FAR * q->bytes, q->own_cache) * (double)gm_matrix_bytes(&q->op->result);
}

/* Of the work of the whole operation, in chunks that threads share; the last may be a part. Moves,
 * sums and thin products have as many as their bytes make: with the kernels' whole tiles estimates
 * are no nearer. The bytes that must move are added: where few, they are in the core's own
 * cache; where many, lines of the result that are not streamed are read before they are written. */
static double core_us(const struct gm_asked *q, const struct gm_rates *r, struct gm_work w,
                      double chunks, bool streams)
{
    struct gm_asked one = *q; /* without what a cold cache of a GPU costs */
    double part = gm_least_of(1, gm_parts(ceil(chunks), q->sms) / chunks);

    one.cold = 0;
    w.blocks = w.resident = 1;
    w.madds *= part;
    w.shared = part * (w.shared + (1 - q->cold) * q->bytes);
    w.l2 *= part;
    w.dram = part * (w.dram + q->cold * q->bytes + (streams ? 0 : far_bytes(q)));
    w.steps *= part;
    w.passes *= part;
    w.queued = part < 1;
    return gm_work_us(&one, r, &w);
}

/* ---- Moves and sums. ---- */

#define STREAMS 32.0   /* that prefetchers follow */
#define RECT_RUN 256.0 /* bytes of a row and of all, in rect.c's buffer: of most elements */
#define RECT_AREA 8192.0
#define FLIP_FEW 4 /* columns, from 2 on, for which there is code without a loop */

double gm_us_host_memcpy(const struct gm_asked *q, const struct gm_rates *r)
{
    return core_us(q, r, (struct gm_work){.steps = 0}, q->bytes / 2 / GM_COPY_CHUNK, false);
}

double gm_us_host_stream(const struct gm_asked *q, const struct gm_rates *r)
{
    return core_us(q, r, (struct gm_work){.steps = 0}, q->bytes / 2 / GM_COPY_CHUNK, true);
}

static double elements_of(const struct gm_asked *q)
{
    return gm_most_of(1, (double)gm_matrix_elements(&q->op->result));
}

/* Steps of a multiplication in vectors. */
static double steps_of(const struct gm_asked *q)
{
    return q->op->result.dtype == GM_I64 ? 4 : q->op->result.dtype == GM_I32 ? 3 : 1;
}

/* What loading an element takes beside; and storing the results, in vectors of any processor. */
static double conversions(const struct gm_asked *q)
{
    return q->op->result.dtype == GM_F16 ? 12 : q->op->result.dtype == GM_BF16 ? 1 : 0;
}

static double stores(const struct gm_asked *q)
{
    return elements_of(q) * conversions(q) * q->vector / (VECTOR / 4);
}

static bool is_streamed(const struct gm_asked *q)
{
    return gm_matrix_bytes(&q->op->result) >= GM_STREAM_MIN;
}

/* One element after another, on one thread: naive and direct. A row's loop is begun for each line
 * of the second-level cache. */
double gm_us_host_by_element(const struct gm_asked *q, const struct gm_rates *r)
{
    const struct gm_matrix *x = &q->op->result;

    return core_us(q, r,
                   (struct gm_work){.steps = elements_of(q) * (1 + 3 * conversions(q)),
                                    .l2 = (double)(x->batch * x->rows) * LINE},
                   1, false);
}

/* Columns of the result lie a row apart: each element is a line, until a column's lines fit. Lines
 * of more columns than prefetchers follow wait for memory one by one. */
double gm_us_host_transpose_naive(const struct gm_asked *q, const struct gm_rates *r)
{
    const struct gm_matrix *a = &q->op->operand[0];
    double size = (double)gm_dtype_size(a->dtype), all = elements_of(q);
    double lines = (double)a->cols * gm_least_of(LINE, (double)a->rows * size);

    return core_us(q, r,
                   (struct gm_work){.madds = all * q->vector * gm_least_of(1, lines / L1_BYTES),
                                    .l2 = (double)a->cols <= STREAMS ? 0 : far_bytes(q),
                                    .steps = all},
                   1, false);
}

double gm_us_host_transpose_blocked(const struct gm_asked *q, const struct gm_rates *r)
{
    const struct gm_matrix *a = &q->op->operand[0];
    double rows = (double)a->rows, cols = (double)a->cols, size = (double)gm_dtype_size(a->dtype);
    double side = VECTOR / size, all = elements_of(q);
    double whole = side > 1 ? floor(rows / side) * floor(cols / side) * side * side : 0;
    double run = RECT_RUN / size, area = RECT_AREA / size, puts = 1;
    bool buffered = rows * cols > GM_RECT_SMALL / size;

    /* Rows that begin within lines are stored in runs of which both ends are parts of lines. */
    double wait = rows <= run ? 0 : far_bytes(q);
    if (is_streamed(q))
        wait *= fmod(rows * size, LINE) > 0 ? 2 * LINE / RECT_RUN : 0;
    whole *= (double)a->batch;
    if (buffered)
        puts = rows <= run ? gm_parts(rows * cols, area)
                           : cols * gm_parts(rows, gm_most_of(run, area / cols));
    return core_us(q, r,
                   (struct gm_work){.madds = (all - whole) * q->vector,
                                    .shared = whole * size,
                                    .l2 = wait,
                                    .steps = (double)a->batch * puts},
                   all * size / GM_TRANSPOSE_CHUNK, true);
}

double gm_us_host_add_vector(const struct gm_asked *q, const struct gm_rates *r)
{
    const struct gm_matrix *x = &q->op->result;
    double all = elements_of(q), size = (double)gm_dtype_size(x->dtype);
    struct gm_work w = {.madds = all * (1 + 3 * conversions(q)), .steps = 1};

    for (unsigned i = 0; i < 2; i++) {
        const struct gm_view v = gm_op_view(q->op, i);
        bool dense = (x->cols == 1 || v.col == 1) && (x->rows == 1 || v.row == x->cols) &&
                     (x->batch == 1 || v.batch == x->rows * x->cols);
        w.shared += dense ? 0 : all * size; /* it is copied */
        w.steps += dense ? 0 : (double)(x->batch * x->rows);
    }
    return core_us(q, r, w, all * size / GM_ADD_CHUNK, is_streamed(q));
}

double gm_us_host_flip_vector(const struct gm_asked *q, const struct gm_rates *r)
{
    const struct gm_matrix *x = &q->op->result;
    double rows = (double)(x->batch * x->rows), lanes = VECTOR / q->s.size;

    return core_us(q, r,
                   (struct gm_work){.madds = rows * fmod((double)x->cols, lanes) * q->vector,
                                    .shared = q->bytes,
                                    .steps = x->cols > 1 && x->cols <= FLIP_FEW ? 0 : rows},
                   q->bytes / 2 / GM_FLIP_CHUNK, is_streamed(q));
}

/* ---- Products. ---- */

#define PASS_BYTES 4096.0 /* of operands that are packed */

/* The last may be a part. */
static double chunks_of(const struct gm_grid *grid)
{
    return (double)grid->tiles / (double)grid->per_chunk;
}

/* Lines from the second-level cache, where an operand is read across its rows and a column's lines
 * are too many for the first. */
double gm_us_host_naive(const struct gm_asked *q, const struct gm_rates *r)
{
    const struct gm_sizes *s = &q->s;
    double sums = s->m * s->n * s->batch, madds = sums * s->k;
    double lines = s->k * LINE * (!s->a_along_k + !s->b_along_k);

    return core_us(q, r,
                   (struct gm_work){.madds = madds * (1 + 2 * conversions(q)) * q->vector,
                                    .shared = madds * LINE * (lines > L1_BYTES),
                                    .steps = sums},
                   1, false);
}

#define MADD_WAITS 2.0 /* a multiply-add that waits for another takes so many others */

/* r: along K; behind it, across. */
double gm_us_host_skinny(const struct gm_asked *q, const struct gm_rates *r)
{
    struct gm_sizes s = q->s;
    double joined = (double)gm_op_joined(q->op);

    /* As one tall matrix it is not skinny. */
    if (s.m > GM_SKINNY_VECTORS && s.n > GM_SKINNY_VECTORS) {
        s.m /= joined;
        s.batch *= joined;
    }
    bool rows = s.n <= GM_SKINNY_VECTORS && s.n <= s.m; /* lanes are rows of A */
    double lanes = rows ? s.m : s.n, vectors = rows ? s.n : s.m;
    bool along = (rows ? s.a.col : s.b.row) == 1;
    bool gathers = (rows ? s.b.row : s.a.col) != 1; /* the vectors */
    double large = lanes * s.k * s.batch, chunks = large * s.size / GM_SKINNY_CHUNK;
    double tiles = s.batch * gm_parts(lanes, GM_SKINNY_LANES);
    /* One by one: sums of rows are gathered, and so are vectors that do not lie along K. */
    double single = (rows ? s.batch * lanes * vectors : 0) + (gathers ? tiles * s.k * vectors : 0);
    struct gm_work w = {.shared = gm_most_of(tiles, ceil(chunks)) * vectors * GM_SKINNY_LANES *
                                  s.width, /* are set to 0 */
                        .l2 = rows ? s.batch * lanes * LINE : 0};

    if (along) {
        double calls = floor(vectors / GM_LINES_SHARED) + fmod(vectors, GM_LINES_SHARED);
        double rest = fmod(s.k, q->vector * (vectors < GM_LINES_SHARED ? 8 : 2));
        /* What is left of a line, vectors and then elements, waits for the sum before it. */
        rest = floor(rest / q->vector) + fmod(s.k, q->vector);
        single += lanes * s.batch * calls * rest * MADD_WAITS;
        w.madds = large * (conversions(q) + vectors * steps_of(q));
        w.steps = lanes * s.batch * gm_parts(s.k, GM_SKINNY_DEPTH) * calls;
    } else {
        w.madds = large * (conversions(q) + vectors * steps_of(q));
        w.shared += 0.5 * large * vectors * s.width; /* sums, of four steps of K */
        w.steps = tiles * gm_parts(s.k, 4) * vectors;
        r++;
    }
    w.madds += single * q->vector + stores(q);
    return core_us(q, r, w, chunks, false);
}

/* The last block has 4, 8 or 12 rows. Operands along K are transposed when they are packed. */
double gm_us_host_blocked(const struct gm_asked *q, const struct gm_rates *r)
{
    const struct gm_sizes *s = &q->s;
    double bytes = q->vector * s->width;
    double mr = GM_MICRO_ROWS(bytes), nr = q->vector * GM_MICRO_VECTORS(bytes);
    struct gm_grid t =
        gm_grid_blocked((uint64_t)s->batch, (uint64_t)s->m, (uint64_t)s->n, (uint64_t)s->k,
                        (uint64_t)s->width, (uint64_t)mr, (uint64_t)nr);
    double a = (double)t.across * s->m * s->k * s->batch;
    double b = (double)t.down * s->n * s->k * s->batch;
    double wide = s->batch * gm_parts(s->n, nr), blocks = wide * gm_parts(s->m, mr);
    bool in_place = s->size == s->width; /* where it is one block, of whole groups */
    bool a_ready = in_place && s->a_along_k && s->k <= GM_TILE_K && fmod(s->m, 4) == 0;
    bool b_ready = in_place && !s->b_along_k && t.across == 1 && fmod(s->n, nr) == 0;

    a = a_ready ? 0 : a;
    b = b_ready ? 0 : b;
    return core_us(q, r,
                   (struct gm_work){
                       .madds = wide * gm_parts(s->m, 4) * 4 * nr * s->k * steps_of(q) +
                                (a + b) * conversions(q) + stores(q),
                       .passes = s->width * (a + b) / PASS_BYTES,
                       .l2 = s->width * ((s->a_along_k ? a : 0) + (s->b_along_k ? b : 0)),
                       .steps = (double)t.tiles + blocks * gm_parts(s->k, GM_TILE_K) + wide * s->m},
                   chunks_of(&t), false);
}

/* Whether OpenBLAS takes the operands of a call where they are, by the rule of its kernels for wide
 * vectors. */
static bool is_small_call(const struct gm_sizes *s, double m, double n)
{
    return m * n * s->k <= 1e6 && !(s->a_along_k && s->b_along_k && (m * n > 1200 || s->k < 32));
}

/* r: calls that clear the result, pack the operands and add in blocks; behind it, small ones. */
double gm_us_host_openblas(const struct gm_asked *q, const struct gm_rates *r)
{
    const struct gm_sizes *s = &q->s;
    struct gm_grid t =
        gm_grid_openblas((uint64_t)s->batch, (uint64_t)s->m, (uint64_t)s->n, (uint64_t)s->k);
    bool small =
        q->blas_vector == q->vector && is_small_call(s, (double)t.tile_rows, (double)t.tile_cols);
    double n = s->n + q->blas_vector * (small ? 0.5 : 1); /* vectors that are not full, too */

    return core_us(
        q, &r[small],
        (struct gm_work){.madds = s->m * n * s->k * s->batch * q->vector / q->blas_vector,
                         .passes = small ? 0
                                         : s->size * s->k * s->batch *
                                               ((double)t.across * s->m + (double)t.down * s->n) /
                                               PASS_BYTES,
                         .dram = small ? 0 : 2 * far_bytes(q),
                         .steps = (double)t.tiles},
        chunks_of(&t), false);
}
