/* warp.cu - what the lanes of a warp do together. 256 threads in one block, or 72, whose last warp
 * is not full; each result is checked against plain C in test_sim_language.c. */
#include "tests/sim/launch.h"

#define FULL 0xFFFFFFFFu

#define EACH(name, threads, expression)                                                            \
    static __global__ void name(const int *in, int *out, unsigned)                                 \
    {                                                                                              \
        unsigned t = threadIdx.x;                                                                  \
        int x = in[t];                                                                             \
        (void)x;                                                                                   \
        out[t] = (int)(expression);                                                                \
    }                                                                                              \
    LAUNCH(name, 1, threads, 0)

EACH(shuffle, 256, __shfl_sync(FULL, x, (int)t * 7 + 3))
EACH(shuffle_8, 256, __shfl_sync(FULL, x, (int)t * 5 + 1, 8))
EACH(shuffle_up, 256, __shfl_up_sync(FULL, x, 3))
EACH(shuffle_up_8, 256, __shfl_up_sync(FULL, x, 3, 8))
EACH(shuffle_down, 256, __shfl_down_sync(FULL, x, 5))
EACH(shuffle_down_16, 256, __shfl_down_sync(FULL, x, 5, 16))
EACH(shuffle_xor, 256, __shfl_xor_sync(FULL, x, 9))
EACH(shuffle_xor_8, 256, __shfl_xor_sync(FULL, x, 9, 8))
EACH(shuffle_1, 256, __shfl_sync(FULL, x, 17, 1))
EACH(shuffle_wide, 256, __shfl_xor_sync(FULL, (long long)x << 20 | t, 1) >> 20)
EACH(shuffle_double, 256, __shfl_down_sync(FULL, x * 0.5, 1) * 2)
EACH(shuffle_short, 256, __shfl_xor_sync(FULL, (short)x, 31))
EACH(ballot, 256, __ballot_sync(FULL, x & 1))
EACH(any, 256, __any_sync(FULL, x % 50 == 0))
EACH(all, 256, __all_sync(FULL, x % 50 != 0))
EACH(match_any, 256, __match_any_sync(FULL, x % 3))
EACH(ballot_partial, 72, __ballot_sync(FULL, x & 1))
EACH(shuffle_partial, 72, __shfl_xor_sync(FULL, x, 7))
EACH(active, 72, __activemask())
EACH(reduce_add, 256, __reduce_add_sync(FULL, x))
EACH(reduce_min, 256, __reduce_min_sync(FULL, x - 500))
EACH(reduce_max, 256, __reduce_max_sync(FULL, x - 500))
EACH(reduce_min_unsigned, 256, __reduce_min_sync(FULL, (unsigned)x - 500u))
EACH(reduce_max_unsigned, 256, __reduce_max_sync(FULL, (unsigned)x - 500u))
EACH(reduce_and, 256, __reduce_and_sync(FULL, (unsigned)x | 0x11u))
EACH(reduce_or, 256, __reduce_or_sync(FULL, (unsigned)x & 0x44u))
EACH(reduce_xor, 256, __reduce_xor_sync(FULL, (unsigned)x))
EACH(count, 200, __syncthreads_count(x & 1))
EACH(block_and, 200, __syncthreads_and(x >= 0))
EACH(block_or, 200, __syncthreads_or(x == in[7]))
EACH(block_or_none, 200, __syncthreads_or(x < 0))

static __global__ void match_all(const int *in, int *out, unsigned)
{
    int same, t = (int)threadIdx.x;
    unsigned mask = __match_all_sync(FULL, t / 64 == 1 ? 5 : in[t], &same);
    out[t] = (int)(mask >> 2) + same;
}
LAUNCH(match_all, 1, 256, 0)

/* Branches within branches: each group of lanes among themselves, and all together after. */
static __global__ void nested(const int *in, int *out, unsigned)
{
    unsigned lane = threadIdx.x % 32;
    int x = in[threadIdx.x];
    if (lane < 16) {
        if (lane % 2 == 0)
            x += __shfl_xor_sync(0x00005555u, x, 2);
        else
            x -= __shfl_xor_sync(0x0000AAAAu, x, 4);
        __syncwarp(0x0000FFFFu);
        x += __shfl_down_sync(0x0000FFFFu, x, 1, 16);
    } else if (lane < 24) {
        x = (int)__reduce_add_sync(0x00FF0000u, x);
    }
    __syncwarp();
    out[threadIdx.x] = x + __shfl_xor_sync(FULL, x, 16);
}
LAUNCH(nested, 1, 256, 0)

/* A scan: each lane has the sum of those up to it. */
static __global__ void scan(const int *in, int *out, unsigned)
{
    int lane = (int)threadIdx.x % 32, x = in[threadIdx.x];
    for (int step = 1; step < 32; step *= 2) {
        int before = __shfl_up_sync(FULL, x, (unsigned)step);
        if (lane >= step)
            x += before;
    }
    out[threadIdx.x] = x;
}
LAUNCH(scan, 1, 256, 0)
