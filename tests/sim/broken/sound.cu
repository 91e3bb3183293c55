/* sound.cu - kernels that look as if something were wrong with them, and are right: nothing may be
 * reported. Each gives what test_sim_broken.c says beside its name. */
#include "tests/sim/launch.h"

/* Two tiles in turn: one barrier a round is enough, as the tile that is written was last read
 * before the barrier of the round before. */
static __global__ void sound_double_buffer(const int *in, int *out, unsigned)
{
    __shared__ int tile[2][64];
    unsigned t = threadIdx.x;
    int sum = 0;
    for (unsigned round = 0; round < 8; round++) {
        tile[round % 2][t] = in[64 * round + t];
        __syncthreads();
        for (unsigned i = 0; i < 64; i++)
            sum += tile[round % 2][i];
    }
    out[t] = sum;
}
LAUNCH(sound_double_buffer, 1, 64, 0)

/* Lanes write and then read each their own byte of shared words. */
static __global__ void sound_bytes(const int *in, int *out, unsigned)
{
    __shared__ unsigned char bytes[256];
    unsigned t = threadIdx.x;
    bytes[t] = (unsigned char)in[t];
    bytes[t] = (unsigned char)(bytes[t] + 1);
    __syncthreads();
    unsigned sum = bytes[t] + bytes[255 - t];
    out[t] = (int)sum;
}
LAUNCH(sound_bytes, 1, 256, 0)

/* Bytes, then the words that they make, and bytes again. */
static __global__ void sound_bytes_to_words(const int *in, int *out, unsigned)
{
    __shared__ unsigned words[64];
    unsigned char *bytes = reinterpret_cast<unsigned char *>(words);
    unsigned t = threadIdx.x;
    bytes[t] = (unsigned char)in[t];
    __syncthreads();
    unsigned word = words[t / 4];
    __syncthreads();
    if (t < 64)
        words[t] = t;
    __syncthreads();
    out[t] = (int)(word + bytes[t]);
}
LAUNCH(sound_bytes_to_words, 1, 256, 0)

/* Out of range threads leave at once; no barrier comes after. */
static __global__ void sound_early_return(const int *in, int *out, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    out[i] = in[i] + 1;
}
LAUNCH(sound_early_return, 8, 256, 0)

/* Counted by all at once, in shared and in global memory. */
static __global__ void sound_histogram(const int *in, int *out, unsigned n)
{
    __shared__ int counts[32];
    unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    if (t < 32)
        counts[t] = 0;
    __syncthreads();
    if (i < n)
        atomicAdd(&counts[in[i] & 31], 1);
    __syncthreads();
    if (t < 32)
        atomicAdd(&out[t], counts[t]);
}
LAUNCH(sound_histogram, 4, 256, 0)

/* A tree over the block: each level reads what the level before wrote. */
static __global__ void sound_tree(const int *in, int *out, unsigned)
{
    int *sums = gm_dynamic_shared<int>();
    unsigned t = threadIdx.x;
    sums[t] = in[t];
    for (unsigned step = blockDim.x / 2; step > 0; step /= 2) {
        __syncthreads();
        if (t < step)
            sums[t] += sums[t + step];
    }
    __syncthreads();
    out[t] = sums[0];
}
LAUNCH(sound_tree, 1, 256, 1024)

/* The block before has left its values there, which is no race with this one's; and what one
 * block wrote is not written for the next. */
static __global__ void sound_reuse(const int *in, int *out, unsigned)
{
    __shared__ int piece[64];
    unsigned t = threadIdx.x, i = blockIdx.x * 64 + t;
    piece[63 - t] = in[i];
    __syncthreads();
    out[i] = piece[t];
}
extern "C" enum gm_status GM_ENTRY(sound_reuse)(const struct gm_op *op, struct gm_exec *exec)
{
    enum gm_status status = GM_OK;

    for (int i = 0; i < 3 && status == GM_OK; i++)
        status = gm_launch(exec, sound_reuse, 8, 64, 0, gm_in<int>(op, 0), gm_out<int>(op), 0);
    return status;
}

/* The second launch reads what other threads and blocks of the first wrote. */
static __global__ void sound_first_pass(const int *in, int *out, unsigned half)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < half)
        out[i] = in[i];
}
static __global__ void sound_second_pass(const int *, int *out, unsigned half)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < half)
        out[half + i] = out[half - 1 - i] + 1;
}
extern "C" enum gm_status GM_ENTRY(sound_passes)(const struct gm_op *op, struct gm_exec *exec)
{
    enum gm_status status =
        gm_launch(exec, sound_first_pass, 4, 128, 0, gm_in<int>(op, 0), gm_out<int>(op), 500);

    if (status == GM_OK)
        status =
            gm_launch(exec, sound_second_pass, 4, 128, 0, gm_in<int>(op, 0), gm_out<int>(op), 500);
    return status;
}

/* Arrays and structures of a thread's own, constants, arguments by value. */
struct sound_weights {
    int weight[4];
};
__constant__ int sound_table[8] = {1, 2, 3, 5, 8, 13, 21, 34};
static __global__ void sound_own(const int *in, int *out, sound_weights w)
{
    int own[16];
    unsigned t = threadIdx.x;
    for (unsigned i = 0; i < 16; i++)
        own[(i + t) % 16] = in[(t + i) % 64] * sound_table[i % 8];
    int sum = 0;
    for (unsigned i = 0; i < 16; i++)
        sum += own[(i + t) % 16] * w.weight[i % 4];
    out[t] = sum;
}
extern "C" enum gm_status GM_ENTRY(sound_own)(const struct gm_op *op, struct gm_exec *exec)
{
    sound_weights w = {{1, -1, 2, 5}};

    return gm_launch(exec, sound_own, 1, 64, 0, gm_in<int>(op, 0), gm_out<int>(op), w);
}

/* A conditional barrier that the whole block agrees on. */
static __global__ void sound_agreed(const int *in, int *out, unsigned n)
{
    __shared__ int piece[64];
    unsigned t = threadIdx.x;
    piece[t] = 1;
    for (unsigned round = 0; round < n % 7 + 1; round++) {
        if (round % 2 == 0)
            __syncthreads();
        if (round == 0)
            out[t] = piece[63 - t] + in[t];
    }
}
LAUNCH(sound_agreed, 1, 64, 0)

/* Long loops over shared memory: of a sample only the first rounds are traced, and what the others
 * wrote is written all the same. */
static __global__ void sound_many_writes(const int *in, int *out, unsigned n)
{
    int *shared = gm_dynamic_shared<int>();
    unsigned t = threadIdx.x;
    for (unsigned i = 0; i < 150; i++)
        shared[64 * i + t] = in[t];
    __syncthreads();
    int last = shared[64 * 149 + 63 - t];
    __syncthreads();
    for (unsigned i = 0; i < 150; i++)
        shared[64 * i + t] = last;
    out[(blockIdx.x * 64 + t) % n] = shared[64 * 120 + t];
}
LAUNCH(sound_many_writes, 40000, 64, 64 * 150 * sizeof(int))
