/*
 * matmul_skinny.c - multiplies a matrix by a few vectors: the result has few rows or few columns.
 *
 * Unlike blocked, it packs nothing but the vectors. Each element of the large operand is used in
 * few products, so copying it would cost more than they do. It is read once, in its stored order,
 * at the speed of memory. A lane is a row of a or a column of b, and makes one lane of the result.
 * If lanes are contiguous, each is a line for dot products with all the vectors. Otherwise a line
 * has the elements of all lanes at one k, and is added to all sums.
 *
 * Few lanes with a long k are also split along k. The partial sums are then added in order.
 */
#include "kernels/cpu/backend/exec.h"
#include "kernels/cpu/lib/grid.h"
#include "kernels/cpu/lib/inner_loops.h"
#include "kernels/cpu/lib/product.h"
#include "kernels/device_facts.h"
#include "kernels/variant.h"

#include <string.h>

/* As variants.def has them. */
gm_accepts_fn gm_cpu_skinny_accepts;
gm_kernel_fn gm_cpu_matmul_skinny;

#define LANES GM_SKINNY_LANES
#define LANES_MIN 32u
#define DEPTH GM_SKINNY_DEPTH
#define TILES_WANTED 16u

/* A thread's scratch. The partial sums of all tiles lie in the first thread's. */
struct scratch {
    char vectors[GM_SKINNY_VECTORS * DEPTH * 8];
    char sums[GM_SKINNY_VECTORS * LANES * 8]; /* [vector][lane], LANES apart */
    float wide[4][LANES > DEPTH / 4 ? LANES : DEPTH / 4];
    char gathered[DEPTH * 8];
    char partial[TILES_WANTED][GM_SKINNY_VECTORS * LANES * 8];
};

_Static_assert(sizeof(struct scratch) <= GM_CPU_SCRATCH, "it is what a thread has");

struct job {
    struct gm_product x;
    struct gm_exec *exec;
    const struct gm_lines *lines;
    gm_finish_fn *finish;
    size_t element, size; /* of an element, and of a sum */
    bool lanes_are_rows;
    unsigned vectors;
    const struct gm_view *large, *small;
    uint64_t lane_stride, large_k; /* of the large operand, in elements */
    uint64_t vector_stride, small_k;
    struct gm_grid grid; /* lanes by k */
};

enum gm_status gm_cpu_skinny_accepts(const struct gm_op *op, const struct gm_device_facts *facts,
                                     struct gm_error *err)
{
    (void)facts;
    if (gm_op_m(op) > GM_SKINNY_VECTORS && gm_op_n(op) > GM_SKINNY_VECTORS)
        return gm_fail(err, GM_KERNEL_UNAVAILABLE,
                       "kernel \"skinny\" makes results of at most %u rows or %u columns, and this "
                       "one is %llux%llu",
                       GM_SKINNY_VECTORS, GM_SKINNY_VECTORS, (unsigned long long)gm_op_m(op),
                       (unsigned long long)gm_op_n(op));
    return GM_OK;
}

/* Copies the vectors of one range of k, each to a row of DEPTH sums. */
static void take_vectors(const struct job *job, uint64_t t, uint64_t p, uint64_t depth,
                         struct scratch *scratch)
{
    const char *base =
        (const char *)job->small->data + (t * job->small->batch + p * job->small_k) * job->element;

    for (unsigned v = 0; v < job->vectors; v++) {
        const char *from = base + v * job->vector_stride * job->element;
        char *to = scratch->vectors + v * DEPTH * job->size;
        if (job->small_k != 1) {
            for (uint64_t q = 0; q < depth; q++) {
                const char *one = from + q * job->small_k * job->element;
                char *there = scratch->gathered + q * job->element;
                if (job->element == 4)
                    memcpy(there, one, 4);
                else if (job->element == 8)
                    memcpy(there, one, 8);
                else
                    memcpy(there, one, 2);
            }
            from = scratch->gathered;
        }
        if (job->element != job->size)
            gm_widen(job->x.op.result.dtype, (float *)(void *)to, from, depth, job->exec->isa);
        else
            memcpy(to, from, depth * job->size);
    }
}

/* A line of the large operand in the accumulator type: in place, or widened. */
static const void *line_at(const struct job *job, const struct gm_tile *tile, uint64_t lane,
                           uint64_t p, uint64_t length, float *wide)
{
    const char *line =
        (const char *)job->large->data + (tile->matrix * job->large->batch +
                                          (tile->i + lane) * job->lane_stride + p * job->large_k) *
                                             job->element;

    if (job->element == job->size)
        return line;
    gm_widen(job->x.op.result.dtype, wide, line, length, job->exec->isa);
    return wide;
}

