/*
 * grouped.cu - multiplies small matrices of many operations in one launch, where they are.
 *
 * One block computes a tile of 64 x 64. Half of its threads load a k-tile of A by whole vectors of
 * 16 bytes, the other half one of B, the next k-tile while this one is multiplied. So a 64 x 64 x
 * 64 product waits once for the link to the host's memory, and reads each operand once. Wider
 * results read A, and higher ones B, once for each tile. Results leave through shared memory, in
 * spans as long as the tile allows.
 *
 * A thread has 4 x 4 accumulators, which add in the order of k: the bits of a result depend on its
 * own operands alone.
 *
 * Cost, f32: each 4 steps of K a warp needs 12 wavefronts of shared memory for 64 multiply-adds a
 * thread. A tile takes 17 ns for each step of K.
 * When it wins: small products, whose launch and copies would take longer (choose/grouped.c).
 */
#include "kernels/cuda/lib/group.h"
#include "kernels/cuda/lib/region.h"
#include "kernels/cuda/matmul/product.h"

#define THREADS 256u
#define TILE 64u /* rows and columns of the result */

/* A longer sum on one block would take longer than copies and a kernel that shares it. */
#define K_MAX 1024u

template <typename T> struct problem {
    const T *a, *b, *c; /* c is NULL if it is not read */
    T *result;
    gm_acc<T> alpha, beta;
    unsigned M, N;
    uint16_t K;
    bool a_transposed, b_transposed;    /* lies along M; along K */
    unsigned a_batch, b_batch, c_batch; /* strides of the stacks; 0: broadcast */
    unsigned across, tiles;             /* tiles of a row, and of a matrix */
};

/* Vectors of W accumulators in shared memory, and BK steps of K in a k-tile: rows of 256 bytes. */
template <typename S> constexpr unsigned W = 16 / sizeof(S);
template <typename S> constexpr unsigned BK = 256 / sizeof(S);

template <typename S> struct alignas(16) quad {
    S x[W<S>];
};

/*
 * Where element (row, col) is stored in a tile with rows of WIDTH. Vectors are swizzled by the row,
 * so that transposed stores, down a column, use different banks as well. Rows of four vectors:
 *
 *     rows 0 .. W - 1     0 1 2 3
 *     rows W .. 2W - 1    1 0 3 2
 *     rows 2W ..          2 3 0 1
 */
template <typename S, unsigned WIDTH>
__device__ __forceinline__ unsigned place(unsigned row, unsigned col)
{
    constexpr unsigned VECTORS = WIDTH / W<S>;

    return row * WIDTH + ((col / W<S> ^ row / W<S> % VECTORS) * W<S>)+col % W<S>;
}

/* The part of an operand that is `down` x `across` in the product: rows x columns in its stored
 * order. `left`: elements from its matrix to the end of the operand. */
template <typename T>
__device__ __forceinline__ gm_region<const T>
part_of(const T *data, bool transposed, unsigned row, unsigned col, unsigned down, unsigned across,
        unsigned height, unsigned width, unsigned left)
{
    unsigned at = transposed ? col * height + row : row * width + col;

    return transposed ? gm_region<const T>(data + at, across, down, height, left - at)
                      : gm_region<const T>(data + at, down, across, width, left - at);
}

/* Multiplies the k-tiles in shared memory; `steps` is rounded up to whole vectors. */
template <typename S>
__device__ __forceinline__ void multiply(const S *tile_a, const S *tile_b, unsigned steps,
                                         unsigned y, unsigned x, S sum[4][4])
{
#pragma unroll 1
    for (unsigned k = 0; k < steps; k += W<S>) {
        quad<S> a[4], b;
#pragma unroll
        for (unsigned i = 0; i < 4; i++)
            a[i] = *(const quad<S> *)&tile_a[place<S, BK<S>>(4 * y + i, k)];
#pragma unroll
        for (unsigned step = 0; step < W<S>; step++) {
#pragma unroll
            for (unsigned j = 0; j < 4; j += W<S>) {
                b = *(const quad<S> *)&tile_b[place<S, TILE>(k + step, 16 * j + W<S> * x)];
#pragma unroll
                for (unsigned i = 0; i < 4; i++) {
#pragma unroll
                    for (unsigned e = 0; e < W<S>; e++)
                        sum[i][j + e] += a[i].x[step] * b.x[e];
                }
            }
        }
    }
}

