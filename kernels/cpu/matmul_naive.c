/*
 * matmul_naive.c - matmul by three loops on one thread: the simplest way.
 *
 * Each sum runs along a row of op(a) and down a column of op(b). The column's elements are a row
 * apart, so each costs a line of the cache, and the next column fetches the same lines again. Only
 * the sum is in a register, and it waits for its own last addition: one multiply-add in several
 * cycles, where the processor could do dozens in one.
 */
#include "kernels/cpu/backend/exec.h"
#include "kernels/cpu/lib/product.h"
#include "kernels/variant.h"
#include "proto/number/half.h"

gm_kernel_fn gm_cpu_matmul_naive; /* as variants.def has it */

#define STOP_EVERY_TERMS ((uint64_t)1 << 20) /* terms of a sum between two looks at exec->stop */

/*
 * element: the type in memory; sum: what it is computed in. load and store turn one into the
 * other, factor makes the sum's type of a factor. Integers are computed unsigned: they wrap.
 */
#define MATMUL(name, element, sum, load, store, factor)                                            \
    static enum gm_status name(const struct gm_product *x, const struct gm_exec *exec)             \
    {                                                                                              \
        const element *a = x->a.data, *b = x->b.data, *c = x->c.data;                              \
        element *result = x->op.result.data;                                                       \
        sum alpha = (sum)x->op.alpha.factor, beta = (sum)x->op.beta.factor;                        \
                                                                                                   \
        for (uint64_t t = 0; t < x->batch; t++) {                                                  \
            for (uint64_t i = 0; i < x->m; i++) {                                                  \
                for (uint64_t j = 0; j < x->n; j++, result++) {                                    \
                    sum value = 0;                                                                 \
                    for (uint64_t p = 0; p < x->k; p++) {                                          \
                        if (p % STOP_EVERY_TERMS == 0 && gm_exec_stopped(exec))                    \
                            return GM_CANCELLED;                                                   \
                        value += (sum)load(a[t * x->a.batch + i * x->a.row + p * x->a.col]) *      \
                                 (sum)load(b[t * x->b.batch + p * x->b.row + j * x->b.col]);       \
                    }                                                                              \
                    value *= alpha;                                                                \
                    if (x->adds)                                                                   \
                        value += beta * (sum)load(c[t * x->c.batch + i * x->c.row + j]);           \
                    *result = (element)store(value);                                               \
                }                                                                                  \
            }                                                                                      \
            if (gm_exec_stopped(exec))                                                             \
                return GM_CANCELLED;                                                               \
        }                                                                                          \
        return GM_OK;                                                                              \
    }

MATMUL(matmul_f16, uint16_t, float, gm_f32_of_f16, gm_f16_of_f32, real)
MATMUL(matmul_bf16, uint16_t, float, gm_f32_of_bf16, gm_bf16_of_f32, real)
MATMUL(matmul_f32, float, float, , , real)
MATMUL(matmul_f64, double, double, , , real)
MATMUL(matmul_i32, uint32_t, uint32_t, , , integer)
MATMUL(matmul_i64, uint64_t, uint64_t, , , integer)

enum gm_status gm_cpu_matmul_naive(const struct gm_op *op, struct gm_exec *exec)
{
    struct gm_product product = gm_product_make(op, false);

    switch (op->result.dtype) {
    case GM_F16:
        return matmul_f16(&product, exec);
    case GM_BF16:
        return matmul_bf16(&product, exec);
    case GM_F32:
        return matmul_f32(&product, exec);
    case GM_F64:
        return matmul_f64(&product, exec);
    case GM_I32:
        return matmul_i32(&product, exec);
    default:
        return matmul_i64(&product, exec);
    }
}
