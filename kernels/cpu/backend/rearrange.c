/*
 * rearrange.c - rearranges column-major stacks to row-major.
 *
 * A stack in Fortran order is, read row-major, an array [cols][rows][batch]: the first index is the
 * fastest. The result is [batch][rows][cols]. If one of the three is 1, this is one transpose of a
 * matrix. Else it is one transpose for each row: from cols x batch elements with a leading
 * dimension of rows * batch, to batch x cols with a leading dimension of rows * cols.
 *
 * A chunk is a band of columns through consecutive rows, so that lines which neighbouring rows
 * share are still in the cache.
 */
#include "rearrange.h"

#include "exec.h"
#include "kernels/cpu/lib/grid.h"
#include "kernels/cpu/lib/stream.h"
#include "kernels/variant.h"

gm_kernel_fn gm_cpu_transpose_blocked; /* kernels of variants.def */

#define PREPARE_CHUNK_BYTES ((uint64_t)1 << 20)
#define BAND_BYTES ((uint64_t)256) /* of a row of the result: a few whole cache lines */

struct job {
    const struct gm_matrix *x;
    char *result;
    size_t element_bytes;
    uint64_t band, bands, rows,
        row_chunks; /* columns per band, rows per chunk, and their numbers */
    bool stream;
};

static void prepare_chunk(void *cls, uint64_t chunk, unsigned thread)
{
    const struct job *job = cls;
    const struct gm_matrix *x = job->x;
    uint64_t col = chunk / job->row_chunks * job->band, row = chunk % job->row_chunks * job->rows;
    uint64_t cols = x->cols - col < job->band ? x->cols - col : job->band;
    uint64_t end = x->rows - row < job->rows ? x->rows : row + job->rows;

    (void)thread;
    for (; row < end; row++) {
        const char *src =
            (const char *)x->data + (col * x->rows + row) * x->batch * job->element_bytes;
        gm_rect_transpose(job->element_bytes, src, x->rows * x->batch,
                          job->result + (row * x->cols + col) * job->element_bytes,
                          x->rows * x->cols, cols, x->batch, job->stream);
    }
    if (job->stream)
        gm_stream_end();
}

static enum gm_status prepare_stack(const struct gm_matrix *x, void *data, struct gm_exec *exec)
{
    size_t size = gm_dtype_size(x->dtype);
    struct job job = {.x = x, .result = data, .element_bytes = size};

    job.band = BAND_BYTES / size < x->cols ? BAND_BYTES / size : x->cols;
    job.bands = gm_ceil_div(x->cols, job.band);
    job.rows = PREPARE_CHUNK_BYTES / (job.band * x->batch * size);
    job.rows = job.rows < 1 ? 1 : job.rows < x->rows ? job.rows : x->rows;
    job.row_chunks = gm_ceil_div(x->rows, job.rows);
    job.stream = gm_matrix_bytes(x) >= GM_STREAM_MIN;
    return gm_pool_run(exec->pool, job.bands * job.row_chunks, exec->stop, prepare_chunk, &job)
               ? GM_OK
               : GM_CANCELLED;
}

/* [outer][inner] to [inner][outer] */
static enum gm_status prepare_matrix(const struct gm_matrix *x, uint64_t outer, uint64_t inner,
                                     void *data, struct gm_exec *exec)
{
    struct gm_op op = {.kind = GM_OP_TRANSPOSE, .operands = 1};

    op.operand[0] = (struct gm_matrix){.dtype = x->dtype, .batch = 1, .rows = outer, .cols = inner};
    op.operand[0].data = x->data;
    op.result = (struct gm_matrix){.dtype = x->dtype, .batch = 1, .rows = inner, .cols = outer};
    op.result.data = data;
    return gm_cpu_transpose_blocked(&op, exec);
}

enum gm_status gm_prepare(struct gm_matrix *x, void *data, struct gm_exec *exec)
{
    enum gm_status status;

    if (x->batch == 1)
        status = prepare_matrix(x, x->cols, x->rows, data, exec);
    else if (x->rows == 1)
        status = prepare_matrix(x, x->cols, x->batch, data, exec);
    else if (x->cols == 1)
        status = prepare_matrix(x, x->rows, x->batch, data, exec);
    else
        status = prepare_stack(x, data, exec);
    if (status == GM_OK) {
        x->layout = GM_ROW_MAJOR;
        x->data = data;
    }
    return status;
}

size_t gm_rearrange_scratch(void)
{
    return GM_CPU_SCRATCH;
}

enum gm_status gm_rearrange(struct gm_matrix *x, void *data, struct gm_pool *pool,
                            const atomic_bool *stop)
{
    struct gm_exec exec = {.pool = pool, .stop = stop, .isa = gm_isa_best()};

    return gm_prepare(x, data, &exec);
}
