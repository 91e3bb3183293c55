/*
 * pack.h - copies a block of an operand into the order in which the micro-kernel reads it.
 */
#ifndef GM_KERNELS_CPU_LIB_PACK_H
#define GM_KERNELS_CPU_LIB_PACK_H

#include "kernels/cpu/backend/isa.h"
#include "proto/matrix.h"

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
