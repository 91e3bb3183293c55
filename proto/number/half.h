/*
 * half.h - f16 (IEEE binary16) and bf16 (the upper half of an f32) from and to f32 and f64.
 *
 * Each narrowing rounds once, to nearest, ties to even. That holds for f64 too: going through f32
 * would round twice. NaN stays NaN (quiet; sign and top payload bits are kept), values beyond the
 * range become infinity, small ones subnormal. Masks select instead of branches, so that loops over
 * these functions vectorise: compilers do not move floating-point operations out of branches.
 */
#ifndef GM_PROTO_NUMBER_HALF_H
#define GM_PROTO_NUMBER_HALF_H

#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Converts numbers to their bits and back. */

static inline uint32_t gm_f32_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static inline float gm_f32_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline uint64_t gm_f64_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static inline double gm_f64_of_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* Selects yes or no, bit by bit. */
static inline uint32_t gm_select32(int condition, uint32_t yes, uint32_t no)
{
    uint32_t mask = 0u - (uint32_t)condition;
    return (yes & mask) | (no & ~mask);
}

static inline uint64_t gm_select64(int condition, uint64_t yes, uint64_t no)
{
    uint64_t mask = 0u - (uint64_t)condition;
    return (yes & mask) | (no & ~mask);
}

static inline float gm_f32_of_bf16(uint16_t bf16)
{
    return gm_f32_of_bits((uint32_t)bf16 << 16);
}

static inline float gm_f32_of_f16(uint16_t f16)
{
    uint32_t sign = (uint32_t)(f16 & 0x8000) << 16;
    uint32_t rest = (uint32_t)(f16 & 0x7FFF)
                    << 13; /* exponent and mantissa moved to the bits of f32 */
    /* The exponent's bias is 15 in f16 and 127 in f32. */
    uint32_t normal = rest + ((127 - 15) << 23);
    /* 2^-14 with the subnormal's bits as mantissa, less 2^-14. */
    uint32_t subnormal = gm_f32_bits(gm_f32_of_bits(rest + (113 << 23)) - 0x1p-14f);
    uint32_t special = rest | 0x7F800000 | (uint32_t)(rest > 0x0F800000) << 22;

    uint32_t bits = gm_select32(rest < 0x00800000, subnormal, normal);
    return gm_f32_of_bits(sign | gm_select32(rest >= 0x0F800000, special, bits));
}

static inline uint16_t gm_bf16_of_f32(float value)
{
    uint32_t bits = gm_f32_bits(value);
    uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
    uint32_t nan = bits >> 16 | 0x40;
    return (uint16_t)gm_select32((bits & 0x7FFFFFFF) > 0x7F800000, nan, rounded);
}

static inline uint16_t gm_f16_of_f32(float value)
{
    uint32_t bits = gm_f32_bits(value);
    uint32_t sign = bits >> 16 & 0x8000;
    uint32_t rest = bits & 0x7FFFFFFF;
    uint32_t normal = (rest - ((127 - 15) << 23) + 0xFFF + (rest >> 13 & 1)) >> 13;
    /* Adding 0.5, whose last place is f16's smallest number, lets the addition round. */
    uint32_t subnormal = gm_f32_bits(gm_f32_of_bits(rest) + 0.5f) - 0x3F000000;
    uint32_t nan = 0x7E00 | (rest >> 13 & 0x3FF);

    uint32_t half = gm_select32(rest < 0x38800000, subnormal, normal); /* below 2^-14 */
    half = gm_select32(rest >= 0x477FF000, 0x7C00, half);              /* from 65520 on */
    half = gm_select32(rest > 0x7F800000, nan, half);
    return (uint16_t)(sign | half);
}

static inline uint16_t gm_bf16_of_f64(double value)
{
    uint64_t bits = gm_f64_bits(value);
    uint64_t sign = bits >> 48 & 0x8000;
    uint64_t rest = bits & 0x7FFFFFFFFFFFFFFF;
    uint64_t normal =
        (rest - ((uint64_t)(1023 - 127) << 52) + 0xFFFFFFFFFFF + (rest >> 45 & 1)) >> 45;
    /* 2^-81: its last place is bf16's smallest number, 2^-133. */
    uint64_t subnormal = gm_f64_bits(gm_f64_of_bits(rest) + 0x1p-81) - gm_f64_bits(0x1p-81);
    uint64_t nan = 0x7FC0 | (rest >> 45 & 0x7F);

    uint64_t half = gm_select64(rest < (uint64_t)(1023 - 126) << 52, subnormal, normal);
    half = gm_select64(rest >= 0x47EFF00000000000, 0x7F80, half); /* from 2^128 - 2^119 on */
    half = gm_select64(rest > 0x7FF0000000000000, nan, half);
    return (uint16_t)(sign | half);
}

static inline uint16_t gm_f16_of_f64(double value)
{
    uint64_t bits = gm_f64_bits(value);
    uint64_t sign = bits >> 48 & 0x8000;
    uint64_t rest = bits & 0x7FFFFFFFFFFFFFFF;
    uint64_t normal =
        (rest - ((uint64_t)(1023 - 15) << 52) + 0x1FFFFFFFFFF + (rest >> 42 & 1)) >> 42;
    /* 2^28: its last place is f16's smallest number, 2^-24. */
    uint64_t subnormal = gm_f64_bits(gm_f64_of_bits(rest) + 0x1p28) - gm_f64_bits(0x1p28);
    uint64_t nan = 0x7E00 | (rest >> 42 & 0x3FF);

    uint64_t half = gm_select64(rest < (uint64_t)(1023 - 14) << 52, subnormal, normal);
    half = gm_select64(rest >= 0x40EFFE0000000000, 0x7C00, half); /* from 65520 on */
    half = gm_select64(rest > 0x7FF0000000000000, nan, half);
    return (uint16_t)(sign | half);
}

#ifdef __cplusplus
}
#endif
#endif
