/*
 * copy_vector.cu - a copy in 16-byte pieces, with several of them in flight: the yardstick.
 *
 * The difference to copy_direct: the elements' type does not matter, bytes do. A thread moves a
 * uint4, the widest that one instruction moves, so a warp's request is 512 bytes: 16 sectors, and
 * a quarter of the instructions that elements of 4 bytes need. Each thread loads four such pieces
 * before it stores the first, because a load takes hundreds of cycles to arrive and the only way to
 * keep memory busy is to have enough bytes under way. The grid holds as many blocks as the device
 * can run at once, and each goes on by the width of the grid (a grid-stride loop), so that no
 * multiprocessor waits for blocks to begin and end.
 *
 * Cost: each byte is read once and written once; 16 sectors a request, all useful. The up to 15
 * bytes after the last whole piece are moved one by one.
 *
 * When it wins: beyond some MB, and always for small elements. Below that the launch is all there
 * is to it. What an operation that only moves data can hope for is this kernel's time.
 *
 * Source: M. Harris, "CUDA Pro Tip: Write Flexible Kernels with Grid-Stride Loops", and J.
 * Luitjens, "CUDA Pro Tip: Increase Performance with Vectorized Memory Access", both NVIDIA.
 */
#include "kernels/cuda/tiles.h"

#define THREADS 256u

static __global__ void __launch_bounds__(THREADS)
    copy_vector(const uint4 *in, uint4 *out, uint64_t pieces, uint64_t tail)
{
    uint64_t stride = (uint64_t)gridDim.x * THREADS;
    uint64_t thread = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    uint64_t i = thread;

    for (; i + 3 * stride < pieces; i += 4 * stride) {
        uint4 first = in[i];
        uint4 second = in[i + stride];
        uint4 third = in[i + 2 * stride];
        uint4 fourth = in[i + 3 * stride];
        out[i] = first;
        out[i + stride] = second;
        out[i + 2 * stride] = third;
        out[i + 3 * stride] = fourth;
    }
    for (; i < pieces; i += stride)
        out[i] = in[i];

    if (thread < tail) {
        const uint8_t *bytes_in = (const uint8_t *)(in + pieces);
        uint8_t *bytes_out = (uint8_t *)(out + pieces);
        bytes_out[thread] = bytes_in[thread];
    }
}

extern "C" enum gm_status GM_ENTRY(copy_vector)(const struct gm_op *op, struct gm_exec *exec)
{
    uint64_t bytes = gm_matrix_bytes(&op->result);
    uint64_t pieces = bytes / sizeof(uint4), tail = bytes % sizeof(uint4);
    dim3 grid = gm_resident_grid(gm_gpu_of(exec), THREADS, 1, 1, gm_pieces(bytes, 16 * THREADS));

    return gm_launch(exec, copy_vector, grid, dim3(THREADS), 0, gm_in<uint4>(op, 0),
                     gm_out<uint4>(op), pieces, tail);
}
