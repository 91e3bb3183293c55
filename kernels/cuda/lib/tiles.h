/*
 * tiles.h - grids over stacks of matrices: one block per tile of `height` x `width` elements.
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

#endif
