/* walk.cu - which block has which tile (kernels/cuda/walk.h); checked in test_sim_walk.c. */
#include "kernels/cuda/walk.h"

#define TILES 4u /* either way */

static __global__ void visit(int *out, gm_banded_walk walk, unsigned height, unsigned width)
{
    gm_origin at = gm_banded_walk_to(walk, height, width);
    unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;

    if (at.row / height >= TILES) /* of the last band */
        return;
    out[at.row / height * TILES + at.col / width] = (int)block;
}

/* A matrix of that shape, which is never touched, in tiles: the number of each tile's block. */
#define WALK(name, type, height, width)                                                            \
    extern "C" enum gm_status GM_ENTRY(name)(const struct gm_op *op, struct gm_exec *exec)         \
    {                                                                                              \
        struct gm_matrix a = {};                                                                   \
        a.dtype = type;                                                                            \
        a.batch = 1;                                                                               \
        a.rows = height;                                                                           \
        a.cols = width;                                                                            \
        unsigned down = (unsigned)gm_pieces(height, TILES);                                        \
        unsigned across = (unsigned)gm_pieces(width, TILES);                                       \
        return gm_banded_walk_tiles(&a, down, across, [&](dim3 grid, gm_banded_walk walk) {        \
            return gm_launch(exec, visit, grid, dim3(1), 0, gm_out<int>(op), walk, down, across);  \
        });                                                                                        \
    }

WALK(walk_square, GM_F32, 1000, 1000)
WALK(walk_kept, GM_F32, 39062, 9999)
WALK(walk_tall, GM_F32, 39063, 1983)
WALK(walk_bands, GM_F32, 39063, 1985)
WALK(walk_bands_to_spare, GM_F32, 65537, 1985)
WALK(walk_bands_of_bytes, GM_U8, 39063, 7937)
WALK(walk_tall_doubles, GM_F64, 39063, 1999)
WALK(walk_whole_stretches, GM_F32, 39063, 2048)
WALK(walk_narrow, GM_F32, 20000, 300)
WALK(walk_less_narrow, GM_F32, 20000, 330)
WALK(walk_narrow_and_few, GM_F32, 19999, 300)
WALK(walk_narrow_bytes, GM_U8, 20000, 300)
WALK(walk_tall_bytes, GM_U8, 39063, 300)
