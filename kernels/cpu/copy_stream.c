/*
 * copy_stream.c - copies with stores that bypass the cache.
 *
 * Unlike with memcpy, a line of the result is not read before it is overwritten. It wins if the
 * result is larger than the cache, and loses if the result would stay in the cache for the next
 * reader.
 */
#include "kernels/cpu/backend/exec.h"
#include "kernels/cpu/lib/stream.h"
#include "kernels/variant.h"

gm_kernel_fn gm_cpu_copy_stream; /* as variants.def has it */

#define PIECE ((uint64_t)2 << 20)

struct copy {
    char *dst;
    const char *src;
    uint64_t bytes;
};

static void stream_piece(void *cls, uint64_t piece, unsigned thread)
{
    const struct copy *copy = cls;
    uint64_t at = piece * PIECE;
    uint64_t bytes = copy->bytes - at < PIECE ? copy->bytes - at : PIECE;

    (void)thread;
    gm_stream(copy->dst + at, copy->src + at, bytes);
    gm_stream_end();
}

enum gm_status gm_cpu_copy_stream(const struct gm_op *op, struct gm_exec *exec)
{
    struct copy copy = {op->result.data, op->operand[0].data, gm_matrix_bytes(&op->result)};
    uint64_t pieces = copy.bytes / PIECE + (copy.bytes % PIECE != 0);

    return gm_pool_run(exec->pool, pieces, exec->stop, stream_piece, &copy) ? GM_OK : GM_CANCELLED;
}
