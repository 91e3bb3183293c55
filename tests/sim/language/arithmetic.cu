/* arithmetic.cu - CUDA's own functions of numbers; checked in test_sim_language.c. */
#include "kernels/cuda/lib/tiles.h"
#include "tests/sim/launch.h"

#define EACH(name, expression)                                                                     \
    static __global__ void name(const int *in, int *out, unsigned n)                               \
    {                                                                                              \
        unsigned i = blockIdx.x * blockDim.x + threadIdx.x;                                        \
        if (i >= n)                                                                                \
            return;                                                                                \
        int x = in[i], y = in[n - 1 - i];                                                          \
        (void)x, (void)y;                                                                          \
        out[i] = (int)(expression);                                                                \
    }                                                                                              \
    LAUNCH(name, n / 128 + 1, 128, 0)

/* Bits in every position. */
#define WILD ((unsigned)x * 2654435761u)
#define WILD2 ((unsigned)y * 2246822519u)

EACH(popc, __popc(WILD) + __popcll((unsigned long long)WILD << 32 | 7u))
EACH(clz, __clz((int)(WILD >> x % 32)) + 100 * __clzll((long long)(WILD >> x % 32)) + __clz(0))
EACH(ffs, __ffs((int)(WILD << x % 32)) + 100 * __ffsll((long long)WILD << 30) + __ffs(0))
EACH(brev, __brev(WILD))
EACH(byte_perm, __byte_perm(WILD, WILD2, (unsigned)y & 0x7777u))
EACH(funnel_left, __funnelshift_l(WILD, WILD2, (unsigned)y))
EACH(funnel_right, __funnelshift_r(WILD, WILD2, (unsigned)y))
EACH(mul24, __mul24((int)WILD, (int)WILD2))
EACH(umul24, __umul24(WILD, WILD2))
EACH(umulhi, __umulhi(WILD, WILD2))
EACH(umul64hi, __umul64hi((unsigned long long)WILD << 32 | WILD2, (unsigned long long)WILD2 << 31))
EACH(as_int, __float_as_int((float)x * 0.25f))
EACH(as_float, __int_as_float(0x3F800000 + x * 8) * 1048576.0f)
EACH(minmax, min(x, y) * 1000 + max(x, y))
EACH(fused, __fmaf_rn((float)x, 1.0f / 3.0f, (float)y) * 1024.0f)
EACH(hinted_loads, __ldg(&in[i]) + __ldcs(&in[i]) + __ldcg(&in[n - 1 - i]))
EACH(halves, gm_narrow<gm_f16>((float)x * 1.001f).bits +
                 65536 * gm_narrow<gm_bf16>((float)y * 1.001f).bits / 2)
EACH(wide_halves, gm_widen(gm_f16{(uint16_t)(x & 0x7BFF)}) * 64 +
                      gm_widen(gm_bf16{(uint16_t)(0x4000 | (y & 0xFF))}))
EACH(root, rsqrtf((float)x + 1) * 1e6f)

/* Divisors of every length, and multiples of them less one. */
#define DIVISOR (WILD2 >> x % 32 | 1u)
EACH(divided, gm_divide(WILD, gm_divisor_of(DIVISOR)))
EACH(divided_before, gm_divide(WILD / DIVISOR * DIVISOR - 1u, gm_divisor_of(DIVISOR)))
