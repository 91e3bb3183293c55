/*
 * add_vector.c - adds contiguous spans in vector code, on all threads.
 *
 * Unlike direct's, its inner loop (plus.c) sees only three contiguous rows. Dimensions along which
 * both operands are contiguous are merged first: most sums become one long row, and a stack plus
 * one matrix becomes a few. The rest is divided into tiles. An operand in another order than the
 * tile (a repeated row or column, a column-major matrix) is first written to a small buffer in the
 * tile's order, and kept there if the next tile repeats it. Sums larger than the cache are computed
 * in such a buffer too, and are then stored past the cache (stream.h).
 */
#include "kernels/cpu/backend/exec.h"
#include "kernels/cpu/lib/grid.h"
#include "kernels/cpu/lib/inner_loops.h"
#include "kernels/cpu/lib/stream.h"
#include "kernels/layout.h"
#include "kernels/variant.h"

#include <string.h>

gm_kernel_fn gm_cpu_add_vector; /* as variants.def has it */

#define TILE_BYTES 8192u             /* three such buffers stay in the first-level cache */
#define COL_MAJOR_TILE_BYTES 131072u /* if one is column-major: in the second */
#define COL_MAJOR_ROW_BYTES 1024u    /* then a few lines of each of many columns */

/* One dimension of the result: its size, and the operands' strides along it. */
struct dimension {
    uint64_t size, stride[2];
};

struct job {
    char *result;
    const char *operand[2];
    struct dimension batch, rows, cols;
    struct gm_exec *exec;
    gm_plus_fn *plus;
    size_t element;
    struct gm_grid grid;
    bool stream;
};

/* An operand of a tile: in place, or copied to a buffer. */
struct source {
    const char *at;
    uint64_t row; /* bytes from one row of the tile to the next */
};

/* The contents of a buffer: h rows of w elements, beginning with the one at `place`. */
struct buffer {
    char *data;
    uint64_t place, h, w;
};

/* A thread's scratch. */
struct scratch {
    char operand[2][COL_MAJOR_TILE_BYTES];
    char result[TILE_BYTES];
};

_Static_assert(sizeof(struct scratch) <= GM_CPU_SCRATCH, "it is what a thread has");

/* w copies of each of h elements, which are `next` elements apart. */
#define REPEAT(name, type)                                                                         \
    static void name(char *buffer, const char *from, uint64_t next, uint64_t h, uint64_t w)        \
    {                                                                                              \
        const type *source = (const type *)(const void *)from;                                     \
        type *to = (type *)(void *)buffer;                                                         \
                                                                                                   \
        for (uint64_t i = 0; i < h; i++, to += w) {                                                \
            type element = source[i * next];                                                       \
            for (uint64_t j = 0; j < w; j++)                                                       \
                to[j] = element;                                                                   \
        }                                                                                          \
    }

REPEAT(repeat2, uint16_t)
REPEAT(repeat4, uint32_t)
REPEAT(repeat8, uint64_t)

/* Copies a tile of an operand to a buffer, row by row. */
static void gather(const struct job *job, unsigned index, const char *from, uint64_t h, uint64_t w,
                   char *buffer)
{
    uint64_t row = job->rows.stride[index], col = job->cols.stride[index];
    size_t size = job->element;

    if (col > 1) /* column-major */
        gm_rect_transpose(size, from, col, buffer, w, w, h, false);
    else if (col == 1)
        for (uint64_t i = 0; i < h; i++)
            memcpy(buffer + i * w * size, from + i * row * size, w * size);
    else if (size == 2)
        repeat2(buffer, from, row, h, w);
    else if (size == 4)
        repeat4(buffer, from, row, h, w);
    else
        repeat8(buffer, from, row, h, w);
}

/* Finds a tile of an operand, row by row; if `whole`, rows are contiguous. */
static struct source take(const struct job *job, unsigned index, const struct gm_tile *tile,
                          bool whole, struct buffer *buffer)
{
    uint64_t row = job->rows.stride[index], col = job->cols.stride[index];
    uint64_t place = tile->matrix * job->batch.stride[index] + tile->i * row + tile->j * col;
    const char *from = job->operand[index] + place * job->element;

    if (col == 1 && (!whole || tile->h == 1 || row == tile->w))
        return (struct source){from, row * job->element};
    bool there = buffer->place == place && buffer->w == tile->w && tile->h <= buffer->h;
    if (!there) {
        gather(job, index, from, tile->h, tile->w, buffer->data);
        *buffer = (struct buffer){buffer->data, place, tile->h, tile->w};
    }
    return (struct source){buffer->data, tile->w * job->element};
}

