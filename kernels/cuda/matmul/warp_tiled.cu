/*
 * warp_tiled.cu - computes a GEMM whose block tile is divided among warps, then among their lanes.
 *
 * Unlike in matmul_vector_loads, a warp's part of the result is a square. A warp there has 16 x 128
 * elements, and reads 16 + 128 factors for them in each step of K. Here it has 64 x 64, twice as
 * many, and reads 64 + 64. So shared memory is read half as often for each multiply-add. A thread
 * has 8 x 16 accumulators; 128 threads have the same block tile.
 *
 * Cost: 2 M N K / 128 elements loaded, by 16 sectors a request, all of them used; stores alike. For
 * 128 multiply-adds a warp needs 12 wavefronts of shared memory: 4 for A, 8 for B.
 *
 * When it wins: over vector_loads, where shared memory is the limit. On an H200 it is not: both
 * take the same time, most of it waits for global memory, which double_buffered removes. Source:
 * CUTLASS ("Efficient GEMM in CUDA", NVIDIA); S. Boehm, "How to Optimize a CUDA Matmul Kernel",
 * step 10.
 */
#include "kernels/cuda/lib/tiles.h"
#include "kernels/cuda/matmul/product.h"

/*
 *     block tile BM x BN         warp tile WM x WN          one lane's thread tile TM x TN:
 *     128 x 128: 2 x 2 warps     64 x 64: 8 x 4 lanes       8 x 16: 2 x 4 squares of 4 x 4,
 *                                                           32 rows and 16 columns apart
 *        64   64
 *      +----+----+                   x  0  1  2  3             row  0  #   #   #   #
 *   64 | w0 | w1 |                 y 0  0  1  4  5                  4
 *      +----+----+                   1  2  3  6  7                  :
 *   64 | w2 | w3 |                   2  8  9 12 13                 32  #   #   #   #
 *      +----+----+                   3 10 11 14 15                  :
 *                                    :                         column  0  16  32  48
 *
 * Lanes lie in quads of 2 x 2, so that each vector is read by two neighbours, of A by lanes 0 and
 * 1, of B by lanes 0 and 2. A GPU serves two quarters of a warp at once if it is so.
 *
 * One step of K in a warp: lane (y, x) reads 2 vectors of A and 4 of B for 128 multiply-adds:
 *
 *     tile_a, row k   | y=0 | y=1 | .. | y=7 | y=0 | .. | y=7 |         2 x 8 vectors, WM floats
 *     tile_b, row k   | x=0 | .. | x=3 | x=0 | .. | x=3 | x=0 | ..      4 x 4 vectors, WN floats
 *
 * A is transposed on its way into shared memory, as in vector_loads.
 */
struct warp_tiled_config {
    static constexpr unsigned BM = 128, BN = 128, BK = 16, WM = 64, WN = 64, TM = 8, TN = 16;
    static constexpr unsigned VEC = 4; /* floats of a vector */
    static constexpr unsigned LANES_M = WM / TM, LANES_N = WN / TN, WARPS_N = BN / WN;
    static constexpr unsigned THREADS = BM / WM * WARPS_N * GM_WARP, BLOCKS_PER_SM = 2;
    static constexpr unsigned LDA = BM + VEC;
    static constexpr unsigned LOADS = BM * BK / VEC / THREADS; /* per thread and operand */

    static_assert(LANES_M * LANES_N == GM_WARP, "a warp tile is 32 thread tiles");
    static_assert(BM == BN && LOADS * VEC * THREADS == BM * BK, "each thread loads the same");
};
using C = warp_tiled_config;

/* The vector of a k-tile that a thread loads: its step of K, and its row of A or column of B. */
struct load_at {
    unsigned step, across;
};
static __device__ __forceinline__ struct load_at load_of_a(unsigned load)
{
    unsigned v = load * C::THREADS + threadIdx.x;

    return {(v / (2 * C::BM) * 2 + v % 2) * C::VEC, v / 2 % C::BM};
}
static __device__ __forceinline__ struct load_at load_of_b(unsigned load)
{
    unsigned v = load * C::THREADS + threadIdx.x;

    return {v / (C::BN / C::VEC), v % (C::BN / C::VEC) * C::VEC};
}

/* Beyond the edges there are zeros. An edge never cuts a vector: rows are whole vectors. */
static __device__ __forceinline__ float4 load(const float *from, bool exists)
{
    return exists ? *(const float4 *)from : make_float4(0, 0, 0, 0);
}

