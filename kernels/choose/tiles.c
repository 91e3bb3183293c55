/*
 * tiles.c - estimates the times of products from their tiles.
 *
 * The tiles of the result are distributed among multiprocessors, and the fullest one decides the
 * time. Each step of K takes a step's time for each of its tiles, and at least the latency of
 * shared memory. The start and end of a tile count as extra steps. The launch is added:
 *
 *     us = LAUNCH + (k + steps) (waits + tiles of the fullest multiprocessor * step)
 *
 * A step's time is from one large product of each type in tests/bench/results/kernels_h200.json.
 * The other parameters were fitted to its f32 products; a test compares both. For integers, only
 * products of a few vectors were timed besides.
 */
#include "kernels/choose/choose.h"

#include <math.h>

#define LAUNCH 4.5 /* microseconds */

/* The parameters of a kernel that do not depend on the element type. */
static const struct kernel {
    const char *name;
    unsigned height, width; /* of a tile; those of `multistage` are in struct type */
    unsigned depth;         /* k is rounded up to a multiple */
    double steps;           /* extra steps for the start and end of a tile */
    double waits;           /* latency of a step, in microseconds */
} kernels[GM_TILES_COUNT] = {
    [GM_TILES_SMALL_TILE] = {"small_tile", 16, 16, 1, 8, 0.009},
    [GM_TILES_TILED] = {"tiled", 32, 32, 32, 0, 0.010},
    [GM_TILES_REGISTER_TILED] = {"register_tiled", 128, 128, 8, 40, 0},
    [GM_TILES_MULTISTAGE] = {"multistage", 0, 0, 8, 24, 0},
};

/* The parameters of an element type: microseconds per step and tile, and the tile of
 * `multistage`. */
struct type {
    double step[GM_TILES_COUNT];
    unsigned height, width;
};

static const struct type *type_of(enum gm_dtype dtype)
{
    static const struct type f16 = {{0.0107, 0.0333, 0.2135, INFINITY}, 128, 256},
                             f32 = {{0.0106, 0.0333, 0.1375, 0.163}, 128, 256},
                             i32 = {{0.0107, 0.0337, 0.1906, 0.2707}, 128, 256},
                             f64 = {{0.0147, 0.0563, 0.2508, 0.1712}, 128, 128},
                             i64 = {{0.0158, 0.0582, 0.6890, 0.3212}, 64, 128};

    switch (dtype) {
    case GM_F16:
    case GM_BF16:
        return &f16;
    case GM_I32:
        return &i32;
    case GM_F64:
        return &f64;
    case GM_I64:
        return &i64;
    default:
        return &f32;
    }
}

static double ceil_div(double whole, double each)
{
    return ceil(whole / each);
}

/* Tiles on the fullest multiprocessor. */
static double fullest(double batch, double m, double n, double height, double width)
{
    return ceil_div(batch * ceil_div(m, height) * ceil_div(n, width), GM_H200_SMS);
}

/* `small_tile` where lanes share sums (small_tile.cu has the first two numbers too): a quarter of
 * the steps, and less latency. */
#define SPLIT_K_MIN 33u
#define SPLIT_TILES (2.0 * GM_H200_SMS)
#define SPLIT_STEP 0.4 /* relative to the step of a whole tile */
#define SPLIT_WAITS 0.010

/* Matrices per block of `small_tile`: 4 and 16 of those up to 8 x 8 and 4 x 4. */
static double matrices_of_a_block(uint64_t m, uint64_t n)
{
    uint64_t longer = m > n ? m : n;

    return longer <= 4 ? 16 : longer <= 8 ? 4 : 1;
}

const char *gm_tiles_name(enum gm_tiles tiles)
{
    return kernels[tiles].name;
}

/* Microseconds on an H200; infinite or NaN if the kernel does not take the type. */
static double us_of(enum gm_tiles tiles, enum gm_dtype dtype, uint64_t batch, uint64_t m,
                    uint64_t n, uint64_t k)
{
    const struct kernel *kernel = &kernels[tiles];
    const struct type *type = type_of(dtype);
    bool pipelined = tiles == GM_TILES_MULTISTAGE;
    double height = pipelined ? type->height : kernel->height;
    double width = pipelined ? type->width : kernel->width;
    double matrices = (double)batch, rows = (double)m, cols = (double)n, step = type->step[tiles];
    double steps = ceil_div((double)k, kernel->depth) * kernel->depth + kernel->steps;
    double waits = kernel->waits;

    if (tiles == GM_TILES_SMALL_TILE) {
        if (k >= SPLIT_K_MIN && matrices * ceil_div(rows, 8) * ceil_div(cols, 8) <= SPLIT_TILES) {
            height = width = 8;
            step *= SPLIT_STEP;
            waits = SPLIT_WAITS;
            steps = (double)k;
        } else {
            matrices = ceil_div(matrices, matrices_of_a_block(m, n));
        }
    }
    return LAUNCH + steps * (waits + fullest(matrices, rows, cols, height, width) * step);
}

enum gm_tiles gm_least_tiles(enum gm_dtype dtype, uint64_t batch, uint64_t m, uint64_t n,
                             uint64_t k)
{
    enum gm_tiles least = GM_TILES_SMALL_TILE;

    for (int i = 1; i < GM_TILES_COUNT; i++) {
        if (us_of((enum gm_tiles)i, dtype, batch, m, n, k) < us_of(least, dtype, batch, m, n, k))
            least = (enum gm_tiles)i;
    }
    return least;
}
