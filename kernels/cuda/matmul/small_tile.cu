/*
 * small_tile.cu - multiplies small matrices with small tiles, several matrices a block.
 *
 * Unlike in matmul_tiled, the costs are round trips to memory, of some 700 cycles each, and block
 * launches, not arithmetic. So a block loads four tile widths of K at once (eight with SPLIT): one
 * trip up to that K. Tiles are 4, 8 or 16 wide, whichever just fits, and a block of 256 threads
 * holds 16, 4 or 1 of them, each from another matrix of the stack.
 *
 * With few tiles, as for a single product, the time is that of one tile. So for K above 32 and up
 * to 264 tiles of 8 x 8 in all, four lanes share each dot product, and each lane takes every fourth
 * step of K. A 64 x 64 x 64 product is then 64 blocks of 16 steps instead of 16 blocks of 64.
 *
 * Cost: a multiply-add reads shared memory twice, 1 wavefront each, as in tiled.
 * When it wins: single products up to about 128 x 128 x 256, and small stacks up to 64 x 64.
 */
#include "kernels/cuda/lib/tiles.h"
#include "kernels/cuda/matmul/product.h"

#define THREADS 256u
/* Lanes share sums from this K on, and up to two tiles for each multiprocessor of an H200. The
 * limit is the same on every device, so that the order of additions depends on the shape alone.
 * choose/products.c has the same numbers. */
#define SPLIT_K_MIN 33u
#define SPLIT_TILES (2 * GM_H200_SMS)

/*
 * A tile has WIDTH x WIDTH elements, SPLIT lanes share the sum of each, and a k-tile has BK steps.
 * In split_8x8, warp y has row y of the tile:
 *
 *     lanes    0 ..  7     columns 0 .. 7     steps 0, 4,  8, ...  of K
 *     lanes    8 .. 15     columns 0 .. 7     steps 1, 5,  9, ...
 *     lanes   16 .. 23     columns 0 .. 7     steps 2, 6, 10, ...
 *     lanes   24 .. 31     columns 0 .. 7     steps 3, 7, 11, ...
 */
struct tile_4x4 {
    static constexpr unsigned WIDTH = 4, SPLIT = 1, BK = 16;
};
struct tile_8x8 {
    static constexpr unsigned WIDTH = 8, SPLIT = 1, BK = 32;
};
struct tile_16x16 {
    static constexpr unsigned WIDTH = 16, SPLIT = 1, BK = 64;
};
struct split_8x8 {
    static constexpr unsigned WIDTH = 8, SPLIT = 4, BK = 64;
};

template <typename T, typename CONFIG>
static __global__ void __launch_bounds__(THREADS)
    matmul_small_tile(gm_product<T> p, gm_origin origin)
{
    constexpr unsigned WIDTH = CONFIG::WIDTH, SPLIT = CONFIG::SPLIT, BK = CONFIG::BK;
    constexpr unsigned ACROSS = WIDTH * SPLIT, LANES = WIDTH * ACROSS, TILES = THREADS / LANES;
    constexpr unsigned LOADS = BK / ACROSS;
    constexpr unsigned APART = SPLIT == 1 ? 1 : 0; /* padding; not needed with SPLIT */
    __shared__ gm_acc<T> tile_a[TILES][WIDTH][BK + 1];
    __shared__ gm_acc<T> tile_b[TILES][BK][WIDTH + APART];
    static_assert(BK % ACROSS == 0, "whole loads");
    static_assert(TILES * LANES == THREADS, "all threads the same work");
    static_assert(SPLIT == 1 || SPLIT * WIDTH == 32,
                  "the lanes that share an element are of one warp");
    unsigned t = threadIdx.x % LANES, which = threadIdx.x / LANES;
    unsigned x = t % WIDTH, part = t / WIDTH % SPLIT, y = t / ACROSS;
    /* With several tiles a block, each tile is a whole matrix. */
    uint64_t matrix =
        origin.matrix + (TILES > 1 ? (uint64_t)blockIdx.x * TILES + which : blockIdx.z);
    uint64_t row = TILES > 1 ? 0 : origin.row + (uint64_t)blockIdx.y * WIDTH;
    uint64_t col = TILES > 1 ? 0 : origin.col + (uint64_t)blockIdx.x * WIDTH;
    bool there = TILES == 1 || matrix < p.batch;
    const T *a = gm_matrix_of<T>(p.a, matrix), *b = gm_matrix_of<T>(p.b, matrix);
    gm_acc<T> sum = 0;

    for (uint64_t first = 0; first < p.K; first += BK) {
        gm_acc<T> from_a[LOADS], from_b[LOADS];
#pragma unroll
        for (unsigned i = 0; i < LOADS; i++) {
            unsigned step = i * ACROSS + t % ACROSS; /* along K in A, columns in B */
            bool in_a = there && row + y < p.M && first + step < p.K;
            from_a[i] =
                in_a ? gm_load(a[(row + y) * p.a.row + (first + step) * p.a.col]) : gm_acc<T>(0);
            step = i * ACROSS + t / WIDTH;
            bool in_b = there && first + step < p.K && col + x < p.N;
            from_b[i] =
                in_b ? gm_load(b[(first + step) * p.b.row + (col + x) * p.b.col]) : gm_acc<T>(0);
        }
#pragma unroll
        for (unsigned i = 0; i < LOADS; i++) {
            tile_a[which][y][i * ACROSS + t % ACROSS] = from_a[i];
            tile_b[which][i * ACROSS + t / WIDTH][x] = from_b[i];
        }
        __syncthreads();
        unsigned steps = p.K - first < BK ? (unsigned)(p.K - first) : BK;
#pragma unroll 16
        for (unsigned i = part; i < steps; i += SPLIT)
            sum += tile_a[which][y][i] * tile_b[which][i][x];
        __syncthreads();
    }
    for (unsigned apart = WIDTH; apart < ACROSS; apart *= 2)
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, apart);
    if (there && part == 0 && row + y < p.M && col + x < p.N) {
        T value = gm_finished(p, matrix, row + y, col + x, sum);
        p.result[(matrix * p.M + row + y) * p.N + col + x] = value;
    }
}

template <typename T, typename CONFIG>
static enum gm_status launch(struct gm_exec *exec, const gm_product<T> &p)
{
    constexpr unsigned WIDTH = CONFIG::WIDTH, TILES = THREADS / (WIDTH * WIDTH * CONFIG::SPLIT);
    auto enqueue = [&](dim3 grid, gm_origin origin) {
        return gm_launch(exec, matmul_small_tile<T, CONFIG>, grid, dim3(THREADS), 0, p, origin);
    };

    if (TILES == 1)
        return gm_tiles(p.batch, p.M, p.N, WIDTH, WIDTH, enqueue);
    return gm_launches(gm_ceil_div(p.batch, TILES), GM_GRID_X_MAX,
                       [&](uint64_t first, uint64_t count) {
                           return enqueue(dim3((unsigned)count), gm_origin{first * TILES, 0, 0});
                       });
}

GM_KERNEL(matmul_small_tile)
{
    return gm_by_type(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        gm_product<T> p = gm_product_of<T>(op);
        uint64_t longer = p.M > p.N ? p.M : p.N;

        if (p.K >= SPLIT_K_MIN &&
            p.batch * gm_ceil_div(p.M, 8) * gm_ceil_div(p.N, 8) <= SPLIT_TILES)
            return launch<T, split_8x8>(exec, p);
        return longer <= 4   ? launch<T, tile_4x4>(exec, p)
               : longer <= 8 ? launch<T, tile_8x8>(exec, p)
                             : launch<T, tile_16x16>(exec, p);
    });
}
