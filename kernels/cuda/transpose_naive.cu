/*
 * transpose_naive.cu - one thread an element: reads along a row, writes down a column.
 *
 * The difference to a copy: the write. Neighbouring threads read neighbours in a row, and those
 * are a whole column apart in the result. A warp's store touches 32 sectors where its 128 bytes
 * would fill 4 (elements of 4 bytes), and of each 32-byte sector it fills only 4 bytes: the other
 * 28 are filled by seven other warps, at other times. As long as the L2 cache holds the sectors
 * until those have run, memory sees each once; beyond that it sees them up to eight times, a part
 * at a time.
 *
 * Cost, elements of 4 bytes: load 4 sectors a request, store 32, where 4 would do. Of 1 byte: load
 * 1, store 32. Of 8: load 8, store 32. Of 16: load 16, store 32: only twice the least, since an
 * element already fills half a sector. No shared memory.
 *
 * When it wins: over tiles on a few rows, of which a 32 x 32 tile would be mostly empty, and on the
 * smallest matrices. Large ones of few rows, and stacks, have kernels of their own.
 *
 * Source: M. Harris, "An Efficient Matrix Transpose in CUDA C/C++", NVIDIA.
 */
#include "kernels/cuda/tiles.h"

#define WIDTH 32u
#define HEIGHT 8u

template <typename T>
static __global__ void transpose_naive(const T *in, T *out, uint64_t rows, uint64_t cols,
                                       gm_origin origin)
{
    uint64_t matrix = (origin.matrix + blockIdx.z) * rows * cols;
    uint64_t row = origin.row + blockIdx.y * HEIGHT + threadIdx.y;
    uint64_t col = origin.col + (uint64_t)blockIdx.x * WIDTH + threadIdx.x;

    if (row < rows && col < cols)
        out[matrix + col * rows + row] = in[matrix + row * cols + col];
}

extern "C" enum gm_status GM_ENTRY(transpose_naive)(const struct gm_op *op, struct gm_exec *exec)
{
    const struct gm_matrix *a = &op->operand[0];

    return gm_by_size(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;

        return gm_tiles(
            a->batch, a->rows, a->cols, HEIGHT, WIDTH, [&](dim3 grid, gm_origin origin) {
                return gm_launch(exec, transpose_naive<T>, grid, dim3(WIDTH, HEIGHT), 0,
                                 gm_in<T>(op, 0), gm_out<T>(op), a->rows, a->cols, origin);
            });
    });
}
