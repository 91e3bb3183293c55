/*
 * plus.c - adds contiguous elements, per element type and instruction set.
 *
 * The compiler makes vector code of the plain loop for all types but f16. The dozen operations of
 * gm_f32_of_f16 are one instruction on processors that have it, with the same bits.
 */
#include "inner_loops.h"

#include "proto/number/half.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* element: the type in memory; sum: what it is computed in; load and store turn one into the
 * other. Integers are computed unsigned: they wrap. */
#define PLUS(name, target, element, sum, load, store)                                              \
    target static void name(void *to, const void *a, const void *b, uint64_t count)                \
    {                                                                                              \
        const element *restrict left = a, *restrict right = b;                                     \
        element *restrict result = to;                                                             \
                                                                                                   \
        for (uint64_t i = 0; i < count; i++)                                                       \
            result[i] = (element)store((sum)load(left[i]) + (sum)load(right[i]));                  \
    }

#define PLUS_ALL(suffix, target)                                                                   \
    PLUS(bf16_##suffix, target, uint16_t, float, gm_f32_of_bf16, gm_bf16_of_f32)                   \
    PLUS(f32_##suffix, target, float, float, , )                                                   \
    PLUS(f64_##suffix, target, double, double, , )                                                 \
    PLUS(i32_##suffix, target, uint32_t, uint32_t, , )                                             \
    PLUS(i64_##suffix, target, uint64_t, uint64_t, , )

PLUS_ALL(base, )
PLUS(f16_base, , uint16_t, float, gm_f32_of_f16, gm_f16_of_f32)

#if defined(__x86_64__)
PLUS_ALL(avx2, GM_TARGET_AVX2)
PLUS_ALL(avx512, GM_TARGET_AVX512)

#define PLUS_F16(name, target, lanes, load, widen, plus, narrow, store)                            \
    target static void name(void *to, const void *a, const void *b, uint64_t count)                \
    {                                                                                              \
        const uint16_t *left = a, *right = b;                                                      \
        uint16_t *result = to;                                                                     \
        uint64_t i = 0;                                                                            \
                                                                                                   \
        for (; i + (lanes) <= count; i += (lanes))                                                 \
            store((void *)(result + i), narrow(plus(widen(load((const void *)(left + i))),         \
                                                    widen(load((const void *)(right + i)))),       \
                                               _MM_FROUND_TO_NEAREST_INT));                        \
        f16_base(result + i, left + i, right + i, count - i);                                      \
    }

PLUS_F16(f16_avx2, GM_TARGET_AVX2, 8, _mm_loadu_si128, _mm256_cvtph_ps, _mm256_add_ps,
         _mm256_cvtps_ph, _mm_storeu_si128)
PLUS_F16(f16_avx512, GM_TARGET_AVX512, 16, _mm256_loadu_si256, _mm512_cvtph_ps, _mm512_add_ps,
         _mm512_cvtps_ph, _mm256_storeu_si256)
#endif

#define ROW(isa, suffix)                                                                           \
    [isa] = {[GM_F16] = f16_##suffix, [GM_BF16] = bf16_##suffix, [GM_F32] = f32_##suffix,          \
             [GM_F64] = f64_##suffix, [GM_I32] = i32_##suffix,   [GM_I64] = i64_##suffix}

static gm_plus_fn *const plus[GM_ISA_COUNT][GM_DTYPE_COUNT] = {
    ROW(GM_ISA_BASE, base),
#if defined(__x86_64__)
    ROW(GM_ISA_AVX2, avx2),
    ROW(GM_ISA_AVX512, avx512),
#endif
};

gm_plus_fn *gm_plus_get(enum gm_dtype dtype, enum gm_isa isa)
{
    return plus[isa][dtype];
}
