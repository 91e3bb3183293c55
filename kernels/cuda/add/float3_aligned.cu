/*
 * float3_aligned.cu - adds N x 3 matrices whose points are first padded to 16 bytes.
 *
 * Unlike in add_float3, one instruction moves a whole point, and the 16 bytes of neighbouring lanes
 * are neighbours. Operands have no padding: a pass adds it, and another strips it from the result.
 * Both only rearrange, and are reported as `prepare`.
 *
 * Cost of the kernel: 16 sectors a request of 512 bytes. A quarter of every sector is padding, so
 * the limit is 75 % of a copy's useful rate. Cost of the passes: A, B and the result once more
 * each, a third larger on one side.
 *
 * When it wins: when data stays in this form and points are read in random order: a point of 16
 * bytes lies in one sector, one of 12 bytes often in two.
 * Source: size and alignment of structures in NVIDIA's CUDA C++ Programming Guide.
 */
#include "kernels/cuda/add/sum.h"

#define THREADS GM_FLOAT3_THREADS
#define SPAN (3 * THREADS) /* floats of a block's points */

static __global__ void __launch_bounds__(THREADS) pad(const float *in, float4 *out, uint64_t points)
{
    __shared__ float span[SPAN];
    uint64_t first = (uint64_t)blockIdx.x * THREADS;
    uint64_t rest = 3 * (points - first);
    unsigned t = threadIdx.x;

    for (unsigned i = t; i < SPAN && i < rest; i += THREADS)
        span[i] = in[3 * first + i];
    __syncthreads();
    if (first + t < points)
        out[first + t] = make_float4(span[3 * t], span[3 * t + 1], span[3 * t + 2], 0);
}

/* a = a + b */
static __global__ void __launch_bounds__(THREADS)
    add_float3_aligned(float4 *a, const float4 *b, uint64_t points)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= points)
        return;

    float4 left = a[i];
    float4 right = b[i];
    float4 sum = make_float4(left.x + right.x, left.y + right.y, left.z + right.z, 0);
    a[i] = sum;
}

static __global__ void __launch_bounds__(THREADS)
    strip(const float4 *in, float *out, uint64_t points)
{
    __shared__ float span[SPAN];
    uint64_t first = (uint64_t)blockIdx.x * THREADS;
    uint64_t rest = 3 * (points - first);
    unsigned t = threadIdx.x;

    if (first + t < points) {
        float4 point = in[first + t];
        span[3 * t] = point.x;
        span[3 * t + 1] = point.y;
        span[3 * t + 2] = point.z;
    }
    __syncthreads();
    for (unsigned i = t; i < SPAN && i < rest; i += THREADS)
        out[3 * first + i] = span[i];
}

/* Room for the padded points of A and of B. */
GM_ROW_FUNCTION uint64_t gm_float3_aligned_scratch(const struct gm_op *op)
{
    uint64_t bytes;

    return gm_size_mul(gm_points(op), 2 * sizeof(float4), &bytes) ? bytes : UINT64_MAX;
}

GM_KERNEL(add_float3_aligned)
{
    const dim3 block(THREADS);
    uint64_t points = gm_points(op);
    float4 *a = (float4 *)gm_scratch(exec), *b = a + points;
    enum gm_status status = gm_begin_pass(exec, GM_PASS_PREPARES);

    for (unsigned i = 0; i < 2 && status == GM_OK; i++) {
        status = gm_float3_launches(points, [&](dim3 grid, uint64_t first) {
            return gm_launch(exec, pad, grid, block, 0, gm_in<float>(op, i) + 3 * first,
                             (i == 0 ? a : b) + first, points - first);
        });
    }
    if (status == GM_OK)
        status = gm_begin_pass(exec, GM_PASS_COMPUTES);
    if (status == GM_OK)
        status = gm_float3_launches(points, [&](dim3 grid, uint64_t first) {
            return gm_launch(exec, add_float3_aligned, grid, block, 0, a + first, b + first,
                             points - first);
        });
    if (status == GM_OK)
        status = gm_begin_pass(exec, GM_PASS_PREPARES);
    if (status == GM_OK)
        status = gm_float3_launches(points, [&](dim3 grid, uint64_t first) {
            return gm_launch(exec, strip, grid, block, 0, a + first, gm_out<float>(op) + 3 * first,
                             points - first);
        });
    return status;
}
