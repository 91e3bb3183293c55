/*
 * walk.h - the order in which the blocks of a transpose take the tiles of its operand.
 *
 * Down columns of tiles, nearly always: the rows of the result then grow in runs, and DRAM is given
 * them as such. What is written costs it more than what is read.
 *
 * But DRAM answers stretches of 256 bytes best, and where rows are no whole ones a tile shares some
 * with its neighbour to the right. The L2 cache must keep the neighbour's part until the whole
 * column of tiles is done, which it cannot for some 40,000 rows and more. Then tiles are taken
 * along the rows instead, or, where rows are long and elements small, down the columns of one band
 * of rows after the other. Narrow matrices go along the rows too: the rows of their result grow in
 * runs either way. Measured on an H200: HUNT.md, "Tall matrices".
 */
#ifndef GM_KERNELS_CUDA_WALK_H
#define GM_KERNELS_CUDA_WALK_H

#include "kernels/cuda/tiles.h"

#define GM_STRETCH 256u
/* What the L2 cache keeps of a column of tiles, two stretches a row: less than half of a Hopper
 * GPU's 50 MB or more, for the rest holds the result. Not tried on smaller caches. */
#define GM_COLUMN_KEPT ((uint64_t)20000000)
/* Narrow matrices: bytes of a row at most, and rows at least. */
#define GM_NARROW_BYTES (5 * GM_STRETCH)
#define GM_NARROW_ROWS 20000u
/* Bands: rows of one at most; bytes of a row at least, and of an element at most. */
#define GM_BAND_ROWS 32768u
#define GM_BAND_ROW_BYTES (31 * GM_STRETCH)
#define GM_BAND_ELEMENT_BYTES 4u

struct gm_walk {
    gm_origin origin; /* the tile of block (0, 0, 0) */
    bool along_rows;
};

/* Whether it should go along the rows. (Of elements of 1 byte tiles are so large that narrow
 * matrices have few: some were faster so, some slower.) */
static inline bool gm_is_tall(const struct gm_matrix *a)
{
    uint64_t size = gm_dtype_size(a->dtype), row_bytes = a->cols * size;

    return row_bytes % GM_STRETCH != 0 &&
           (a->rows > GM_COLUMN_KEPT / (2 * GM_STRETCH) ||
            (size > 1 && row_bytes <= GM_NARROW_BYTES && a->rows >= GM_NARROW_ROWS));
}

/* The matrix of this block's tile, and its first element's row and column. */
__device__ __forceinline__ gm_origin gm_walk_to(const gm_walk &walk, unsigned height,
                                                unsigned width)
{
    uint64_t down = walk.along_rows ? blockIdx.y : blockIdx.x;
    uint64_t across = walk.along_rows ? blockIdx.x : blockIdx.y;

    return {walk.origin.matrix + blockIdx.z, walk.origin.row + down * height,
            walk.origin.col + across * width};
}

/* fn(grid, walk) for each launch that tiles of `height` x `width` need: one, nearly always. */
template <typename F>
static inline enum gm_status gm_walk_tiles(const struct gm_matrix *a, bool along_rows,
                                           unsigned height, unsigned width, F fn)
{
    if (along_rows)
        return gm_tiles(a->batch, a->rows, a->cols, height, width,
                        [&](dim3 grid, gm_origin origin) {
                            return fn(grid, gm_walk{origin, true});
                        });
    return gm_tiles(a->batch, a->cols, a->rows, width, height, [&](dim3 grid, gm_origin turned) {
        return fn(grid, gm_walk{{turned.matrix, turned.col, turned.row}, false});
    });
}

/* A walk that may go in bands. Of its own, for the kernels that need all their registers. */
struct gm_banded_walk {
    gm_walk walk;
    uint64_t band; /* rows from one z of the grid to the next, of one matrix; 0: z is the matrix */
};

static inline bool gm_gains_by_bands(const struct gm_matrix *a)
{
    uint64_t size = gm_dtype_size(a->dtype);

    return gm_is_tall(a) && a->batch == 1 && size <= GM_BAND_ELEMENT_BYTES &&
           a->cols * size >= GM_BAND_ROW_BYTES;
}

/* As gm_walk_to(). Of the last band's blocks some may be beyond the matrix: row is then no row of
 * it. */
__device__ __forceinline__ gm_origin gm_banded_walk_to(const gm_banded_walk &banded,
                                                       unsigned height, unsigned width)
{
    gm_origin at = gm_walk_to(banded.walk, height, width);

    if (banded.band) {
        at.matrix -= blockIdx.z;
        at.row += blockIdx.z * banded.band;
    }
    return at;
}

/* As gm_walk_tiles(). Bands are whole tiles, as high as each other. */
template <typename F>
static inline enum gm_status gm_banded_walk_tiles(const struct gm_matrix *a, unsigned height,
                                                  unsigned width, F fn)
{
    if (!gm_gains_by_bands(a))
        return gm_walk_tiles(a, gm_is_tall(a), height, width, [&](dim3 grid, gm_walk walk) {
            return fn(grid, gm_banded_walk{walk, 0});
        });
    uint64_t bands = gm_ceil_div(a->rows, GM_BAND_ROWS);
    uint64_t band = gm_ceil_div(gm_ceil_div(a->rows, height), bands) * height;
    return gm_tiles(bands, a->cols, band, width, height, [&](dim3 grid, gm_origin turned) {
        uint64_t row = turned.matrix * band + turned.col; /* the first's, of this launch */
        return fn(grid, gm_banded_walk{{{0, row, turned.row}, false}, band});
    });
}

#endif
