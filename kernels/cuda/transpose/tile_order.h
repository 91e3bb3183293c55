/*
 * tile_order.h - orders the tiles of a transpose among blocks (tile rasterization).
 *
 *     down columns        along rows          in bands
 *     0 3 6               0 1 2               0 2 4
 *     1 4 7               3 4 5               1 3 5
 *     2 5 8               6 7 8               6 ...
 *
 * Down columns is nearly always best: rows of the result grow in long spans, and DRAM writes cost
 * more than reads. But DRAM serves 256 bytes best, and if rows are not multiples of that, a tile
 * shares such stretches with its right neighbour. The L2 cache cannot keep the shared stretches of
 * a column of tiles beyond some 40,000 rows. Then tiles go along rows or, if rows are long and
 * elements small, in bands of rows. Narrow matrices go along rows too. Measured: EXPERIMENTS.md,
 * "Tall matrices".
 */
#ifndef GM_KERNELS_CUDA_TRANSPOSE_TILE_ORDER_H
#define GM_KERNELS_CUDA_TRANSPOSE_TILE_ORDER_H

#include "kernels/cuda/lib/tiles.h"

#define GM_STRETCH 256u
/* The bytes of a column of tiles, two stretches a row, that the L2 cache keeps. That is less than
 * half of a Hopper GPU's 50 MB or more, because the rest holds the result. Not tried on smaller
 * caches. */
#define GM_COLUMN_KEPT ((uint64_t)20000000)
/* Narrow matrices: the most bytes of a row, and the fewest rows. */
#define GM_NARROW_BYTES (5 * GM_STRETCH)
#define GM_NARROW_ROWS 20000u
/* Bands: the most rows of a band, the fewest bytes of a row, and the most bytes of an element. */
#define GM_BAND_ROWS 32768u
#define GM_BAND_ROW_BYTES (31 * GM_STRETCH)
#define GM_BAND_ELEMENT_BYTES 4u

struct gm_tile_order {
    gm_origin origin; /* the tile of block (0, 0, 0) */
    bool along_rows;
};

/* Whether tiles should go along rows. Narrow matrices of 1-byte elements are left out: their tiles
 * are so large that there are few, and some were faster, some slower. */
static inline bool gm_is_tall(const struct gm_matrix *a)
{
    uint64_t size = gm_dtype_size(a->dtype), row_bytes = a->cols * size;

    return row_bytes % GM_STRETCH != 0 &&
           (a->rows > GM_COLUMN_KEPT / (2 * GM_STRETCH) ||
            (size > 1 && row_bytes <= GM_NARROW_BYTES && a->rows >= GM_NARROW_ROWS));
}

/* The matrix of this block's tile, and the row and column where the tile begins. */
__device__ __forceinline__ gm_origin gm_tile_at(const gm_tile_order &order, unsigned height,
                                                unsigned width)
{
    uint64_t down = order.along_rows ? blockIdx.y : blockIdx.x;
    uint64_t across = order.along_rows ? blockIdx.x : blockIdx.y;

    return {order.origin.matrix + blockIdx.z, order.origin.row + down * height,
            order.origin.col + across * width};
}

/* Calls fn(grid, order) for each launch that tiles of `height` x `width` need: nearly always
 * one. */
template <typename F>
static inline enum gm_status gm_tiles_in_order(const struct gm_matrix *a, bool along_rows,
                                               unsigned height, unsigned width, F fn)
{
    if (along_rows)
        return gm_tiles(a->batch, a->rows, a->cols, height, width,
                        [&](dim3 grid, gm_origin origin) {
                            return fn(grid, gm_tile_order{origin, true});
                        });
    return gm_tiles(
        a->batch, a->cols, a->rows, width, height, [&](dim3 grid, gm_origin transposed) {
            return fn(grid,
                      gm_tile_order{{transposed.matrix, transposed.col, transposed.row}, false});
        });
}

/* An order that may use bands. It is a type of its own, because some kernels have no registers to
 * spare for it. */
struct gm_banded_order {
    gm_tile_order order;
    uint64_t band; /* rows from one z of the grid to the next, in a single matrix; 0: z is the
                    * matrix */
};

static inline bool gm_wants_bands(const struct gm_matrix *a)
{
    uint64_t size = gm_dtype_size(a->dtype);

    return gm_is_tall(a) && a->batch == 1 && size <= GM_BAND_ELEMENT_BYTES &&
           a->cols * size >= GM_BAND_ROW_BYTES;
}

/* Like gm_tile_at(). Some blocks of the last band may be beyond the matrix: their row is not in
 * it. */
__device__ __forceinline__ gm_origin gm_banded_tile_at(const gm_banded_order &banded,
                                                       unsigned height, unsigned width)
{
    gm_origin at = gm_tile_at(banded.order, height, width);

    if (banded.band) {
        at.matrix -= blockIdx.z;
        at.row += blockIdx.z * banded.band;
    }
    return at;
}

/* Like gm_tiles_in_order(). Bands are whole tiles and equally high. */
template <typename F>
static inline enum gm_status gm_tiles_in_banded_order(const struct gm_matrix *a, unsigned height,
                                                      unsigned width, F fn)
{
    if (!gm_wants_bands(a))
        return gm_tiles_in_order(a, gm_is_tall(a), height, width,
                                 [&](dim3 grid, gm_tile_order order) {
                                     return fn(grid, gm_banded_order{order, 0});
                                 });
    uint64_t bands = gm_ceil_div(a->rows, GM_BAND_ROWS);
    uint64_t band = gm_ceil_div(gm_ceil_div(a->rows, height), bands) * height;
    return gm_tiles(bands, a->cols, band, width, height, [&](dim3 grid, gm_origin transposed) {
        uint64_t row = transposed.matrix * band + transposed.col; /* the first row of this launch */
        return fn(grid, gm_banded_order{{{0, row, transposed.row}, false}, band});
    });
}

#endif
