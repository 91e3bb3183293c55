/*
 * bits.h - floating-point numbers as their bits and back, and selection without a branch.
 */
#ifndef GM_PROTO_NUMBER_BITS_H
#define GM_PROTO_NUMBER_BITS_H

#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

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

/* yes or no, bit by bit. */
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

#ifdef __cplusplus
}
#endif
#endif
