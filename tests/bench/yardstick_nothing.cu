/*
 * yardstick_nothing.cu - what a launch takes, whatever it does. bench_gpu_yardstick.h declares it,
 * for C alone.
 */
#include <cuda_runtime.h>

static __global__ void nothing()
{
}

extern "C" cudaError_t yardstick_launch_nothing(cudaStream_t stream)
{
    nothing<<<1, 32, 0, stream>>>();
    return cudaGetLastError();
}
