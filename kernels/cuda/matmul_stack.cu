/*
 * matmul_stack.cu - stacks of products of any small size: whole matrices in, whole matrices out.
 *
 * The difference to matmul_fitted: there tiles are powers of two, of which matrices of 33 or 65
 * fill a third, and rows that begin where 16 bytes do not come into shared memory by elements.
 * Matrices of a stack lie one after the other. So what a block needs of b is one run, which comes
 * by 16 bytes wherever it begins (unless it is read transposed), and what it computes is one run of
 * the result. A block takes as many matrices as give its warps work, or some rows of one that is
 * larger; then b comes in slabs of k, one of which is used while the next is on its way.
 *
 * A warp has 4 lanes down and 8 across, a lane every fourth row and every eighth column of the
 * warp's part: so a part can be any multiple of 8 columns, and lanes beside each other read
 * elements of b beside each other, wherever a row begins. Where rows of b are whole 8 or 16 bytes,
 * a lane has 2 or 4 neighbouring columns instead, and reads them at once. Rows of a that are whole
 * 16 bytes (or that are turned on the way) lie at a pitch, where a lane reads 16 bytes along k, and
 * four lanes' are in different banks; others stay the run that they are. Which cut takes least is
 * reckoned from the shape (stacked.h).
 *
 * Cost, elements of 4 bytes: a step of k reads shared memory once for each of a lane's columns (or
 * 2 or 4 of them) and once for each of its rows (or once in 2 or 4 steps), 1 wavefront where that
 * is one element and 2 where it is more, for rows x columns multiply-adds. Global memory: each
 * element once, but b once for each tile of rows.
 *
 * When it wins: stacks of many matrices up to some 100 rows and columns that our tiles do not
 * divide, or that are bound by memory.
 *
 * Source: this repository.
 */
#include "kernels/cuda/stacked.h"
#include "kernels/cuda/stacked_bring.h"
#include "kernels/cuda/stacked_choice.h"
#include "kernels/device_facts.h"

#define SIDE_MAX 4096u /* of a matrix: larger ones are work for many blocks */

/* Elements side by side, loaded or stored at once. */
template <typename T, unsigned N> struct alignas(N * sizeof(T)) few {
    T x[N];
};

/* The steps of a slab: row i of a is at a + from_a[i], of which AT_ONCE steps are read at once; b's
 * rows are at b, n apart. */
template <typename S, unsigned AT_ONCE, typename T>
static __device__ __forceinline__ void add_steps(T (&sum)[S::ROWS][S::COLS], const T *a,
                                                 const unsigned *from_a, const T *b, unsigned steps,
                                                 unsigned n)
{
    constexpr unsigned RUN = 16 / sizeof(T), BESIDE = S::SIDE_BY_SIDE;
    unsigned step = 0;

    auto add = [&](const T *left) {
        few<T, BESIDE> right[S::COLS / BESIDE];
#pragma unroll
        for (unsigned j = 0; j < S::COLS / BESIDE; j++)
            right[j] = *(const few<T, BESIDE> *)(b + LANES_ACROSS * BESIDE * j);
        b += n;
#pragma unroll
        for (unsigned i = 0; i < S::ROWS; i++) {
#pragma unroll
            for (unsigned j = 0; j < S::COLS; j++)
                sum[i][j] += left[i] * right[j / BESIDE].x[j % BESIDE];
        }
    };
    for (; step + RUN <= steps; step += RUN) {
        T left[RUN][S::ROWS];
#pragma unroll
        for (unsigned i = 0; i < S::ROWS; i++) {
#pragma unroll
            for (unsigned r = 0; r < RUN; r += AT_ONCE) {
                few<T, AT_ONCE> got = *(const few<T, AT_ONCE> *)(a + from_a[i] + step + r);
#pragma unroll
                for (unsigned e = 0; e < AT_ONCE; e++)
                    left[r + e][i] = got.x[e];
            }
        }
#pragma unroll
        for (unsigned r = 0; r < RUN; r++)
            add(left[r]);
    }
    for (; step < steps; step++) {
        T left[S::ROWS];
#pragma unroll
        for (unsigned i = 0; i < S::ROWS; i++)
            left[i] = a[from_a[i] + step];
        add(left);
    }
}

/* The sums, finished, from (row, col) on. WITH_C: to which a part of c is added. */
template <typename S, bool WITH_C, typename T>
static __device__ __forceinline__ void store(const T (&sum)[S::ROWS][S::COLS], const stack<T> &s,
                                             uint64_t matrix, unsigned row, unsigned col,
                                             unsigned rows)
{
    constexpr unsigned BESIDE = S::SIDE_BY_SIDE;
    T *out = s.p.result + (matrix * s.m + row) * s.n + col;

#pragma unroll
    for (unsigned i = 0; i < S::ROWS; i++) {
#pragma unroll
        for (unsigned j = 0; j < S::COLS / BESIDE; j++) {
            unsigned at = j * LANES_ACROSS * BESIDE;
            few<T, BESIDE> value;
            if (i * LANES_DOWN >= rows || col + at >= s.n)
                continue;
#pragma unroll
            for (unsigned e = 0; e < BESIDE; e++) {
                T sum_of = sum[i][j * BESIDE + e];
                value.x[e] =
                    WITH_C ? gm_finished(s.p, matrix, row + i * LANES_DOWN, col + at + e, sum_of)
                           : s.p.alpha * sum_of;
            }
            *(few<T, BESIDE> *)(out + at) = value;
        }
        out += LANES_DOWN * s.n;
    }
}

