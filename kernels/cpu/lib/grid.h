/*
 * grid.h - divides a stack of matrices into tiles, and tiles into chunks, by shape alone.
 */
#ifndef GM_KERNELS_CPU_LIB_GRID_H
#define GM_KERNELS_CPU_LIB_GRID_H

#include <stdint.h>

static inline uint64_t gm_ceil_div(uint64_t total, uint64_t each)
{
    return total / each + (total % each != 0);
}

struct gm_grid {
    uint64_t rows, cols;           /* of each matrix */
    uint64_t tile_rows, tile_cols; /* the last in each direction may be smaller */
    uint64_t down, across;         /* tiles of a matrix */
    uint64_t tiles;                /* of the stack */
    uint64_t per_chunk, chunks;
};

struct gm_tile {
    uint64_t matrix;     /* in the stack */
    uint64_t i, j, h, w; /* its first row and column, its rows and columns */
};

/* tile_cost: the cost of a full tile. A chunk has as many tiles as reach chunk_cost. */
static inline struct gm_grid gm_grid_make(uint64_t batch, uint64_t rows, uint64_t cols,
                                          uint64_t tile_rows, uint64_t tile_cols, double tile_cost,
                                          double chunk_cost)
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

/* Tile `index`: tiles are numbered row by row, and matrix by matrix. */
static inline struct gm_tile gm_grid_tile(const struct gm_grid *grid, uint64_t index)
{
    struct gm_tile tile = {.matrix = index};

    if (grid->down * grid->across > 1) { /* saves divisions for large stacks of small matrices */
        uint64_t in_matrix = index % (grid->down * grid->across);
        tile.matrix = index / (grid->down * grid->across);
        tile.i = in_matrix / grid->across * grid->tile_rows;
        tile.j = in_matrix % grid->across * grid->tile_cols;
    }
    tile.h = grid->rows - tile.i < grid->tile_rows ? grid->rows - tile.i : grid->tile_rows;
    tile.w = grid->cols - tile.j < grid->tile_cols ? grid->cols - tile.j : grid->tile_cols;
    return tile;
}

/* One past the last tile of a chunk; its first is chunk * grid->per_chunk. */
static inline uint64_t gm_grid_chunk_end(const struct gm_grid *grid, uint64_t chunk)
{
    uint64_t first = chunk * grid->per_chunk;

    return grid->tiles - first < grid->per_chunk ? grid->tiles : first + grid->per_chunk;
}

#endif
