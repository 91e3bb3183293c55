/*
 * matmul_small.cu - products too small to fill a multiprocessor: one trip to memory, and as many
 * matrices to a block as it has room for.
 *
 * The difference to matmul_tiled, where a block brings in a tile's width of k at a time, uses it,
 * and goes back for more: what a small product costs is not arithmetic but the trips to memory, of
 * some 700 cycles each, and the block itself. So here a block brings in four tile widths at once;
 * up to that k there is one trip. Tiles are 4, 8 or 16 wide, whichever is just wide enough, and a
 * block of 256 threads has 16, 4 or 1 of them, which are different matrices of the stack. Small
 * tiles also make more blocks of a single product: of 64 x 64 x 64, 16 instead of 4.
 *
 * Cost, elements of 4 bytes, tile width w: a step reads shared memory twice, 1 wavefront each, for
 * one multiply-add, as in tiled; where a block has several matrices, their rows are a bank apart.
 *
 * When it wins: for single products up to about 64 x 64 x 64, and stacks of matrices up to 16 x 16.
 */
#include "kernels/cuda/product.h"
#include "kernels/cuda/tiles.h"

#define THREADS 256u
#define LOADS 4u /* of a thread from each operand at once: so many tile widths of k */

template <typename T, unsigned WIDTH>
static __global__ void __launch_bounds__(THREADS)
    matmul_small(gm_product<T> p, uint64_t tiles_across, uint64_t tiles, uint64_t first_tile)
{
    constexpr unsigned AREA = WIDTH * WIDTH, TILES = THREADS / AREA, CHUNK = LOADS * WIDTH;
    __shared__ gm_sum<T> tile_a[TILES][WIDTH][CHUNK + 1];
    __shared__ gm_sum<T> tile_b[TILES][CHUNK][WIDTH + 1];
    static_assert(TILES * AREA == THREADS, "all threads the same work");
    unsigned t = threadIdx.x % AREA, which = threadIdx.x / AREA;
    unsigned x = t % WIDTH, y = t / WIDTH;
    uint64_t tile = first_tile + (uint64_t)blockIdx.x * TILES + which;
    uint64_t tiles_down = gm_pieces(p.m, WIDTH);
    uint64_t matrix = tile / (tiles_down * tiles_across), in = tile % (tiles_down * tiles_across);
    uint64_t row = in / tiles_across * WIDTH, col = in % tiles_across * WIDTH;
    bool there = tile < tiles;
    const T *a = gm_matrix_of<T>(p.a, matrix), *b = gm_matrix_of<T>(p.b, matrix);
    gm_sum<T> sum = 0;

    for (uint64_t first = 0; first < p.k; first += CHUNK) {
        gm_sum<T> from_a[LOADS], from_b[LOADS];
#pragma unroll
        for (unsigned i = 0; i < LOADS; i++) {
            unsigned step = i * WIDTH + x; /* lanes along k in a, along the columns in b */
            bool in_a = there && row + y < p.m && first + step < p.k;
            from_a[i] =
                in_a ? gm_load(a[(row + y) * p.a.row + (first + step) * p.a.col]) : gm_sum<T>(0);
            step = i * WIDTH + y;
            bool in_b = there && first + step < p.k && col + x < p.n;
            from_b[i] =
                in_b ? gm_load(b[(first + step) * p.b.row + (col + x) * p.b.col]) : gm_sum<T>(0);
        }
#pragma unroll
        for (unsigned i = 0; i < LOADS; i++) {
            tile_a[which][y][i * WIDTH + x] = from_a[i];
            tile_b[which][i * WIDTH + y][x] = from_b[i];
        }
        __syncthreads();
        unsigned steps = p.k - first < CHUNK ? (unsigned)(p.k - first) : CHUNK;
#pragma unroll 16
        for (unsigned i = 0; i < steps; i++)
            sum += tile_a[which][y][i] * tile_b[which][i][x];
        __syncthreads();
    }
    if (there && row + y < p.m && col + x < p.n) {
        T value = gm_finished(p, matrix, row + y, col + x, sum);
        p.result[(matrix * p.m + row + y) * p.n + col + x] = value;
    }
}

template <typename T, unsigned WIDTH>
static enum gm_status launch(struct gm_exec *exec, const gm_product<T> &p)
{
    const unsigned tiles_a_block = THREADS / (WIDTH * WIDTH);
    uint64_t across = gm_pieces(p.n, WIDTH), tiles = p.batch * gm_pieces(p.m, WIDTH) * across;

    return gm_slices(
        gm_pieces(tiles, tiles_a_block), GM_GRID_X_MAX, [&](uint64_t first, uint64_t count) {
            return gm_launch(exec, matmul_small<T, WIDTH>, dim3((unsigned)count), dim3(THREADS), 0,
                             p, across, tiles, first * tiles_a_block);
        });
}

extern "C" enum gm_status GM_ENTRY(matmul_small)(const struct gm_op *op, struct gm_exec *exec)
{
    return gm_by_type(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        gm_product<T> p = gm_product_of<T>(op);
        uint64_t longer = p.m > p.n ? p.m : p.n;

        return longer <= 4   ? launch<T, 4>(exec, p)
               : longer <= 8 ? launch<T, 8>(exec, p)
                             : launch<T, 16>(exec, p);
    });
}