template <typename S>
static __global__ void __launch_bounds__(GM_WARP *S::WARPS, S::AT_LEAST / S::WARPS)
    matmul_stack(stack<typename S::type> s, uint64_t first_block)
{
    using T = typename S::type;
    constexpr unsigned RUN = 16 / sizeof(T);
    T *shared = gm_dynamic_shared<T>();
    uint64_t matrix = (first_block + blockIdx.x) * s.c.many;
    unsigned there = s.p.batch - matrix < s.c.many ? (unsigned)(s.p.batch - matrix) : s.c.many;
    unsigned row = blockIdx.y * s.c.height, rows = min(s.m - row, s.c.height);
    T *slab = shared + s.c.elements_a;
    unsigned lane = threadIdx.x % GM_WARP, warp = threadIdx.x / GM_WARP;
    unsigned g = warp / (s.c.down * s.c.across), part = warp - g * (s.c.down * s.c.across);
    unsigned down = part / s.c.across, across = part - down * s.c.across;
    unsigned y = down * (LANES_DOWN * S::ROWS) + lane / LANES_ACROSS;
    unsigned x = across * (LANES_ACROSS * S::COLS) + lane % LANES_ACROSS * S::SIDE_BY_SIDE;
    unsigned mine = min(g, there - 1); /* warps beyond the last matrix add what nobody stores */
    unsigned from_a[S::ROWS], half = 0, begin_a = 0, skip = 0;
    T sum[S::ROWS][S::COLS] = {};

    if (s.k > 0) {
        unsigned used = s.c.many * s.c.depth * s.n;
        if (s.p.b.col == 1)
            used = ((unsigned)gm_ceil_div(used, RUN) + 1) * RUN;
        for (unsigned i = used + threadIdx.x; i < s.c.slab; i += blockDim.x) {
            slab[i] = 0; /* what lanes beyond the last column read */
            if (s.c.depth < s.k)
                slab[s.c.slab + i] = 0;
        }
        begin_a = bring_rows(shared, s, matrix, there, row, rows);
        skip = bring_slab(slab, s, matrix, there, 0);
    }
#pragma unroll
    for (unsigned i = 0; i < S::ROWS; i++)
        from_a[i] = begin_a + (mine * rows + min(y + LANES_DOWN * i, rows - 1)) * s.c.pitch;
    for (unsigned first = 0; first < s.k; first += s.c.depth) {
        unsigned from_b = half * s.c.slab + skip + mine * s.c.depth * s.n + x;
        __pipeline_commit();
        __pipeline_wait_prior(0);
        __syncthreads();
        half ^= 1;
        if (s.k - first > s.c.depth)
            skip = bring_slab(slab + half * s.c.slab, s, matrix, there, first + s.c.depth);
        unsigned steps = min(s.c.depth, s.k - first);
        const T *a = shared + first, *b = slab + from_b;
        if (s.c.steps == 16 / sizeof(T))
            add_steps<S, 16 / sizeof(T)>(sum, a, from_a, b, steps, s.n);
        else if (s.c.steps == 2)
            add_steps<S, 2>(sum, a, from_a, b, steps, s.n);
        else
            add_steps<S, 1>(sum, a, from_a, b, steps, s.n);
    }
    if (g >= there || y >= rows)
        return;
    if (s.p.c.data)
        store<S, true>(sum, s, matrix + g, row + y, x, rows - y);
    else
        store<S, false>(sum, s, matrix + g, row + y, x, rows - y);
}

GM_ROW_FUNCTION enum gm_status gm_matmul_stack_accepts(const struct gm_op *op,
                                                       const struct gm_device_facts *facts,
                                                       struct gm_error *err)
{
    uint64_t m = gm_op_m(op), n = gm_op_n(op), k = gm_op_k(op);
    bool fits = gm_matrix_elements(&op->result) == 0;

    if (facts->gpu && op->operand[0].batch > 1 && op->operand[1].batch > 1 && m <= SIDE_MAX &&
        n <= SIDE_MAX && k <= SIDE_MAX)
        (void)gm_by_float_type(op->result.dtype, [&](auto tag) {
            using T = typename decltype(tag)::type;
            fits |= offers_of<T>::choose(gm_product_of<T>(op), facts->gpu,
                                         [](auto, const struct part &) {})
                        .cost < HUGE_VAL;
            return GM_OK;
        });
    if (fits)
        return GM_OK;
    return gm_fail(err, GM_KERNEL_UNAVAILABLE,
                   "stack multiplies stacks by stacks, of matrices small enough for some rows of a "
                   "and a part of b to fit in a block's shared memory, and these are %llu x %llu x "
                   "%llu, in stacks of %llu and %llu",
                   (unsigned long long)m, (unsigned long long)k, (unsigned long long)n,
                   (unsigned long long)op->operand[0].batch,
                   (unsigned long long)op->operand[1].batch);
}

extern "C" enum gm_status GM_ENTRY(matmul_stack)(const struct gm_op *op, struct gm_exec *exec)
{
    return gm_by_float_type(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        gm_product<T> p = gm_product_of<T>(op);
        enum gm_status status = GM_KERNEL_UNAVAILABLE; /* not if `accepts` was asked */

        (void)offers_of<T>::choose(p, gm_gpu_of(exec), [&](auto sums, const struct part &c) {
            unsigned m = (unsigned)p.m, n = (unsigned)p.n, k = (unsigned)p.k;
            stack<T> s = {
                p, c, m, n, k, short_divisor(k), short_divisor(c.height), short_divisor(c.depth)};
            unsigned warps = c.many * c.down * c.across;
            status = gm_launches(gm_ceil_div(p.batch, c.many), GM_GRID_X_MAX,
                                 [&](uint64_t first, uint64_t blocks) {
                                     return gm_launch(exec, matmul_stack<decltype(sums)>,
                                                      dim3((unsigned)blocks, c.tiles),
                                                      dim3(GM_WARP * warps), c.bytes, s, first);
                                 });
        });
        return status;
    });
}
