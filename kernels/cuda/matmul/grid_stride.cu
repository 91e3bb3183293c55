/*
 * grid_stride.cu - naive, on a grid as large as the device, whose threads go on to further
 * elements.
 *
 * The difference to matmul_naive: the device decides how many blocks there are, not the shape.
 * Each thread computes the element it stands on, then the one a whole grid further along the row,
 * then further down, then in the next matrix. One launch does any shape.
 *
 * Cost: the accesses are naive's, request for request.
 *
 * When it wins: hardly ever; it is here for the form. It was predicted to win on large stacks of
 * small matrices, and takes twice naive's time there on an H200. It loses where the last round of
 * the grid is nearly empty, since the hardware can no longer give an idle multiprocessor a block.
 * Source: M. Harris, "CUDA Pro Tip: Write Flexible Kernels with Grid-Stride Loops", NVIDIA.
 */
#include "kernels/cuda/lib/tiles.h"
#include "kernels/cuda/matmul/product.h"

#define SIDE 32u

template <typename T>
static __device__ __forceinline__ gm_acc<T> dot(const gm_product<T> &p, uint64_t matrix,
                                                uint64_t row, uint64_t col)
{
    const T *a = gm_matrix_of<T>(p.a, matrix) + row * p.a.row;
    const T *b = gm_matrix_of<T>(p.b, matrix) + col * p.b.col;
    gm_acc<T> sum = 0;

    for (uint64_t i = 0; i < p.K; i++) {
        gm_acc<T> left = gm_load(a[i * p.a.col]);
        gm_acc<T> right = gm_load(b[i * p.b.row]);
        sum += left * right;
    }
    return sum;
}

template <typename T>
static __global__ void __launch_bounds__(SIDE *SIDE) matmul_grid_stride(gm_product<T> p)
{
    uint64_t first_row = blockIdx.y * SIDE + threadIdx.y;
    uint64_t first_col = blockIdx.x * SIDE + threadIdx.x;

    for (uint64_t matrix = blockIdx.z; matrix < p.batch; matrix += gridDim.z) {
        for (uint64_t row = first_row; row < p.M; row += gridDim.y * SIDE) {
            for (uint64_t col = first_col; col < p.N; col += gridDim.x * SIDE) {
                gm_acc<T> sum = dot(p, matrix, row, col);
                T value = gm_finished(p, matrix, row, col, sum);
                p.result[(matrix * p.M + row) * p.N + col] = value;
            }
        }
    }
}

GM_KERNEL(matmul_grid_stride)
{
    return gm_by_type(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        gm_product<T> p = gm_product_of<T>(op);
        dim3 grid = gm_resident_grid(gm_gpu_of(exec), SIDE * SIDE, p.batch, gm_ceil_div(p.M, SIDE),
                                     gm_ceil_div(p.N, SIDE));

        return gm_launch(exec, matmul_grid_stride<T>, grid, dim3(SIDE, SIDE), 0, p);
    });
}
