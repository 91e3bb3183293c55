/*
 * tiles.h - grids over stacks of matrices: one block a tile of `height` x `width` elements.
 *
 * The tiles of a row lie along x of the grid, of a column along y, the matrices of a stack along z.
 */
#ifndef GM_KERNELS_CUDA_LIB_TILES_H
#define GM_KERNELS_CUDA_LIB_TILES_H

#include "kernels/cuda/lib/kernel.h"

/* Where block (0, 0, 0) of a launch is. A shape may pass what a grid can hold; it is then done in
 * several launches, of which each begins where the one before has ended. */
struct gm_origin {
    uint64_t matrix, row, col;
};

/* fn(grid, origin) for each launch that a stack needs: one, nearly always. */
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

/* A block of at most `threads`, a power of two, that is no wider and no higher than it need be:
 * rows of few elements share a block. */
static inline dim3 gm_block_of_rows(uint64_t rows, uint64_t cols, unsigned threads)
{
    dim3 block(1, 1, 1);

    while (block.x < cols && block.x < threads)
        block.x *= 2;
    while (block.y < rows && block.x * block.y < threads)
        block.y *= 2;
    return block;
}

/* As many blocks of `threads` as the device holds at once, and no more than there are tiles: for
 * kernels whose threads go on in strides of the grid. */
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
