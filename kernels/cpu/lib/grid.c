/*
 * grid.c - how large tiles and chunks are: by the shape alone, so that bits are the same on any
 * number of threads.
 */
#include "grid.h"

#include <stdbool.h>

struct gm_grid gm_grid_make(uint64_t batch, uint64_t rows, uint64_t cols, uint64_t tile_rows,
                            uint64_t tile_cols, double tile_cost, double chunk_cost)
{
    struct gm_grid grid = {
        .rows = rows,
        .cols = cols,
        .tile_rows = tile_rows,
        .tile_cols = tile_cols,
        .down = gm_ceil_div(rows, tile_rows),
        .across = gm_ceil_div(cols, tile_cols),
    };

    grid.tiles = batch * grid.down * grid.across;
    grid.per_chunk = tile_cost * (double)grid.tiles <= chunk_cost ? grid.tiles
                     : tile_cost >= chunk_cost                    ? 1
                                               : (uint64_t)(chunk_cost / tile_cost);
    if (grid.per_chunk == 0)
        grid.per_chunk = 1;
    grid.chunks = gm_ceil_div(grid.tiles, grid.per_chunk);
    return grid;
}

/* Tiles of a product are halved until there are this many for the threads to share, or a tile has
 * less work than TILE_FLOPS_MIN, or only a few micro-blocks. Each tile packs for itself, and the
 * smaller it is, the more of its time that takes. */
#define TILES_WANTED 16u
#define TILE_FLOPS_MIN 0x1p23
#define TILE_BLOCKS_MIN 4u
/* Small tiles are grouped into chunks of about this much work. */
#define CHUNK_FLOPS 0x1p21
/* The overhead of a tile, in the same unit. */
#define TILE_FLOPS_EXTRA 4096.0

#define BLAS_SIDE ((uint64_t)512) /* of openblas's largest tile */

/* Sets *ret to these tiles. false: they are to be halved. least: elements of a tile that is not. */
static bool is_enough(uint64_t batch, uint64_t m, uint64_t n, uint64_t k, uint64_t rows,
                      uint64_t cols, uint64_t least, struct gm_grid *ret)
{
    double flops = 2.0 * (double)(k > 0 ? k : 1) * (double)rows * (double)cols;

    *ret = gm_grid_make(batch, m, n, rows, cols, flops + TILE_FLOPS_EXTRA, CHUNK_FLOPS);
    return ret->tiles >= TILES_WANTED || flops < 2 * TILE_FLOPS_MIN || rows * cols <= least;
}

/* A tile size that divides `size` evenly: at most `most`, and a multiple of `step`. */
static uint64_t even_tile(uint64_t size, uint64_t most, uint64_t step)
{
    uint64_t even = gm_ceil_div(size, gm_ceil_div(size, most));

    return gm_ceil_div(even, step) * step;
}

struct gm_grid gm_grid_blocked(uint64_t batch, uint64_t m, uint64_t n, uint64_t k,
                               uint64_t sum_bytes, uint64_t mr, uint64_t nr)
{
    uint64_t words = sum_bytes / 4;
    uint64_t most_rows = GM_TILE_ROWS / words / mr * mr;
    uint64_t most_cols = GM_TILE_COLS / words / nr * nr;
    struct gm_grid grid;

    for (;;) {
        uint64_t rows = even_tile(m, most_rows, mr), cols = even_tile(n, most_cols, nr);
        if (is_enough(batch, m, n, k, rows, cols, TILE_BLOCKS_MIN * mr * nr, &grid))
            return grid;
        if (cols == nr || (rows >= cols && rows > mr))
            most_rows = rows > 2 * mr ? rows / 2 / mr * mr : mr;
        else
            most_cols = cols > 2 * nr ? cols / 2 / nr * nr : nr;
    }
}

struct gm_grid gm_grid_openblas(uint64_t batch, uint64_t m, uint64_t n, uint64_t k)
{
    uint64_t rows = m < BLAS_SIDE ? m : BLAS_SIDE, cols = n < BLAS_SIDE ? n : BLAS_SIDE;
    struct gm_grid grid;

    while (!is_enough(batch, m, n, k, rows, cols, 1, &grid)) {
        if (rows >= cols)
            rows = (rows + 1) / 2;
        else
            cols = (cols + 1) / 2;
    }
    return grid;
}
