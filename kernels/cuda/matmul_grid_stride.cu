/*
 * matmul_grid_stride.cu - a grid as large as the device, whose threads go on to further elements.
 *
 * The difference to matmul_naive: how many blocks there are. There the shape decides, and what a
 * grid cannot hold takes several launches. Here the device decides: as many blocks as it can run at
 * once, and each thread computes the element it stands on, then the one a whole grid further along
 * the row, then further down, then in the next matrix of the stack. One launch does any shape, and
 * a thread's set-up is paid once for many elements.
 *
 * Cost: the accesses are naive's, request for request: a broadcast of 1 sector and a row of 4
 * sectors a step, elements of 4 bytes.
 *
 * When it wins: hardly ever; it is here for the form. It was predicted to win on large stacks of
 * small matrices, and takes twice naive's time there on an H200. It loses where the last round of
 * the grid is nearly empty, since the hardware can no longer give an idle multiprocessor a block.
 *
 * Source: M. Harris, "CUDA Pro Tip: Write Flexible Kernels with Grid-Stride Loops", NVIDIA.
 */
#include "kernels/cuda/product.h"
#include "kernels/cuda/tiles.h"

#define SIDE 32u

template <typename T>
static __device__ __forceinline__ gm_sum<T> dot(const gm_product<T> &p, uint64_t matrix,
                                                uint64_t row, uint64_t col)
{
    const T *a = gm_matrix_of<T>(p.a, matrix) + row * p.a.row;
    const T *b = gm_matrix_of<T>(p.b, matrix) + col * p.b.col;
    gm_sum<T> sum = 0;

    for (uint64_t i = 0; i < p.k; i++) {
        gm_sum<T> left = gm_load(a[i * p.a.col]);
        gm_sum<T> right = gm_load(b[i * p.b.row]);
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
        for (uint64_t row = first_row; row < p.m; row += gridDim.y * SIDE) {
            for (uint64_t col = first_col; col < p.n; col += gridDim.x * SIDE) {
                gm_sum<T> sum = dot(p, matrix, row, col);
                T value = gm_finished(p, matrix, row, col, sum);
                p.result[(matrix * p.m + row) * p.n + col] = value;
            }
        }
    }
}

extern "C" enum gm_status GM_ENTRY(matmul_grid_stride)(const struct gm_op *op, struct gm_exec *exec)
{
    return gm_by_type(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        gm_product<T> p = gm_product_of<T>(op);
        dim3 grid = gm_resident_grid(gm_gpu_of(exec), SIDE * SIDE, p.batch, gm_ceil_div(p.m, SIDE),
                                     gm_ceil_div(p.n, SIDE));

        return gm_launch(exec, matmul_grid_stride<T>, grid, dim3(SIDE, SIDE), 0, p);
    });
}
