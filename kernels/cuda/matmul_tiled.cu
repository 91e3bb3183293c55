/*
 * matmul_tiled.cu - each element loaded once a block, and used 32 times from shared memory.
 *
 * The difference to matmul_naive: the 32 rows and 32 columns that a block needs are brought in
 * together, a tile of 32 x 32 of each operand at a time. Each thread loads one element of either
 * tile; then all of them take 32 steps of their sums from shared memory. What a tile has beyond the
 * operand's edge is zero, which adds nothing, so that every thread reaches every barrier, whatever
 * the shape.
 *
 * Two barriers a tile: one before its elements are used, since other threads loaded them, and one
 * after, since the next tile overwrites them.
 *
 * Cost, elements of 4 bytes: global loads fall by the tile's width, to 2 m n k / 32 elements, each
 * request 4 sectors. A step reads shared memory twice: an element of a row of a that is the same
 * for the whole warp (1 wavefront, a broadcast) and 32 neighbours of b (1 wavefront). So the limit
 * is shared memory now: two reads for one multiply-add. Sums in more registers a thread are the way
 * beyond that. f16 and bf16 are widened on the way into the tile. With transa or transb the lanes
 * still run along the tile's rows, which are then the operand's columns: 32 sectors a request.
 *
 * When it wins: against naive wherever most tiles are full, also where caches hold the operands.
 *
 * Source: the matrix product with shared memory in NVIDIA's CUDA C++ Programming Guide.
 */
#include "kernels/cuda/product.h"
#include "kernels/cuda/tiles.h"

#define TILE 32u

template <typename T>
static __global__ void __launch_bounds__(TILE *TILE) matmul_tiled(gm_product<T> p, gm_origin origin)
{
    __shared__ gm_sum<T> tile_a[TILE][TILE];
    __shared__ gm_sum<T> tile_b[TILE][TILE];
    unsigned x = threadIdx.x, y = threadIdx.y;
    uint64_t matrix = origin.matrix + blockIdx.z;
    uint64_t row = origin.row + blockIdx.y * TILE + y;
    uint64_t col = origin.col + (uint64_t)blockIdx.x * TILE + x;
    const T *a = gm_matrix_of<T>(p.a, matrix) + row * p.a.row;
    const T *b = gm_matrix_of<T>(p.b, matrix) + col * p.b.col;
    gm_sum<T> sum = 0;

    for (uint64_t first = 0; first < p.k; first += TILE) {
        bool in_a = row < p.m && first + x < p.k;
        bool in_b = first + y < p.k && col < p.n;
        tile_a[y][x] = in_a ? gm_load(a[(first + x) * p.a.col]) : gm_sum<T>(0);
        tile_b[y][x] = in_b ? gm_load(b[(first + y) * p.b.row]) : gm_sum<T>(0);
        __syncthreads();
        for (unsigned i = 0; i < TILE; i++)
            sum += tile_a[y][i] * tile_b[i][x];
        __syncthreads();
    }
    if (row < p.m && col < p.n) {
        T value = gm_finished(p, matrix, row, col, sum);
        p.result[(matrix * p.m + row) * p.n + col] = value;
    }
}

extern "C" enum gm_status GM_ENTRY(matmul_tiled)(const struct gm_op *op, struct gm_exec *exec)
{
    return gm_by_type(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        gm_product<T> p = gm_product_of<T>(op);

        return gm_tiles(p.batch, p.m, p.n, TILE, TILE, [&](dim3 grid, gm_origin origin) {
            return gm_launch(exec, matmul_tiled<T>, grid, dim3(TILE, TILE), 0, p, origin);
        });
    });
}
