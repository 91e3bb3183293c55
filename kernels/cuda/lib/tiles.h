/*
 * tiles.h - grids over stacks of matrices: one block per tile of `height` x `width` elements. And
 * divisions, for the arithmetic of indices.
 *
 * Grid x runs along a row of tiles, y along a column of tiles, z along the stack.
 */
#ifndef GM_KERNELS_CUDA_LIB_TILES_H
#define GM_KERNELS_CUDA_LIB_TILES_H

#include "kernels/cuda/lib/kernel.h"

/* The matrix, row and column where block (0, 0, 0) of a launch begins. A shape that exceeds the
 * grid limits takes several launches, each with its own origin. */
struct gm_origin {
    uint64_t matrix, row, col;
};

/* Calls fn(grid, origin) for each launch that a stack needs: nearly always one. */
template <typename F>
static inline enum gm_status gm_tiles(uint64_t batch, uint64_t rows, uint64_t cols, unsigned height,
                                      unsigned width, F fn)
{
    return gm_launches(batch, GM_GRID_YZ_MAX, [&](uint64_t z, uint64_t depth) {
        return gm_launches(
            gm_ceil_div(rows, height), GM_GRID_YZ_MAX, [&](uint64_t y, uint64_t down) {
                return gm_launches(gm_ceil_div(cols, width), GM_GRID_X_MAX,
                                   [&](uint64_t x, uint64_t across) {
                                       dim3 grid((unsigned)across, (unsigned)down, (unsigned)depth);
                                       return fn(grid, gm_origin{z, y * height, x * width});
                                   });
            });
    });
}

/* A tile of a stack; row and col in tiles. */
struct gm_tile_index {
    uint64_t matrix, row, col;
};

/* Tile rasterization: tiles go down `group` rows, then to the next column, so that blocks that run
 * together share operands. */
template <typename I>
__device__ static inline gm_tile_index gm_tile_in_groups(I tile, I rows, I cols, I group)
{
    I in_matrix = tile % (rows * cols), first = in_matrix / (group * cols) * group;
    I rest = in_matrix - first * cols, height = rows - first < group ? rows - first : group;

    return {tile / (rows * cols), first + rest % height, rest / height};
}

/* A block of at most `threads` (a power of two) threads, no wider and no higher than needed, so
 * that short rows share a block. */
static inline dim3 gm_block_of_rows(uint64_t rows, uint64_t cols, unsigned threads)
{
    dim3 block(1, 1, 1);

    while (block.x < cols && block.x < threads)
        block.x *= 2;
    while (block.y < rows && block.x * block.y < threads)
        block.y *= 2;
    return block;
}

/* As many blocks of `threads` as the device holds at once, at most one per tile: for grid-stride
 * loops. */
static inline dim3 gm_resident_grid(const struct gm_gpu *gpu, unsigned threads, uint64_t batch,
                                    uint64_t down, uint64_t across)
{
    unsigned fit = gpu->threads_per_sm / threads;
    unsigned room = gpu->sms * (fit < gpu->blocks_per_sm ? fit : gpu->blocks_per_sm);
    dim3 grid((unsigned)(across < room ? across : room), 1, 1);

    room /= grid.x;
    grid.y = (unsigned)(down < room ? down : room);
    room /= grid.y;
    grid.z = (unsigned)(batch < room ? batch : room);
    return grid;
}

/* ---- Divisions by a number known at launch, as multiplications: an integer division takes some 20
 * dependent instructions on a GPU. ---- */

/* For d > 1 and x < 2^16: x / d == __umulhi(x, gm_reciprocal(d)). */
static inline unsigned gm_reciprocal(unsigned d)
{
    return (unsigned)(((uint64_t)1 << 32) / d + 1);
}

/* For any 32-bit x. `inverse` is 2^64 / d rounded up: its error is below 1, so that of x / d is
 * below 1 / d. An inverse of 0 stands for d = 1. */
struct gm_divisor {
    uint64_t inverse;
};
static inline struct gm_divisor gm_divisor_of(unsigned d)
{
    return {d > 1 ? UINT64_MAX / d + 1 : 0};
}
static __device__ __forceinline__ unsigned gm_divide(unsigned x, struct gm_divisor d)
{
    return d.inverse > 0 ? (unsigned)__umul64hi(d.inverse, x) : x;
}

/* The same for x < 2^16 and 0 < d < 2^16, with a divisor that is made on the device. */
struct gm_small_divisor {
    unsigned inverse; /* 0 stands for d = 1 */
};
__device__ __forceinline__ gm_small_divisor gm_small_divisor_of(unsigned d)
{
    return {d > 1 ? UINT32_MAX / d + 1 : 0};
}
__device__ __forceinline__ unsigned gm_divide(unsigned x, gm_small_divisor d)
{
    return d.inverse > 0 ? __umulhi(x, d.inverse) : x;
}

#endif
