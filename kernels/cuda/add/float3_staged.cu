/*
 * float3_staged.cu - adds N x 3 matrices through shared memory.
 *
 * Unlike in add_float3, a block treats its points as one span of 3 x 256 floats. Its threads load
 * the span into shared memory, neighbours by neighbours, without regard to points. Each thread then
 * adds its own point in shared memory, and the block stores the span. Only shared memory sees
 * strides of 3.
 *
 * Cost: global loads and stores of 4 sectors a request, all useful. Shared memory: 1 wavefront a
 * request, also with a stride of 3, which has no factor in common with 32 banks. Two barriers.
 *
 * When it wins: where a thread needs its whole point at once (a length, a rotation) and the layout
 * must stay. For a sum alone add_direct does the same accesses without shared memory.
 * Source: P. Micikevicius and others, "Optimizing CUDA", on float3 data; NVIDIA.
 */
#include "kernels/cuda/add/sum.h"

/*
 *     global memory    x0 y0 z0 x1 y1 z1 x2 ..     thread t loads floats t, t + 256 and t + 512
 *     shared memory    x0 y0 z0|x1 y1 z1|x2 ..     thread t adds floats 3 t, 3 t + 1 and 3 t + 2
 *     global memory    x0 y0 z0 x1 y1 z1 x2 ..     thread t stores as it loaded
 */
#define THREADS GM_FLOAT3_THREADS
#define SPAN (3 * THREADS) /* floats */

static __global__ void __launch_bounds__(THREADS)
    add_float3_staged(const float *a, const float *b, float *result, uint64_t points)
{
    __shared__ float left[SPAN];
    __shared__ float right[SPAN];
    uint64_t first = 3 * (uint64_t)blockIdx.x * THREADS;
    uint64_t rest = 3 * points - first;
    unsigned span = rest < SPAN ? (unsigned)rest : SPAN;
    unsigned t = threadIdx.x, point = 3 * t;

    for (unsigned i = t; i < span; i += THREADS) {
        left[i] = a[first + i];
        right[i] = b[first + i];
    }
    __syncthreads();
    if (point < span) {
        left[point] += right[point];
        left[point + 1] += right[point + 1];
        left[point + 2] += right[point + 2];
    }
    __syncthreads();
    for (unsigned i = t; i < span; i += THREADS)
        result[first + i] = left[i];
}

GM_KERNEL(add_float3_staged)
{
    uint64_t points = gm_points(op);

    return gm_float3_launches(points, [&](dim3 grid, uint64_t first) {
        return gm_launch(exec, add_float3_staged, grid, dim3(THREADS), 0,
                         gm_in<float>(op, 0) + 3 * first, gm_in<float>(op, 1) + 3 * first,
                         gm_out<float>(op) + 3 * first, points - first);
    });
}
