/* barriers.cu - barriers and warp operations that some thread does not reach: each line marked
 * `here` is what the report names. */
#include "tests/sim/launch.h"

static __global__ void half_block(const int *in, int *out, unsigned)
{
    unsigned t = threadIdx.x;
    if (t < 128)
        __syncthreads(); /* here: half_block */
    out[t] = in[t];
}
LAUNCH(half_block, 1, 256, 0)

static __global__ void after_return(const int *in, int *out, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int x = in[i];
    __syncthreads(); /* here: after_return */
    out[i] = x;
}
LAUNCH(after_return, 4, 256, 0)

static __global__ void two_barriers(const int *in, int *out, unsigned)
{
    unsigned t = threadIdx.x;
    if (t % 64 < 32) {
        out[t] = in[t];
        __syncthreads(); /* here: two_barriers */
    } else {
        out[t] = -in[t];
        __syncthreads();
    }
}
LAUNCH(two_barriers, 1, 64, 0)

/* Odd threads go round once more. */
static __global__ void uneven_loop(const int *in, int *out, unsigned)
{
    unsigned t = threadIdx.x;
    int sum = 0;
    for (unsigned i = 0; i < 4 + t % 2; i++) {
        sum += in[i];
        __syncthreads(); /* here: uneven_loop */
    }
    out[t] = sum;
}
LAUNCH(uneven_loop, 1, 64, 0)

static __global__ void count_half(const int *in, int *out, unsigned)
{
    unsigned t = threadIdx.x;
    if (t >= 32)
        out[t] = __syncthreads_count(in[t] > 0); /* here: count_half */
}
LAUNCH(count_half, 1, 64, 0)

static __global__ void shuffle_from_absent(const int *in, int *out, unsigned)
{
    unsigned t = threadIdx.x;
    if (t < 16)
        out[t] = __shfl_sync(0x0000FFFFu, in[t], (int)t + 1); /* here: shuffle_from_absent */
}
LAUNCH(shuffle_from_absent, 1, 32, 0)

/* Half of the warp has ended, and its values with it. */
static __global__ void shuffle_from_ended(const int *in, int *out, unsigned)
{
    unsigned t = threadIdx.x;
    if (t >= 16)
        return;
    out[t] = __shfl_down_sync(0xFFFFFFFFu, in[t], 8); /* here: shuffle_from_ended */
}
LAUNCH(shuffle_from_ended, 1, 32, 0)

static __global__ void mask_without_caller(const int *in, int *out, unsigned)
{
    unsigned t = threadIdx.x;
    __syncwarp(0xFFFFFFFEu); /* here: mask_without_caller */
    out[t] = in[t];
}
LAUNCH(mask_without_caller, 1, 32, 0)

/* The odd lanes wait at the block's barrier, where no shuffle will come. */
static __global__ void shuffle_and_barrier(const int *in, int *out, unsigned)
{
    unsigned t = threadIdx.x;
    int x = in[t];
    if (t % 2 == 0)
        x = __shfl_xor_sync(0xFFFFFFFFu, x, 2); /* here: shuffle_and_barrier */
    __syncthreads();
    out[t] = x;
}
LAUNCH(shuffle_and_barrier, 1, 32, 0)

/* The same lanes, but they do not agree who takes part. */
static __global__ void different_masks(const int *in, int *out, unsigned)
{
    unsigned t = threadIdx.x, mask = t < 16 ? 0xFFFFFFFFu : 0xFFFF0000u;
    int positive = (int)__ballot_sync(mask, in[t] > 0); /* here: different_masks */
    __syncthreads();
    out[t] = positive;
}
LAUNCH(different_masks, 1, 32, 0)

static __global__ void odd_width(const int *in, int *out, unsigned)
{
    unsigned t = threadIdx.x;
    out[t] = __shfl_sync(0xFFFFFFFFu, in[t], 0, 12); /* here: odd_width */
}
LAUNCH(odd_width, 1, 32, 0)
