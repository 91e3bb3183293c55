/*
 * transpose_blocked.c - transposes rectangles that the threads share.
 *
 * Unlike in naive, every line of source and result is touched once, while it is in the cache
 * (rect.c).
 */
#include "kernels/cpu/backend/exec.h"
#include "kernels/cpu/lib/grid.h"
#include "kernels/cpu/lib/stream.h"
#include "kernels/variant.h"

gm_kernel_fn gm_cpu_transpose_blocked; /* as variants.def has it */

/* The size of a rectangle: wide enough for whole lines of the source. Its columns each lie in
 * another page of the result, so they must not exceed the processor's TLB. */
#define RECT_BYTES ((uint64_t)1 << 20)
#define RECT_COLS ((uint64_t)256)

struct job {
    const struct gm_op *op;
    struct gm_grid grid;
    size_t element_bytes;
    bool stream;
};

static void transpose_chunk(void *cls, uint64_t chunk, unsigned thread)
{
    const struct job *job = cls;
    const struct gm_matrix *a = &job->op->operand[0];
    uint64_t end = gm_grid_chunk_end(&job->grid, chunk);

    (void)thread;
    for (uint64_t index = chunk * job->grid.per_chunk; index < end; index++) {
        struct gm_tile tile = gm_grid_tile(&job->grid, index);
        uint64_t first = tile.matrix * a->rows * a->cols;
        const char *src = a->data;
        char *dst = job->op->result.data;
        gm_rect_transpose(job->element_bytes,
                          src + (first + tile.i * a->cols + tile.j) * job->element_bytes, a->cols,
                          dst + (first + tile.j * a->rows + tile.i) * job->element_bytes, a->rows,
                          tile.h, tile.w, job->stream);
    }
    if (job->stream)
        gm_stream_end();
}

enum gm_status gm_cpu_transpose_blocked(const struct gm_op *op, struct gm_exec *exec)
{
    const struct gm_matrix *a = &op->operand[0];
    size_t size = gm_dtype_size(a->dtype);
    uint64_t area = RECT_BYTES / size;
    uint64_t tile_cols = a->cols < RECT_COLS ? a->cols : RECT_COLS;
    uint64_t tile_rows = area / tile_cols;

    if (tile_rows > a->rows) {
        tile_rows = a->rows;
        tile_cols = a->cols < area / tile_rows ? a->cols : area / tile_rows;
    }
    struct job job = {
        .op = op,
        .grid = gm_grid_make(a->batch, a->rows, a->cols, tile_rows, tile_cols,
                             (double)(tile_rows * tile_cols * size), (double)GM_TRANSPOSE_CHUNK),
        .element_bytes = size,
        .stream = gm_matrix_bytes(&op->result) >= GM_STREAM_MIN,
    };
    return gm_pool_run(exec->pool, job.grid.chunks, exec->stop, transpose_chunk, &job)
               ? GM_OK
               : GM_CANCELLED;
}
