/*
 * matmul_registers.cu - 8 x 8 sums a thread: what comes from shared memory is used 8 times.
 *
 * The difference to matmul_tiled, whose limit is shared memory with two reads for each
 * multiply-add: a thread has 64 sums in registers. In each step it reads 8 elements of a column of
 * a and 8 of a row of b, and multiplies each with each: a quarter of a read for a multiply-add, and
 * those reads are of 16 bytes. A block of 256 threads computes a tile of 128 x 128, so that global
 * loads fall as well, by 128 instead of 32.
 *
 * For that both slabs lie in shared memory with k down their columns, a[k][row] and b[k][col],
 * and are 8 steps deep. While a slab is used, the next one's elements are on their way to
 * registers, and go to the other half of shared memory after: one barrier a slab instead of two.
 *
 * Cost, elements of 4 bytes: 2 m n k / 128 elements loaded, 4 sectors a request: 32 neighbours of a
 * row of b, or 8 of each of 4 rows of a (8 sectors where those begin inside one). A step reads
 * shared memory 4 times for 64 multiply-adds: 2 reads of a, of 2 vectors that 16 lanes share each,
 * and 2 of b, of 16. Stores: 16 sectors a request, a quarter of each, since lanes are 4 columns
 * apart.
 *
 * When it wins: over tiled where the result fills enough tiles of 128 x 128; and f16 and bf16,
 * which the later kernels of large tiles do not take.
 *
 * Source: register blocking in V. Volkov, J. Demmel, "Benchmarking GPUs to Tune Dense Linear
 * Algebra".
 */
#include "kernels/cuda/product.h"
#include "kernels/cuda/tiles.h"

#define TILE 128u
#define DEPTH 8u
#define SIDE 16u /* of the block */
#define THREADS (SIDE * SIDE)
#define SUMS 8u           /* of a thread, in either direction */
#define RUN 4u            /* of them side by side */
#define PITCH (TILE + 4u) /* of a slab's rows: elements that come down a column fill all banks */
#define LOADS (TILE * DEPTH / THREADS)

static_assert(SIDE * SUMS == TILE && SUMS % RUN == 0, "the threads' sums are the tile");
static_assert(LOADS * THREADS == TILE * DEPTH, "each thread loads the same");

/* A thread's part of a slab of one operand: elements at `step` of k and `across`. Lanes go along
 * k where memory does. */
struct place {
    unsigned step, across;
};
static __device__ __forceinline__ struct place place_of(unsigned load, bool along_k)
{
    unsigned i = load * THREADS + threadIdx.x;

    return along_k ? place{i % DEPTH, i / DEPTH} : place{i / TILE, i % TILE};
}

template <typename T>
static __device__ __forceinline__ void load(gm_sum<T> *to, const T *from, uint64_t stride,
                                            uint64_t stride_k, uint64_t left, uint64_t left_k)
{
#pragma unroll
    for (unsigned i = 0; i < LOADS; i++) {
        struct place at = place_of(i, stride_k == 1);
        bool in = at.across < left && at.step < left_k;
        to[i] = in ? gm_load(from[at.across * stride + at.step * stride_k]) : gm_sum<T>(0);
    }
}

template <typename S>
static __device__ __forceinline__ void store(S (*slab)[PITCH], const S *from, bool along_k)
{
#pragma unroll
    for (unsigned i = 0; i < LOADS; i++) {
        struct place at = place_of(i, along_k);
        slab[at.step][at.across] = from[i];
    }
}

/* The thread's elements of a step: RUN of them, and RUN of them half a tile on. */
template <typename S>
static __device__ __forceinline__ void take(S *to, const S *row, unsigned thread)
{
#pragma unroll
    for (unsigned i = 0; i < SUMS; i++)
        to[i] = row[i / RUN * (SIDE * RUN) + thread * RUN + i % RUN];
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    matmul_registers(gm_product<T> p, gm_origin origin)
{
    using S = gm_sum<T>;
    __shared__ __align__(16) S slab_a[2][DEPTH][PITCH];
    __shared__ __align__(16) S slab_b[2][DEPTH][PITCH];
    unsigned x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
    uint64_t matrix = origin.matrix + blockIdx.z;
    uint64_t row = origin.row + blockIdx.y * TILE, col = origin.col + (uint64_t)blockIdx.x * TILE;
    const T *a = gm_matrix_of<T>(p.a, matrix) + row * p.a.row;
    const T *b = gm_matrix_of<T>(p.b, matrix) + col * p.b.col;
    S sum[SUMS][SUMS] = {}, next_a[LOADS], next_b[LOADS];
    unsigned half = 0;

    load(next_a, a, p.a.row, p.a.col, p.m - row, p.k);
    load(next_b, b, p.b.col, p.b.row, p.n - col, p.k);
    for (uint64_t first = 0; first < p.k; first += DEPTH) {
        store(slab_a[half], next_a, p.a.col == 1);
        store(slab_b[half], next_b, p.b.row == 1);
        __syncthreads();
        if (p.k - first > DEPTH) {
            uint64_t after = first + DEPTH;
            load(next_a, a + after * p.a.col, p.a.row, p.a.col, p.m - row, p.k - after);
            load(next_b, b + after * p.b.row, p.b.col, p.b.row, p.n - col, p.k - after);
        }
#pragma unroll
        for (unsigned k = 0; k < DEPTH; k++) {
            S left[SUMS], right[SUMS];
            take(left, slab_a[half][k], y);
            take(right, slab_b[half][k], x);
#pragma unroll
            for (unsigned i = 0; i < SUMS; i++) {
#pragma unroll
                for (unsigned j = 0; j < SUMS; j++)
                    sum[i][j] += left[i] * right[j];
            }
        }
        half ^= 1;
    }
#pragma unroll
    for (unsigned i = 0; i < SUMS; i++) {
        uint64_t r = row + i / RUN * (SIDE * RUN) + y * RUN + i % RUN;
#pragma unroll
        for (unsigned j = 0; j < SUMS; j++) {
            uint64_t c = col + j / RUN * (SIDE * RUN) + x * RUN + j % RUN;
            if (r < p.m && c < p.n)
                p.result[(matrix * p.m + r) * p.n + c] = gm_finished(p, matrix, r, c, sum[i][j]);
        }
    }
}

extern "C" enum gm_status GM_ENTRY(matmul_registers)(const struct gm_op *op, struct gm_exec *exec)
{
    return gm_by_type(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        gm_product<T> p = gm_product_of<T>(op);

        return gm_tiles(p.batch, p.m, p.n, TILE, TILE, [&](dim3 grid, gm_origin origin) {
            return gm_launch(exec, matmul_registers<T>, grid, dim3(THREADS), 0, p, origin);
        });
    });
}
