/* tile_order.cu - which block has which tile (kernels/cuda/transpose/tile_order.h); checked in
 * test_sim_tile_order.c. */
#include "kernels/cuda/transpose/tile_order.h"

#define TILES 4u /* either way */

static __global__ void visit(int *out, gm_banded_order order, unsigned height, unsigned width)
{
    gm_origin at = gm_banded_tile_at(order, height, width);
    unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;

    if (at.row / height >= TILES) /* of the last band */
        return;
    out[at.row / height * TILES + at.col / width] = (int)block;
}

/* A matrix of that shape, which is never touched, in tiles: the number of each tile's block. */
#define ORDER(name, type, height, width)                                                           \
    extern "C" enum gm_status GM_ENTRY(name)(const struct gm_op *op, struct gm_exec *exec)         \
    {                                                                                              \
        struct gm_matrix a = {};                                                                   \
        a.dtype = type;                                                                            \
        a.batch = 1;                                                                               \
        a.rows = height;                                                                           \
        a.cols = width;                                                                            \
        unsigned down = (unsigned)gm_ceil_div(height, TILES);                                      \
        unsigned across = (unsigned)gm_ceil_div(width, TILES);                                     \
        return gm_tiles_in_banded_order(&a, down, across, [&](dim3 grid, gm_banded_order order) {  \
            return gm_launch(exec, visit, grid, dim3(1), 0, gm_out<int>(op), order, down, across); \
        });                                                                                        \
    }

ORDER(order_square, GM_F32, 1000, 1000)
ORDER(order_kept, GM_F32, 39062, 9999)
ORDER(order_tall, GM_F32, 39063, 1983)
ORDER(order_bands, GM_F32, 39063, 1985)
ORDER(order_bands_to_spare, GM_F32, 65537, 1985)
ORDER(order_bands_of_bytes, GM_U8, 39063, 7937)
ORDER(order_tall_doubles, GM_F64, 39063, 1999)
ORDER(order_whole_stretches, GM_F32, 39063, 2048)
ORDER(order_narrow, GM_F32, 20000, 300)
ORDER(order_less_narrow, GM_F32, 20000, 330)
ORDER(order_narrow_and_few, GM_F32, 19999, 300)
ORDER(order_narrow_bytes, GM_U8, 20000, 300)
ORDER(order_tall_bytes, GM_U8, 39063, 300)

/* Tiles that a launch takes: of matrices, rows of tiles, columns of tiles. */
struct box {
    uint64_t begin[3], end[3];
};

static bool have_common(const box &one, const box &other)
{
    bool common = true;

    for (int i = 0; i < 3; i++)
        common = common && one.begin[i] < other.end[i] && other.begin[i] < one.end[i];
    return common;
}

#define SIDE 64u /* of a tile */
#define LAUNCHES_MAX 8

/* A matrix of more tiles than a grid holds: how many launches it takes, and whether each tile is
 * one launch's. Nothing is launched. */
static void put_launches(int *out, uint64_t batch, uint64_t rows, uint64_t cols)
{
    struct gm_matrix a = {};
    const uint64_t all[3] = {batch, gm_ceil_div(rows, SIDE), gm_ceil_div(cols, SIDE)};
    box boxes[LAUNCHES_MAX];
    uint64_t tiles = 0;
    bool right = true;
    int count = 0;

    a.dtype = GM_F32;
    a.batch = batch;
    a.rows = rows;
    a.cols = cols;
    (void)gm_tiles_in_banded_order(&a, SIDE, SIDE, [&](dim3 grid, gm_banded_order banded) {
        const gm_tile_order &order = banded.order;
        uint64_t down = order.along_rows ? grid.y : grid.x, across = grid.x + grid.y - down;
        uint64_t row = order.origin.row / SIDE, bands = banded.band ? grid.z : 1;
        box mine = {{order.origin.matrix, row, order.origin.col / SIDE}, {}};
        uint64_t end =
            row + (bands - 1) * (banded.band / SIDE) + down; /* bands are next to each other */
        mine.end[0] = mine.begin[0] + (banded.band ? 1 : grid.z);
        mine.end[1] = end < all[1] ? end : all[1]; /* the last band may have tiles to spare */
        mine.end[2] = mine.begin[2] + across;
        uint64_t size = 1;
        for (int i = 0; i < 3; i++) {
            right = right && mine.end[i] <= all[i];
            size *= mine.end[i] - mine.begin[i];
        }
        for (int i = 0; i < count; i++)
            right = right && !have_common(mine, boxes[i]);
        right = right && count < LAUNCHES_MAX;
        if (right)
            boxes[count++] = mine;
        tiles += size;
        return GM_OK;
    });
    out[0] = count;
    out[1] = right && tiles == all[0] * all[1] * all[2];
}

#define ORDER_IN_PARTS(name, batch, rows, cols)                                                    \
    extern "C" enum gm_status GM_ENTRY(name)(const struct gm_op *op, struct gm_exec *exec)         \
    {                                                                                              \
        (void)exec;                                                                                \
        put_launches(gm_out<int>(op), batch, rows, cols);                                          \
        return GM_OK;                                                                              \
    }

ORDER_IN_PARTS(order_parts_of_columns, 1, 65, 65535 * SIDE + 65)
ORDER_IN_PARTS(order_parts_of_rows, 1, 65535 * SIDE + 65, 100)
ORDER_IN_PARTS(order_parts_of_stack, 2 * 65535 + 1, 65, 100)
ORDER_IN_PARTS(order_parts_of_bands, 1, 100000, 65535 * SIDE + 65)
