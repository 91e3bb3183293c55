/*
 * copy_memcpy.c - copy by the C library's memcpy: the baseline that every user knows.
 *
 * It is split into parts for the threads.
 */
#include "kernels/cpu/backend/exec.h"
#include "kernels/cpu/lib/grid.h"
#include "kernels/variant.h"

#include <string.h>

gm_kernel_fn gm_cpu_copy_memcpy; /* as variants.def has it */

struct copy {
    char *dst;
    const char *src;
    uint64_t bytes;
};

static void copy_piece(void *cls, uint64_t piece, unsigned thread)
{
    const struct copy *copy = cls;
    uint64_t at = piece * GM_COPY_CHUNK;
    uint64_t bytes = copy->bytes - at < GM_COPY_CHUNK ? copy->bytes - at : GM_COPY_CHUNK;

    (void)thread;
    memcpy(copy->dst + at, copy->src + at, bytes);
}

enum gm_status gm_cpu_copy_memcpy(const struct gm_op *op, struct gm_exec *exec)
{
    struct copy copy = {op->result.data, op->operand[0].data, gm_matrix_bytes(&op->result)};
    uint64_t pieces = gm_ceil_div(copy.bytes, GM_COPY_CHUNK);

    return gm_pool_run(exec->pool, pieces, exec->stop, copy_piece, &copy) ? GM_OK : GM_CANCELLED;
}
