/*
 * pack.c - packs operands for the micro-kernel.
 *
 * If the lanes of one p are contiguous, they are copied group by group. If they are rows, 4 at a
 * time are transposed in registers. Types of 16 bits are widened first, a row at a time. The
 * element values do not matter: all types of 4 bytes share code, and so do all of 8.
 */
#include "product.h"

#include "proto/number/half.h"

#include <string.h>

typedef void widen_fn(enum gm_dtype dtype, float *dst, const uint16_t *src, uint64_t count);

/* Compiled for each instruction set, where the loops become vector code. */
#define WIDEN(name, target)                                                                        \
    target static void name(enum gm_dtype dtype, float *dst, const uint16_t *src, uint64_t count)  \
    {                                                                                              \
        if (dtype == GM_F16) {                                                                     \
            for (uint64_t i = 0; i < count; i++)                                                   \
                dst[i] = gm_f32_of_f16(src[i]);                                                    \
        } else {                                                                                   \
            for (uint64_t i = 0; i < count; i++)                                                   \
                dst[i] = gm_f32_of_bf16(src[i]);                                                   \
        }                                                                                          \
    }

WIDEN(widen_base, )
#if defined(__x86_64__)
WIDEN(widen_avx2, GM_TARGET_AVX2)
WIDEN(widen_avx512, GM_TARGET_AVX512)
#endif

static widen_fn *const widen[GM_ISA_COUNT] = {
    [GM_ISA_BASE] = widen_base,
#if defined(__x86_64__)
    [GM_ISA_AVX2] = widen_avx2,
    [GM_ISA_AVX512] = widen_avx512,
#endif
};

void gm_widen(enum gm_dtype dtype, float *dst, const void *src, uint64_t count, enum gm_isa isa)
{
    widen[isa](dtype, dst, src, count);
}

/* Copies contiguous lanes to one row of each group. Sizes are in bytes; rows are 16 or more. */
static void spread(char *dst, uint64_t group_bytes, uint64_t next_group, const char *src,
                   uint64_t bytes)
{
    for (; bytes >= group_bytes; bytes -= group_bytes, dst += next_group, src += group_bytes) {
        for (uint64_t i = 0; i < group_bytes; i += 16)
            memcpy(dst + i, src + i, 16);
    }
    if (bytes > 0) {
        memcpy(dst, src, bytes);
        memset(dst + bytes, 0, group_bytes - bytes);
    }
}

typedef uint32_t vector32 __attribute__((vector_size(16)));
typedef uint64_t vector64 __attribute__((vector_size(16)));

/* Four rows of k elements to dst[p][0..3], rows of dst being `group` apart. */
static void interleave32(uint32_t *dst, uint64_t group, const uint32_t *const row[4], uint64_t k)
{
    uint64_t p = 0;

    for (; p + 4 <= k; p += 4) {
        vector32 v[4], w[4];
        for (int i = 0; i < 4; i++)
            memcpy(&v[i], row[i] + p, 16);
        w[0] = __builtin_shufflevector(v[0], v[2], 0, 4, 1, 5);
        w[1] = __builtin_shufflevector(v[0], v[2], 2, 6, 3, 7);
        w[2] = __builtin_shufflevector(v[1], v[3], 0, 4, 1, 5);
        w[3] = __builtin_shufflevector(v[1], v[3], 2, 6, 3, 7);
        v[0] = __builtin_shufflevector(w[0], w[2], 0, 4, 1, 5);
        v[1] = __builtin_shufflevector(w[0], w[2], 2, 6, 3, 7);
        v[2] = __builtin_shufflevector(w[1], w[3], 0, 4, 1, 5);
        v[3] = __builtin_shufflevector(w[1], w[3], 2, 6, 3, 7);
        for (uint64_t i = 0; i < 4; i++)
            memcpy(dst + (p + i) * group, &v[i], 16);
    }
    for (; p < k; p++) {
        for (int i = 0; i < 4; i++)
            memcpy(dst + p * group + i, row[i] + p, sizeof(*dst));
    }
}

static void interleave64(uint64_t *dst, uint64_t group, const uint64_t *const row[4], uint64_t k)
{
    uint64_t p = 0;

    for (; p + 2 <= k; p += 2) {
        for (uint64_t i = 0; i < 4; i += 2) {
            vector64 v[2], w[2];
            memcpy(&v[0], row[i] + p, 16);
            memcpy(&v[1], row[i + 1] + p, 16);
            w[0] = __builtin_shufflevector(v[0], v[1], 0, 2);
            w[1] = __builtin_shufflevector(v[0], v[1], 1, 3);
            memcpy(dst + p * group + i, &w[0], 16);
            memcpy(dst + (p + 1) * group + i, &w[1], 16);
        }
    }
    for (; p < k; p++) {
        for (int i = 0; i < 4; i++)
            memcpy(dst + p * group + i, row[i] + p, sizeof(*dst));
    }
}

static size_t packed_size(enum gm_dtype dtype)
{
    return gm_is_half(dtype) ? sizeof(float) : gm_dtype_size(dtype);
}

static void pack_side_by_side(char *panel, unsigned group, const struct gm_block *block,
                              enum gm_isa isa)
{
    size_t size = packed_size(block->dtype), source_size = gm_dtype_size(block->dtype);
    uint64_t row_bytes = group * size;
    float wide[GM_PACK_MAX];

    for (uint64_t p = 0; p < block->k; p++) {
        const char *row = (const char *)block->data + p * block->k_stride * source_size;
        if (gm_is_half(block->dtype)) {
            gm_widen(block->dtype, wide, row, block->lanes, isa);
            row = (const char *)wide;
        }
        spread(panel + p * row_bytes, row_bytes, block->k * row_bytes, row, block->lanes * size);
    }
}

/* Lanes beyond the last read zeros. */
static void pack_rows(char *panel, unsigned group, const struct gm_block *block, enum gm_isa isa)
{
    static const uint64_t zeros[GM_PACK_MAX];
    size_t size = packed_size(block->dtype), source_size = gm_dtype_size(block->dtype);
    uint64_t filled = (block->lanes + group - 1) / group * group;
    float wide[4][GM_PACK_MAX];

    for (uint64_t lane = 0; lane < filled; lane += 4) {
        const void *row[4];
        for (uint64_t i = 0; i < 4; i++) {
            row[i] = zeros;
            if (lane + i >= block->lanes)
                continue;
            row[i] = (const char *)block->data + (lane + i) * block->lane_stride * source_size;
            if (gm_is_half(block->dtype)) {
                gm_widen(block->dtype, wide[i], row[i], block->k, isa);
                row[i] = wide[i];
            }
        }
        char *dst = panel + (lane / group * block->k * group + lane % group) * size;
        if (size == 4)
            interleave32((uint32_t *)(void *)dst, group,
                         (const uint32_t *const[4]){row[0], row[1], row[2], row[3]}, block->k);
        else
            interleave64((uint64_t *)(void *)dst, group,
                         (const uint64_t *const[4]){row[0], row[1], row[2], row[3]}, block->k);
    }
}

void gm_pack(void *panel, unsigned group, const struct gm_block *block, enum gm_isa isa)
{
    if (block->lane_stride == 1)
        pack_side_by_side(panel, group, block, isa);
    else
        pack_rows(panel, group, block, isa);
}
