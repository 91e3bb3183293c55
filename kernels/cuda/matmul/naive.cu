/*
 * naive.cu - computes one element of the result per thread, straight from global memory.
 *
 * threadIdx.x runs along a row of the result. In each step of K the lanes of a warp read the same
 * element of A (a broadcast: one sector) and 32 neighbours in a row of B (coalesced: 128 bytes).
 * With x and y exchanged, each step would read 32 rows of A: 32 sectors for 128 bytes.
 *
 * Cost, elements of 4 bytes, per multiply-add: two load requests, of 1 and 4 sectors. It loads 2 M
 * N K elements where M K + K N would do. Caches serve most of them, so the limit is the L1 cache's
 * request rate, not memory. With transb the lanes read down columns: 32 sectors a request.
 *
 * When it wins: never overall. It beats tiled where 32 x 32 x 32 tiles stay mostly empty (stacks of
 * 16 x 16 to 65 x 65, K = 16, dot products).
 * Source: the matrix product without shared memory in NVIDIA's CUDA C++ Programming Guide.
 */
#include "kernels/cuda/lib/tiles.h"
#include "kernels/cuda/matmul/product.h"

#define SIDE 32u /* the block is SIDE x SIDE: square, so that the cache reuses both operands */

template <typename T>
static __global__ void __launch_bounds__(SIDE *SIDE) matmul_naive(gm_product<T> p, gm_origin origin)
{
    uint64_t matrix = origin.matrix + blockIdx.z;
    uint64_t row = origin.row + blockIdx.y * SIDE + threadIdx.y;
    uint64_t col = origin.col + (uint64_t)blockIdx.x * SIDE + threadIdx.x;
    if (row >= p.M || col >= p.N)
        return;

    const T *a = gm_matrix_of<T>(p.a, matrix) + row * p.a.row;
    const T *b = gm_matrix_of<T>(p.b, matrix) + col * p.b.col;
    gm_acc<T> sum = 0;
    for (uint64_t i = 0; i < p.K; i++) {
        gm_acc<T> left = gm_load(*a);
        gm_acc<T> right = gm_load(*b);
        sum += left * right;
        a += p.a.col;
        b += p.b.row;
    }
    T value = gm_finished(p, matrix, row, col, sum);
    p.result[(matrix * p.M + row) * p.N + col] = value;
}

GM_KERNEL(matmul_naive)
{
    return gm_by_type(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        gm_product<T> p = gm_product_of<T>(op);

        return gm_tiles(p.batch, p.M, p.N, SIDE, SIDE, [&](dim3 grid, gm_origin origin) {
            return gm_launch(exec, matmul_naive<T>, grid, dim3(SIDE, SIDE), 0, p, origin);
        });
    });
}
