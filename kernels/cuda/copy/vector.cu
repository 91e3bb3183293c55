/*
 * vector.cu - copies 16 bytes per thread: the baseline of every operation that moves data.
 *
 * Unlike in copy_direct, the element type does not matter. A thread moves one uint4, the widest
 * access of one instruction. There are as many threads as vectors, so at any time reads, and
 * writes, each touch one short stretch of memory.
 *
 * Cost: each byte is read once and written once; 16 sectors a request, all useful. The up to 15
 * bytes after the last vector are moved one by one.
 *
 * When it wins: beyond some MB, and always for small elements; below that the launch dominates.
 * Four loads a thread before the first store are slower, and so are grid-stride loops
 * (kernels/EXPERIMENTS.md): both touch more of DRAM's pages at a time.
 * Source: J. Luitjens, "CUDA Pro Tip: Increase Performance with Vectorized Memory Access", NVIDIA.
 */
#include "kernels/cuda/lib/kernel.h"

#define THREADS 256u

static __global__ void __launch_bounds__(THREADS)
    copy_vector(const uint4 *in, uint4 *out, uint64_t vecs, uint64_t tail)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i < vecs)
        out[i] = in[i];
    if (i < tail) {
        const uint8_t *bytes_in = (const uint8_t *)(in + vecs);
        uint8_t *bytes_out = (uint8_t *)(out + vecs);
        bytes_out[i] = bytes_in[i];
    }
}

GM_KERNEL(copy_vector)
{
    uint64_t bytes = gm_matrix_bytes(&op->result);
    uint64_t vecs = bytes / sizeof(uint4), tail = bytes % sizeof(uint4);

    return gm_launches(gm_ceil_div(bytes, THREADS * sizeof(uint4)), GM_GRID_X_MAX,
                       [&](uint64_t x, uint64_t blocks) {
                           uint64_t first = x * THREADS;
                           return gm_launch(exec, copy_vector, dim3((unsigned)blocks),
                                            dim3(THREADS), 0, gm_in<uint4>(op, 0) + first,
                                            gm_out<uint4>(op) + first, vecs - first,
                                            first == 0 ? tail : 0);
                       });
}
