/*
 * lines.c - computes dot products and sums of lines, per accumulator type and instruction set.
 *
 * A dot product has 8 partial sums of a vector each, so that its additions do not wait for one
 * another. One x uses all 8. Four x use 2 each, and the line is loaded once for all. Partial sums
 * are added in a fixed order, so each call gives the same bits.
 */
#include "inner_loops.h"

#include <string.h>

#define UNROLL _Pragma("GCC unroll 16")

/* COUNT vectors x, PARTS partial sums each. */
#define DOT(name, target, type, bytes, COUNT, PARTS)                                               \
    target static void name(uint64_t length, const type *line, const type *x, uint64_t x_next,     \
                            type *sums)                                                            \
    {                                                                                              \
        typedef type vector __attribute__((vector_size(bytes)));                                   \
        const uint64_t lanes = (bytes) / sizeof(type), step = lanes * (PARTS);                     \
        vector acc[COUNT][PARTS] = {0}, from, factor;                                              \
        uint64_t p = 0;                                                                            \
                                                                                                   \
        for (; p + step <= length; p += step) {                                                    \
            UNROLL for (uint64_t part = 0; part < (PARTS); part++)                                 \
            {                                                                                      \
                memcpy(&from, line + p + part * lanes, sizeof(from));                              \
                UNROLL for (uint64_t v = 0; v < (COUNT); v++)                                      \
                {                                                                                  \
                    memcpy(&factor, x + v * x_next + p + part * lanes, sizeof(factor));            \
                    acc[v][part] += from * factor;                                                 \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        for (; p + lanes <= length; p += lanes) {                                                  \
            memcpy(&from, line + p, sizeof(from));                                                 \
            UNROLL for (uint64_t v = 0; v < (COUNT); v++)                                          \
            {                                                                                      \
                memcpy(&factor, x + v * x_next + p, sizeof(factor));                               \
                acc[v][0] += from * factor;                                                        \
            }                                                                                      \
        }                                                                                          \
        UNROLL for (uint64_t v = 0; v < (COUNT); v++)                                              \
        {                                                                                          \
            type sum = 0;                                                                          \
            for (uint64_t q = p; q < length; q++)                                                  \
                sum += line[q] * x[v * x_next + q];                                                \
            UNROLL for (uint64_t part = 1; part < (PARTS); part++) acc[v][0] += acc[v][part];      \
            UNROLL for (uint64_t lane = 0; lane < lanes; lane++) sum += acc[v][0][lane];           \
            sums[v] += sum;                                                                        \
        }                                                                                          \
    }

#define DOTS(name, target, type, one, shared)                                                      \
    target static void name(uint64_t length, const void *line, const void *vectors,                \
                            uint64_t x_next, unsigned count, void *sums)                           \
    {                                                                                              \
        const type *x = vectors;                                                                   \
        type *to = sums;                                                                           \
        unsigned v = 0;                                                                            \
                                                                                                   \
        for (; v + GM_LINES_SHARED <= count; v += GM_LINES_SHARED)                                 \
            shared(length, line, x + v * x_next, x_next, to + v);                                  \
        for (; v < count; v++)                                                                     \
            one(length, line, x + v * x_next, x_next, to + v);                                     \
    }

#define ADD(name, target, type)                                                                    \
    target static void name(uint64_t length, const void *const line[4], const void *factors,       \
                            void *sums)                                                            \
    {                                                                                              \
        const type *x = factors;                                                                   \
        const type *l0 = line[0], *l1 = line[1], *l2 = line[2], *l3 = line[3];                     \
        type *restrict to = sums;                                                                  \
                                                                                                   \
        for (uint64_t i = 0; i < length; i++)                                                      \
            to[i] = (((to[i] + l0[i] * x[0]) + l1[i] * x[1]) + l2[i] * x[2]) + l3[i] * x[3];       \
    }

#define LINES(type, sum, suffix, target, bytes)                                                    \
    DOT(sum##_dot_one_##suffix, target, type, bytes, 1, 8)                                         \
    DOT(sum##_dot_shared_##suffix, target, type, bytes, GM_LINES_SHARED, 2)                        \
    DOTS(sum##_dot_##suffix, target, type, sum##_dot_one_##suffix, sum##_dot_shared_##suffix)      \
    ADD(sum##_add_##suffix, target, type)

#define LINES_ALL(suffix, target, bytes)                                                           \
    LINES(float, f32, suffix, target, bytes)                                                       \
    LINES(double, f64, suffix, target, bytes)                                                      \
    LINES(uint32_t, u32, suffix, target, bytes)                                                    \
    LINES(uint64_t, u64, suffix, target, bytes)

LINES_ALL(base, , 16)
#if defined(__x86_64__)
LINES_ALL(avx2, GM_TARGET_AVX2, 32)
LINES_ALL(avx512, GM_TARGET_AVX512, 64)
#endif

#define ROW(isa, suffix)                                                                           \
    [isa] = {[GM_SUM_F32] = {f32_dot_##suffix, f32_add_##suffix},                                  \
             [GM_SUM_F64] = {f64_dot_##suffix, f64_add_##suffix},                                  \
             [GM_SUM_U32] = {u32_dot_##suffix, u32_add_##suffix},                                  \
             [GM_SUM_U64] = {u64_dot_##suffix, u64_add_##suffix}}

static const struct gm_lines lines[GM_ISA_COUNT][GM_SUM_COUNT] = {
    ROW(GM_ISA_BASE, base),
#if defined(__x86_64__)
    ROW(GM_ISA_AVX2, avx2),
    ROW(GM_ISA_AVX512, avx512),
#endif
};

const struct gm_lines *gm_lines_get(enum gm_sum sum, enum gm_isa isa)
{
    return &lines[isa][sum];
}
