/*
 * batched.cu - multiplies stacks of small matrices of any size, whole matrices per block.
 *
 * Unlike the power-of-two tiles of matmul_multistage_tuned, which waste much of 33 x 33 or 65 x 65,
 * tiles follow the matrix. Matrices of a stack are contiguous. So a block's part of B, and of the
 * result, is one contiguous span, loaded by 16 bytes at any alignment. A block takes as many
 * matrices as keep its warps busy, or some rows of a larger matrix; then B comes in double-buffered
 * k-tiles. A warp has 4 x 8 lanes and a tile of any multiple of 8 columns (drawn in
 * batched/config.h). Rows of A that are whole 16-byte vectors are padded, so that 16-byte reads
 * along K use different banks.
 *
 * Cost: per step of K a lane reads shared memory once for each of its columns and rows (or once for
 * 2 or 4 of them). Global memory: each element once, but B once for each tile of rows.
 * When it wins: stacks of up to some 100 rows and columns that power-of-two tiles do not divide.
 */
#include "kernels/cuda/matmul/batched/config.h"
#include "kernels/cuda/matmul/batched/loader.h"
#include "kernels/device_facts.h"

#define BATCHED_SIDE_MAX 4096u /* rows or columns: a larger matrix is work for many blocks */

/* N neighbouring elements, loaded or stored in one access. */
template <typename T, unsigned N> struct alignas(N * sizeof(T)) pack {
    T x[N];
};

/* Multiplies a k-tile. Row i of A is at a + from_a[i], and AT_ONCE steps of it are read at once;
 * rows of B are at b, n elements apart. */
template <typename S, unsigned AT_ONCE, typename T>
static __device__ __forceinline__ void add_steps(T (&acc)[S::TM][S::TN], const T *a,
                                                 const unsigned *from_a, const T *b, unsigned steps,
                                                 unsigned n)
{
    constexpr unsigned STEPS = 16 / sizeof(T), VEC = S::VEC;
    unsigned step = 0;

    auto add = [&](const T *left) {
        pack<T, VEC> right[S::TN / VEC];
#pragma unroll
        for (unsigned j = 0; j < S::TN / VEC; j++)
            right[j] = *(const pack<T, VEC> *)(b + LANES_N * VEC * j);
        b += n;
#pragma unroll
        for (unsigned i = 0; i < S::TM; i++) {
#pragma unroll
            for (unsigned j = 0; j < S::TN; j++)
                acc[i][j] += left[i] * right[j / VEC].x[j % VEC];
        }
    };
    for (; step + STEPS <= steps; step += STEPS) {
        T left[STEPS][S::TM];
#pragma unroll
        for (unsigned i = 0; i < S::TM; i++) {
#pragma unroll
            for (unsigned r = 0; r < STEPS; r += AT_ONCE) {
                pack<T, AT_ONCE> got = *(const pack<T, AT_ONCE> *)(a + from_a[i] + step + r);
#pragma unroll
                for (unsigned e = 0; e < AT_ONCE; e++)
                    left[r + e][i] = got.x[e];
            }
        }
#pragma unroll
        for (unsigned r = 0; r < STEPS; r++)
            add(left[r]);
    }
    for (; step < steps; step++) {
        T left[S::TM];
#pragma unroll
        for (unsigned i = 0; i < S::TM; i++)
            left[i] = a[from_a[i] + step];
        add(left);
    }
}

/* Stores alpha * accumulators, from (row, col) on. WITH_C: adds beta * C. */
template <typename S, bool WITH_C, typename T>
static __device__ __forceinline__ void store(const T (&acc)[S::TM][S::TN],
                                             const batched_product<T> &s, uint64_t matrix,
                                             unsigned row, unsigned col, unsigned rows)
{
    constexpr unsigned VEC = S::VEC;
    T *out = s.p.result + (matrix * s.M + row) * s.N + col;

#pragma unroll
    for (unsigned i = 0; i < S::TM; i++) {
#pragma unroll
        for (unsigned j = 0; j < S::TN / VEC; j++) {
            unsigned at = j * LANES_N * VEC;
            pack<T, VEC> value;
            if (i * LANES_M >= rows || col + at >= s.N)
                continue;
#pragma unroll
            for (unsigned e = 0; e < VEC; e++) {
                T sum_of = acc[i][j * VEC + e];
                value.x[e] = WITH_C
                                 ? gm_finished(s.p, matrix, row + i * LANES_M, col + at + e, sum_of)
                                 : s.p.alpha * sum_of;
            }
            *(pack<T, VEC> *)(out + at) = value;
        }
        out += LANES_M * s.N;
    }
}

