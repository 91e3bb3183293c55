/*
 * product.h - describes a matmul to kernels by strides, packs its operands, and finishes its sums.
 *
 * Finishing applies alpha, beta and c, and rounds once.
 */
#ifndef GM_KERNELS_CPU_LIB_PRODUCT_H
#define GM_KERNELS_CPU_LIB_PRODUCT_H

#include "kernels/cpu/backend/exec.h"
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

/* ---- pack.c: copies a block of an operand into the order in which the micro-kernel reads it ----
 */

/* The largest block, in each direction. */
#define GM_PACK_MAX 256u

/* A block of `lanes` (rows of op(a) or columns of op(b)) by k: element (l, p) is
 * data[l * lane_stride + p * k_stride], and one of the strides is 1. */
struct gm_block {
    enum gm_dtype dtype;
    const void *data;
    uint64_t lane_stride, k_stride;
    uint64_t lanes, k; /* at most GM_PACK_MAX */
};

/*
 * panel[g][p][l]: groups of `group` lanes (a multiple of 4), each k long, the last filled up with
 * zeros. f16 and bf16 become f32.
 */
void gm_pack(void *panel, unsigned group, const struct gm_block *block, enum gm_isa isa);

/* f16 or bf16 to f32. */
void gm_widen(enum gm_dtype dtype, float *dst, const void *src, uint64_t count, enum gm_isa isa);

static inline bool gm_is_half(enum gm_dtype dtype)
{
    return dtype == GM_F16 || dtype == GM_BF16;
}

#endif
