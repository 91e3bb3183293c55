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

_Static_assert(GM_TILE_ROWS <= GM_PACK_MAX && GM_TILE_COLS <= GM_PACK_MAX &&
                   GM_TILE_K <= GM_PACK_MAX,
               "pack.c takes blocks no larger than that");
_Static_assert(GM_TILE_ROWS / 2 % GM_MICRO_ROWS_MAX == 0 && GM_TILE_ROWS % 8 == 0,
               "whole micro-blocks, of 12 or 4 rows");
_Static_assert((GM_TILE_ROWS * GM_TILE_K + GM_TILE_COLS * GM_TILE_K + GM_TILE_ROWS * GM_TILE_COLS) *
                       4 <=
                   GM_CPU_SCRATCH,
               "both packed blocks and the sums lie in a thread's scratch");

struct job {
    struct gm_product x;
    struct gm_exec *exec;
    enum gm_sum sum;
    const struct gm_micro *micro;
    gm_finish_fn *finish;
    struct gm_grid grid;
};

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

/* Whether the sums of a tile are its elements of the result, and stored there at once: there is
 * nothing to finish, one panel has all of k, and no block reaches beyond the tile. */
static bool sums_are_result(const struct job *job, const struct gm_tile *tile)
{
    const struct gm_product *x = &job->x;
    const struct gm_scalar *alpha = &x->op.alpha;

    return !x->adds && x->k > 0 && x->k <= GM_TILE_K && tile->w % job->micro->cols == 0 &&
           tile->h % 4 == 0 && (alpha->is_integer ? alpha->integer == 1 : alpha->real == 1) &&
           gm_dtype_size(x->op.result.dtype) == gm_sum_size(job->sum);
}

/* Packs both blocks of one panel of k, and adds the product of each pair of their groups to a block
 * of sums. result: where the tile's elements are, if its sums are stored there; else NULL. */
static void add_panel(const struct job *job, const struct gm_tile *tile, uint64_t p, uint64_t k,
                      char *scratch, char *result)
{
    const struct gm_product *x = &job->x;
    const struct gm_micro *micro = job->micro;
    enum gm_dtype dtype = x->op.result.dtype;
    size_t element = gm_dtype_size(dtype), size = gm_sum_size(job->sum);
    uint64_t words = size / 4; /* of a sum */
    char *packed_a = scratch;
    char *packed_b = packed_a + GM_TILE_ROWS / words * GM_TILE_K * size;
    char *sums = packed_b + GM_TILE_COLS / words * GM_TILE_K * size;

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
            char *to = result ? result + (i * x->n + j) * size : sums;
            run(k, from_a + i * k * size, k, from_b + j * b_across, b_next, to,
                result ? x->n : micro->cols, p == 0);
            sums += micro->rows * micro->cols * size;
        }
    }
}

static void multiply_tile(const struct job *job, const struct gm_tile *tile, char *scratch)
{
    size_t size = gm_sum_size(job->sum);
    uint64_t words = size / 4, at = (tile->matrix * job->x.m + tile->i) * job->x.n + tile->j;
    char *sums = scratch + (GM_TILE_ROWS + GM_TILE_COLS) / words * GM_TILE_K * size;
    char *result = sums_are_result(job, tile) ? (char *)job->x.op.result.data + at * size : NULL;

    if (job->x.k == 0)
        memset(sums, 0, GM_TILE_ROWS / words * (GM_TILE_COLS / words) * size);
    for (uint64_t p = 0; p < job->x.k; p += GM_TILE_K) {
        if (gm_exec_stopped(job->exec))
            return;
        add_panel(job, tile, p, job->x.k - p < GM_TILE_K ? job->x.k - p : GM_TILE_K, scratch,
                  result);
    }
    if (!result)
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
    job.grid = gm_grid_blocked(job.x.batch, job.x.m, job.x.n, job.x.k, gm_sum_size(job.sum),
                               job.micro->rows, job.micro->cols);
    return gm_pool_run(exec->pool, job.grid.chunks, exec->stop, multiply_chunk, &job)
               ? GM_OK
               : GM_CANCELLED;
}
