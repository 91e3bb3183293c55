/*
 * matmul_blocked.c - matmul for all arithmetic types, by tiles. The differences to naive:
 *
 *   - the threads share the tiles of the result; a tile's operands fit in a core's own cache and
 *     are used a hundred times while they are there;
 *   - both operands are packed first (pack.c), unless they lie like that, so that the inner loop
 *     reads memory forward whatever the layout is, and f16 and bf16 have become f32;
 *   - the inner loop keeps a block of accumulators in vector registers (micro_kernel.c): dozens of
 *     independent multiply-adds in flight instead of one.
 *
 * Accumulators keep their type over the whole of k. They are rounded once to the element type, at
 * the end, with alpha and beta. Each adds its terms in the order of k, whatever tile it is in.
 */
#include "kernels/cpu/backend/exec.h"
#include "kernels/cpu/lib/grid.h"
#include "kernels/cpu/lib/inner_loops.h"
#include "kernels/cpu/lib/product.h"
#include "kernels/variant.h"

#include <string.h>

gm_kernel_fn gm_cpu_matmul_blocked; /* as variants.def has it */

/* The largest tile for sums of 4 bytes; half of it in each direction for 8. A's block, B's block
 * and the sums take a quarter of a MiB each, which fits in a core's own cache of 1 MiB. */
#define TILE_ROWS 240u
#define TILE_COLS 256u
#define TILE_K 256u

_Static_assert(TILE_ROWS <= GM_PACK_MAX && TILE_COLS <= GM_PACK_MAX && TILE_K <= GM_PACK_MAX,
               "pack.c takes blocks no larger than that");
_Static_assert(TILE_ROWS / 2 % GM_MICRO_ROWS_MAX == 0 && TILE_ROWS % 8 == 0,
               "whole micro-blocks, of 12 or 4 rows");
_Static_assert((TILE_ROWS * TILE_K + TILE_COLS * TILE_K + TILE_ROWS * TILE_COLS) * 4 <=
                   GM_CPU_SCRATCH,
               "both packed blocks and the sums lie in a thread's scratch");

/* Tiles are halved until there are this many for the threads to share, or a tile has less work than
 * TILE_FLOPS_MIN, or only a few micro-blocks. Each tile packs for itself, and the smaller it is,
 * the more of its time that takes. */
#define TILES_WANTED 16u
#define TILE_FLOPS_MIN 0x1p23
#define TILE_BLOCKS_MIN 4u
/* Small tiles are grouped into chunks of about this much work. */
#define CHUNK_FLOPS 0x1p21
/* The overhead of a tile, in the same unit. */
#define TILE_FLOPS_EXTRA 4096.0

struct job {
    struct gm_product x;
    struct gm_exec *exec;
    enum gm_sum sum;
    const struct gm_micro *micro;
    gm_finish_fn *finish;
    struct gm_grid grid;
};

/* A tile size that divides `size` evenly: at most `most`, and a multiple of `step`. */
static uint64_t even_tile(uint64_t size, uint64_t most, uint64_t step)
{
    uint64_t count = gm_ceil_div(size, most);
    uint64_t even = gm_ceil_div(size, count);

    return (even + step - 1) / step * step;
}

static void plan_tiles(struct job *job)
{
    const struct gm_product *x = &job->x;
    uint64_t mr = job->micro->rows, nr = job->micro->cols;
    uint64_t half = gm_sum_size(job->sum) / 4;
    uint64_t most_rows = TILE_ROWS / half / mr * mr, most_cols = TILE_COLS / half / nr * nr;
    double depth = 2.0 * (double)(x->k > 0 ? x->k : 1);

    for (;;) {
        uint64_t rows = even_tile(x->m, most_rows, mr);
        uint64_t cols = even_tile(x->n, most_cols, nr);
        double flops = depth * (double)rows * (double)cols;
        job->grid =
            gm_grid_make(x->batch, x->m, x->n, rows, cols, flops + TILE_FLOPS_EXTRA, CHUNK_FLOPS);
        if (job->grid.tiles >= TILES_WANTED || flops < 2 * TILE_FLOPS_MIN ||
            rows * cols <= TILE_BLOCKS_MIN * mr * nr)
            return;
        if (cols == nr || (rows >= cols && rows > mr))
            most_rows = rows > 2 * mr ? rows / 2 / mr * mr : mr;
        else
            most_cols = cols > 2 * nr ? cols / 2 / nr * nr : nr;
    }
}

/* Turns the sums of a tile into elements of the result. The sums are stored block by block, down
 * each column of blocks. */
static void finish(const struct job *job, const struct gm_tile *tile, const char *sums)
{
    const struct gm_product *x = &job->x;
    uint64_t mr = job->micro->rows, nr = job->micro->cols, down = (tile->h + mr - 1) / mr;
    size_t element = gm_dtype_size(x->op.result.dtype), size = gm_sum_size(job->sum);

    for (uint64_t i = 0; i < tile->h; i++) {
        uint64_t at = (tile->matrix * x->m + tile->i + i) * x->n + tile->j;
        char *to = (char *)x->op.result.data + at * element;
        const char *c =
            x->adds ? gm_product_at(&x->c, element, tile->matrix, tile->i + i, tile->j) : NULL;
        for (uint64_t j = 0; j < tile->w; j += nr) {
            const char *from = sums + ((j / nr * down + i / mr) * mr + i % mr) * nr * size;
            job->finish(&x->op, to + j * element, from, c ? c + j * element : NULL,
                        tile->w - j < nr ? tile->w - j : nr);
        }
    }
}

