/*
 * operands.h - random operands for the tests and benchmarks of kernels.
 */
#ifndef GM_TESTS_UNIT_OPERANDS_H
#define GM_TESTS_UNIT_OPERANDS_H

#include "check.h"
#include "proto/matrix.h"
#include "proto/number/half.h"

/* Whether no type before this one has elements of its size, of which moves know no more. */
static inline bool is_first_of_its_size(enum gm_dtype dtype)
{
    for (enum gm_dtype other = GM_DTYPE_NONE + 1; other < dtype; other++)
        if (gm_dtype_size(other) == gm_dtype_size(dtype))
            return false;
    return true;
}

static inline uint64_t random_below(uint64_t *state, uint64_t end)
{
    return check_random(state) % end;
}

/* -1 to 1 */
static inline double random_unit(uint64_t *state)
{
    return (double)(int64_t)check_random(state) * 0x1p-63;
}

static inline void put_float(enum gm_dtype dtype, void *data, uint64_t at, double value)
{
    if (dtype == GM_F64)
        ((double *)data)[at] = value;
    else if (dtype == GM_F32)
        ((float *)data)[at] = (float)value;
    else
        ((uint16_t *)data)[at] = dtype == GM_F16 ? gm_f16_of_f64(value) : gm_bf16_of_f64(value);
}

static inline bool is_float(enum gm_dtype dtype)
{
    return dtype == GM_F16 || dtype == GM_BF16 || dtype == GM_F32 || dtype == GM_F64;
}

/* Floats of -1 to 1; everything else of all bytes there are. */
static inline void random_fill(uint64_t *state, enum gm_dtype dtype, void *data, uint64_t elements)
{
    uint64_t bytes = elements * gm_dtype_size(dtype);

    if (is_float(dtype)) {
        for (uint64_t i = 0; i < elements; i++)
            put_float(dtype, data, i, random_unit(state));
        return;
    }
    for (uint64_t i = 0; i < bytes; i += 8) {
        uint64_t bits = check_random(state);
        memcpy((char *)data + i, &bits, bytes - i < 8 ? bytes - i : 8);
    }
}

#endif
