/*
 * padded.cu - transposes through a padded tile, without bank conflicts.
 *
 * Rows of the tile have 33 elements where transpose_tiled has 32. The words of a column are then 33
 * apart, so each lies in the bank after the previous one (drawn below).
 *
 * Cost, elements of 4 bytes: load and store 4 sectors a request, all useful; shared memory 1
 * wavefront a request; 128 bytes more shared memory a block. One element of padding suits every
 * size. For 8 bytes a column takes 2 wavefronts and for 16 bytes 4, the least; for 1 and 2 bytes 1
 * if it begins at a word, else 2.
 *
 * When it wins: against tiled on all but one of 100 shapes timed. What still separates it from a
 * copy: elements move one by one, and a tile's rows have only 32 elements.
 * Source: M. Harris, "An Efficient Matrix Transpose in CUDA C/C++", NVIDIA.
 */
#include "kernels/cuda/lib/tiles.h"

#define TILE 32u
#define ROWS 8u /* rows of a tile that a block moves at once */

template <typename T>
static __global__ void __launch_bounds__(TILE *ROWS)
    transpose_padded(const T *in, T *out, uint64_t rows, uint64_t cols, gm_origin origin)
{
    /* Bank of tile[y][x], with rows of 33:    0  1  2 .. 31  0
     *                                         1  2  3 ..  0  1     a row: 32 banks
     *                                         2  3  4 ..  1  2     a column: 32 banks too
     *                                         :                                       */
    __shared__ T tile[TILE][TILE + 1];
    uint64_t matrix = (origin.matrix + blockIdx.z) * rows * cols;
    uint64_t tile_row = origin.row + blockIdx.y * TILE;
    uint64_t tile_col = origin.col + (uint64_t)blockIdx.x * TILE;
    unsigned x = threadIdx.x;

    for (unsigned y = threadIdx.y; y < TILE; y += ROWS) {
        uint64_t row = tile_row + y, col = tile_col + x;
        if (row < rows && col < cols)
            tile[y][x] = in[matrix + row * cols + col];
    }
    __syncthreads();
    for (unsigned y = threadIdx.y; y < TILE; y += ROWS) {
        uint64_t row = tile_row + x, col = tile_col + y;
        if (row < rows && col < cols)
            out[matrix + col * rows + row] = tile[x][y];
    }
}

GM_KERNEL(transpose_padded)
{
    const struct gm_matrix *a = &op->operand[0];

    return gm_by_size(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;

        return gm_tiles(a->batch, a->rows, a->cols, TILE, TILE, [&](dim3 grid, gm_origin origin) {
            return gm_launch(exec, transpose_padded<T>, grid, dim3(TILE, ROWS), 0, gm_in<T>(op, 0),
                             gm_out<T>(op), a->rows, a->cols, origin);
        });
    });
}