/* Whether the micro-kernel reads a block where it lies: its rows follow one another as closely as
 * packed ones, fill its lanes, and need no conversion. So it is with small matrices, of whose time
 * packing is a third. */
static bool lies_ready(const struct job *job, const struct gm_block *block, bool is_b)
{
    bool whole =
        is_b ? block->lane_stride == 1 && block->k_stride == block->lanes &&
                   block->lanes % job->micro->cols == 0
             : block->k_stride == 1 && block->lane_stride == block->k && block->lanes % 4 == 0;

    return whole && gm_dtype_size(block->dtype) == gm_sum_size(job->sum);
}

/* Packs both blocks of one panel of k, and adds the product of each pair of their groups to a block
 * of sums. */
static void add_panel(const struct job *job, const struct gm_tile *tile, uint64_t p, uint64_t k,
                      char *scratch)
{
    const struct gm_product *x = &job->x;
    const struct gm_micro *micro = job->micro;
    enum gm_dtype dtype = x->op.result.dtype;
    size_t element = gm_dtype_size(dtype), size = gm_sum_size(job->sum);
    uint64_t half = size / 4;
    char *packed_a = scratch;
    char *packed_b = packed_a + TILE_ROWS / half * TILE_K * size;
    char *sums = packed_b + TILE_COLS / half * TILE_K * size;

    const struct gm_block a = {
        .dtype = dtype,
        .data = gm_product_at(&x->a, element, tile->matrix, tile->i, p),
        .lane_stride = x->a.row,
        .k_stride = x->a.col,
        .lanes = tile->h,
        .k = k,
    };
    const struct gm_block b = {
        .dtype = dtype,
        .data = gm_product_at(&x->b, element, tile->matrix, p, tile->j),
        .lane_stride = x->b.col,
        .k_stride = x->b.row,
        .lanes = tile->w,
        .k = k,
    };
    bool a_ready = lies_ready(job, &a, false), b_ready = lies_ready(job, &b, true);
    uint64_t b_next = b_ready ? b.k_stride : micro->cols, b_across = (b_ready ? 1 : k) * size;
    const char *from_a = a_ready ? a.data : packed_a, *from_b = b_ready ? b.data : packed_b;
    if (!a_ready)
        gm_pack(packed_a, micro->rows, &a, job->exec->isa);
    if (!b_ready)
        gm_pack(packed_b, micro->cols, &b, job->exec->isa);

    for (uint64_t j = 0; j < tile->w; j += micro->cols) {
        for (uint64_t i = 0; i < tile->h; i += micro->rows) {
            uint64_t rows = tile->h - i < micro->rows ? tile->h - i : micro->rows;
            gm_micro_fn *run = (a_ready ? micro->in_place : micro->packed)[(rows - 1) / 4];
            run(k, from_a + i * k * size, k, from_b + j * b_across, b_next, sums, p == 0);
            sums += micro->rows * micro->cols * size;
        }
    }
}

static void multiply_tile(const struct job *job, const struct gm_tile *tile, char *scratch)
{
    size_t size = gm_sum_size(job->sum);
    uint64_t half = size / 4;
    char *sums = scratch + (TILE_ROWS + TILE_COLS) / half * TILE_K * size;

    if (job->x.k == 0)
        memset(sums, 0, TILE_ROWS / half * (TILE_COLS / half) * size);
    for (uint64_t p = 0; p < job->x.k; p += TILE_K) {
        if (gm_exec_stopped(job->exec))
            return;
        add_panel(job, tile, p, job->x.k - p < TILE_K ? job->x.k - p : TILE_K, scratch);
    }
    finish(job, tile, sums);
}

static void multiply_chunk(void *cls, uint64_t chunk, unsigned thread)
{
    const struct job *job = cls;
    uint64_t end = gm_grid_chunk_end(&job->grid, chunk);

    for (uint64_t index = chunk * job->grid.per_chunk; index < end; index++) {
        struct gm_tile tile = gm_grid_tile(&job->grid, index);
        multiply_tile(job, &tile, gm_pool_scratch(job->exec->pool, thread));
    }
}

enum gm_status gm_cpu_matmul_blocked(const struct gm_op *op, struct gm_exec *exec)
{
    struct job job = {
        .x = gm_product_make(op, true),
        .exec = exec,
        .sum = gm_sum_of(op->result.dtype),
        .finish = gm_finish_get(op->result.dtype),
    };

    job.micro = gm_micro_get(job.sum, exec->isa);
    plan_tiles(&job);
    return gm_pool_run(exec->pool, job.grid.chunks, exec->stop, multiply_chunk, &job)
               ? GM_OK
               : GM_CANCELLED;
}
