/*
 * broken_gpu.cu - kernels that are wrong, each in one way, to see that compute-sanitizer's tools
 * find it: what they say of our own kernels counts only then (tests/gpu/h200.sh).
 *
 *   broken_gpu bounds | uninitialised | race | barrier
 */
#include <cstdio>
#include <cstring>
#include <cuda_runtime.h>

/* One element past the end. */
static __global__ void bounds(const int *in, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i <= n)
        out[i] = in[i < n ? i : 0];
}

/* Reads all of what was written in part. */
static __global__ void uninitialised(const int *in, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        out[i] = in[i];
}

/* No barrier between the tile's writers and its readers. */
static __global__ void race(const int *in, int *out, int n)
{
    __shared__ int tile[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    tile[threadIdx.x] = i < n ? in[i] : 0;
    if (i < n)
        out[i] = tile[blockDim.x - 1 - threadIdx.x];
}

/* A barrier that half of each warp does not reach. */
static __global__ void barrier(const int *in, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (threadIdx.x % 2 == 0)
        __syncthreads();
    if (i < n)
        out[i] = in[i];
}

static const struct {
    const char *name;
    void (*kernel)(const int *in, int *out, int n);
    int written; /* elements of the operand that are */
} cases[] = {
    {"bounds", bounds, 1000},
    {"uninitialised", uninitialised, 500},
    {"race", race, 1000},
    {"barrier", barrier, 1000},
};

int main(int argc, char **argv)
{
    const int n = 1000;
    int *in, *out;

    for (const auto &each : cases) {
        if (argc != 2 || strcmp(argv[1], each.name) != 0)
            continue;
        if (cudaMalloc(&in, n * sizeof(int)) != cudaSuccess ||
            cudaMalloc(&out, n * sizeof(int)) != cudaSuccess ||
            cudaMemset(in, 1, each.written * sizeof(int)) != cudaSuccess)
            return 77;
        each.kernel<<<4, 256>>>(in, out, n);
        cudaError_t error = cudaDeviceSynchronize();
        printf("%s: %s\n", each.name, cudaGetErrorString(error));
        return 0;
    }
    fprintf(stderr, "usage: broken_gpu bounds | uninitialised | race | barrier\n");
    return 2;
}
