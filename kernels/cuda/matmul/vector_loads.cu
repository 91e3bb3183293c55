/*
 * vector_loads.cu - computes a GEMM that moves 16 bytes with each load and store.
 *
 * Unlike in matmul_register_tiled, a thread's load from global memory is a float4, and so is its
 * store of the result: a quarter of the instructions. Shared memory is read by float4 too. For that
 * the 8 rows of A that a thread needs in one step of K must be neighbours, and in A they are a row
 * apart. So A is transposed on its way into shared memory. Nothing is loaded ahead, so that vectors
 * are seen alone: a k-tile is loaded, then multiplied, and is twice as long as in register_tiled to
 * wait half as often. The other block of the multiprocessor fills the waits.
 *
 * Cost: 2 M N K / 128 elements loaded, by 16 sectors a request, all of them used; stores alike. For
 * 64 multiply-adds a warp needs 12 wavefronts of shared memory: 4 for A, 8 for B.
 *
 * When it wins: over register_tiled, by instructions. Its limit is shared memory: a multiprocessor
 * does 64 multiply-adds of a warp in 16 cycles, of which shared memory is busy in 12.
 * Source: S. Boehm, "How to Optimize a CUDA Matmul Kernel", step 6.
 */
#include "kernels/cuda/lib/tiles.h"
#include "kernels/cuda/matmul/product.h"

/*
 *     A in global memory: row-major, so         tile_a: the same elements, K down the columns.
 *     a vector is 4 steps of K of one row       A vector of it is one step of K of 4 rows
 *
 *           k: 0  1  2  3                             row: 0   1   2   3  ..  127
 *     row 0  [ a  b  c  d ]  one load              k 0   [ a ][ e ]
 *         1  [ e  f  g  h ]                          1   [ b ][ f ]     four stores of one element,
 *        ..                                          2   [ c ][ g ]     down a column
 *                                                    3   [ d ][ h ]
 *
 * Lanes 2i and 2i + 1 load 32 neighbouring bytes of row i: a whole sector. Rows of tile_a are
 * padded by a vector, so that the 16 rows and 2 vectors of a warp's store lie in 32 different
 * banks. B's rows go along N already, and are stored as they come.
 *
 * Block and thread tiles are those of register_tiled, which draws them.
 */
struct vector_loads_config {
    static constexpr unsigned BM = 128, BN = 128, BK = 16, TM = 8, TN = 8;
    static constexpr unsigned VEC = 4; /* floats of a vector */
    static constexpr unsigned SIDE = BM / TM, THREADS = SIDE * SIDE, BLOCKS_PER_SM = 2;
    static constexpr unsigned LDA = BM + VEC;
    static constexpr unsigned LOADS = BM * BK / VEC / THREADS; /* per thread and operand */

    static_assert(BM == BN && TM == TN, "the threads are a square");
    static_assert(LOADS * VEC * THREADS == BM * BK, "each thread loads the same");
};
using C = vector_loads_config;

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

/* Reads a thread's fragment of one step: two vectors, half a tile apart. */
static __device__ __forceinline__ void take(float *to, const float *row, unsigned thread)
{
#pragma unroll
    for (unsigned i = 0; i < C::TM; i += C::VEC) {
        float4 vec = *(const float4 *)&row[i * C::SIDE + thread * C::VEC];
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
    matmul_vector_loads(gm_product<float> p, gm_origin origin)
{
    __shared__ __align__(16) float tile_a[C::BK][C::LDA];
    __shared__ __align__(16) float tile_b[C::BK][C::BN];
    unsigned x = threadIdx.x % C::SIDE, y = threadIdx.x / C::SIDE;
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
#pragma unroll
        for (unsigned k = 0; k < C::BK; k++) {
            float left[C::TM], right[C::TN];
            take(left, tile_a[k], y);
            take(right, tile_b[k], x);
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
        uint64_t r = row + i / C::VEC * (C::SIDE * C::VEC) + y * C::VEC + i % C::VEC;
#pragma unroll
        for (unsigned j = 0; j < C::TN; j += C::VEC) {
            uint64_t c = col + j * C::SIDE + x * C::VEC;
            if (r < p.M && c < p.N)
                store(&p.result[(matrix * p.M + r) * p.N + c], p, matrix, r, c, &acc[i][j]);
        }
    }
}

/* Every buffer begins at a multiple of 256 bytes, so rows of whole vectors are aligned. The rows of
 * warp_tiled and double_buffered name it too. */
GM_ROW_FUNCTION enum gm_status gm_vector_loads_accepts(const struct gm_op *op,
                                                       const struct gm_device_facts *facts,
                                                       struct gm_error *err)
{
    uint64_t k = gm_op_k(op), n = gm_op_n(op);

    (void)facts;
    if (op->transa || op->transb)
        return gm_fail(err, GM_KERNEL_UNAVAILABLE,
                       "this kernel loads 16 bytes along the rows of a and b as they are stored, "
                       "and takes no transa and no transb");
    if (k % C::VEC != 0 || n % C::VEC != 0)
        return gm_fail(err, GM_KERNEL_UNAVAILABLE,
                       "this kernel loads 16 bytes of a row at once, and takes a and b with rows "
                       "of a multiple of %u elements; these have %llu and %llu",
                       C::VEC, (unsigned long long)k, (unsigned long long)n);
    return GM_OK;
}

GM_KERNEL(matmul_vector_loads)
{
    gm_product<float> p = gm_product_of<float>(op);

    return gm_tiles(p.batch, p.M, p.N, C::BM, C::BN, [&](dim3 grid, gm_origin origin) {
        return gm_launch(exec, matmul_vector_loads, grid, dim3(C::THREADS), 0, p, origin);
    });
}
