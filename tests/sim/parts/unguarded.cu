/* unguarded.cu - a copy by tiles of 32 x 32 without bounds checks: right where they divide the
 * matrix, and at an edge out of bounds. Used in test_sim_samples.c. */
#include "kernels/cuda/lib/tiles.h"

#define TILE 32u

static __global__ void copy_unguarded(const float *in, float *out, uint64_t cols)
{
    uint64_t at = (blockIdx.y * TILE + threadIdx.y) * cols + blockIdx.x * TILE + threadIdx.x;

    out[at] = in[at];
}

GM_KERNEL(copy_unguarded)
{
    const struct gm_matrix *a = &op->operand[0];
    dim3 grid((unsigned)gm_ceil_div(a->cols, TILE), (unsigned)gm_ceil_div(a->rows, TILE));

    return gm_launch(exec, copy_unguarded, grid, dim3(TILE, TILE), 0, gm_in<float>(op, 0),
                     gm_out<float>(op), a->cols);
}
