/*
 * direct.cu - copies one element per thread: the smallest kernel there is.
 *
 * Neighbouring threads move neighbouring elements. The hardware serves a warp's 32 accesses as one
 * request. A request costs the distinct 32-byte sectors that it touches: elements of 4 bytes are 32
 * x 4 = 128 bytes, 4 sectors, all useful. This is called coalesced, and no kernel needs fewer
 * sectors.
 *
 * Cost: each byte is read once and written once. Elements of 4 bytes: 4 sectors a load request, 4 a
 * store request. Elements of 1 byte: one sector a request. Four times as many instructions then
 * move the same bytes, and with 32 bytes in flight a warp, latency may be the limit instead of
 * bandwidth. vector.cu fixes that.
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
