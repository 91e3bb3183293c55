/*
 * copy_memcpy.c - copy, by the C library's memcpy: the yardstick that every user knows. Split into
 * pieces for the threads; each piece is large enough to be worth a wake-up, and small enough
 * to end soon after a stop.
 */
#include "exec.h"
#include "kernels/rows.h"

#include <string.h>

#define PIECE ((uint64_t)2 << 20)

struct copy {
    char *dst;
    const char *src;
    uint64_t bytes;
};

static void copy_piece(void *cls, uint64_t piece, unsigned thread)
{
    const struct copy *copy = cls;
    uint64_t at = piece * PIECE;
    uint64_t bytes = copy->bytes - at < PIECE ? copy->bytes - at : PIECE;

    (void)thread;
    memcpy(copy->dst + at, copy->src + at, bytes);
}

enum gm_status gm_cpu_copy_memcpy(const struct gm_op *op, struct gm_exec *exec)
{
    struct copy copy = {op->result.data, op->operand[0].data, gm_matrix_bytes(&op->result)};
    uint64_t pieces = copy.bytes / PIECE + (copy.bytes % PIECE != 0);

    return gm_pool_run(exec->pool, pieces, exec->stop, copy_piece, &copy) ? GM_OK : GM_CANCELLED;
}
