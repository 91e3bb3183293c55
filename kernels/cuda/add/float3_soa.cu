/*
 * float3_soa.cu - adds N x 3 matrices as structures of arrays: all x, all y, all z.
 *
 * Unlike in add_float3, x, y and z lie in three arrays, and neighbouring threads have neighbouring
 * elements in each. Operands are points: a pass splits them first, and another merges the result,
 * through shared memory as in add_float3_staged. Both are reported as `prepare`.
 *
 * Cost of the kernel: 4 sectors a request, all useful. Cost of the passes: A, B and the result are
 * read and written once more, so the whole takes three times the traffic.
 *
 * When it wins: when data stays in this form over many operations, the more so if an operation
 * needs few of a structure's members. For one sum of all members: never.
 * Source: structure of arrays in NVIDIA's CUDA C++ Best Practices Guide.
 */
#include "kernels/cuda/add/sum.h"

#define THREADS GM_FLOAT3_THREADS
#define SPAN (3 * THREADS) /* floats of a block's points */
#define ALIGNED 32u        /* floats: each array begins at a 128-byte line */

struct arrays {
    float *x, *y, *z;
};

static __global__ void __launch_bounds__(THREADS)
    split(const float *in, struct arrays out, uint64_t points)
{
    __shared__ float span[SPAN];
    uint64_t first = (uint64_t)blockIdx.x * THREADS;
    uint64_t rest = 3 * (points - first);
    unsigned t = threadIdx.x;

    for (unsigned i = t; i < SPAN && i < rest; i += THREADS)
        span[i] = in[3 * first + i];
    __syncthreads();
    if (first + t < points) {
        out.x[first + t] = span[3 * t];
        out.y[first + t] = span[3 * t + 1];
        out.z[first + t] = span[3 * t + 2];
    }
}

/* a = a + b */
static __global__ void __launch_bounds__(THREADS)
    add_float3_soa(struct arrays a, struct arrays b, uint64_t points)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= points)
        return;

    float x = a.x[i] + b.x[i];
    float y = a.y[i] + b.y[i];
    float z = a.z[i] + b.z[i];
    a.x[i] = x;
    a.y[i] = y;
    a.z[i] = z;
}

static __global__ void __launch_bounds__(THREADS)
    merge(struct arrays in, float *out, uint64_t points)
{
    __shared__ float span[SPAN];
    uint64_t first = (uint64_t)blockIdx.x * THREADS;
    uint64_t rest = 3 * (points - first);
    unsigned t = threadIdx.x;

    if (first + t < points) {
        span[3 * t] = in.x[first + t];
        span[3 * t + 1] = in.y[first + t];
        span[3 * t + 2] = in.z[first + t];
    }
    __syncthreads();
    for (unsigned i = t; i < SPAN && i < rest; i += THREADS)
        out[3 * first + i] = span[i];
}

static uint64_t array_floats(const struct gm_op *op)
{
    return gm_ceil_div(gm_points(op), ALIGNED) * ALIGNED;
}

/* Three arrays of a, and three of b. */
GM_ROW_FUNCTION uint64_t gm_float3_soa_scratch(const struct gm_op *op)
{
    uint64_t bytes;

    return gm_size_mul(array_floats(op), 6 * sizeof(float), &bytes) ? bytes : UINT64_MAX;
}

static struct arrays arrays_at(float *at, uint64_t length, uint64_t first)
{
    return {at + first, at + length + first, at + 2 * length + first};
}

GM_KERNEL(add_float3_soa)
{
    const dim3 block(THREADS);
    uint64_t points = gm_points(op), length = array_floats(op);
    float *scratch_a = (float *)gm_scratch(exec), *scratch_b = scratch_a + 3 * length;
    enum gm_status status = gm_begin_pass(exec, GM_PASS_PREPARES);

    for (unsigned i = 0; i < 2 && status == GM_OK; i++) {
        status = gm_float3_launches(points, [&](dim3 grid, uint64_t first) {
            return gm_launch(exec, split, grid, block, 0, gm_in<float>(op, i) + 3 * first,
                             arrays_at(i == 0 ? scratch_a : scratch_b, length, first),
                             points - first);
        });
    }
    if (status == GM_OK)
        status = gm_begin_pass(exec, GM_PASS_COMPUTES);
    if (status == GM_OK)
        status = gm_float3_launches(points, [&](dim3 grid, uint64_t first) {
            return gm_launch(exec, add_float3_soa, grid, block, 0,
                             arrays_at(scratch_a, length, first),
                             arrays_at(scratch_b, length, first), points - first);
        });
    if (status == GM_OK)
        status = gm_begin_pass(exec, GM_PASS_PREPARES);
    if (status == GM_OK)
        status = gm_float3_launches(points, [&](dim3 grid, uint64_t first) {
            return gm_launch(exec, merge, grid, block, 0, arrays_at(scratch_a, length, first),
                             gm_out<float>(op) + 3 * first, points - first);
        });
    return status;
}
