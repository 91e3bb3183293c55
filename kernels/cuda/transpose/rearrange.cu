/*
 * rearrange.cu - makes column-major operands row-major, for variants that take no other layout.
 *
 * It is not a variant. A backend runs it before one, and reports it as `prepare`. The code is that
 * of transpose_padded. A stack in Fortran order is, read row-major, an array [cols][rows][batch],
 * because the first index runs fastest. The target is [batch][rows][cols]. So a matrix of cols
 * rows, each of rows x batch elements, is transposed, and each row of the outcome is stored where
 * its matrix lies. A single matrix has a batch of 1, and its rows stay in order.
 *
 * Cost: each element is read and written once, 4 sectors a request for elements of 4 bytes. With
 * few columns the rows that are written are short, and sectors are half empty.
 */
#include "kernels/cuda/lib/tiles.h"

#define TILE 32u
#define ROWS 8u /* rows of a tile that a block moves at once */

template <typename T>
static __global__ void __launch_bounds__(TILE *ROWS)
    rearrange(const T *in, T *out, uint64_t batch, uint64_t rows, uint64_t cols, gm_origin origin)
{
    __shared__ T tile[TILE][TILE + 1];
    uint64_t length = rows * batch; /* a column of all matrices, interleaved */
    uint64_t tile_col = origin.row + blockIdx.y * TILE;
    uint64_t tile_at = origin.col + (uint64_t)blockIdx.x * TILE;
    unsigned x = threadIdx.x;

    for (unsigned y = threadIdx.y; y < TILE; y += ROWS) {
        uint64_t col = tile_col + y, at = tile_at + x;
        if (col < cols && at < length)
            tile[y][x] = in[col * length + at];
    }
    __syncthreads();
    for (unsigned y = threadIdx.y; y < TILE; y += ROWS) {
        uint64_t col = tile_col + x, at = tile_at + y;
        if (col < cols && at < length) {
            uint64_t row =
                at % batch * rows + at / batch; /* the row in all matrices, one below the other */
            out[row * cols + col] = tile[x][y];
        }
    }
}

extern "C" enum gm_status GM_ENTRY(rearrange)(const struct gm_matrix *x, void *data,
                                              struct gm_exec *exec)
{
    return gm_by_size(x->dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;

        return gm_tiles(
            1, x->cols, x->rows * x->batch, TILE, TILE, [&](dim3 grid, gm_origin origin) {
                return gm_launch(exec, rearrange<T>, grid, dim3(TILE, ROWS), 0, (const T *)x->data,
                                 (T *)data, x->batch, x->rows, x->cols, origin);
            });
    });
}
