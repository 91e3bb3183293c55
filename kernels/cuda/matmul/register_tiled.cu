/*
 * register_tiled.cu - computes a GEMM with 8 x 8 accumulators per thread, in registers.
 *
 * Unlike in matmul_tiled, which reads shared memory twice for each multiply-add, a thread reads 8
 * elements of A and 8 of B, 16 bytes a read, for 64 multiply-adds. A block of 256 threads computes
 * 128 x 128, so global loads fall too. The k-tiles are double-buffered: the next one is loaded into
 * registers while the current one is multiplied, and then stored in the other half of shared
 * memory. So there is one barrier a k-tile instead of two.
 *
 * Cost, elements of 4 bytes: 2 M N K / 128 elements loaded, 4 sectors a request (8 where rows of A
 * begin inside a sector). Stores: 16 sectors a request, of which a quarter is used, because lanes
 * are 4 columns apart.
 *
 * When it wins: over tiled where the result fills enough tiles; for f16 and bf16, which multistage
 * lacks.
 * Source: Volkov, Demmel, "Benchmarking GPUs to Tune Dense Linear Algebra" (register blocking).
 */
#include "kernels/cuda/lib/tiles.h"
#include "kernels/cuda/matmul/product.h"

/*
 *     block tile 128 x 128: 16 x 16 threads       one thread's 8 x 8 accumulators: four
 *                                                 4 x 4 squares, half a tile apart
 *           x: 0  1  ..  15                          4x   64 + 4x
 *       y 0 [ ][ ]     [ ]                          +--+    +--+
 *         1 [ ]                                4y   |  |    |  |
 *        ..                                         +--+    +--+
 *        15 [ ]                           64 + 4y   |  |    |  |
 *                                                   +--+    +--+
 *
 * So neighbouring threads read neighbouring vectors of a k-tile in shared memory.
 */
struct register_tiled_config {
    static constexpr unsigned BM = 128, BN = 128, BK = 8, TM = 8, TN = 8;
    static constexpr unsigned VEC = 4; /* elements of a vector */
    static constexpr unsigned SIDE = BM / TM, THREADS = SIDE * SIDE;
    static constexpr unsigned LD = BM + 4; /* padded, so that stores down a column use all banks */
    static constexpr unsigned LOADS = BM * BK / THREADS; /* per thread and operand */

    static_assert(BM == BN && TM == TN, "both operands are loaded alike");
    static_assert(SIDE * TM == BM && TM % VEC == 0, "the thread tiles are the block tile");
    static_assert(LOADS * THREADS == BM * BK, "each thread loads the same");
};
using C = register_tiled_config;

/* The element of a k-tile that a thread loads: its step of K and its row of A (column of B). Lanes
 * run along the contiguous dimension. */
struct load_at {
    unsigned step, across;
};
static __device__ __forceinline__ struct load_at load_of(unsigned load, bool along_k)
{
    unsigned i = load * C::THREADS + threadIdx.x;

    return along_k ? load_at{i % C::BK, i / C::BK} : load_at{i / C::BM, i % C::BM};
}

template <typename T>
static __device__ __forceinline__ void load(gm_acc<T> *to, const T *from, uint64_t stride,
                                            uint64_t stride_k, uint64_t left, uint64_t left_k)
{
#pragma unroll
    for (unsigned i = 0; i < C::LOADS; i++) {
        struct load_at at = load_of(i, stride_k == 1);
        bool in = at.across < left && at.step < left_k;
        to[i] = in ? gm_load(from[at.across * stride + at.step * stride_k]) : gm_acc<T>(0);
    }
}

template <typename S>
static __device__ __forceinline__ void store(S (*tile)[C::LD], const S *from, bool along_k)
{
#pragma unroll
    for (unsigned i = 0; i < C::LOADS; i++) {
        struct load_at at = load_of(i, along_k);
        tile[at.step][at.across] = from[i];
    }
}

/* Reads a thread's fragment of one step: two vectors, half a tile apart. */
template <typename S>
static __device__ __forceinline__ void take(S *to, const S *row, unsigned thread)
{
#pragma unroll
    for (unsigned i = 0; i < C::TM; i++)
        to[i] = row[i / C::VEC * (C::SIDE * C::VEC) + thread * C::VEC + i % C::VEC];
}

template <typename T>
static __global__ void __launch_bounds__(C::THREADS)
    matmul_register_tiled(gm_product<T> p, gm_origin origin)
{
    using S = gm_acc<T>;
    __shared__ __align__(16) S tile_a[2][C::BK][C::LD];
    __shared__ __align__(16) S tile_b[2][C::BK][C::LD];
    unsigned x = threadIdx.x % C::SIDE, y = threadIdx.x / C::SIDE;
    uint64_t matrix = origin.matrix + blockIdx.z;
    uint64_t row = origin.row + blockIdx.y * C::BM, col = origin.col + (uint64_t)blockIdx.x * C::BN;
    const T *a = gm_matrix_of<T>(p.a, matrix) + row * p.a.row;
    const T *b = gm_matrix_of<T>(p.b, matrix) + col * p.b.col;
    S acc[C::TM][C::TN] = {}, next_a[C::LOADS], next_b[C::LOADS];
    unsigned half = 0;

    load(next_a, a, p.a.row, p.a.col, p.M - row, p.K);
    load(next_b, b, p.b.col, p.b.row, p.N - col, p.K);
    for (uint64_t first = 0; first < p.K; first += C::BK) {
        store(tile_a[half], next_a, p.a.col == 1);
        store(tile_b[half], next_b, p.b.row == 1);
        __syncthreads();
        if (p.K - first > C::BK) {
            uint64_t after = first + C::BK;
            load(next_a, a + after * p.a.col, p.a.row, p.a.col, p.M - row, p.K - after);
            load(next_b, b + after * p.b.row, p.b.col, p.b.row, p.N - col, p.K - after);
        }
#pragma unroll
        for (unsigned k = 0; k < C::BK; k++) {
            S left[C::TM], right[C::TN];
            take(left, tile_a[half][k], y);
            take(right, tile_b[half][k], x);
#pragma unroll
            for (unsigned i = 0; i < C::TM; i++) {
#pragma unroll
                for (unsigned j = 0; j < C::TN; j++)
                    acc[i][j] += left[i] * right[j];
            }
        }
        half ^= 1;
    }
#pragma unroll
    for (unsigned i = 0; i < C::TM; i++) {
        uint64_t r = row + i / C::VEC * (C::SIDE * C::VEC) + y * C::VEC + i % C::VEC;
#pragma unroll
        for (unsigned j = 0; j < C::TN; j++) {
            uint64_t c = col + j / C::VEC * (C::SIDE * C::VEC) + x * C::VEC + j % C::VEC;
            if (r < p.M && c < p.N)
                p.result[(matrix * p.M + r) * p.N + c] = gm_finished(p, matrix, r, c, acc[i][j]);
        }
    }
}

GM_KERNEL(matmul_register_tiled)
{
    return gm_by_type(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        gm_product<T> p = gm_product_of<T>(op);

        return gm_tiles(p.batch, p.M, p.N, C::BM, C::BN, [&](dim3 grid, gm_origin origin) {
            return gm_launch(exec, matmul_register_tiled<T>, grid, dim3(C::THREADS), 0, p, origin);
        });
    });
}
