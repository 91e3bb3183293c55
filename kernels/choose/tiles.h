/*
 * tiles.h - estimates which kernel with tiles of one size takes the least time on an H200.
 *
 * `auto` uses it for products of types that were not timed.
 */
#ifndef GM_KERNELS_CHOOSE_TILES_H
#define GM_KERNELS_CHOOSE_TILES_H

#include "kernels/gpu.h"

/* Variants of matmul, whose names gm_tiles_name says. */
enum gm_tiles {
    GM_TILES_SMALL_TILE,
    GM_TILES_TILED,
    GM_TILES_REGISTER_TILED,
    GM_TILES_MULTISTAGE,
    GM_TILES_COUNT
};

const char *gm_tiles_name(enum gm_tiles tiles);

/*
 * The one that takes least of batch products of m x k by k x n on an H200, of those that take the
 * type. An estimate, for operands that are not transposed: within a fourth of what was measured for
 * f32, but that `register_tiled` and `multistage` are thought still slower than they are on
 * matrices of less than 50 rows.
 */
enum gm_tiles gm_least_tiles(enum gm_dtype dtype, uint64_t batch, uint64_t m, uint64_t n,
                             uint64_t k);

#endif
