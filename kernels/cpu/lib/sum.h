/*
 * sum.h - the type of sums: f32 for f16, bf16 and f32, and the type itself for the others. Integers
 * are summed unsigned, because they wrap.
 */
#ifndef GM_KERNELS_CPU_LIB_SUM_H
#define GM_KERNELS_CPU_LIB_SUM_H

#include "proto/matrix.h"

enum gm_sum { GM_SUM_F32, GM_SUM_F64, GM_SUM_U32, GM_SUM_U64, GM_SUM_COUNT };

static inline enum gm_sum gm_sum_of(enum gm_dtype dtype)
{
    return dtype == GM_F64   ? GM_SUM_F64
           : dtype == GM_I32 ? GM_SUM_U32
           : dtype == GM_I64 ? GM_SUM_U64
                             : GM_SUM_F32;
}

static inline size_t gm_sum_size(enum gm_sum sum)
{
    return sum == GM_SUM_F64 || sum == GM_SUM_U64 ? 8 : 4;
}

#endif
