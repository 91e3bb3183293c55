/*
 * baseline_nothing.cu - what a launch takes, whatever it does. bench_gpu_baseline.h declares it,
 * for C alone.
 */
#include <cuda_runtime.h>

static __global__ void nothing()
{
}

extern "C" cudaError_t baseline_launch_nothing(cudaStream_t stream)
{
    nothing<<<1, 32, 0, stream>>>();
    return cudaGetLastError();
}
