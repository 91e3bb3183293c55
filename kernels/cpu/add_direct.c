/*
 * add_direct.c - add, three loops on one thread: the lesson.
 *
 * Each element is found by its strides, of which those of a repeated row or column are 0. One
 * addition for two loads and a store: the time is that of the memory, of which one thread draws a
 * part, and a line of the result is read from it before it is overwritten. Strides that are only
 * known as the loop runs keep the compiler from vector code.
 */
#include "exec.h"
#include "kernels/layout.h"
#include "kernels/rows.h"
#include "proto/half.h"

#define STOP_EVERY ((uint64_t)1 << 16) /* elements of a row between two looks at exec->stop */

/*
 * element: as it lies in memory; sum: what it is computed in. load and store turn one into the
 * other. Integers are computed unsigned: they wrap.
 */
#define ADD(name, element, sum, load, store)                                                       \
    static enum gm_status name(const struct gm_op *op, const struct gm_exec *exec)                 \
    {                                                                                              \
        const struct gm_view x = gm_op_view(op, 0), y = gm_op_view(op, 1);                         \
        const element *a = x.data, *b = y.data;                                                    \
        element *result = op->result.data;                                                         \
                                                                                                   \
        for (uint64_t t = 0; t < op->result.batch; t++) {                                          \
            for (uint64_t i = 0; i < op->result.rows; i++) {                                       \
                for (uint64_t j = 0; j < op->result.cols; j++) {                                   \
                    if (j % STOP_EVERY == 0 && gm_exec_stopped(exec))                              \
                        return GM_CANCELLED;                                                       \
                    sum left = load(a[t * x.batch + i * x.row + j * x.col]);                       \
                    sum right = load(b[t * y.batch + i * y.row + j * y.col]);                      \
                    *result++ = (element)store(left + right);                                      \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        return GM_OK;                                                                              \
    }

ADD(add_f16, uint16_t, float, gm_f32_of_f16, gm_f16_of_f32)
ADD(add_bf16, uint16_t, float, gm_f32_of_bf16, gm_bf16_of_f32)
ADD(add_f32, float, float, , )
ADD(add_f64, double, double, , )
ADD(add_i32, uint32_t, uint32_t, , )
ADD(add_i64, uint64_t, uint64_t, , )

enum gm_status gm_cpu_add_direct(const struct gm_op *op, struct gm_exec *exec)
{
    switch (op->result.dtype) {
    case GM_F16:
        return add_f16(op, exec);
    case GM_BF16:
        return add_bf16(op, exec);
    case GM_F32:
        return add_f32(op, exec);
    case GM_F64:
        return add_f64(op, exec);
    case GM_I32:
        return add_i32(op, exec);
    default:
        return add_i64(op, exec);
    }
}
