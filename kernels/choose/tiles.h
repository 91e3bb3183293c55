/*
 * tiles.h - estimates which kernel with one tile size is fastest on an H200.
 *
 * `auto` uses it for products of types that were not timed.
 */
#ifndef GM_KERNELS_CHOOSE_TILES_H
#define GM_KERNELS_CHOOSE_TILES_H

#include "kernels/gpu.h"

/* Variants of matmul; gm_tiles_name gives their names. */
enum gm_tiles {
    GM_TILES_SMALL_TILE,
    GM_TILES_TILED,
    GM_TILES_REGISTER_TILED,
    GM_TILES_MULTISTAGE,
    GM_TILES_COUNT
};

const char *gm_tiles_name(enum gm_tiles tiles);

/*
 * Returns the fastest kernel for `batch` products of m x k by k x n on an H200, among those that
 * take the type. It is an estimate for operands that are not transposed, within a quarter of the
 * times measured for f32. One exception: on matrices of fewer than 50 rows it overestimates
 * `register_tiled` and `multistage`.
 */
enum gm_tiles gm_least_tiles(enum gm_dtype dtype, uint64_t batch, uint64_t m, uint64_t n,
                             uint64_t k);

#endif