/* A vector of an operand, widened and stored: along a row of the tile, or down a column. */
template <typename T, typename S, unsigned WIDTH>
__device__ __forceinline__ void put_vector(S *tile, bool transposed, unsigned row, unsigned col,
                                           const gm_elements<T, 16> &elements)
{
    constexpr unsigned V = gm_per_vec<T, 16>::count;

    if (transposed) {
#pragma unroll
        for (unsigned e = 0; e < V; e++)
            tile[place<S, WIDTH>(col + e, row)] = gm_load(elements.element[e]);
        return;
    }
#pragma unroll
    for (unsigned e = 0; e < V; e += W<S>) {
        quad<S> vec;
#pragma unroll
        for (unsigned i = 0; i < W<S>; i++)
            vec.x[i] = gm_load(elements.element[e + i]);
        *(quad<S> *)&tile[place<S, WIDTH>(row, col + e)] = vec;
    }
}

/* Dynamic shared memory. */
template <typename T> struct memory {
    static constexpr unsigned OPERAND = TILE * BK<gm_acc<T>>, V = gm_per_vec<T, 16>::count;
    static constexpr unsigned ROOM = gm_region_room(TILE, BK<gm_acc<T>>, V);
    alignas(16) gm_acc<T> tiles[2 * OPERAND]; /* a k-tile of A and one of B, then the sums */
    gm_elements<T, 16> room[2 * ROOM];        /* what is loaded of A and of B, or of C */
    static_assert(TILE * TILE <= 2 * OPERAND, "the sums fit where the operands were");
    static_assert(gm_region_room(BK<gm_acc<T>>, TILE, V) <= ROOM, "room for B");
    static_assert(gm_region_room(TILE, TILE, V) <= 2 * ROOM, "room for C");
};

/* One tile of one product. */
template <typename T>
__device__ __forceinline__ void multiply_tile(const problem<T> &p, unsigned tile, memory<T> *memory)
{
    using S = gm_acc<T>;
    constexpr unsigned V = gm_per_vec<T, 16>::count, HALF = THREADS / 2;
    unsigned t = threadIdx.x, matrix = tile / p.tiles, at = tile - matrix * p.tiles;
    unsigned row = at / p.across * TILE, col = at % p.across * TILE;
    unsigned rows = min(TILE, p.M - row), cols = min(TILE, p.N - col);
    bool of_a = t < HALF; /* uniform in a warp */
    const T *operand = of_a ? p.a + (size_t)matrix * p.a_batch : p.b + (size_t)matrix * p.b_batch;
    bool transposed = of_a ? p.a_transposed : p.b_transposed;
    S *shared = memory->tiles, *tile_b = shared + memory->OPERAND, sum[4][4] = {};
    gm_elements<T, 16> *room = memory->room + (of_a ? 0 : memory->ROOM);

    unsigned left = of_a ? p.M * p.K : p.K * p.N;

    auto part = [&](unsigned k) {
        unsigned steps = min(BK<S>, p.K - k);
        return of_a ? part_of(operand, transposed, row, k, rows, steps, p.M, p.K, left)
                    : part_of(operand, transposed, k, col, steps, cols, p.K, p.N, left);
    };
    /* A k-tile is loaded while the one before it is multiplied. The code stands once for all of
     * them: a lone product waits for its instructions too. */
    for (unsigned k = 0;; k += BK<S>) {
        if (k < p.K)
            gm_region_fetch(part(k), t % HALF, HALF, room);
        if (k > 0) {
            multiply(shared, tile_b, min(BK<S>, p.K - (k - BK<S>)), t / 16, t % 16, sum);
            __syncthreads();
        }
        if (k >= p.K)
            break;
        /* What no operand fills counts as zero, and not as what was there before. */
        if (rows < TILE || cols < TILE || min(BK<S>, p.K - k) % W<S> != 0) {
            for (unsigned i = t; i < 2 * memory->OPERAND / W<S>; i += THREADS)
                ((quad<S> *)shared)[i] = {};
            __syncthreads();
        }
        __pipeline_wait_prior(0);
        gm_region_put(
            part(k), t % HALF, HALF, room,
            [&](unsigned y, unsigned x, const gm_elements<T, 16> &elements) {
                if (of_a)
                    put_vector<T, S, BK<S>>(shared, transposed, y, x, elements);
                else
                    put_vector<T, S, TILE>(tile_b, transposed, y, x, elements);
            },
            [&](unsigned y, unsigned x, T element) {
                unsigned r = transposed ? x : y, c = transposed ? y : x;
                *(of_a ? &shared[place<S, BK<S>>(r, c)] : &tile_b[place<S, TILE>(r, c)]) =
                    gm_load(element);
            });
        __syncthreads();
    }
#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
#pragma unroll
        for (unsigned j = 0; j < 4; j += W<S>) {
            quad<S> scaled;
#pragma unroll
            for (unsigned e = 0; e < W<S>; e++)
                scaled.x[e] = p.alpha * sum[i][j + e];
            *(quad<S> *)&shared[place<S, TILE>(4 * (t / 16) + i, 16 * j + W<S> * (t % 16))] =
                scaled;
        }
    }
    __syncthreads();
    auto add = [&](unsigned y, unsigned x, T element) {
        shared[place<S, TILE>(y, x)] += p.beta * gm_load(element);
    };
    if (p.c) {
        const T *c = p.c + (size_t)matrix * p.c_batch + row * p.N + col;
        gm_region<const T> from(c, rows, cols, p.N, p.M * p.N - (row * p.N + col));
        gm_region_fetch(from, t, THREADS, memory->room);
        __pipeline_wait_prior(0);
        gm_region_put(
            from, t, THREADS, memory->room,
            [&](unsigned y, unsigned x, const gm_elements<T, 16> &elements) {
#pragma unroll
                for (unsigned e = 0; e < V; e++)
                    add(y, x + e, elements.element[e]);
            },
            add);
        __syncthreads();
    }
    T *result = p.result + (size_t)matrix * p.M * p.N + row * p.N + col;
    gm_region_store(
        gm_region<T>(result, rows, cols, p.N), t, THREADS,
        [&](unsigned y, unsigned x) {
            gm_elements<T, 16> elements;
#pragma unroll
            for (unsigned e = 0; e < V; e += W<S>) {
                quad<S> sums = *(const quad<S> *)&shared[place<S, TILE>(y, x + e)];
#pragma unroll
                for (unsigned i = 0; i < W<S>; i++)
                    elements.element[e + i] = gm_store<T>(sums.x[i]);
            }
            return elements;
        },
        [&](unsigned y, unsigned x) { return gm_store<T>(shared[place<S, TILE>(y, x)]); });
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    matmul_grouped(const __grid_constant__ gm_group<problem<T>> group)
{
    gm_group_each(group, [&](const problem<T> &p, unsigned tile) {
        multiply_tile<T>(p, tile, gm_dynamic_shared<memory<T>>());
    });
}

