/*
 * copy_stream.c - copies with stores that bypass the cache.
 *
 * Unlike with memcpy, a line of the result is not read before it is overwritten. It wins if the
 * result is larger than the cache, and loses if the result would stay in the cache for the next
 * reader.
 */
#include "kernels/cpu/backend/exec.h"
#include "kernels/cpu/lib/grid.h"
#include "kernels/cpu/lib/stream.h"
#include "kernels/variant.h"

gm_kernel_fn gm_cpu_copy_stream; /* as variants.def has it */

struct copy {
    char *dst;
    const char *src;
    uint64_t bytes;
};

static void stream_piece(void *cls, uint64_t piece, unsigned thread)
{
    const struct copy *copy = cls;
    uint64_t at = piece * GM_COPY_CHUNK;
    uint64_t bytes = copy->bytes - at < GM_COPY_CHUNK ? copy->bytes - at : GM_COPY_CHUNK;

    (void)thread;
    gm_stream(copy->dst + at, copy->src + at, bytes);
    gm_stream_end();
}

enum gm_status gm_cpu_copy_stream(const struct gm_op *op, struct gm_exec *exec)
{
    struct copy copy = {op->result.data, op->operand[0].data, gm_matrix_bytes(&op->result)};
    uint64_t pieces = gm_ceil_div(copy.bytes, GM_COPY_CHUNK);

    return gm_pool_run(exec->pool, pieces, exec->stop, stream_piece, &copy) ? GM_OK : GM_CANCELLED;
}
