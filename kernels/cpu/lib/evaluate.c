/*
 * evaluate.c - instructions of programs on blocks of numbers, per type and instruction set.
 *
 * Each is a plain loop, of which the compiler makes vector code; exp, log, tanh and power call the
 * C library for each number. An instruction is a loop of its own, so that no multiplication is
 * fused with an addition: each rounds, as NumPy's operations do.
 */
#include "inner_loops.h"

#include "proto/number/half.h"

#include <math.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* ---- Instructions. a, b and c are x[i], y[i] and z[i]. ---- */

#define INSTRUCT(name, target, type, expression)                                                   \
    target static void name(void *x, const void *y, const void *z, uint64_t count)                 \
    {                                                                                              \
        type *restrict to = x;                                                                     \
        const type *restrict right = y, *restrict third = z;                                       \
                                                                                                   \
        (void)right;                                                                               \
        (void)third;                                                                               \
        for (uint64_t i = 0; i < count; i++)                                                       \
            to[i] = (type)(expression);                                                            \
    }

#define A to[i]
#define B right[i]
#define C third[i]

/* What floats and integers have in common. */
#define COMPARE_ALL(name, target, type)                                                            \
    INSTRUCT(name##_lt, target, type, A < B)                                                       \
    INSTRUCT(name##_le, target, type, A <= B)                                                      \
    INSTRUCT(name##_gt, target, type, A > B)                                                       \
    INSTRUCT(name##_ge, target, type, A >= B)                                                      \
    INSTRUCT(name##_eq, target, type, A == B)                                                      \
    INSTRUCT(name##_ne, target, type, A != B)                                                      \
    INSTRUCT(name##_where, target, type, A != 0 ? B : C)                                           \
    INSTRUCT(name##_truth, target, type, A != 0)                                                   \
    INSTRUCT(name##_max, target, type, A > B || A != A ? A : B)                                    \
    INSTRUCT(name##_min, target, type, A < B || A != A ? A : B)

#define FLOAT_ALL(name, target, type, suffix)                                                      \
    COMPARE_ALL(name, target, type)                                                                \
    INSTRUCT(name##_add, target, type, A + B)                                                      \
    INSTRUCT(name##_sub, target, type, A - B)                                                      \
    INSTRUCT(name##_rsub, target, type, B - A)                                                     \
    INSTRUCT(name##_mul, target, type, A *B)                                                       \
    INSTRUCT(name##_div, target, type, A / B)                                                      \
    INSTRUCT(name##_rdiv, target, type, B / A)                                                     \
    INSTRUCT(name##_pow, target, type, pow##suffix(A, B))                                          \
    INSTRUCT(name##_rpow, target, type, pow##suffix(B, A))                                         \
    INSTRUCT(name##_neg, target, type, -A)                                                         \
    INSTRUCT(name##_abs, target, type, fabs##suffix(A))                                            \
    INSTRUCT(name##_exp, target, type, exp##suffix(A))                                             \
    INSTRUCT(name##_log, target, type, log##suffix(A))                                             \
    INSTRUCT(name##_sqrt, target, type, sqrt##suffix(A))                                           \
    INSTRUCT(name##_tanh, target, type, tanh##suffix(A))

/* Computed unsigned: they wrap. */
#define INTEGER_ALL(name, target)                                                                  \
    COMPARE_ALL(name, target, int64_t)                                                             \
    INSTRUCT(name##_add, target, int64_t, (uint64_t)A + (uint64_t)B)                               \
    INSTRUCT(name##_sub, target, int64_t, (uint64_t)A - (uint64_t)B)                               \
    INSTRUCT(name##_rsub, target, int64_t, (uint64_t)B - (uint64_t)A)                              \
    INSTRUCT(name##_mul, target, int64_t, (uint64_t)A *(uint64_t)B)                                \
    INSTRUCT(name##_neg, target, int64_t, -(uint64_t)A)                                            \
    INSTRUCT(name##_abs, target, int64_t, A < 0 ? -(uint64_t)A : (uint64_t)A)

#define NARROW_ALL(name, target)                                                                   \
    INSTRUCT(name##_bf16, target, float, gm_f32_of_bf16(gm_bf16_of_f32(A)))                        \
    INSTRUCT(name##_i32, target, int64_t, (int32_t)(uint32_t)(uint64_t)A)

/* ---- Conversions. A stride of 1 has a loop of its own, which becomes vector code. ---- */

#define CONVERT(name, target, result, element, convert)                                            \
    target static void name(void *to, const void *from, int64_t stride, uint64_t count)            \
    {                                                                                              \
        result *restrict out = to;                                                                 \
        const element *in = from;                                                                  \
                                                                                                   \
        if (stride == 1)                                                                           \
            for (uint64_t i = 0; i < count; i++)                                                   \
                out[i] = (result)convert(in[i]);                                                   \
        else                                                                                       \
            for (uint64_t i = 0; i < count; i++)                                                   \
                out[i] = (result)convert(in[(int64_t)i * stride]);                                 \
    }

#define IS_TRUE(x) ((x) != 0)

#define CONVERT_ALL(name, target)                                                                  \
    CONVERT(name##_f32_of_bf16, target, float, uint16_t, gm_f32_of_bf16)                           \
    CONVERT(name##_f32_of_f32, target, float, float, )                                             \
    CONVERT(name##_f32_of_bool, target, float, uint8_t, IS_TRUE)                                   \
    CONVERT(name##_f64_of_f16, target, double, uint16_t, gm_f32_of_f16)                            \
    CONVERT(name##_f64_of_bf16, target, double, uint16_t, gm_f32_of_bf16)                          \
    CONVERT(name##_f64_of_f32, target, double, float, )                                            \
    CONVERT(name##_f64_of_f64, target, double, double, )                                           \
    CONVERT(name##_f64_of_i32, target, double, int32_t, )                                          \
    CONVERT(name##_f64_of_i64, target, double, int64_t, )                                          \
    CONVERT(name##_f64_of_bool, target, double, uint8_t, IS_TRUE)                                  \
    CONVERT(name##_i64_of_i32, target, int64_t, int32_t, )                                         \
    CONVERT(name##_i64_of_i64, target, int64_t, int64_t, )                                         \
    CONVERT(name##_i64_of_bool, target, int64_t, uint8_t, IS_TRUE)                                 \
    CONVERT(name##_bf16_of_f32, target, uint16_t, float, gm_bf16_of_f32)                           \
    CONVERT(name##_bool_of_f32, target, uint8_t, float, IS_TRUE)                                   \
    CONVERT(name##_bool_of_f64, target, uint8_t, double, IS_TRUE)                                  \
    CONVERT(name##_bool_of_i64, target, uint8_t, int64_t, IS_TRUE)                                 \
    CONVERT(name##_i32_of_i64, target, int32_t, int64_t, (int32_t)(uint32_t)(uint64_t))

/* ---- Reductions. ---- */

/* Sums that do not wait for each other. They are summed up two by two at the end. */
#define LANES 16u

#define GREATER(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))
#define LESSER(a, b) ((a) < (b) || (a) != (a) ? (a) : (b))
#define PLUS_F(a, b) ((a) + (b))
#define PLUS_I(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))

#define REDUCE(name, target, type, sum, member, combine)                                           \
    target static union gm_number name(const void *x, uint64_t count)                              \
    {                                                                                              \
        const type *from = x;                                                                      \
        sum lane[LANES];                                                                           \
        uint64_t whole = count / LANES * LANES;                                                    \
                                                                                                   \
        if (whole == 0) {                                                                          \
            lane[0] = (sum)from[0];                                                                \
            whole = 1;                                                                             \
        } else {                                                                                   \
            for (unsigned k = 0; k < LANES; k++)                                                   \
                lane[k] = (sum)from[k];                                                            \
            for (uint64_t i = LANES; i < whole; i += LANES)                                        \
                for (unsigned k = 0; k < LANES; k++)                                               \
                    lane[k] = combine(lane[k], (sum)from[i + k]);                                  \
            for (unsigned half = LANES / 2; half > 0; half /= 2)                                   \
                for (unsigned k = 0; k < half; k++)                                                \
                    lane[k] = combine(lane[k], lane[k + half]);                                    \
        }                                                                                          \
        for (uint64_t i = whole; i < count; i++)                                                   \
            lane[0] = combine(lane[0], (sum)from[i]);                                              \
        return (union gm_number){.member = lane[0]};                                               \
    }

#define GATHER(name, target, type, sum, member, combine)                                           \
    target static void name(union gm_number *sums, const void *x, uint64_t count)                  \
    {                                                                                              \
        const type *restrict from = x;                                                             \
                                                                                                   \
        for (uint64_t i = 0; i < count; i++)                                                       \
            sums[i].member = combine(sums[i].member, (sum)from[i]);                                \
    }

#define REDUCE_ALL(name, target, kind)                                                             \
    kind(name##_sum_f32, target, float, double, real, PLUS_F) kind(name##_max_f32, target, float,  \
                                                                   double, real, GREATER)          \
        kind(name##_min_f32, target, float, double, real, LESSER)                                  \
            kind(name##_sum_f64, target, double, double, real, PLUS_F)                             \
                kind(name##_max_f64, target, double, double, real, GREATER)                        \
                    kind(name##_min_f64, target, double, double, real, LESSER)                     \
                        kind(name##_sum_i64, target, int64_t, int64_t, integer, PLUS_I)            \
                            kind(name##_max_i64, target, int64_t, int64_t, integer, GREATER)       \
                                kind(name##_min_i64, target, int64_t, int64_t, integer, LESSER)

/* ---- Tables. ---- */

#define ALL(isa, target)                                                                           \
    FLOAT_ALL(f32_##isa, target, float, f)                                                         \
    FLOAT_ALL(f64_##isa, target, double, )                                                         \
    INTEGER_ALL(i64_##isa, target)                                                                 \
    NARROW_ALL(narrow_##isa, target)                                                               \
    CONVERT_ALL(convert_##isa, target)                                                             \
    REDUCE_ALL(reduce_##isa, target, REDUCE)                                                       \
    REDUCE_ALL(gather_##isa, target, GATHER)

ALL(base, )
INSTRUCT(narrow_base_f16, , float, gm_f32_of_f16(gm_f16_of_f32(A)))
CONVERT(convert_base_f32_of_f16, , float, uint16_t, gm_f32_of_f16)
CONVERT(convert_base_f16_of_f32, , uint16_t, float, gm_f16_of_f32)
#if defined(__x86_64__)
/* The dozen operations of a conversion of f16 are one instruction on these processors, with the
 * same bits. */
#define F16_ALL(name, target, lanes, load, widen, narrow, store, load_wide, store_wide)            \
    target static void name##_round(void *x, const void *y, const void *z, uint64_t count)         \
    {                                                                                              \
        float *to = x;                                                                             \
        uint64_t i = 0;                                                                            \
                                                                                                   \
        for (; i + (lanes) <= count; i += (lanes))                                                 \
            store_wide(to + i, widen(narrow(load_wide(to + i), _MM_FROUND_TO_NEAREST_INT)));       \
        narrow_base_f16(to + i, y, z, count - i);                                                  \
    }                                                                                              \
    target static void name##_load(void *to, const void *from, int64_t stride, uint64_t count)     \
    {                                                                                              \
        float *out = to;                                                                           \
        const uint16_t *in = from;                                                                 \
        uint64_t i = 0;                                                                            \
                                                                                                   \
        for (; stride == 1 && i + (lanes) <= count; i += (lanes))                                  \
            store_wide(out + i, widen(load((const void *)(in + i))));                              \
        convert_base_f32_of_f16(out + i, in + i, stride, count - i);                               \
    }                                                                                              \
    target static void name##_store(void *to, const void *from, int64_t stride, uint64_t count)    \
    {                                                                                              \
        uint16_t *out = to;                                                                        \
        const float *in = from;                                                                    \
        uint64_t i = 0;                                                                            \
                                                                                                   \
        for (; i + (lanes) <= count; i += (lanes))                                                 \
            store((void *)(out + i), narrow(load_wide(in + i), _MM_FROUND_TO_NEAREST_INT));        \
        convert_base_f16_of_f32(out + i, in + i, stride, count - i);                               \
    }
F16_ALL(f16_avx2, GM_TARGET_AVX2, 8, _mm_loadu_si128, _mm256_cvtph_ps, _mm256_cvtps_ph,
        _mm_storeu_si128, _mm256_loadu_ps, _mm256_storeu_ps)
F16_ALL(f16_avx512, GM_TARGET_AVX512, 16, _mm256_loadu_si256, _mm512_cvtph_ps, _mm512_cvtps_ph,
        _mm256_storeu_si256, _mm512_loadu_ps, _mm512_storeu_ps)
ALL(avx2, GM_TARGET_AVX2)
ALL(avx512, GM_TARGET_AVX512)
#define OF_ISAS(row)                                                                               \
    {                                                                                              \
        row(base), row(avx2), row(avx512)                                                          \
    }
#else
#define OF_ISAS(row)                                                                               \
    {                                                                                              \
        row(base), row(base), row(base)                                                            \
    }
#endif

#define COMMON_ROW(name)                                                                           \
    [GM_DO_LT] = name##_lt, [GM_DO_LE] = name##_le, [GM_DO_GT] = name##_gt,                        \
    [GM_DO_GE] = name##_ge, [GM_DO_EQ] = name##_eq, [GM_DO_NE] = name##_ne,                        \
    [GM_DO_WHERE] = name##_where, [GM_DO_TRUTH] = name##_truth, [GM_DO_MAX] = name##_max,          \
    [GM_DO_MIN] = name##_min, [GM_DO_ADD] = name##_add, [GM_DO_SUB] = name##_sub,                  \
    [GM_DO_RSUB] = name##_rsub, [GM_DO_MUL] = name##_mul, [GM_DO_NEG] = name##_neg,                \
    [GM_DO_ABS] = name##_abs
#define FLOAT_ROW(name)                                                                            \
    {                                                                                              \
        COMMON_ROW(name), [GM_DO_DIV] = name##_div, [GM_DO_RDIV] = name##_rdiv,                    \
                          [GM_DO_POW] = name##_pow, [GM_DO_RPOW] = name##_rpow,                    \
                          [GM_DO_EXP] = name##_exp, [GM_DO_LOG] = name##_log,                      \
                          [GM_DO_SQRT] = name##_sqrt, [GM_DO_TANH] = name##_tanh                   \
    }
#define INSTRUCT_ROW(isa)                                                                          \
    {                                                                                              \
        [GM_COMPUTE_F32] = FLOAT_ROW(f32_##isa), [GM_COMPUTE_F64] = FLOAT_ROW(f64_##isa),          \
        [GM_COMPUTE_I64] = {                                                                       \
            COMMON_ROW(i64_##isa)                                                                  \
        }                                                                                          \
    }
#define F16_ROUND_base narrow_base_f16
#define F16_LOAD_base convert_base_f32_of_f16
#define F16_STORE_base convert_base_f16_of_f32
#define F16_ROUND_avx2 f16_avx2_round
#define F16_LOAD_avx2 f16_avx2_load
#define F16_STORE_avx2 f16_avx2_store
#define F16_ROUND_avx512 f16_avx512_round
#define F16_LOAD_avx512 f16_avx512_load
#define F16_STORE_avx512 f16_avx512_store
#define NARROW_ROW(isa)                                                                            \
    {                                                                                              \
        [GM_NARROW_F16] = F16_ROUND_##isa, [GM_NARROW_BF16] = narrow_##isa##_bf16,                 \
        [GM_NARROW_I32] = narrow_##isa##_i32                                                       \
    }
#define LOAD_ROW(isa)                                                                              \
    {                                                                                              \
        [GM_COMPUTE_F32] = {[GM_F16] = F16_LOAD_##isa,                                             \
                            [GM_BF16] = convert_##isa##_f32_of_bf16,                               \
                            [GM_F32] = convert_##isa##_f32_of_f32,                                 \
                            [GM_BOOL] = convert_##isa##_f32_of_bool},                              \
        [GM_COMPUTE_F64] =                                                                         \
            {[GM_F16] = convert_##isa##_f64_of_f16,  [GM_BF16] = convert_##isa##_f64_of_bf16,      \
             [GM_F32] = convert_##isa##_f64_of_f32,  [GM_F64] = convert_##isa##_f64_of_f64,        \
             [GM_I32] = convert_##isa##_f64_of_i32,  [GM_I64] = convert_##isa##_f64_of_i64,        \
             [GM_BOOL] = convert_##isa##_f64_of_bool},                                             \
        [GM_COMPUTE_I64] = {[GM_I32] = convert_##isa##_i64_of_i32,                                 \
                            [GM_I64] = convert_##isa##_i64_of_i64,                                 \
                            [GM_BOOL] = convert_##isa##_i64_of_bool},                              \
    }
#define STORE_ROW(isa)                                                                             \
    {                                                                                              \
        [GM_COMPUTE_F32] = {[GM_F16] = F16_STORE_##isa,                                            \
                            [GM_BF16] = convert_##isa##_bf16_of_f32,                               \
                            [GM_F32] = convert_##isa##_f32_of_f32,                                 \
                            [GM_BOOL] = convert_##isa##_bool_of_f32},                              \
        [GM_COMPUTE_F64] =                                                                         \
            {[GM_F64] = convert_##isa##_f64_of_f64, [GM_BOOL] = convert_##isa##_bool_of_f64},      \
        [GM_COMPUTE_I64] = {[GM_I32] = convert_##isa##_i32_of_i64,                                 \
                            [GM_I64] = convert_##isa##_i64_of_i64,                                 \
                            [GM_BOOL] = convert_##isa##_bool_of_i64},                              \
    }
#define REDUCTIONS_OF(name, type)                                                                  \
    {                                                                                              \
        [GM_REDUCE_SUM] = name##_sum_##type, [GM_REDUCE_MEAN] = name##_sum_##type,                 \
        [GM_REDUCE_MAX] = name##_max_##type, [GM_REDUCE_MIN] = name##_min_##type                   \
    }
#define REDUCTIONS_ROW(name)                                                                       \
    {                                                                                              \
        [GM_COMPUTE_F32] = REDUCTIONS_OF(name, f32), [GM_COMPUTE_F64] = REDUCTIONS_OF(name, f64),  \
        [GM_COMPUTE_I64] = REDUCTIONS_OF(name, i64)                                                \
    }
#define REDUCE_ROW(isa) REDUCTIONS_ROW(reduce_##isa)
#define GATHER_ROW(isa) REDUCTIONS_ROW(gather_##isa)

gm_instruct_fn *gm_instruct_get(enum gm_compute_type type, unsigned kind, enum gm_isa isa)
{
    static gm_instruct_fn *const table[GM_ISA_COUNT][GM_COMPUTE_COUNT][GM_DO_COUNT] =
        OF_ISAS(INSTRUCT_ROW);

    return table[isa][type][kind];
}

gm_instruct_fn *gm_narrow_get(unsigned narrow, enum gm_isa isa)
{
    static gm_instruct_fn *const table[GM_ISA_COUNT][GM_NARROW_I32 + 1] = OF_ISAS(NARROW_ROW);

    return table[isa][narrow];
}

gm_convert_fn *gm_load_get(enum gm_compute_type type, enum gm_dtype dtype, enum gm_isa isa)
{
    static gm_convert_fn *const table[GM_ISA_COUNT][GM_COMPUTE_COUNT][GM_DTYPE_COUNT] =
        OF_ISAS(LOAD_ROW);

    return table[isa][type][dtype];
}

gm_convert_fn *gm_store_get(enum gm_compute_type type, enum gm_dtype dtype, enum gm_isa isa)
{
    static gm_convert_fn *const table[GM_ISA_COUNT][GM_COMPUTE_COUNT][GM_DTYPE_COUNT] =
        OF_ISAS(STORE_ROW);

    return table[isa][type][dtype];
}

gm_reduce_fn *gm_reduce_get(enum gm_compute_type type, enum gm_reduction reduction, enum gm_isa isa)
{
    static gm_reduce_fn *const table[GM_ISA_COUNT][GM_COMPUTE_COUNT][GM_REDUCTION_COUNT] =
        OF_ISAS(REDUCE_ROW);

    return table[isa][type][reduction];
}

gm_gather_fn *gm_gather_get(enum gm_compute_type type, enum gm_reduction reduction, enum gm_isa isa)
{
    static gm_gather_fn *const table[GM_ISA_COUNT][GM_COMPUTE_COUNT][GM_REDUCTION_COUNT] =
        OF_ISAS(GATHER_ROW);

    return table[isa][type][reduction];
}
