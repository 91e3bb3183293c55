/*
 * tiled.cu - multiplies 32 x 32 tiles in shared memory, so that a load serves 32 multiply-adds.
 *
 * Unlike matmul_naive, a block loads its 32 rows of A and 32 columns of B together, one 32 x 32
 * tile of each operand at a time, one element of each per thread. Elements beyond the operand's
 * edge are zero, so that every thread reaches every barrier. Each tile has two barriers: one before
 * its elements are used, because other threads loaded them, and one before the next tile overwrites
 * them.
 *
 * Cost, elements of 4 bytes: 2 M N K / 32 elements loaded, 4 sectors a request. A multiply-add
 * reads shared memory twice (a broadcast and 32 neighbours, 1 wavefront each). That is the limit,
 * which register_tiled removes. With transa or transb lanes run down the operand's columns: 32
 * sectors a request. f16 and bf16 are widened when they are stored in the tile.
 *
 * When it wins: against naive, wherever most tiles are full.
 * Source: the matrix product with shared memory in NVIDIA's CUDA C++ Programming Guide.
 */
#include "kernels/cuda/lib/tiles.h"
#include "kernels/cuda/matmul/product.h"

/*
 * A block goes along K by 32. Thread (x, y) sums up element (y, x) of the result's tile:
 *
 *                              +--------------+
 *                              |   column x   |   tile_b: 32 of K, 32 columns of B
 *                              +--------------+
 *         +--------------+     +--------------+
 *         |    row y     |     |    (y, x)    |   sum += row y of tile_a * column x of tile_b
 *         +--------------+     +--------------+
 *     tile_a: 32 rows of A, 32 of K
 */
#define TILE 32u

template <typename T>
static __global__ void __launch_bounds__(TILE *TILE) matmul_tiled(gm_product<T> p, gm_origin origin)
{
    __shared__ gm_acc<T> tile_a[TILE][TILE];
    __shared__ gm_acc<T> tile_b[TILE][TILE];
    unsigned x = threadIdx.x, y = threadIdx.y;
    uint64_t matrix = origin.matrix + blockIdx.z;
    uint64_t row = origin.row + blockIdx.y * TILE + y;
    uint64_t col = origin.col + (uint64_t)blockIdx.x * TILE + x;
    const T *a = gm_matrix_of<T>(p.a, matrix) + row * p.a.row;
    const T *b = gm_matrix_of<T>(p.b, matrix) + col * p.b.col;
    gm_acc<T> sum = 0;

    for (uint64_t first = 0; first < p.K; first += TILE) {
        bool in_a = row < p.M && first + x < p.K;
        bool in_b = first + y < p.K && col < p.N;
        tile_a[y][x] = in_a ? gm_load(a[(first + x) * p.a.col]) : gm_acc<T>(0);
        tile_b[y][x] = in_b ? gm_load(b[(first + y) * p.b.row]) : gm_acc<T>(0);
        __syncthreads();
        for (unsigned i = 0; i < TILE; i++)
            sum += tile_a[y][i] * tile_b[i][x];
        __syncthreads();
    }
    if (row < p.M && col < p.N) {
        T value = gm_finished(p, matrix, row, col, sum);
        p.result[(matrix * p.M + row) * p.N + col] = value;
    }
}

GM_KERNEL(matmul_tiled)
{
    return gm_by_type(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        gm_product<T> p = gm_product_of<T>(op);

        return gm_tiles(p.batch, p.M, p.N, TILE, TILE, [&](dim3 grid, gm_origin origin) {
            return gm_launch(exec, matmul_tiled<T>, grid, dim3(TILE, TILE), 0, p, origin);
        });
    });
}
