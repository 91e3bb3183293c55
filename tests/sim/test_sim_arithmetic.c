/*
 * test_sim_arithmetic.c - CUDA's own functions of numbers (language/arithmetic.cu), against plain
 * C.
 */
#include "proto/number/half.h"
#include "run_kernel.h"

#include <math.h>

#define COUNT 2048

static int32_t in[COUNT], out[COUNT];

static uint32_t wild(int i)
{
    return (uint32_t)in[i] * UINT32_C(2654435761);
}
static uint32_t wild2(int i)
{
    return (uint32_t)in[COUNT - 1 - i] * UINT32_C(2246822519);
}

static int ones(uint64_t x)
{
    int count = 0;

    for (; x != 0; x >>= 1)
        count += (int)(x & 1);
    return count;
}

static int zeros_above(uint64_t x, int bits)
{
    int count = 0;

    while (count < bits && !(x >> (bits - 1 - count) & 1))
        count++;
    return count;
}

static int first_one(uint64_t x)
{
    int place = 1;

    for (; x != 0 && !(x & 1); x >>= 1)
        place++;
    return x == 0 ? 0 : place;
}

static int32_t reversed_bits(uint32_t x)
{
    uint32_t result = 0;

    for (int bit = 0; bit < 32; bit++)
        result = result << 1 | (x >> bit & 1);
    return (int32_t)result;
}

static int32_t picked_bytes(int i)
{
    uint32_t selector = (uint32_t)in[COUNT - 1 - i] & 0x7777, result = 0;

    for (int byte = 0; byte < 4; byte++) {
        uint32_t pick = selector >> 4 * byte & 7;
        uint32_t value = (pick < 4 ? wild(i) : wild2(i)) >> 8 * (pick % 4) & 0xFF;
        result |= value << 8 * byte;
    }
    return (int32_t)result;
}

/* 24 bits of each, with their sign. */
static int32_t product_24(int i)
{
    int64_t a = (int32_t)(wild(i) << 8) / 256, b = (int32_t)(wild2(i) << 8) / 256;

    return (int32_t)(uint32_t)(uint64_t)(a * b);
}

static int32_t shifted(int i, bool left)
{
    uint64_t both = (uint64_t)wild2(i) << 32 | wild(i);
    int by = in[COUNT - 1 - i] & 31;

    return (int32_t)(uint32_t)(left ? both << by >> 32 : both >> by);
}

static int32_t bits_of(float x)
{
    int32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static float float_of(int32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* The low half of the high half of (a 2^32 + b) * (b 2^31), by halves. */
static int32_t product_64(int i)
{
    uint64_t a = wild(i), b = wild2(i), low = b << 31;
    uint64_t part[] = {a * (low >> 32), a * (uint32_t)low, b * (low >> 32), b * (uint32_t)low};
    uint64_t middle = (part[3] >> 32) + (uint32_t)part[1] + (uint32_t)part[2];

    return (int32_t)(part[0] + (part[1] >> 32) + (part[2] >> 32) + (middle >> 32));
}

static uint32_t divisor(int i)
{
    return wild2(i) >> in[i] % 32 | 1;
}

static int32_t narrowed(int x, int y)
{
    return gm_f16_of_f32((float)x * 1.001f) + 65536 * gm_bf16_of_f32((float)y * 1.001f) / 2;
}

static int32_t widened(int x, int y)
{
    return (int32_t)(gm_f32_of_f16((uint16_t)(x & 0x7BFF)) * 64 +
                     gm_f32_of_bf16((uint16_t)(0x4000 | (y & 0xFF))));
}

/* kernel, what result i is: x is in[i] and y in[COUNT - 1 - i]. */
#define ARITHMETIC(X)                                                                              \
    X(popc, ones(wild(i)) + ones(wild(i)) + 3)                                                     \
    X(clz, zeros_above(wild(i) >> x % 32, 32) + 100 * zeros_above(wild(i) >> x % 32, 64) + 32)     \
    X(ffs, first_one(wild(i) << x % 32) + 100 * first_one((uint64_t)wild(i) << 30))                \
    X(brev, reversed_bits(wild(i)))                                                                \
    X(byte_perm, picked_bytes(i))                                                                  \
    X(funnel_left, shifted(i, true))                                                               \
    X(funnel_right, shifted(i, false))                                                             \
    X(mul24, product_24(i))                                                                        \
    X(umul24, (int32_t)((wild(i) & 0xFFFFFF) * (wild2(i) & 0xFFFFFF)))                             \
    X(umulhi, (int32_t)((uint64_t)wild(i) * wild2(i) >> 32))                                       \
    X(umul64hi, product_64(i))                                                                     \
    X(divided, (int32_t)(wild(i) / divisor(i)))                                                    \
    X(divided_before, (int32_t)((wild(i) / divisor(i) * divisor(i) - 1u) / divisor(i)))            \
    X(as_int, bits_of((float)x * 0.25f))                                                           \
    X(as_float, (int32_t)(float_of(0x3F800000 + x * 8) * 1048576.0f))                              \
    X(minmax, (x < y ? x : y) * 1000 + (x > y ? x : y))                                            \
    X(fused, (int32_t)(fmaf((float)x, 1.0f / 3.0f, (float)y) * 1024.0f))                           \
    X(hinted_loads, 2 * x + y)                                                                     \
    X(halves, narrowed(x, y))                                                                      \
    X(wide_halves, widened(x, y))                                                                  \
    X(root, (int32_t)(1.0f / sqrtf((float)x + 1) * 1e6f))

#define X(name, value) gm_kernel_fn gm_sim_##name;
ARITHMETIC(X)
#undef X

#define X(name, value)                                                                             \
    static int32_t expect_##name(int i)                                                            \
    {                                                                                              \
        int32_t x = in[i], y = in[COUNT - 1 - i];                                                  \
        (void)x;                                                                                   \
        (void)y;                                                                                   \
        return value;                                                                              \
    }
ARITHMETIC(X)
#undef X

int main(void)
{
    static const struct {
        const char *name;
        gm_kernel_fn *run;
        int32_t (*expected)(int i);
    } kernels[] = {
#define X(name, value) {#name, gm_sim_##name, expect_##name},
        ARITHMETIC(X)
#undef X
    };
    void *sim = sim_open(2);

    for (int i = 0; i < COUNT; i++)
        in[i] = (i * 7919 + 13) % 1000;
    for (size_t k = 0; k < sizeof(kernels) / sizeof(kernels[0]); k++) {
        struct sim_ran ran = sim_run(sim, kernels[k].run, COUNT, in, out);
        CHECK_STATUS(ran.status, GM_OK, &ran.error);
        for (int i = 0; i < COUNT; i++) {
            int32_t expected = kernels[k].expected(i);
            if (!CHECK_EQ(out[i], expected)) {
                fprintf(stderr, "  %s of %d, %d\n", kernels[k].name, in[i], in[COUNT - 1 - i]);
                break;
            }
        }
    }
    sim_close(sim);
    return check_report();
}