template <typename S>
static __global__ void __launch_bounds__(GM_WARP *S::WARPS, S::AT_LEAST / S::WARPS)
    matmul_batched(batched_product<typename S::type> s, uint64_t first_block)
{
    using T = typename S::type;
    constexpr unsigned PER_VEC = 16 / sizeof(T);
    T *shared = gm_dynamic_shared<T>();
    uint64_t matrix = (first_block + blockIdx.x) * s.c.many;
    unsigned there = s.p.batch - matrix < s.c.many ? (unsigned)(s.p.batch - matrix) : s.c.many;
    unsigned row = blockIdx.y * s.c.BM, rows = min(s.M - row, s.c.BM);
    T *k_tile = shared + s.c.room_a;
    unsigned lane = threadIdx.x % GM_WARP, warp = threadIdx.x / GM_WARP;
    unsigned g = warp / (s.c.down * s.c.across), part = warp - g * (s.c.down * s.c.across);
    unsigned down = part / s.c.across, across = part - down * s.c.across;
    unsigned y = down * (LANES_M * S::TM) + lane / LANES_N;
    unsigned x = across * (LANES_N * S::TN) + lane % LANES_N * S::VEC;
    unsigned mine = min(g, there - 1); /* warps beyond the last matrix compute what nobody stores */
    unsigned from_a[S::TM], half = 0, begin_a = 0, misaligned = 0;
    T acc[S::TM][S::TN] = {};

    if (s.K > 0) {
        unsigned used = s.c.many * s.c.BK * s.N;
        if (s.p.b.col == 1)
            used = ((unsigned)gm_ceil_div(used, PER_VEC) + 1) * PER_VEC;
        for (unsigned i = used + threadIdx.x; i < s.c.room_b; i += blockDim.x) {
            k_tile[i] = 0; /* lanes beyond the last column read this */
            if (s.c.BK < s.K)
                k_tile[s.c.room_b + i] = 0;
        }
        begin_a = load_a(shared, s, matrix, there, row, rows);
        misaligned = load_b(k_tile, s, matrix, there, 0);
    }
#pragma unroll
    for (unsigned i = 0; i < S::TM; i++)
        from_a[i] = begin_a + (mine * rows + min(y + LANES_M * i, rows - 1)) * s.c.lda;
    for (unsigned first = 0; first < s.K; first += s.c.BK) {
        unsigned from_b = half * s.c.room_b + misaligned + mine * s.c.BK * s.N + x;
        __pipeline_commit();
        __pipeline_wait_prior(0);
        __syncthreads();
        half ^= 1;
        if (s.K - first > s.c.BK)
            misaligned = load_b(k_tile + half * s.c.room_b, s, matrix, there, first + s.c.BK);
        unsigned steps = min(s.c.BK, s.K - first);
        const T *a = shared + first, *b = k_tile + from_b;
        if (s.c.steps == 16 / sizeof(T))
            add_steps<S, 16 / sizeof(T)>(acc, a, from_a, b, steps, s.N);
        else if (s.c.steps == 2)
            add_steps<S, 2>(acc, a, from_a, b, steps, s.N);
        else
            add_steps<S, 1>(acc, a, from_a, b, steps, s.N);
    }
    if (g >= there || y >= rows)
        return;
    if (s.p.c.data)
        store<S, true>(acc, s, matrix + g, row + y, x, rows - y);
    else
        store<S, false>(acc, s, matrix + g, row + y, x, rows - y);
}

GM_ROW_FUNCTION enum gm_status gm_matmul_batched_accepts(const struct gm_op *op,
                                                         const struct gm_device_facts *facts,
                                                         struct gm_error *err)
{
    uint64_t m = gm_op_m(op), n = gm_op_n(op), k = gm_op_k(op);
    bool fits = gm_matrix_elements(&op->result) == 0;

    if (facts->gpu && op->operand[0].batch > 1 && op->operand[1].batch > 1 &&
        m <= BATCHED_SIDE_MAX && n <= BATCHED_SIDE_MAX && k <= BATCHED_SIDE_MAX)
        (void)gm_by_float_type(op->result.dtype, [&](auto tag) {
            using T = typename decltype(tag)::type;
            fits |= candidates_of<T>::choose(gm_product_of<T>(op), facts->gpu,
                                             [](auto, const struct batched_config &) {})
                        .cost < HUGE_VAL;
            return GM_OK;
        });
    if (fits)
        return GM_OK;
    return gm_fail(err, GM_KERNEL_UNAVAILABLE,
                   "kernel \"batched\" takes stacks of matrices so small that some rows of a and a "
                   "k-tile of b "
                   "fit in a block's shared memory, and these are %llu x %llu x %llu, in stacks of "
                   "%llu and %llu",
                   (unsigned long long)m, (unsigned long long)k, (unsigned long long)n,
                   (unsigned long long)op->operand[0].batch,
                   (unsigned long long)op->operand[1].batch);
}

GM_KERNEL(matmul_batched)
{
    return gm_by_float_type(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        gm_product<T> p = gm_product_of<T>(op);
        enum gm_status status = GM_KERNEL_UNAVAILABLE; /* `accepts` rules it out */

        (void)candidates_of<T>::choose(
            p, gm_gpu_of(exec), [&](auto thread_tile, const struct batched_config &c) {
                unsigned m = (unsigned)p.M, n = (unsigned)p.N, k = (unsigned)p.K;
                batched_product<T> s = {
                    p, c, m, n, k, short_divisor(k), short_divisor(c.BM), short_divisor(c.BK)};
                unsigned warps = c.many * c.down * c.across;
                status =
                    gm_launches(gm_ceil_div(p.batch, c.many), GM_GRID_X_MAX,
                                [&](uint64_t first, uint64_t blocks) {
                                    return gm_launch(exec, matmul_batched<decltype(thread_tile)>,
                                                     dim3((unsigned)blocks, c.tiles),
                                                     dim3(GM_WARP * warps), c.bytes, s, first);
                                });
            });
        return status;
    });
}
