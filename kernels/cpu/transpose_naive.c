/*
 * transpose_naive.c - transpose by two loops on one thread: the simplest way.
 *
 * Reads run along rows. Each write goes a whole row further into the result. That costs little
 * while a column of the result fits in the cache. Beyond that every write fetches a line of 64
 * bytes to change one element, and the line is evicted before its next element comes. With a power
 * of two as the row's length, the lines compete for the same few sets of the cache.
 */
#include "kernels/cpu/backend/exec.h"
#include "kernels/variant.h"

gm_kernel_fn gm_cpu_transpose_naive; /* as variants.def has it */

typedef struct {
    uint64_t half[2];
} element16;

#define TRANSPOSE(name, type)                                                                      \
    static enum gm_status name(const struct gm_op *op, const struct gm_exec *exec)                 \
    {                                                                                              \
        uint64_t rows = op->operand[0].rows, cols = op->operand[0].cols;                           \
        const type *a = op->operand[0].data;                                                       \
        type *result = op->result.data;                                                            \
                                                                                                   \
        for (uint64_t t = 0; t < op->result.batch; t++, a += rows * cols, result += rows * cols) { \
            for (uint64_t i = 0; i < rows; i++) {                                                  \
                for (uint64_t j = 0; j < cols; j++) {                                              \
                    if (j % STOP_EVERY_ELEMENTS == 0 && gm_exec_stopped(exec))                     \
                        return GM_CANCELLED;                                                       \
                    result[j * rows + i] = a[i * cols + j];                                        \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        return GM_OK;                                                                              \
    }

#define STOP_EVERY_ELEMENTS                                                                        \
    ((uint64_t)1 << 16) /* elements of a row between two looks at exec->stop */

TRANSPOSE(transpose1, uint8_t)
TRANSPOSE(transpose2, uint16_t)
TRANSPOSE(transpose4, uint32_t)
TRANSPOSE(transpose8, uint64_t)
TRANSPOSE(transpose16, element16)

enum gm_status gm_cpu_transpose_naive(const struct gm_op *op, struct gm_exec *exec)
{
    switch (gm_dtype_size(op->result.dtype)) {
    case 1:
        return transpose1(op, exec);
    case 2:
        return transpose2(op, exec);
    case 4:
        return transpose4(op, exec);
    case 8:
        return transpose8(op, exec);
    default:
        return transpose16(op, exec);
    }
}
