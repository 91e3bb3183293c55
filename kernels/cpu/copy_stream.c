/*
 * copy_stream.c - copy, with stores that bypass the cache. The difference to memcpy: a line of
 * the result is not read before it is overwritten. Wins where the result is larger than the
 * cache; loses where it would still have been there for whoever reads it next.
 */
#include "exec.h"
#include "kernels/rows.h"
#include "stream.h"

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
