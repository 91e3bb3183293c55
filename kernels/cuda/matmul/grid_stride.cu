/*
 * grid_stride.cu - computes as naive does, in a grid-stride loop on a grid as large as the device.
 *
 * Unlike in matmul_naive, the device and not the shape sets the number of blocks. Each thread
 * computes one element, then the element a whole grid further along the row, then further down,
 * then in the next matrix. One launch handles any shape.
 *
 * Cost: the accesses are those of naive, request for request.
 *
 * When it wins: hardly ever; it is here as an example of the pattern. It was predicted to win on
 * large stacks of small matrices, and takes twice naive's time there on an H200. It loses where the
 * last round of the grid is nearly empty, because the hardware has no block left for an idle
 * multiprocessor.
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
