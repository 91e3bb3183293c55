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
struct gm_grid gm_grid_make(uint64_t batch, uint64_t rows, uint64_t cols, uint64_t tile_rows,
                            uint64_t tile_cols, double tile_cost, double chunk_cost);

/* Bytes of a chunk: worth waking a thread, and soon done after a stop. Estimates divide by them. */
#define GM_COPY_CHUNK ((uint64_t)1 << 21)
#define GM_TRANSPOSE_CHUNK ((uint64_t)1 << 19)
#define GM_FLIP_CHUNK ((uint64_t)1 << 19)
#define GM_ADD_CHUNK ((uint64_t)1 << 18) /* of the result */
#define GM_SKINNY_CHUNK 0x1p18           /* of the large operand */

/* skinny: the most vectors; lanes of a tile; steps of k at a time, so that vectors and lines of
 * this length stay in the first-level cache. */
#define GM_SKINNY_VECTORS 8u
#define GM_SKINNY_LANES 512u
#define GM_SKINNY_DEPTH 2048u

/* ---- How products are divided (grid.c): the kernels ask, and so do estimates (choose/host.c) ---
 */

/* blocked's largest tile for sums of 4 bytes; half of it in each direction for 8. A's block, B's
 * block and the sums take a quarter of a MiB each, which fits in a core's own cache of 1 MiB. */
#define GM_TILE_ROWS 240u
#define GM_TILE_COLS 256u
#define GM_TILE_K 256u

/* Of results of m x n, neither of them 0, with sums over k. blocked: sums of sum_bytes, in whole
 * micro-blocks of mr x nr. */
struct gm_grid gm_grid_blocked(uint64_t batch, uint64_t m, uint64_t n, uint64_t k,
                               uint64_t sum_bytes, uint64_t mr, uint64_t nr);
struct gm_grid gm_grid_openblas(uint64_t batch, uint64_t m, uint64_t n, uint64_t k);

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
