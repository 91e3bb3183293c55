/*
 * double_buffered.cu - computes a GEMM that loads the next k-tile while it multiplies this one.
 *
 * Unlike in matmul_warp_tiled, shared memory has room for two k-tiles. One is multiplied while the
 * other is on its way from global memory, so nobody waits for it. B goes there by asynchronous
 * copies (cp.async), which need no register. A is transposed on its way, so it goes through
 * registers: loaded before the arithmetic, stored after it. As no wait has to be made rare, k-tiles
 * are of 8 steps again, and two take the room of one before.
 *
 * Cost: as warp_tiled, with one barrier for each k-tile instead of two.
 *
 * When it wins: over warp_tiled, wherever K is more than a k-tile; most where a multiprocessor has
 * one block, and nothing else to do while it waits.
 * Source: CUTLASS ("Efficient GEMM in CUDA", NVIDIA), software pipelining; S. Boehm, "How to
 * Optimize a CUDA Matmul Kernel", double buffering.
 */
#include "kernels/cuda/lib/tiles.h"
#include "kernels/cuda/matmul/product.h"

/*
 * The pipeline. Each row is one of the two buffers; time goes to the right; | is the barrier:
 *
 *              |  k-tile 0          |  k-tile 1          |  k-tile 2          |
 *     buffer 0 |  multiply 0        |  B: copy 2 .. A: 2 |  multiply 2        |
 *     buffer 1 |  B: copy 1 .. A: 1 |  multiply 1        |  B: copy 3 .. A: 3 |
 *     registers|  A: load 1 ....... |  A: load 2 ....... |  A: load 3 ....... |
 *
 * The barrier says two things: what was copied and stored is there for all, and nobody reads the
 * other buffer any more. The k-tile after the last one is beyond the edge, so all its elements are
 * zeros and nothing is loaded: no branch in the loop.
 *
 * Block, warp and thread tiles are those of warp_tiled, which draws them.
 */
struct double_buffered_config {
    static constexpr unsigned BM = 128, BN = 128, BK = 8, WM = 64, WN = 64, TM = 8, TN = 16;
    static constexpr unsigned VEC = 4; /* floats of a vector */
    static constexpr unsigned LANES_M = WM / TM, LANES_N = WN / TN, WARPS_N = BN / WN;
    static constexpr unsigned THREADS = BM / WM * WARPS_N * GM_WARP, BLOCKS_PER_SM = 2;
    static constexpr unsigned LDA = BM + VEC;
    static constexpr unsigned LOADS = BM * BK / VEC / THREADS; /* per thread and operand */

    static_assert(LANES_M * LANES_N == GM_WARP, "a warp tile is 32 thread tiles");
    static_assert(BM == BN && LOADS * VEC * THREADS == BM * BK, "each thread loads the same");
};
using C = double_buffered_config;

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

/* Loads a thread's part of a k-tile of A, whose first row is `row` and first step `first`. Beyond
 * the edges there are zeros. An edge never cuts a vector: rows are whole vectors. */
static __device__ __forceinline__ void
load_a(float4 *to, const float *from, const gm_product<float> &p, uint64_t row, uint64_t first)
{
#pragma unroll
    for (unsigned i = 0; i < C::LOADS; i++) {
        struct load_at at = load_of_a(i);
        bool exists = row + at.across < p.M && first + at.step < p.K;
        to[i] = exists ? *(const float4 *)(from + at.across * p.a.row + at.step)
                       : make_float4(0, 0, 0, 0);
    }
}

static __device__ __forceinline__ void store_a(float (*tile)[C::LDA], const float4 *from)
{
#pragma unroll
    for (unsigned i = 0; i < C::LOADS; i++) {
        struct load_at at = load_of_a(i);
        tile[at.step][at.across] = from[i].x;
        tile[at.step + 1][at.across] = from[i].y;
        tile[at.step + 2][at.across] = from[i].z;
        tile[at.step + 3][at.across] = from[i].w;
    }
}

/* Starts the copies of B's. What does not exist is not read, and becomes zeros. */
static __device__ __forceinline__ void copy_b(float (*tile)[C::BN], const float *from,
                                              const gm_product<float> &p, uint64_t col,
                                              uint64_t first)
{
#pragma unroll
    for (unsigned i = 0; i < C::LOADS; i++) {
        struct load_at at = load_of_b(i);
        bool exists = col + at.across < p.N && first + at.step < p.K;
        __pipeline_memcpy_async(&tile[at.step][at.across], from + at.step * p.b.row + at.across,
                                sizeof(float4), exists ? 0 : sizeof(float4));
    }
    __pipeline_commit();
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
    matmul_double_buffered(gm_product<float> p, gm_origin origin)
{
    __shared__ __align__(16) float tile_a[2][C::BK][C::LDA];
    __shared__ __align__(16) float tile_b[2][C::BK][C::BN];
    unsigned warp = threadIdx.x / GM_WARP, lane = threadIdx.x % GM_WARP;
    unsigned x = lane % 2 + lane / 4 % (C::LANES_N / 2) * 2;
    unsigned y = lane / 2 % 2 + lane / (2 * C::LANES_N) * 2;
    unsigned warp_row = warp / C::WARPS_N * C::WM, warp_col = warp % C::WARPS_N * C::WN;
    uint64_t matrix = origin.matrix + blockIdx.z;
    uint64_t row = origin.row + blockIdx.y * C::BM, col = origin.col + (uint64_t)blockIdx.x * C::BN;
    const float *a = gm_matrix_of<float>(p.a, matrix) + row * p.a.row;
    const float *b = gm_matrix_of<float>(p.b, matrix) + col;
    float acc[C::TM][C::TN] = {};
    float4 next_a[C::LOADS];
    unsigned now = 0; /* the buffer that is multiplied */

    load_a(next_a, a, p, row, 0);
    copy_b(tile_b[now], b, p, col, 0);
    store_a(tile_a[now], next_a);
    __pipeline_wait_prior(0);
    __syncthreads();
    for (uint64_t next = C::BK; next < p.K + C::BK; next += C::BK) {
        a += C::BK;
        b += C::BK * p.b.row;
        copy_b(tile_b[now ^ 1], b, p, col, next);
        load_a(next_a, a, p, row, next);
#pragma unroll
        for (unsigned k = 0; k < C::BK; k++) {
            float left[C::TM], right[C::TN];
            take<C::TM, C::LANES_M>(left, &tile_a[now][k][warp_row], y);
            take<C::TN, C::LANES_N>(right, &tile_b[now][k][warp_col], x);
#pragma unroll
            for (unsigned i = 0; i < C::TM; i++) {
#pragma unroll
                for (unsigned j = 0; j < C::TN; j++)
                    acc[i][j] += left[i] * right[j];
            }
        }
        now ^= 1;
        store_a(tile_a[now], next_a);
        __pipeline_wait_prior(0);
        __syncthreads();
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

GM_KERNEL(matmul_double_buffered)
{
    gm_product<float> p = gm_product_of<float>(op);

    return gm_tiles(p.batch, p.M, p.N, C::BM, C::BN, [&](dim3 grid, gm_origin origin) {
        return gm_launch(exec, matmul_double_buffered, grid, dim3(C::THREADS), 0, p, origin);
    });
}
