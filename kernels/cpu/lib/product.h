/*
 * product.h - describes a matmul to kernels by strides, and finishes sums to elements.
 *
 * Finishing applies alpha, beta and c, and rounds once.
 */
#ifndef GM_KERNELS_CPU_LIB_PRODUCT_H
#define GM_KERNELS_CPU_LIB_PRODUCT_H

#include "kernels/layout.h"

struct gm_product {
    struct gm_op op; /* for its type and factors; if k is 0, alpha is too */
    /* The result is row-major: element (t, i, j) is the (t * m + i) * n + j'th. */
    uint64_t batch, m, n;
    uint64_t k;             /* also 0 if alpha = 0 leaves a and b unread */
    bool adds;              /* there is a c to add */
    struct gm_view a, b, c; /* views of op(a), op(b) and, if it is added, c */
};

/* join: a stack of a that shares one b becomes one tall matrix (gm_op_joined). */
struct gm_product gm_product_make(const struct gm_op *op, bool join);

/* The address of element (t, i, j) of a view, with elements of `size` bytes. */
static inline const char *gm_product_at(const struct gm_view *view, size_t size, uint64_t t,
                                        uint64_t i, uint64_t j)
{
    return (const char *)view->data + (t * view->batch + i * view->row + j * view->col) * size;
}

/* to[i] = alpha * sums[i] + beta * c[i] for i < count; without the second term if c is NULL. The
 * sums have the accumulator type. */
typedef void gm_finish_fn(const struct gm_op *op, void *to, const void *sums, const void *c,
                          uint64_t count);

gm_finish_fn *gm_finish_get(enum gm_dtype dtype);

#endif
