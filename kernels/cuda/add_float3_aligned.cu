/*
 * add_float3_aligned.cu - each point padded to 16 bytes, so that one instruction moves it.
 *
 * The difference to add_float3: a float4 is loaded whole, and the lanes' 16 bytes lie side by side.
 * The fourth member is there for the alignment alone. The operands come without it, so they are
 * padded first and the result is stripped after: passes that only rearrange, whose time a reply
 * tells apart, as `prepare`.
 *
 * Cost of the kernel: 16 sectors a request of 512 bytes, each touched once; but a quarter of every
 * sector is padding, so 16 bytes move where 12 count, and the useful rate ends at 75 % of a copy's.
 * One instruction does the work of three. Cost of the passes: a, b and the result once more, and
 * on one side of each a third larger.
 *
 * When it wins: when data stays in this form and its points are read in no order at all: a lone
 * point of 16 bytes lies in one sector, one of 12 often in two.
 *
 * Source: size and alignment of structures in NVIDIA's CUDA C++ Programming Guide.
 */
#include "kernels/cuda/float3.h"

#define THREADS GM_FLOAT3_THREADS
#define RUN (3 * THREADS) /* floats of a block's points */

static __global__ void __launch_bounds__(THREADS) pad(const float *in, float4 *out, uint64_t points)
{
    __shared__ float run[RUN];
    uint64_t first = (uint64_t)blockIdx.x * THREADS;
    uint64_t rest = 3 * (points - first);
    unsigned t = threadIdx.x;

    for (unsigned i = t; i < RUN && i < rest; i += THREADS)
        run[i] = in[3 * first + i];
    __syncthreads();
    if (first + t < points)
        out[first + t] = make_float4(run[3 * t], run[3 * t + 1], run[3 * t + 2], 0);
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
    __shared__ float run[RUN];
    uint64_t first = (uint64_t)blockIdx.x * THREADS;
    uint64_t rest = 3 * (points - first);
    unsigned t = threadIdx.x;

    if (first + t < points) {
        float4 point = in[first + t];
        run[3 * t] = point.x;
        run[3 * t + 1] = point.y;
        run[3 * t + 2] = point.z;
    }
    __syncthreads();
    for (unsigned i = t; i < RUN && i < rest; i += THREADS)
        out[3 * first + i] = run[i];
}

/* The points of a, and those of b. */
GM_ROW_FUNCTION uint64_t gm_float3_aligned_scratch(const struct gm_op *op)
{
    uint64_t bytes;

    return gm_size_mul(gm_points(op), 2 * sizeof(float4), &bytes) ? bytes : UINT64_MAX;
}

extern "C" enum gm_status GM_ENTRY(add_float3_aligned)(const struct gm_op *op, struct gm_exec *exec)
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
