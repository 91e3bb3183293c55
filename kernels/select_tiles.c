/*
 * select_tiles.c - times of products, reckoned by tiles.
 *
 * Tiles of the result are dealt out to multiprocessors, and time is what those with the most of
 * them take: for each step of k a step's time for each of their tiles, and, however few they are,
 * what a step waits for shared memory. Beginning and ending a tile counts as some steps more, and
 * the launch comes on top:
 *
 *     us = LAUNCH + (k + steps) (waits + tiles of the fullest multiprocessor * step)
 *
 * Steps' times are those of one large product of each type in
 * tests/bench/results/kernels_h200.json, and the rest was fitted to its products of f32; a test
 * holds both together. Of integers only products of a few vectors were timed beside that.
 */
#include "select_tiles.h"

#include <math.h>

#define LAUNCH 4.5 /* microseconds */

/* What a kernel's blocks do, whatever the elements are. */
static const struct kernel {
    const char *name;
    unsigned height, width; /* of a tile; of `pipelined` in struct type */
    unsigned depth;         /* k counts as whole multiples of it */
    double steps;           /* to begin and to end a tile */
    double waits;           /* microseconds a step */
} kernels[GM_TILES_COUNT] = {
    [GM_TILES_SMALL] = {"small", 16, 16, 1, 8, 0.009},
    [GM_TILES_TILED] = {"tiled", 32, 32, 32, 0, 0.010},
    [GM_TILES_REGISTERS] = {"registers", 128, 128, 8, 40, 0},
    [GM_TILES_PIPELINED] = {"pipelined", 0, 0, 8, 24, 0},
};

/* What elements cost: microseconds a step of a tile, and the tiles of `pipelined`. */
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

static double pieces(double whole, double each)
{
    return ceil(whole / each);
}

/* Tiles of the fullest multiprocessor. */
static double fullest(double batch, double m, double n, double height, double width)
{
    return pieces(batch * pieces(m, height) * pieces(n, width), GM_H200_SMS);
}

/* `small` where lanes share sums (matmul_small.cu, which has the first two numbers too): a fourth
 * of the steps, and less to wait for. */
#define PARTED_K 33u
#define PARTED_TILES (2.0 * GM_H200_SMS)
#define PARTED_STEP 0.4 /* of a step of a whole tile */
#define PARTED_WAITS 0.010

/* Of matrices of up to 8 and 4 elements either way a block of `small` has 4 and 16. */
static double matrices_of_a_block(uint64_t m, uint64_t n)
{
    uint64_t longer = m > n ? m : n;

    return longer <= 4 ? 16 : longer <= 8 ? 4 : 1;
}

const char *gm_tiles_name(enum gm_tiles tiles)
{
    return kernels[tiles].name;
}

/* Microseconds on an H200; no number, or infinite, where the kernel does not take the type. */
static double us_of(enum gm_tiles tiles, enum gm_dtype dtype, uint64_t batch, uint64_t m,
                    uint64_t n, uint64_t k)
{
    const struct kernel *kernel = &kernels[tiles];
    const struct type *type = type_of(dtype);
    bool pipelined = tiles == GM_TILES_PIPELINED;
    double height = pipelined ? type->height : kernel->height;
    double width = pipelined ? type->width : kernel->width;
    double matrices = (double)batch, rows = (double)m, cols = (double)n, step = type->step[tiles];
    double steps = pieces((double)k, kernel->depth) * kernel->depth + kernel->steps;
    double waits = kernel->waits;

    if (tiles == GM_TILES_SMALL) {
        if (k >= PARTED_K && matrices * pieces(rows, 8) * pieces(cols, 8) <= PARTED_TILES) {
            height = width = 8;
            step *= PARTED_STEP;
            waits = PARTED_WAITS;
            steps = (double)k;
        } else {
            matrices = pieces(matrices, matrices_of_a_block(m, n));
        }
    }
    return LAUNCH + steps * (waits + fullest(matrices, rows, cols, height, width) * step);
}

enum gm_tiles gm_least_tiles(enum gm_dtype dtype, uint64_t batch, uint64_t m, uint64_t n,
                             uint64_t k)
{
    enum gm_tiles least = GM_TILES_SMALL;

    for (int i = 1; i < GM_TILES_COUNT; i++) {
        if (us_of((enum gm_tiles)i, dtype, batch, m, n, k) < us_of(least, dtype, batch, m, n, k))
            least = (enum gm_tiles)i;
    }
    return least;
}
