/*
 * tiled.cu - transposes through a tile in shared memory: reads and writes run along rows.
 *
 * Unlike in transpose_naive, a block reads a 32 x 32 tile along rows of the operand and writes it
 * along rows of the result. The direction changes in shared memory, where strides cost no sectors.
 * Its 32 x 8 threads move four elements each, which saves three quarters of the index arithmetic.
 *
 * Cost, elements of 4 bytes: load and store 4 sectors a request, all useful. But a column of the
 * tile lies in one of the 32 banks: reading it takes 32 wavefronts instead of 1 (a 32-way bank
 * conflict). Of 1 byte: 8 wavefronts; of 2: 16; of 8 and 16: 32, where 2 and 4 are the least.
 *
 * When it wins: against naive on more than a few rows and columns. padded is as good or better;
 * this kernel shows the conflict.
 * Source: M. Harris, "An Efficient Matrix Transpose in CUDA C/C++", NVIDIA.
 */
#include "kernels/cuda/lib/tiles.h"

/*
 * A warp stores a row of the tile, and loads a column of it. Banks of tile[y][x]:
 *
 *     in           tile                          out
 *     a b c ..     a b c ..    0 1 2 .. 31       a d g ..   a row of out is a column of the tile,
 *     d e f ..     d e f ..    0 1 2 .. 31       b e h ..   32 words of one bank
 *     g h i ..     g h i ..    0 1 2 .. 31       c f i ..
 */
#define TILE 32u
#define ROWS 8u /* rows of a tile that a block moves at once */

template <typename T>
static __global__ void __launch_bounds__(TILE *ROWS)
    transpose_tiled(const T *in, T *out, uint64_t rows, uint64_t cols, gm_origin origin)
{
    __shared__ T tile[TILE][TILE];
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

GM_KERNEL(transpose_tiled)
{
    const struct gm_matrix *a = &op->operand[0];

    return gm_by_size(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;

        return gm_tiles(a->batch, a->rows, a->cols, TILE, TILE, [&](dim3 grid, gm_origin origin) {
            return gm_launch(exec, transpose_tiled<T>, grid, dim3(TILE, ROWS), 0, gm_in<T>(op, 0),
                             gm_out<T>(op), a->rows, a->cols, origin);
        });
    });
}
