/*
 * matmul_naive.cu - one thread an element of the result: a dot product straight from global memory.
 *
 * threadIdx.x runs along a row of the result, so the lanes of a warp share a row of a and have
 * neighbouring columns of b. In each step they read the same element of a, which is one sector for
 * all of them (a broadcast), and 32 neighbours of a row of b, which are 128 bytes: coalesced. With
 * the roles of x and y exchanged, each step would read 32 rows of a, 32 sectors for 128 bytes.
 *
 * Cost, elements of 4 bytes, a multiply-add a lane: two load requests, of 1 and 4 sectors. Each
 * element of a is asked for by n threads and each of b by m: 2 m n k elements are loaded where
 * m k + k n would do. Caches catch most of that, so the limit is how many requests the L1 cache
 * can answer, not memory. Stores: 4 sectors a request, once. With transb the lanes read down
 * columns of b as it lies: 32 sectors a request.
 *
 * When it wins: nowhere; over tiled where tiles of 32 x 32 x 32 stay in good part empty, as of
 * stacks of 16 x 16 to 65 x 65, of k = 16 and of dot products.
 *
 * Source: the matrix product without shared memory in NVIDIA's CUDA C++ Programming Guide.
 */
#include "kernels/cuda/product.h"
#include "kernels/cuda/tiles.h"

#define SIDE 32u /* of a block, which is square so that both operands are reused in the cache */

template <typename T>
static __global__ void __launch_bounds__(SIDE *SIDE) matmul_naive(gm_product<T> p, gm_origin origin)
{
    uint64_t matrix = origin.matrix + blockIdx.z;
    uint64_t row = origin.row + blockIdx.y * SIDE + threadIdx.y;
    uint64_t col = origin.col + (uint64_t)blockIdx.x * SIDE + threadIdx.x;
    if (row >= p.m || col >= p.n)
        return;

    const T *a = gm_matrix_of<T>(p.a, matrix) + row * p.a.row;
    const T *b = gm_matrix_of<T>(p.b, matrix) + col * p.b.col;
    gm_sum<T> sum = 0;
    for (uint64_t i = 0; i < p.k; i++) {
        gm_sum<T> left = gm_load(*a);
        gm_sum<T> right = gm_load(*b);
        sum += left * right;
        a += p.a.col;
        b += p.b.row;
    }
    T value = gm_finished(p, matrix, row, col, sum);
    p.result[(matrix * p.m + row) * p.n + col] = value;
}

extern "C" enum gm_status GM_ENTRY(matmul_naive)(const struct gm_op *op, struct gm_exec *exec)
{
    return gm_by_type(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        gm_product<T> p = gm_product_of<T>(op);

        return gm_tiles(p.batch, p.m, p.n, SIDE, SIDE, [&](dim3 grid, gm_origin origin) {
            return gm_launch(exec, matmul_naive<T>, grid, dim3(SIDE, SIDE), 0, p, origin);
        });
    });
}
