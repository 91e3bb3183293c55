/*
 * micro_kernel.c - is the micro-kernel of the blocked matmul, per accumulator type and instruction
 * set.
 *
 * One body, in the compiler's vector types. With the loops over the block unrolled, the
 * accumulators are registers. Each p costs the loads of one row of b, a broadcast for each element
 * of a, and a multiply-add for each vector. The blocks fill the register file except for those
 * loads: 12 x 2 of 32 vectors with AVX-512, 4 x 3 of 16 with AVX2, 4 x 2 of 16 with SSE2, which has
 * no fused multiply-add and needs one more register for each product.
 */
#include "inner_loops.h"

#define MICRO(name, target, type, bytes, ROWS, VECTORS)                                            \
    target static void name(uint64_t k, const void *panel_a, const void *panel_b, uint64_t b_next, \
                            void *sums, bool first)                                                \
    {                                                                                              \
        typedef type vector __attribute__((vector_size(bytes)));                                   \
        typedef type anywhere __attribute__((vector_size(bytes), aligned(sizeof(type))));          \
        const type *a = panel_a, *b = panel_b;                                                     \
        vector *s = sums, acc[ROWS][VECTORS], row[VECTORS];                                        \
                                                                                                   \
        UNROLL for (int i = 0; i < ROWS; i++)                                                      \
        {                                                                                          \
            UNROLL for (int j = 0; j < VECTORS; j++) acc[i][j] =                                   \
                first ? (vector){0} : s[i * VECTORS + j];                                          \
        }                                                                                          \
        for (uint64_t p = 0; p < k; p++, a += ROWS, b += b_next) {                                 \
            UNROLL for (int j = 0; j < VECTORS; j++) row[j] =                                      \
                *(const anywhere *)(const void *)(b + j * ((bytes) / sizeof(type)));               \
            UNROLL for (int i = 0; i < ROWS; i++)                                                  \
            {                                                                                      \
                UNROLL for (int j = 0; j < VECTORS; j++) acc[i][j] += a[i] * row[j];               \
            }                                                                                      \
        }                                                                                          \
        UNROLL for (int i = 0; i < ROWS; i++)                                                      \
        {                                                                                          \
            UNROLL for (int j = 0; j < VECTORS; j++) s[i * VECTORS + j] = acc[i][j];               \
        }                                                                                          \
    }

#define UNROLL _Pragma("GCC unroll 16")

#define MICROS(suffix, target, bytes, ROWS, VECTORS)                                               \
    MICRO(f32_##suffix, target, float, bytes, ROWS, VECTORS)                                       \
    MICRO(f64_##suffix, target, double, bytes, ROWS, VECTORS)                                      \
    MICRO(u32_##suffix, target, uint32_t, bytes, ROWS, VECTORS)                                    \
    MICRO(u64_##suffix, target, uint64_t, bytes, ROWS, VECTORS)

#define ROW(isa, suffix, bytes, ROWS, VECTORS)                                                     \
    [isa] = {[GM_SUM_F32] = {ROWS, (bytes) / 4 * VECTORS, f32_##suffix},                           \
             [GM_SUM_F64] = {ROWS, (bytes) / 8 * VECTORS, f64_##suffix},                           \
             [GM_SUM_U32] = {ROWS, (bytes) / 4 * VECTORS, u32_##suffix},                           \
             [GM_SUM_U64] = {ROWS, (bytes) / 8 * VECTORS, u64_##suffix}}

MICROS(base, , 16, 4, 2)
#if defined(__x86_64__)
MICROS(avx2, GM_TARGET_AVX2, 32, 4, 3)
MICROS(avx512, GM_TARGET_AVX512, 64, 12, 2)
#endif

static const struct gm_micro micros[GM_ISA_COUNT][GM_SUM_COUNT] = {
    ROW(GM_ISA_BASE, base, 16, 4, 2),
#if defined(__x86_64__)
    ROW(GM_ISA_AVX2, avx2, 32, 4, 3),
    ROW(GM_ISA_AVX512, avx512, 64, 12, 2),
#endif
};

const struct gm_micro *gm_micro_get(enum gm_sum sum, enum gm_isa isa)
{
    return &micros[isa][sum];
}