/* Lines along k: one dot product per lane and vector. */
static void add_dots(const struct job *job, const struct gm_tile *tile, uint64_t p, uint64_t depth,
                     struct scratch *scratch)
{
    for (uint64_t lane = 0; lane < tile->h; lane++) {
        uint64_t sums[GM_SKINNY_VECTORS] = {0}; /* room for the widest type */
        const void *line = line_at(job, tile, lane, p, depth, scratch->wide[0]);
        for (unsigned v = 0; v < job->vectors; v++)
            memcpy((char *)sums + v * job->size, scratch->sums + (v * LANES + lane) * job->size,
                   job->size);
        job->lines->dot(depth, line, scratch->vectors, DEPTH, job->vectors, sums);
        for (unsigned v = 0; v < job->vectors; v++)
            memcpy(scratch->sums + (v * LANES + lane) * job->size,
                   (const char *)sums + v * job->size, job->size);
    }
}

/* Lines across the lanes: adds four at a time, each times a factor. */
static void add_lines(const struct job *job, const struct gm_tile *tile, uint64_t p, uint64_t depth,
                      struct scratch *scratch)
{
    static const uint64_t zeros[LANES];

    for (uint64_t q = 0; q < depth; q += 4) {
        const void *line[4] = {zeros, zeros, zeros, zeros};
        for (uint64_t i = 0; i < 4 && q + i < depth; i++)
            line[i] = line_at(job, tile, 0, p + q + i, tile->h, scratch->wide[i]);
        for (unsigned v = 0; v < job->vectors; v++) {
            uint64_t factors[4] = {0}; /* room for the widest type */
            memcpy(factors, scratch->vectors + (v * DEPTH + q) * job->size,
                   (depth - q < 4 ? depth - q : 4) * job->size);
            job->lines->add(tile->h, line, factors, scratch->sums + v * LANES * job->size);
        }
    }
}

/* Turns the sums of a tile into elements of the result. */
static void finish(const struct job *job, const struct gm_tile *tile, const char *sums)
{
    const struct gm_product *x = &job->x;
    uint64_t rows = job->lanes_are_rows ? tile->h : job->vectors;
    uint64_t cols = job->lanes_are_rows ? job->vectors : tile->h;
    uint64_t i0 = job->lanes_are_rows ? tile->i : 0, j0 = job->lanes_are_rows ? 0 : tile->i;

    for (uint64_t i = 0; i < rows; i++) {
        uint64_t gathered[GM_SKINNY_VECTORS]; /* room for the widest type */
        const void *from = sums + i * LANES * job->size;
        uint64_t at = (tile->matrix * x->m + i0 + i) * x->n + j0;
        const char *c =
            x->adds ? gm_product_at(&x->c, job->element, tile->matrix, i0 + i, j0) : NULL;
        if (job->lanes_are_rows) {
            for (unsigned v = 0; v < job->vectors; v++)
                memcpy((char *)gathered + v * job->size, sums + (v * LANES + i) * job->size,
                       job->size);
            from = gathered;
        }
        job->finish(&x->op, (char *)x->op.result.data + at * job->element, from, c, cols);
    }
}

static struct scratch *scratch_of(const struct job *job, unsigned thread)
{
    return gm_pool_scratch(job->exec->pool, thread);
}

static void multiply_tile(const struct job *job, uint64_t index, struct scratch *scratch)
{
    struct gm_tile tile = gm_grid_tile(&job->grid, index);
    uint64_t end = tile.j + tile.w < job->x.k ? tile.j + tile.w : job->x.k;

    memset(scratch->sums, 0, job->vectors * LANES * job->size);
    for (uint64_t p = tile.j; p < end; p += DEPTH) {
        uint64_t depth = end - p < DEPTH ? end - p : DEPTH;
        if (gm_exec_stopped(job->exec))
            return;
        take_vectors(job, tile.matrix, p, depth, scratch);
        if (job->large_k == 1)
            add_dots(job, &tile, p, depth, scratch);
        else
            add_lines(job, &tile, p, depth, scratch);
    }
    if (job->grid.across == 1)
        finish(job, &tile, scratch->sums);
    else
        memcpy(scratch_of(job, 0)->partial[index], scratch->sums, job->vectors * LANES * job->size);
}

