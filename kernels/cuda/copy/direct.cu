/*
 * direct.cu - a copy, one element a thread: the smallest kernel there is.
 *
 * Neighbouring threads touch neighbouring elements. The hardware serves a warp's 32 accesses as one
 * request, and what a request costs is the number of distinct 32-byte sectors it touches: with
 * elements of 4 bytes 32 x 4 = 128 bytes, 4 sectors, all of them useful. That is what "coalesced"
 * means, and no kernel here can do better by sectors.
 *
 * Cost: each byte is read once and written once. Elements of 4 bytes: 4 sectors a load request, 4
 * a store request. Elements of 1 byte: one sector a request, so that four times as many
 * instructions move the same bytes, and with 32 bytes in flight a warp the memory's latency, not
 * its bandwidth, may be the limit. vector.cu is the answer to that.
 *
 * Source: the coalescing rules in NVIDIA's CUDA C++ Best Practices Guide.
 */
#include "kernels/cuda/lib/kernel.h"

#define THREADS 256u

template <typename T> static __global__ void copy_direct(const T *in, T *out, uint64_t count)
{
    uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < count)
        out[i] = in[i];
}

GM_KERNEL(copy_direct)
{
    return gm_by_size(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        uint64_t count = gm_matrix_elements(&op->result);

        return gm_launches(
            gm_ceil_div(count, THREADS), GM_GRID_X_MAX, [&](uint64_t x, uint64_t blocks) {
                uint64_t first = x * THREADS;
                return gm_launch(exec, copy_direct<T>, dim3((unsigned)blocks), dim3(THREADS), 0,
                                 gm_in<T>(op, 0) + first, gm_out<T>(op) + first, count - first);
            });
    });
}
