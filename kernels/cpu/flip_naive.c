/*
 * flip_naive.c - flip by two loops on one thread: the simplest way.
 *
 * Reads run backwards along a row, writes forwards. Both touch each whole line of the cache once,
 * and prefetchers follow either direction. It loses to a copy because elements go one by one, on
 * one thread, and each line of the result is read before it is overwritten.
 */
#include "kernels/cpu/backend/exec.h"
#include "kernels/variant.h"

gm_kernel_fn gm_cpu_flip_naive; /* as variants.def has it */

typedef struct {
    uint64_t half[2];
} element16;

#define STOP_EVERY_ELEMENTS                                                                        \
    ((uint64_t)1 << 16) /* elements of a row between two looks at exec->stop */

#define FLIP(name, type)                                                                           \
    static enum gm_status name(const struct gm_op *op, const struct gm_exec *exec)                 \
    {                                                                                              \
        uint64_t rows = op->result.batch * op->result.rows, cols = op->result.cols;                \
        const type *a = op->operand[0].data;                                                       \
        type *result = op->result.data;                                                            \
                                                                                                   \
        for (uint64_t i = 0; i < rows; i++, a += cols, result += cols) {                           \
            for (uint64_t j = 0; j < cols; j++) {                                                  \
                if (j % STOP_EVERY_ELEMENTS == 0 && gm_exec_stopped(exec))                         \
                    return GM_CANCELLED;                                                           \
                result[j] = a[cols - 1 - j];                                                       \
            }                                                                                      \
        }                                                                                          \
        return GM_OK;                                                                              \
    }

FLIP(flip1, uint8_t)
FLIP(flip2, uint16_t)
FLIP(flip4, uint32_t)
FLIP(flip8, uint64_t)
FLIP(flip16, element16)

enum gm_status gm_cpu_flip_naive(const struct gm_op *op, struct gm_exec *exec)
{
    switch (gm_dtype_size(op->result.dtype)) {
    case 1:
        return flip1(op, exec);
    case 2:
        return flip2(op, exec);
    case 4:
        return flip4(op, exec);
    case 8:
        return flip8(op, exec);
    default:
        return flip16(op, exec);
    }
}