GM_ROW_FUNCTION enum gm_status gm_matmul_grouped_accepts(const struct gm_op *op,
                                                         const struct gm_device_facts *,
                                                         struct gm_error *err)
{
    if (gm_op_k(op) > K_MAX)
        return gm_fail(err, GM_KERNEL_UNAVAILABLE,
                       "kernel \"grouped\" is for sums of at most %u products, and these have %llu",
                       K_MAX, (unsigned long long)gm_op_k(op));
    for (unsigned i = 0; i < 2; i++)
        if (op->operand[i].batch > 1 && gm_op_reads(op, i) && !gm_lies_row_major(&op->operand[i]))
            return gm_group_refuses(op, i, err);
    return gm_group_refuses(op, 2, err);
}

GM_KERNEL(matmul_grouped)
{
    return gm_by_type(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;

        return gm_group_launch(op, exec, matmul_grouped<T>, THREADS, 2 * TILE * 256,
                               sizeof(memory<T>), [](const struct gm_op *each, problem<T> *ret) {
                                   gm_product<T> p = gm_product_of<T>(each);
                                   unsigned across = (unsigned)gm_ceil_div(p.N, TILE);
                                   unsigned tiles = across * (unsigned)gm_ceil_div(p.M, TILE);
                                   *ret = {.a = (const T *)p.a.data,
                                           .b = (const T *)p.b.data,
                                           .c = (const T *)p.c.data,
                                           .result = p.result,
                                           .alpha = p.alpha,
                                           .beta = p.beta,
                                           .M = (unsigned)p.M,
                                           .N = (unsigned)p.N,
                                           .K = (uint16_t)p.K,
                                           .a_transposed = p.a.col != 1,
                                           .b_transposed = p.b.col != 1,
                                           .a_batch = (unsigned)p.a.batch,
                                           .b_batch = (unsigned)p.b.batch,
                                           .c_batch = (unsigned)p.c.batch,
                                           .across = across,
                                           .tiles = tiles};
                                   return (unsigned)p.batch * tiles;
                               });
    });
}
