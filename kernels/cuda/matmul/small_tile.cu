/*
 * small_tile.cu - products too small to fill a multiprocessor, several matrices a block.
 *
 * The difference to matmul_tiled: a small product costs trips to memory, of some 700 cycles each,
 * and blocks, not arithmetic. So a block loads four tile widths of k at once (eight with SPLIT),
 * and there is one trip up to that K. Tiles are 4, 8 or 16 wide, whichever is just wide enough,
 * and a block of 256 threads has 16, 4 or 1 of them: different matrices of the stack.
 *
 * Where there are few tiles, as of a lone product, the time is that of one tile: for K above 32
 * and up to 264 tiles of 8 x 8 in all, four lanes share each dot product, every fourth step of k
 * each. A 64 x 64 x 64 product is then 64 blocks of 16 steps instead of 16 blocks of 64.
 *
 * Cost: a step reads shared memory twice, 1 wavefront each, for one multiply-add, as in tiled.
 * When it wins: single products up to about 128 x 128 x 256, and small stacks up to 64 x 64.
 */
#include "kernels/cuda/lib/tiles.h"
#include "kernels/cuda/matmul/product.h"

#define THREADS 256u
/* Where lanes share sums: from so much of k, and up to two tiles for each multiprocessor of an
 * H200, whatever the device is, so that a sum's order is that of its shape alone (tiles.c
 * has the same numbers, and cuda_matmul.c the second as SMALL_TILES). */
#define SPLIT_K_MIN 33u
#define SPLIT_TILES (2 * GM_H200_SMS)

/* A tile of WIDTH x WIDTH elements, each of them the sum of SPLIT lanes; BK of k a trip. */
template <typename T, unsigned WIDTH, unsigned SPLIT, unsigned BK>
static __global__ void __launch_bounds__(THREADS)
    matmul_small_tile(gm_product<T> p, gm_origin origin)
{
    constexpr unsigned ACROSS = WIDTH * SPLIT, LANES = WIDTH * ACROSS, TILES = THREADS / LANES;
    constexpr unsigned LOADS = BK / ACROSS;
    constexpr unsigned APART = SPLIT == 1 ? 1 : 0; /* split rows of B fill the banks */
    __shared__ gm_acc<T> tile_a[TILES][WIDTH][BK + 1];
    __shared__ gm_acc<T> tile_b[TILES][BK][WIDTH + APART];
    static_assert(BK % ACROSS == 0, "whole loads");
    static_assert(TILES * LANES == THREADS, "all threads the same work");
    static_assert(SPLIT == 1 || SPLIT * WIDTH == 32,
                  "the lanes that share an element are of one warp");
    unsigned t = threadIdx.x % LANES, which = threadIdx.x / LANES;
    unsigned x = t % WIDTH, part = t / WIDTH % SPLIT, y = t / ACROSS;
    /* Several tiles are several matrices, each of which is no larger than one. */
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
            unsigned step = i * ACROSS + t % ACROSS; /* lanes along k in a, columns in b */
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

template <typename T, unsigned WIDTH, unsigned SPLIT, unsigned BK>
static enum gm_status launch(struct gm_exec *exec, const gm_product<T> &p)
{
    constexpr unsigned TILES = THREADS / (WIDTH * WIDTH * SPLIT);
    auto enqueue = [&](dim3 grid, gm_origin origin) {
        return gm_launch(exec, matmul_small_tile<T, WIDTH, SPLIT, BK>, grid, dim3(THREADS), 0, p,
                         origin);
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
            return launch<T, 8, 4, 64>(exec, p);
        return longer <= 4   ? launch<T, 4, 1, 16>(exec, p)
               : longer <= 8 ? launch<T, 8, 1, 32>(exec, p)
                             : launch<T, 16, 1, 64>(exec, p);
    });
}
