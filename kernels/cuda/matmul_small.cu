/*
 * matmul_small.cu - products too small to fill a multiprocessor: one trip to memory, and as many
 * matrices to a block as it has room for.
 *
 * The difference to matmul_tiled, where a block brings in a tile's width of k at a time, uses it,
 * and goes back for more: what a small product costs is not arithmetic but the trips to memory, of
 * some 700 cycles each, and the block itself. So here a block brings in four tile widths at once
 * (eight where lanes share sums, below); up to that k there is one trip. Tiles are 4, 8 or 16 wide,
 * whichever is just wide enough, and a block of 256 threads has 16, 4 or 1 of them, which are
 * different matrices of the stack.
 *
 * Where there are few tiles, as of a lone product, time is what one of them takes: for k above 32
 * and up to 264 tiles of 8 x 8 in all, tiles are 8 wide and four lanes share each sum, every fourth
 * step of k its own, and add up theirs at the end. Of 64 x 64 x 64 that is 64 blocks of 16 steps
 * instead of 16 of 64. Nothing is divided to find a block's tile: the grid says it.
 *
 * Cost, elements of 4 bytes, tile width w: a step reads shared memory twice, 1 wavefront each, for
 * one multiply-add, as in tiled; where a block has several matrices, their rows are a bank apart.
 *
 * When it wins: for single products up to about 128 x 128 x 256, and small stacks of matrices up to
 * 64 x 64.
 */
#include "kernels/cuda/product.h"
#include "kernels/cuda/tiles.h"

#define THREADS 256u
/* Where lanes share sums: from so much of k, and up to two tiles for each multiprocessor of an
 * H200, whatever the device is, so that a sum's order is that of its shape alone (select_tiles.c
 * has the same numbers, and select_cuda_matmul.c the second as SMALL_TILES). */
#define PARTED_K 33u
#define PARTED_TILES (2 * GM_H200_SMS)

/* A tile of WIDTH x WIDTH elements, each of them the sum of PARTS lanes; CHUNK of k a trip. */
template <typename T, unsigned WIDTH, unsigned PARTS, unsigned CHUNK>
static __global__ void __launch_bounds__(THREADS) matmul_small(gm_product<T> p, gm_origin origin)
{
    constexpr unsigned ACROSS = WIDTH * PARTS, LANES = WIDTH * ACROSS, TILES = THREADS / LANES;
    constexpr unsigned LOADS = CHUNK / ACROSS;
    constexpr unsigned APART = PARTS == 1 ? 1 : 0; /* with parts, rows of b fill the banks */
    __shared__ gm_sum<T> tile_a[TILES][WIDTH][CHUNK + 1];
    __shared__ gm_sum<T> tile_b[TILES][CHUNK][WIDTH + APART];
    static_assert(CHUNK % ACROSS == 0, "whole loads");
    static_assert(TILES * LANES == THREADS, "all threads the same work");
    static_assert(PARTS == 1 || PARTS * WIDTH == 32, "parts of a sum are lanes of one warp");
    unsigned t = threadIdx.x % LANES, which = threadIdx.x / LANES;
    unsigned x = t % WIDTH, part = t / WIDTH % PARTS, y = t / ACROSS;
    /* Several tiles are several matrices, each of which is no larger than one. */
    uint64_t matrix =
        origin.matrix + (TILES > 1 ? (uint64_t)blockIdx.x * TILES + which : blockIdx.z);
    uint64_t row = TILES > 1 ? 0 : origin.row + (uint64_t)blockIdx.y * WIDTH;
    uint64_t col = TILES > 1 ? 0 : origin.col + (uint64_t)blockIdx.x * WIDTH;
    bool there = TILES == 1 || matrix < p.batch;
    const T *a = gm_matrix_of<T>(p.a, matrix), *b = gm_matrix_of<T>(p.b, matrix);
    gm_sum<T> sum = 0;

    for (uint64_t first = 0; first < p.k; first += CHUNK) {
        gm_sum<T> from_a[LOADS], from_b[LOADS];
#pragma unroll
        for (unsigned i = 0; i < LOADS; i++) {
            unsigned step = i * ACROSS + t % ACROSS; /* lanes along k in a, columns in b */
            bool in_a = there && row + y < p.m && first + step < p.k;
            from_a[i] =
                in_a ? gm_load(a[(row + y) * p.a.row + (first + step) * p.a.col]) : gm_sum<T>(0);
            step = i * ACROSS + t / WIDTH;
            bool in_b = there && first + step < p.k && col + x < p.n;
            from_b[i] =
                in_b ? gm_load(b[(first + step) * p.b.row + (col + x) * p.b.col]) : gm_sum<T>(0);
        }
#pragma unroll
        for (unsigned i = 0; i < LOADS; i++) {
            tile_a[which][y][i * ACROSS + t % ACROSS] = from_a[i];
            tile_b[which][i * ACROSS + t / WIDTH][x] = from_b[i];
        }
        __syncthreads();
        unsigned steps = p.k - first < CHUNK ? (unsigned)(p.k - first) : CHUNK;
#pragma unroll 16
        for (unsigned i = part; i < steps; i += PARTS)
            sum += tile_a[which][y][i] * tile_b[which][i][x];
        __syncthreads();
    }
    for (unsigned apart = WIDTH; apart < ACROSS; apart *= 2)
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, apart);
    if (there && part == 0 && row + y < p.m && col + x < p.n) {
        T value = gm_finished(p, matrix, row + y, col + x, sum);
        p.result[(matrix * p.m + row + y) * p.n + col + x] = value;
    }
}

template <typename T, unsigned WIDTH, unsigned PARTS, unsigned CHUNK>
static enum gm_status launch(struct gm_exec *exec, const gm_product<T> &p)
{
    constexpr unsigned TILES = THREADS / (WIDTH * WIDTH * PARTS);
    auto enqueue = [&](dim3 grid, gm_origin origin) {
        return gm_launch(exec, matmul_small<T, WIDTH, PARTS, CHUNK>, grid, dim3(THREADS), 0, p,
                         origin);
    };

    if (TILES == 1)
        return gm_tiles(p.batch, p.m, p.n, WIDTH, WIDTH, enqueue);
    return gm_launches(gm_ceil_div(p.batch, TILES), GM_GRID_X_MAX,
                       [&](uint64_t first, uint64_t count) {
                           return enqueue(dim3((unsigned)count), gm_origin{first * TILES, 0, 0});
                       });
}

extern "C" enum gm_status GM_ENTRY(matmul_small)(const struct gm_op *op, struct gm_exec *exec)
{
    return gm_by_type(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        gm_product<T> p = gm_product_of<T>(op);
        uint64_t longer = p.m > p.n ? p.m : p.n;

        if (p.k >= PARTED_K && p.batch * gm_ceil_div(p.m, 8) * gm_ceil_div(p.n, 8) <= PARTED_TILES)
            return launch<T, 8, 4, 64>(exec, p);
        return longer <= 4   ? launch<T, 4, 1, 16>(exec, p)
               : longer <= 8 ? launch<T, 8, 1, 32>(exec, p)
                             : launch<T, 16, 1, 64>(exec, p);
    });
}