static void multiply_chunk(void *cls, uint64_t chunk, unsigned thread)
{
    const struct job *job = cls;
    uint64_t end = gm_grid_chunk_end(&job->grid, chunk);

    for (uint64_t index = chunk * job->grid.per_chunk; index < end; index++)
        multiply_tile(job, index, scratch_of(job, thread));
}

static void add_up(enum gm_sum sum, void *to, const void *from, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (sum == GM_SUM_F32)
            ((float *)to)[i] += ((const float *)from)[i];
        else if (sum == GM_SUM_F64)
            ((double *)to)[i] += ((const double *)from)[i];
        else if (sum == GM_SUM_U32)
            ((uint32_t *)to)[i] += ((const uint32_t *)from)[i];
        else
            ((uint64_t *)to)[i] += ((const uint64_t *)from)[i];
    }
}

/* Adds the partial sums of the splits of K, which are neighbours in the grid, in their order. */
static void add_splits(const struct job *job)
{
    struct scratch *scratch = scratch_of(job, 0);
    uint64_t count = job->vectors * LANES;

    for (uint64_t first = 0; first < job->grid.tiles; first += job->grid.across) {
        struct gm_tile tile = gm_grid_tile(&job->grid, first);
        for (uint64_t split = 1; split < job->grid.across; split++)
            add_up(gm_sum_of(job->x.op.result.dtype), scratch->partial[first],
                   scratch->partial[first + split], count);
        finish(job, &tile, scratch->partial[first]);
    }
}

/* Decides which operand is large, and how its lanes and k are divided. */
static void plan(struct job *job)
{
    struct gm_product *x = &job->x;
    uint64_t depth = x->k > 0 ? x->k : 1;

    job->lanes_are_rows = x->n <= GM_SKINNY_VECTORS && x->n <= x->m;
    uint64_t lanes = job->lanes_are_rows ? x->m : x->n;
    job->vectors = (unsigned)(job->lanes_are_rows ? x->n : x->m);
    job->large = job->lanes_are_rows ? &x->a : &x->b;
    job->small = job->lanes_are_rows ? &x->b : &x->a;
    job->lane_stride = job->lanes_are_rows ? x->a.row : x->b.col;
    job->large_k = job->lanes_are_rows ? x->a.col : x->b.row;
    job->vector_stride = job->lanes_are_rows ? x->b.col : x->a.row;
    job->small_k = job->lanes_are_rows ? x->b.row : x->a.col;

    /* Few tiles: lines along k get smaller tiles, down to a minimum; then k is split as well. */
    uint64_t tile = LANES, blocks, splits = 1;
    double worth = (double)x->batch * (double)lanes * (double)depth * (double)job->element;
    uint64_t wanted = worth < TILES_WANTED * GM_SKINNY_CHUNK
                          ? (uint64_t)(worth / GM_SKINNY_CHUNK) + 1
                          : TILES_WANTED;
    while (job->large_k == 1 && tile > LANES_MIN && x->batch * gm_ceil_div(lanes, tile) < wanted)
        tile /= 2;
    blocks = x->batch * gm_ceil_div(lanes, tile);
    if (blocks < wanted) {
        uint64_t shortest = job->large_k == 1 ? DEPTH : DEPTH / 32;
        splits = wanted / blocks < depth / shortest ? wanted / blocks : depth / shortest;
        splits = splits > 0 ? splits : 1;
    }
    uint64_t split = gm_ceil_div(depth, splits);
    double cost = (double)(lanes < tile ? lanes : tile) * (double)split * (double)job->element;
    job->grid = gm_grid_make(x->batch, lanes, depth, tile, split, cost, GM_SKINNY_CHUNK);
}

enum gm_status gm_cpu_matmul_skinny(const struct gm_op *op, struct gm_exec *exec)
{
    enum gm_sum sum = gm_sum_of(op->result.dtype);
    struct job job = {
        .x = gm_product_make(op, true),
        .exec = exec,
        .lines = gm_lines_get(sum, exec->isa),
        .finish = gm_finish_get(op->result.dtype),
        .element = gm_dtype_size(op->result.dtype),
        .size = gm_sum_size(sum),
    };

    /* As one tall matrix it is not skinny. */
    if (job.x.m > GM_SKINNY_VECTORS && job.x.n > GM_SKINNY_VECTORS)
        job.x = gm_product_make(op, false);
    plan(&job);
    if (!gm_pool_run(exec->pool, job.grid.chunks, exec->stop, multiply_chunk, &job))
        return GM_CANCELLED;
    if (job.grid.across > 1)
        add_splits(&job);
    return GM_OK;
}
