/*
 * micro_kernel.c - is the micro-kernel of the blocked matmul, per accumulator type and instruction
 * set.
 *
 * One body, in the compiler's vector types. With the loops over the block unrolled, the
 * accumulators are registers. Each p costs the loads of one row of b, a broadcast for each element
 * of a, and a multiply-add for each vector. The blocks fill the register file except for those
 * loads: 12 x 2 of 32 vectors with AVX-512, 4 x 3 of 16 with AVX2, 4 x 2 of 16 with SSE2, which has
 * no fused multiply-add and needs one more register for each product. The last block of a tile may
 * have 4 or 8 rows in place of 12.
 */
#include "inner_loops.h"

/* a_row and a_next: from a row of a to the next, and from one p to the next, in elements. */
#define MICRO(name, target, type, bytes, ROWS, a_row, a_next)                                      \
    target static void name(uint64_t k, const void *rows_a, uint64_t distance, const void *rows_b, \
                            uint64_t b_next, void *sums, uint64_t sums_next, bool first)           \
    {                                                                                              \
        typedef type vector __attribute__((vector_size(bytes)));                                   \
        typedef type anywhere __attribute__((vector_size(bytes), aligned(sizeof(type))));          \
        enum { VECTORS = GM_MICRO_VECTORS(bytes) };                                                \
        const type *a[ROWS / 4], *b = rows_b;                                                      \
        enum { LANES = (bytes) / sizeof(type) };                                                   \
        type *s = sums;                                                                            \
        vector acc[ROWS][VECTORS], row[VECTORS];                                                   \
                                                                                                   \
        (void)distance;                                                                            \
        UNROLL for (int i = 0; i < ROWS; i++)                                                      \
        {                                                                                          \
            a[i / 4] = (const type *)rows_a + (uint64_t)(i / 4) * 4 * (a_row);                     \
            UNROLL for (int j = 0; j < VECTORS; j++) acc[i][j] =                                   \
                first ? (vector){0}                                                                \
                      : *(const anywhere *)(const void *)(s + i * sums_next + j * LANES);          \
        }                                                                                          \
        for (uint64_t p = 0; p < k; p++, b += b_next) {                                            \
            UNROLL for (int j = 0; j < VECTORS; j++) row[j] =                                      \
                *(const anywhere *)(const void *)(b + j * LANES);                                  \
            UNROLL for (int i = 0; i < ROWS; i++)                                                  \
            {                                                                                      \
                UNROLL for (int j = 0; j < VECTORS; j++) acc[i][j] +=                              \
                    a[i / 4][(uint64_t)(i % 4) * (a_row)] * row[j];                                \
            }                                                                                      \
            UNROLL for (int i = 0; i < ROWS / 4; i++) a[i] += (a_next);                            \
        }                                                                                          \
        UNROLL for (int i = 0; i < ROWS; i++)                                                      \
        {                                                                                          \
            UNROLL for (int j = 0; j < VECTORS; j++) *                                             \
                (anywhere *)(void *)(s + i * sums_next + j * LANES) = acc[i][j];                   \
        }                                                                                          \
    }

#define UNROLL _Pragma("GCC unroll 16")

/* For so many rows: packed in groups of a whole block's, and where they lie. */
#define MICRO_ROWS(name, target, type, bytes, ROWS)                                                \
    MICRO(name##_packed_##ROWS, target, type, bytes, ROWS, 1, GM_MICRO_ROWS(bytes))                \
    MICRO(name##_rows_##ROWS, target, type, bytes, ROWS, distance, 1)

#define MICROS(suffix, target, bytes, ROWS)                                                        \
    MICRO_ROWS(f32_##suffix, target, float, bytes, ROWS)                                           \
    MICRO_ROWS(f64_##suffix, target, double, bytes, ROWS)                                          \
    MICRO_ROWS(u32_##suffix, target, uint32_t, bytes, ROWS)                                        \
    MICRO_ROWS(u64_##suffix, target, uint64_t, bytes, ROWS)

#define KERNELS_4(name) .packed = {name##_packed_4}, .in_place = {name##_rows_4}
#define KERNELS_12(name)                                                                           \
    .packed = {name##_packed_4, name##_packed_8, name##_packed_12},                                \
    .in_place = {name##_rows_4, name##_rows_8, name##_rows_12}

#define SIZES(bytes, sum_bytes) GM_MICRO_ROWS(bytes), (bytes) / (sum_bytes)*GM_MICRO_VECTORS(bytes)
#define ROW(isa, suffix, bytes, ROWS)                                                              \
    [isa] = {[GM_SUM_F32] = {SIZES(bytes, 4), KERNELS_##ROWS(f32_##suffix)},                       \
             [GM_SUM_F64] = {SIZES(bytes, 8), KERNELS_##ROWS(f64_##suffix)},                       \
             [GM_SUM_U32] = {SIZES(bytes, 4), KERNELS_##ROWS(u32_##suffix)},                       \
             [GM_SUM_U64] = {SIZES(bytes, 8), KERNELS_##ROWS(u64_##suffix)}}

MICROS(base, , 16, 4)
#if defined(__x86_64__)
MICROS(avx2, GM_TARGET_AVX2, 32, 4)
MICROS(avx512, GM_TARGET_AVX512, 64, 4)
MICROS(avx512, GM_TARGET_AVX512, 64, 8)
MICROS(avx512, GM_TARGET_AVX512, 64, 12)
#endif

static const struct gm_micro micros[GM_ISA_COUNT][GM_SUM_COUNT] = {
    ROW(GM_ISA_BASE, base, 16, 4),
#if defined(__x86_64__)
    ROW(GM_ISA_AVX2, avx2, 32, 4),
    ROW(GM_ISA_AVX512, avx512, 64, 12),
#endif
};

const struct gm_micro *gm_micro_get(enum gm_sum sum, enum gm_isa isa)
{
    return &micros[isa][sum];
}
