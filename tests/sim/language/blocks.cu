/* blocks.cu - where threads are, and what a block shares; checked in test_sim_language.c. */
#include "tests/sim/launch.h"

/* Grid (3,2,2) of blocks (4,3,5): 12 blocks of 60 threads. */
static __global__ void places(const int *, int *out, unsigned)
{
    unsigned threads = blockDim.x * blockDim.y * blockDim.z;
    unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    out[block * threads + thread] =
        (int)(threadIdx.x + 10 * threadIdx.y + 100 * threadIdx.z + 1000 * blockIdx.x +
              10000 * blockIdx.y + 100000 * blockIdx.z + 1000000 * gridDim.z);
}
LAUNCH(places, dim3(3, 2, 2), dim3(4, 3, 5), 0)

/* Which threads are a warp: 32 in a row of x, then y, then z. */
static __global__ void warps(const int *, int *out, unsigned)
{
    unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    out[thread] = (int)__shfl_sync(0xFFFFFFFFu, thread, 0);
}
LAUNCH(warps, 1, dim3(5, 4, 3), 0)

/* Dynamic shared memory beside two static arrays. */
static __global__ void reversed(const int *in, int *out, unsigned)
{
    __shared__ int first[64];
    __shared__ short second[64];
    int *third = gm_dynamic_shared<int>();
    unsigned t = threadIdx.x, i = blockIdx.x * 64 + t;
    first[t] = in[i];
    second[63 - t] = (short)in[i];
    third[t] = 2 * in[i];
    __syncthreads();
    out[i] = first[63 - t] + second[t] + third[63 - t];
}
LAUNCH(reversed, 16, 64, 256)

/* 4, 8 and 16 bytes at a time, of which the last leave some to be zeros. */
static __global__ void copied(const int *in, int *out, unsigned)
{
    __shared__ __align__(16) int piece[256];
    unsigned t = threadIdx.x;
    __pipeline_memcpy_async(&piece[4 * t], &in[4 * t], 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    int last = piece[t];
    __syncthreads();
    if (t < 32)
        __pipeline_memcpy_async(&piece[2 * t], &in[2 * t], 8, 4);
    else
        __pipeline_memcpy_async(&piece[t + 64], &in[t + 32], 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    out[t] = last;
    out[64 + t] = t < 32 ? piece[2 * t] : piece[t + 64];
    out[128 + t] = t < 32 ? piece[2 * t + 1] : 0;
}
LAUNCH(copied, 1, 64, 0)

/* Half of the threads leave; the others go on in warps of their own. */
static __global__ void left_early(const int *in, int *out, unsigned)
{
    unsigned t = threadIdx.x;
    if (t / 32 % 2 == 1)
        return;
    int x = in[t];
    x += __shfl_xor_sync(0xFFFFFFFFu, x, 1);
    out[t] = x;
}
LAUNCH(left_early, 1, 256, 0)

/* A grid that goes round: 4 blocks of 64 threads for all elements. */
static __global__ void grid_stride(const int *in, int *out, unsigned n)
{
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[i] = 3 * in[i];
}
LAUNCH(grid_stride, 4, 64, 0)

/* What the atomics find. */
static __global__ void cleared(const int *, int *out, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = 0;
}

/* 8 blocks of 128 threads: 1024 of each. */
static __global__ void atomics(const int *in, int *out, unsigned)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned *u = reinterpret_cast<unsigned *>(out);
    int x = in[i];
    atomicAdd(&out[0], x);
    atomicMin(&out[1], x - 2000);
    atomicMax(&out[2], x);
    atomicMax(&u[3], (unsigned)x - 500u);
    atomicOr(&out[4], x);
    atomicXor(&u[5], (unsigned)x);
    atomicInc(&u[6], 9u);
    atomicDec(&u[7], 9u);
    atomicSub(&out[8], x);
    int seen = 0, before;
    do {
        before = seen;
        seen = atomicCAS(&out[10], before, before + x);
    } while (seen != before);
    atomicAdd(reinterpret_cast<float *>(&out[11]), (float)x);
    atomicAdd(reinterpret_cast<double *>(&out[12]), x * 0.5);
    atomicAdd(reinterpret_cast<unsigned long long *>(&out[14]), (unsigned long long)x << 24);
    atomicAdd(&out[17], atomicExch(&out[16], x));
    atomicAnd(&u[18], ~(1u << (x & 31)));
    int place = atomicAdd(&out[19], 1);
    atomicAdd(&out[32 + place], 1);
}
extern "C" enum gm_status GM_ENTRY(atomics)(const struct gm_op *op, struct gm_exec *exec)
{
    unsigned n = (unsigned)gm_matrix_elements(&op->result);
    enum gm_status status =
        gm_launch(exec, cleared, n / 128 + 1, 128, 0, gm_in<int>(op, 0), gm_out<int>(op), n);

    return status != GM_OK
               ? status
               : gm_launch(exec, atomics, 8, 128, 0, gm_in<int>(op, 0), gm_out<int>(op), n);
}
