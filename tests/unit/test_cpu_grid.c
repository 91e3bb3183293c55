/*
 * test_cpu_grid.c - how products are divided on the CPU: all of it once, in tiles of which kernels
 * have room, however long the sums are.
 */
#include "kernels/cpu/lib/grid.h"
#include "tests/unit/check.h"

/* Every element of the result is in one tile, and every tile in one chunk. */
static void check_whole(const struct gm_grid *grid, uint64_t batch, uint64_t m, uint64_t n)
{
    uint64_t elements = 0, next = 0;

    for (uint64_t chunk = 0; chunk < grid->chunks; chunk++) {
        CHECK_EQ(chunk * grid->per_chunk, next);
        next = gm_grid_chunk_end(grid, chunk);
        for (uint64_t i = chunk * grid->per_chunk; i < next; i++) {
            const struct gm_tile tile = gm_grid_tile(grid, i);
            CHECK(tile.matrix < batch && tile.i + tile.h <= m && tile.j + tile.w <= n);
            elements += tile.h * tile.w;
        }
    }
    CHECK_EQ(next, grid->tiles);
    CHECK_EQ(elements, batch * m * n);
}

static const uint64_t sides[] = {1, 2, 5, 12, 13, 100, 240, 256, 257, 512, 513, 3000};
static const uint64_t depths[] = {0, 1, 257, 4096, (uint64_t)1 << 23, (uint64_t)1 << 40};
#define SIDES (sizeof(sides) / sizeof(sides[0]))

static void check_product(uint64_t batch, uint64_t m, uint64_t n, uint64_t k)
{
    static const struct {
        uint64_t sum_bytes, mr, nr;
    } blocks[] = {{4, 4, 8}, {4, 4, 24}, {4, 12, 32}, {8, 4, 12}, {8, 12, 16}};
    struct gm_grid grid = gm_grid_openblas(batch, m, n, k);

    check_whole(&grid, batch, m, n);
    CHECK(grid.tile_rows <= m && grid.tile_cols <= n);
    for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
        uint64_t half = blocks[i].sum_bytes / 4;
        grid = gm_grid_blocked(batch, m, n, k, blocks[i].sum_bytes, blocks[i].mr, blocks[i].nr);
        check_whole(&grid, batch, m, n);
        CHECK(grid.tile_rows <= GM_TILE_ROWS / half && grid.tile_rows % blocks[i].mr == 0);
        CHECK(grid.tile_cols <= GM_TILE_COLS / half && grid.tile_cols % blocks[i].nr == 0);
    }
}

int main(void)
{
    for (size_t i = 0; i < SIDES * SIDES; i++)
        for (size_t d = 0; d < sizeof(depths) / sizeof(depths[0]); d++)
            for (uint64_t batch = 1; batch <= 21; batch += 20)
                check_product(batch, sides[i / SIDES], sides[i % SIDES], depths[d]);
    return check_report();
}
