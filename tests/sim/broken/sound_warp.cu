/* sound_warp.cu - as sound.cu, with lanes of a warp that order things among themselves, and atomics
 * that need no order. */
#include "tests/sim/launch.h"

/* A sum over each warp in shared memory, ordered by __syncwarp alone. */
static __global__ void sound_warp_sum(const int *in, int *out, unsigned)
{
    __shared__ int sums[256];
    unsigned t = threadIdx.x;
    sums[t] = in[t];
    __syncwarp();
    for (unsigned step = 16; step > 0; step /= 2) {
        int other = t % 32 < step ? sums[t + step] : 0;
        __syncwarp();
        sums[t] += other;
        __syncwarp();
    }
    out[t] = sums[t / 32 * 32];
}
LAUNCH(sound_warp_sum, 1, 256, 0)

/* Half of a warp has left: the rest go on among themselves. */
static __global__ void sound_half_warp(const int *in, int *out, unsigned)
{
    unsigned t = threadIdx.x;
    if (t % 32 >= 16) {
        out[t] = 0;
        return;
    }
    int x = in[t] + __shfl_xor_sync(0x0000FFFFu, in[t], 1, 16);
    __syncwarp();
    out[t] = x;
}
LAUNCH(sound_half_warp, 1, 64, 0)

/* The halves of a warp go their own ways, each in step with itself, and then on together. */
static __global__ void sound_half_synced(const int *in, int *out, unsigned)
{
    __shared__ int piece[32];
    unsigned t = threadIdx.x, half = t / 16 * 16;
    piece[t] = in[t];
    if (t < 16)
        __syncwarp(0x0000FFFFu);
    else
        __syncwarp(0xFFFF0000u);
    int other = piece[half + (t + 1) % 16];
    __syncwarp(t < 16 ? 0x0000FFFFu : 0xFFFF0000u);
    piece[t] = other;
    __syncwarp();
    out[t] = piece[31 - t];
}
LAUNCH(sound_half_synced, 1, 32, 0)

/* The lanes that happen to be together count as one: out[0] how many odd numbers there are, and
 * a 1 for the place that each of them got. */
static __global__ void sound_aggregated(const int *in, int *out, unsigned)
{
    unsigned t = threadIdx.x, lane = t % 32;
    for (unsigned i = t; i < 1000; i += 256)
        out[i] = 0;
    __syncthreads();
    if (in[t] % 2 != 0) {
        unsigned together = __activemask();
        int leader = __ffs((int)together) - 1, first = 0;
        if ((int)lane == leader)
            first = atomicAdd(&out[0], __popc(together));
        first = __shfl_sync(together, first, leader);
        out[1 + first + __popc(together & ((1u << lane) - 1))] = 1;
    }
}
LAUNCH(sound_aggregated, 1, 256, 0)

/* All threads write the flag, atomically, and read it after the barrier. */
static __global__ void sound_flag(const int *in, int *out, unsigned)
{
    __shared__ int flag;
    atomicExch(&flag, 0);
    __syncthreads();
    if (in[threadIdx.x] > 0)
        atomicOr(&flag, 1);
    __syncthreads();
    out[threadIdx.x] = flag;
}
LAUNCH(sound_flag, 1, 128, 0)
