/*
 * add_direct.cu - one thread an element: each is found by the operands' strides.
 *
 * A stride of 0 is a broadcast: the operand's one row, or one column, or one element stands for
 * all of the result's, and the kernel need not know. Operands that broadcast nothing are one long
 * row, whatever their shape, so that no block has threads to spare.
 *
 * Cost, elements of 4 bytes: two loads of 4 sectors a request and a store of 4: each byte once, for
 * one addition in 12 bytes. On an H200 elements of 8 bytes go at a copy's speed, of 4 bytes at 72 %
 * of it, of 2 at 40 %. An operand whose column broadcasts costs 1 sector a
 * request, as all lanes read the same element; a column-major one 32, as lanes go along rows of the
 * result.
 *
 * When it wins: for a few thousand elements, where finding out how operands lie (add_vectorized)
 * does not pay.
 *
 * Source: vector addition in NVIDIA's CUDA C++ Programming Guide.
 */
#include "kernels/cuda/sum.h"
#include "kernels/cuda/tiles.h"

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
    gm_sum<T> left = gm_load(a[col * sum.a.col]);
    gm_sum<T> right = gm_load(b[col * sum.b.col]);
    result[col] = gm_store<T>(left + right);
}

extern "C" enum gm_status GM_ENTRY(add_direct)(const struct gm_op *op, struct gm_exec *exec)
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
