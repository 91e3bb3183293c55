/*
 * naive.cu - transposes one element per thread: reads along a row, writes down a column.
 *
 * Only the write differs from a copy. Neighbouring threads write a whole row of the result apart,
 * so a warp's store touches 32 sectors where its 128 bytes would fill 4, and fills 4 bytes of each.
 * Other warps fill the rest later. As long as the L2 cache holds those sectors, memory sees each
 * once; otherwise up to eight times, a part at a time.
 *
 * Cost, elements of 4 bytes: load 4 sectors a request, store 32, where 4 would do. Of 1 byte: load
 * 1, store 32. Of 16 bytes: load 16, store 32, only twice the least. No shared memory.
 *
 * When it wins: over tiles on a few rows, where a 32 x 32 tile would be mostly empty, and on the
 * smallest matrices.
 * Source: M. Harris, "An Efficient Matrix Transpose in CUDA C/C++", NVIDIA.
 */
#include "kernels/cuda/lib/tiles.h"

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

GM_KERNEL(transpose_naive)
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
