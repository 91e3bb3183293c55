/*
 * add_direct.c - add by three loops on one thread: the simplest way.
 *
 * Each element is found by its strides; a repeated row or column has stride 0. One addition needs
 * two loads and a store, so memory is the limit. One thread uses only a part of its bandwidth, and
 * each line of the result is read before it is overwritten. Strides that are known only at run
 * time keep the compiler from vector code.
 */
#include "kernels/cpu/backend/exec.h"
#include "kernels/layout.h"
#include "kernels/variant.h"
#include "proto/number/half.h"

gm_kernel_fn gm_cpu_add_direct; /* as variants.def has it */

#define STOP_EVERY_ELEMENTS                                                                        \
    ((uint64_t)1 << 16) /* elements of a row between two looks at exec->stop */

/*
 * element: the type in memory; sum: what it is computed in. load and store turn one into the
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
                    if (j % STOP_EVERY_ELEMENTS == 0 && gm_exec_stopped(exec))                     \
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
