/*
 * shared.cu - reverses each row through shared memory.
 *
 * A block takes a part of a row. Its threads read it forwards into shared memory, pass a barrier,
 * and write it forwards at the mirrored position: thread t stores what thread last - t has loaded.
 * Short rows share a block.
 *
 * Cost, elements of 4 bytes: loads and stores of 4 sectors a request if rows are a multiple of 8
 * elements, else 5, because a warp's 128 bytes then begin inside a sector. Shared memory 1
 * wavefront a request: 32 words in descending order lie in 32 banks too.
 *
 * When it wins: on the first GPUs, where only ascending accesses were coalesced. Today out[cols - 1
 * - i] = in[i] costs the same; this is the plainest use of shared memory. `auto` takes it for small
 * matrices.
 * Source: M. Harris, "Using Shared Memory in CUDA C/C++", NVIDIA.
 */
#include "kernels/cuda/lib/tiles.h"

/*
 * Four threads of a block that has columns 2 to 5 of a row of 10:
 *
 *     in      . . [c d e f] . . . .      thread t loads column 2 + t
 *     vec          c d e f               a barrier
 *     out     . . . . [f e d c] . .      thread t stores vec[3 - t] in column 4 + t
 */
#define THREADS 256u

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    flip_shared(const T *in, T *out, uint64_t rows, uint64_t cols, gm_origin origin)
{
    __shared__ T vec[THREADS];
    uint64_t row = origin.row + blockIdx.y * blockDim.y + threadIdx.y;
    uint64_t first = origin.col + (uint64_t)blockIdx.x * blockDim.x;
    uint64_t left = cols - first;
    unsigned length = left < blockDim.x ? (unsigned)left : blockDim.x;
    unsigned begin = threadIdx.y * blockDim.x;
    unsigned t = threadIdx.x;
    bool inside = row < rows && t < length;

    if (inside)
        vec[begin + t] = in[row * cols + first + t];
    __syncthreads();
    if (inside)
        out[row * cols + (left - length) + t] = vec[begin + length - 1 - t];
}

GM_KERNEL(flip_shared)
{
    return gm_by_size(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        uint64_t rows = op->result.batch * op->result.rows, cols = op->result.cols;
        dim3 block = gm_block_of_rows(rows, cols, THREADS);

        return gm_tiles(1, rows, cols, block.y, block.x, [&](dim3 grid, gm_origin origin) {
            return gm_launch(exec, flip_shared<T>, grid, block, 0, gm_in<T>(op, 0), gm_out<T>(op),
                             rows, cols, origin);
        });
    });
}