/* Reads COUNT floats of a row of the warp tile: vectors that are LANES vectors apart. */
template <unsigned COUNT, unsigned LANES>
static __device__ __forceinline__ void take(float *to, const float *row, unsigned lane)
{
#pragma unroll
    for (unsigned i = 0; i < COUNT; i += C::VEC) {
        float4 vec = *(const float4 *)&row[i * LANES + lane * C::VEC];
        to[i] = vec.x;
        to[i + 1] = vec.y;
        to[i + 2] = vec.z;
        to[i + 3] = vec.w;
    }
}

/* One instruction: nvcc may split an ordinary store of what was assembled element by element. */
static __device__ __forceinline__ void store(float *to, const gm_product<float> &p, uint64_t matrix,
                                             uint64_t row, uint64_t col, const float *sum)
{
    __stwb((float4 *)to, make_float4(gm_finished(p, matrix, row, col, sum[0]),
                                     gm_finished(p, matrix, row, col + 1, sum[1]),
                                     gm_finished(p, matrix, row, col + 2, sum[2]),
                                     gm_finished(p, matrix, row, col + 3, sum[3])));
}

static __global__ void __launch_bounds__(C::THREADS, C::BLOCKS_PER_SM)
    matmul_warp_tiled(gm_product<float> p, gm_origin origin)
{
    __shared__ __align__(16) float tile_a[C::BK][C::LDA];
    __shared__ __align__(16) float tile_b[C::BK][C::BN];
    unsigned warp = threadIdx.x / GM_WARP, lane = threadIdx.x % GM_WARP;
    unsigned x = lane % 2 + lane / 4 % (C::LANES_N / 2) * 2;
    unsigned y = lane / 2 % 2 + lane / (2 * C::LANES_N) * 2;
    unsigned warp_row = warp / C::WARPS_N * C::WM, warp_col = warp % C::WARPS_N * C::WN;
    uint64_t matrix = origin.matrix + blockIdx.z;
    uint64_t row = origin.row + blockIdx.y * C::BM, col = origin.col + (uint64_t)blockIdx.x * C::BN;
    const float *a = gm_matrix_of<float>(p.a, matrix) + row * p.a.row;
    const float *b = gm_matrix_of<float>(p.b, matrix) + col;
    float acc[C::TM][C::TN] = {};

    for (uint64_t first = 0; first < p.K; first += C::BK) {
        float4 from_a[C::LOADS], from_b[C::LOADS];
#pragma unroll
        for (unsigned i = 0; i < C::LOADS; i++) {
            struct load_at at = load_of_a(i), to = load_of_b(i);
            from_a[i] = load(a + at.across * p.a.row + at.step,
                             row + at.across < p.M && first + at.step < p.K);
            from_b[i] = load(b + to.step * p.b.row + to.across,
                             col + to.across < p.N && first + to.step < p.K);
        }
#pragma unroll
        for (unsigned i = 0; i < C::LOADS; i++) {
            struct load_at at = load_of_a(i), to = load_of_b(i);
            tile_a[at.step][at.across] = from_a[i].x;
            tile_a[at.step + 1][at.across] = from_a[i].y;
            tile_a[at.step + 2][at.across] = from_a[i].z;
            tile_a[at.step + 3][at.across] = from_a[i].w;
            *(float4 *)&tile_b[to.step][to.across] = from_b[i];
        }
        __syncthreads();
#pragma unroll 8 /* of 16 steps: all would not fit in the innermost instruction cache */
        for (unsigned k = 0; k < C::BK; k++) {
            float left[C::TM], right[C::TN];
            take<C::TM, C::LANES_M>(left, &tile_a[k][warp_row], y);
            take<C::TN, C::LANES_N>(right, &tile_b[k][warp_col], x);
#pragma unroll
            for (unsigned i = 0; i < C::TM; i++) {
#pragma unroll
                for (unsigned j = 0; j < C::TN; j++)
                    acc[i][j] += left[i] * right[j];
            }
        }
        __syncthreads();
        a += C::BK;
        b += C::BK * p.b.row;
    }
#pragma unroll
    for (unsigned i = 0; i < C::TM; i++) {
        uint64_t r = row + warp_row + (i / C::VEC * C::LANES_M + y) * C::VEC + i % C::VEC;
#pragma unroll
        for (unsigned j = 0; j < C::TN; j += C::VEC) {
            uint64_t c = col + warp_col + j * C::LANES_N + x * C::VEC;
            if (r < p.M && c < p.N)
                store(&p.result[(matrix * p.M + r) * p.N + c], p, matrix, r, c, &acc[i][j]);
        }
    }
}

GM_KERNEL(matmul_warp_tiled)
{
    gm_product<float> p = gm_product_of<float>(op);

    return gm_tiles(p.batch, p.M, p.N, C::BM, C::BN, [&](dim3 grid, gm_origin origin) {
        return gm_launch(exec, matmul_warp_tiled, grid, dim3(C::THREADS), 0, p, origin);
    });
}
