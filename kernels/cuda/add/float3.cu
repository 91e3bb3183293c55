/*
 * float3.cu - adds N x 3 matrices as arrays of structures, one point per thread.
 *
 * This is the obvious code, and the first of four kernels that differ in the order of their memory
 * accesses. A point is 12 bytes, which no single instruction loads. So x, y and z are loaded one
 * after the other, and in each load the lanes of a warp are 12 bytes apart.
 *
 * Cost: the 32 elements of a request, of 4 bytes each, are spread over 384 bytes: 12 sectors
 * instead of 4, for each of x, y and z. Memory sees each sector once, if the L1 cache keeps it for
 * the other two loads. The traffic between the cores and that cache is three times as high.
 *
 * When it wins: where L1 holds what the resident warps touch (3 lines for each warp's load): on an
 * H200 it is as fast as the others, and needs no conversion.
 * Source: the array-of-structures example of NVIDIA's CUDA C++ Best Practices Guide.
 */
#include "kernels/cuda/add/sum.h"

static __global__ void add_float3(const float3 *a, const float3 *b, float3 *result, uint64_t points)
{
    uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= points)
        return;

    float x = a[i].x + b[i].x;
    float y = a[i].y + b[i].y;
    float z = a[i].z + b[i].z;
    result[i].x = x;
    result[i].y = y;
    result[i].z = z;
}

GM_KERNEL(add_float3)
{
    uint64_t points = gm_points(op);

    return gm_float3_launches(points, [&](dim3 grid, uint64_t first) {
        return gm_launch(exec, add_float3, grid, dim3(GM_FLOAT3_THREADS), 0,
                         gm_in<float3>(op, 0) + first, gm_in<float3>(op, 1) + first,
                         gm_out<float3>(op) + first, points - first);
    });
}
