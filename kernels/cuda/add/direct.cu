/*
 * direct.cu - adds two matrices, one element per thread, found by its strides.
 *
 * A stride of 0 is a broadcast: one row, column or element stands for all of the result's, and the
 * kernel code is the same. Operands without broadcasts are one long row, whatever their shape, so
 * that no block has idle threads.
 *
 * Cost, elements of 4 bytes: two loads and a store of 4 sectors a request, each byte once. On an
 * H200 elements of 8 bytes reach the speed of a copy, of 4 bytes 72 % of it, of 2 bytes 40 %. A
 * broadcast column costs 1 sector a request, because all lanes read the same element; a
 * column-major operand costs 32.
 *
 * When it wins: for a few thousand elements, where add_vectorized's analysis of the layouts does
 * not pay.
 * Source: vector addition in NVIDIA's CUDA C++ Programming Guide.
 */
#include "kernels/cuda/add/sum.h"
#include "kernels/cuda/lib/tiles.h"

#define THREADS 256u

template <typename T> static __global__ void add_direct(gm_addition<T> sum, gm_origin origin)
{
    uint64_t matrix = origin.matrix + blockIdx.z;
    uint64_t row = origin.row + blockIdx.y * blockDim.y + threadIdx.y;
    uint64_t col = origin.col + (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= sum.rows || col >= sum.cols)
        return;

    const T *a = gm_addend_of<T>(sum.a, matrix) + row * sum.a.row;
    const T *b = gm_addend_of<T>(sum.b, matrix) + row * sum.b.row;
    T *result = sum.result + (matrix * sum.rows + row) * sum.cols;
    gm_acc<T> left = gm_load(a[col * sum.a.col]);
    gm_acc<T> right = gm_load(b[col * sum.b.col]);
    result[col] = gm_store<T>(left + right);
}

GM_KERNEL(add_direct)
{
    return gm_by_type(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        gm_addition<T> sum = gm_addition_of<T>(op);
        dim3 block = gm_block_of_rows(sum.rows, sum.cols, THREADS);

        return gm_tiles(sum.batch, sum.rows, sum.cols, block.y, block.x,
                        [&](dim3 grid, gm_origin origin) {
                            return gm_launch(exec, add_direct<T>, grid, block, 0, sum, origin);
                        });
    });
}
