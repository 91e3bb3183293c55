/*
 * grid_stride.cu - adds two matrices in a grid-stride loop, on a grid as large as the device.
 *
 * Unlike in add_direct, the device and not the shape sets the number of blocks. A thread adds one
 * element, then the element a whole grid further on, and so forth. One launch handles any shape,
 * and a thread computes once what its elements have in common.
 *
 * Cost: the accesses are those of direct: elements of 4 bytes, two loads and a store of 4 sectors a
 * request.
 *
 * When it wins: over direct on large matrices of 2 and 4 bytes an element (H200, f32 8192 x 8192:
 * 222 us instead of 266). It was predicted to win on large stacks of small matrices, and loses
 * there (65536 of 16 x 16: 81 us instead of 70), as it does for 8 bytes.
 * Source: M. Harris, "CUDA Pro Tip: Write Flexible Kernels with Grid-Stride Loops", NVIDIA.
 */
#include "kernels/cuda/add/sum.h"
#include "kernels/cuda/lib/tiles.h"

#define THREADS 256u

template <typename T> static __global__ void add_grid_stride(gm_addition<T> sum)
{
    uint64_t first_row = blockIdx.y * blockDim.y + threadIdx.y;
    uint64_t first_col = blockIdx.x * blockDim.x + threadIdx.x;
    uint64_t next_row = gridDim.y * blockDim.y;
    uint64_t next_col = gridDim.x * blockDim.x;

    for (uint64_t matrix = blockIdx.z; matrix < sum.batch; matrix += gridDim.z) {
        for (uint64_t row = first_row; row < sum.rows; row += next_row) {
            const T *a = gm_addend_of<T>(sum.a, matrix) + row * sum.a.row;
            const T *b = gm_addend_of<T>(sum.b, matrix) + row * sum.b.row;
            T *result = sum.result + (matrix * sum.rows + row) * sum.cols;
            for (uint64_t col = first_col; col < sum.cols; col += next_col) {
                gm_acc<T> left = gm_load(a[col * sum.a.col]);
                gm_acc<T> right = gm_load(b[col * sum.b.col]);
                result[col] = gm_store<T>(left + right);
            }
        }
    }
}

GM_KERNEL(add_grid_stride)
{
    return gm_by_type(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        gm_addition<T> sum = gm_addition_of<T>(op);
        dim3 block = gm_block_of_rows(sum.rows, sum.cols, THREADS);
        dim3 grid =
            gm_resident_grid(gm_gpu_of(exec), block.x * block.y, sum.batch,
                             gm_ceil_div(sum.rows, block.y), gm_ceil_div(sum.cols, block.x));

        return gm_launch(exec, add_grid_stride<T>, grid, block, 0, sum);
    });
}
