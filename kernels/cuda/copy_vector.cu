/*
 * copy_vector.cu - a copy in pieces of 16 bytes, one a thread: the yardstick.
 *
 * The difference to copy_direct: the elements' type does not matter, bytes do. A thread moves a
 * uint4, the widest that one instruction moves, so a warp's request is 512 bytes: 16 sectors, and
 * a quarter of the instructions that elements of 4 bytes need. And that is all it does: there are
 * as many threads as pieces, so that at any time what is read and what is written are each one
 * short stretch of memory that moves on.
 *
 * Cost: each byte is read once and written once; 16 sectors a request, all useful. The up to 15
 * bytes after the last whole piece are moved one by one.
 *
 * When it wins: beyond some MB, and always for small elements. Below that the launch is all there
 * is to it. What an operation that only moves data can hope for is this kernel's time.
 *
 * What does worse: threads that load four pieces before they store the first, and grids no larger
 * than the device whose blocks go round (kernels/HUNT.md has the figures). Enough is under way
 * without either, and both spread what is touched at one time over more of DRAM's pages.
 *
 * Source: J. Luitjens, "CUDA Pro Tip: Increase Performance with Vectorized Memory Access", NVIDIA.
 */
#include "kernels/cuda/kernel.h"

#define THREADS 256u

static __global__ void __launch_bounds__(THREADS)
    copy_vector(const uint4 *in, uint4 *out, uint64_t pieces, uint64_t tail)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i < pieces)
        out[i] = in[i];
    if (i < tail) {
        const uint8_t *bytes_in = (const uint8_t *)(in + pieces);
        uint8_t *bytes_out = (uint8_t *)(out + pieces);
        bytes_out[i] = bytes_in[i];
    }
}

extern "C" enum gm_status GM_ENTRY(copy_vector)(const struct gm_op *op, struct gm_exec *exec)
{
    uint64_t bytes = gm_matrix_bytes(&op->result);
    uint64_t pieces = bytes / sizeof(uint4), tail = bytes % sizeof(uint4);

    return gm_launches(gm_ceil_div(bytes, THREADS * sizeof(uint4)), GM_GRID_X_MAX,
                       [&](uint64_t x, uint64_t blocks) {
                           uint64_t first = x * THREADS;
                           return gm_launch(exec, copy_vector, dim3((unsigned)blocks),
                                            dim3(THREADS), 0, gm_in<uint4>(op, 0) + first,
                                            gm_out<uint4>(op) + first, pieces - first,
                                            first == 0 ? tail : 0);
                       });
}