/* Adds one span that is contiguous in operands and result. */
static void add_span(const struct job *job, char *to, const char *a, const char *b, uint64_t count,
                     char *buffer)
{
    const uint64_t piece = TILE_BYTES / job->element;

    if (!job->stream) {
        job->plus(to, a, b, count);
        return;
    }
    for (uint64_t done = 0; done < count; done += piece) {
        uint64_t some = count - done < piece ? count - done : piece, at = done * job->element;
        job->plus(buffer, a + at, b + at, some);
        gm_stream(to + at, buffer, some * job->element);
    }
}

static void add_chunk(void *cls, uint64_t chunk, unsigned thread)
{
    const struct job *job = cls;
    struct scratch *scratch = gm_pool_scratch(job->exec->pool, thread);
    struct buffer left = {.data = scratch->operand[0]}, right = {.data = scratch->operand[1]};
    uint64_t end = gm_grid_chunk_end(&job->grid, chunk);

    for (uint64_t index = chunk * job->grid.per_chunk; index < end; index++) {
        struct gm_tile tile = gm_grid_tile(&job->grid, index);
        bool whole = tile.w == job->cols.size;
        struct source a = take(job, 0, &tile, whole, &left);
        struct source b = take(job, 1, &tile, whole, &right);
        uint64_t spans = whole ? 1 : tile.h, count = whole ? tile.h * tile.w : tile.w;
        uint64_t first = (tile.matrix * job->rows.size + tile.i) * job->cols.size + tile.j;
        for (uint64_t i = 0; i < spans; i++)
            add_span(job, job->result + (first + i * job->cols.size) * job->element,
                     a.at + i * a.row, b.at + i * b.row, count, scratch->result);
    }
    if (job->stream)
        gm_stream_end();
}

/* Whether both operands continue through `outer` with the stride that `inner` has at its end. */
static bool continues(const struct dimension *outer, const struct dimension *inner)
{
    return outer->stride[0] == inner->size * inner->stride[0] &&
           outer->stride[1] == inner->size * inner->stride[1];
}

/* Merges the dimensions of the result to as few as possible, outermost first. */
static void join_dimensions(struct job *job, const struct gm_op *op)
{
    const struct gm_view a = gm_op_view(op, 0), b = gm_op_view(op, 1);
    const struct dimension all[3] = {{op->result.cols, {a.col, b.col}},
                                     {op->result.rows, {a.row, b.row}},
                                     {op->result.batch, {a.batch, b.batch}}};
    struct dimension joined[3] = {{1, {1, 1}}, {1, {0, 0}}, {1, {0, 0}}};
    int last = 0;

    for (int i = 0; i < 3; i++) {
        if (all[i].size == 1)
            continue;
        if (joined[last].size == 1)
            joined[last] = all[i];
        else if (continues(&all[i], &joined[last]))
            joined[last].size *= all[i].size;
        else
            joined[++last] = all[i];
    }
    job->operand[0] = a.data;
    job->operand[1] = b.data;
    job->cols = joined[0];
    job->rows = joined[1];
    job->batch = joined[2];
}

enum gm_status gm_cpu_add_vector(const struct gm_op *op, struct gm_exec *exec)
{
    struct job job = {
        .result = op->result.data,
        .exec = exec,
        .plus = gm_plus_get(op->result.dtype, exec->isa),
        .element = gm_dtype_size(op->result.dtype),
        .stream = gm_matrix_bytes(&op->result) >= GM_STREAM_MIN,
    };

    join_dimensions(&job, op);
    bool col_major = job.cols.stride[0] > 1 || job.cols.stride[1] > 1;
    uint64_t area = (col_major ? COL_MAJOR_TILE_BYTES : TILE_BYTES) / job.element;
    uint64_t width = col_major ? COL_MAJOR_ROW_BYTES / job.element : area;
    uint64_t cols = job.cols.size < width ? job.cols.size : width;
    uint64_t rows = job.rows.size < area / cols ? job.rows.size : area / cols;
    double cost = (double)(rows * cols * job.element);
    job.grid = gm_grid_make(job.batch.size, job.rows.size, job.cols.size, rows, cols, cost,
                            (double)GM_ADD_CHUNK);
    return gm_pool_run(exec->pool, job.grid.chunks, exec->stop, add_chunk, &job) ? GM_OK
                                                                                 : GM_CANCELLED;
}
