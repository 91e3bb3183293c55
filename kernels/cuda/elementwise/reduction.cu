/*
 * reduction.cu - sums up, averages or compares the values of a program along one dimension.
 *
 * It is not a variant: see elementwise.cu. The space is outer x along x inner elements. A block
 * takes some columns of `inner` and, for each, a part of `along`, whose rows its threads share:
 *
 *     lanes across:  inner columns, side by side: accesses are contiguous
 *     lanes down:    rows of the part; each adds up every DOWN-th row, then they are added in pairs
 *
 * Where the part is short, a block takes several outer indices. Parts follow from the shape
 * (gm_program_parts), so the bits do; a second launch reduces the parts' results. Numbers of f32
 * are summed up in f64.
 *
 * Cost: each input is read once, 4 sectors a request for f32.
 * Source: M. Harris, "Optimizing Parallel Reduction in CUDA", NVIDIA, 2007.
 */
#include "kernels/cuda/elementwise/evaluate.inc"

#define THREADS 256u
#define N 8u /* numbers of a thread at a time */

/* What numbers are summed up in. */
template <typename T>
using sum_of = typename std::conditional<gm_is_whole<T>, int64_t, double>::type;

struct reduction {
    enum gm_reduction kind;
    enum gm_dtype dtype; /* of the result */
    uint64_t outer, along, inner, parts, each;
    unsigned across, down, outers; /* lanes, of a block */
    uint64_t bands;                /* of columns, each `across` wide */
    double divisor;                /* of a mean */
    bool last;                     /* results are elements, not parts */
    void *result;
};

template <typename S> __device__ __forceinline__ S combined(enum gm_reduction kind, S a, S b)
{
    if (kind == GM_REDUCE_MAX)
        return gm_greater_number(a, b);
    if (kind == GM_REDUCE_MIN)
        return gm_lesser_number(a, b);
    if constexpr (gm_is_whole<S>)
        return (S)((uint64_t)a + (uint64_t)b);
    else
        return a + b;
}

template <typename T, typename I>
static __global__ void __launch_bounds__(THREADS, sizeof(T) == 4 ? 3 : 2)
    reduce(const __grid_constant__ gm_device_program<T> p, const __grid_constant__ reduction r,
           uint64_t first_block)
{
    __shared__ sum_of<T> sums[THREADS];
    __shared__ bool some[THREADS];
    unsigned lane = threadIdx.x;
    unsigned across = lane % r.across, down = lane / r.across % r.down;
    uint64_t block = first_block + blockIdx.x;
    uint64_t band = block % r.bands, part = block / r.bands % r.parts;
    uint64_t outer = block / r.bands / r.parts * r.outers + lane / (r.across * r.down);
    uint64_t col = band * r.across + across, row = part * r.each + down;
    uint64_t end = (part + 1) * r.each < r.along ? (part + 1) * r.each : r.along;
    bool is_there = outer < r.outer && col < r.inner, any = false;
    sum_of<T> sum = 0;

    for (; is_there && row < end; row += (uint64_t)N * r.down) {
        uint64_t base = (outer * r.along + row) * r.inner + col;
        const uint64_t next = (uint64_t)r.down * r.inner;
        const bool whole = row + (uint64_t)(N - 1) * r.down < end;
        T x[N] = {};
        gm_evaluate<N>(p, x, [&](const gm_device_input &in, T *y) {
            gm_by_number<T>(in.dtype, [&](auto tag) {
                using E = typename decltype(tag)::type;
                const E *data = (const E *)in.data;
                if (whole && in.reading == GM_READ_DENSE) {
                    E part[N];
#pragma unroll
                    for (unsigned e = 0; e < N; e++)
                        part[e] = data[base + e * next];
#pragma unroll
                    for (unsigned e = 0; e < N; e++)
                        y[e] = gm_number_of<T>(part[e]);
                    return;
                }
#pragma unroll
                for (unsigned e = 0; e < N; e++) {
                    uint64_t at = base + e * next;
                    y[e] = row + (uint64_t)e * r.down < end
                               ? gm_number_of<T>(
                                     data[in.reading == GM_READ_DENSE
                                              ? (int64_t)at
                                              : gm_index_of<I>(in, gm_place_of<I, T>(p, at))])
                               : (T)0;
                }
            });
        });
#pragma unroll
        for (unsigned e = 0; e < N; e++) {
            if (!whole && row + (uint64_t)e * r.down >= end)
                continue;
            sum = any ? combined<sum_of<T>>(r.kind, sum, (sum_of<T>)x[e]) : (sum_of<T>)x[e];
            any = true;
        }
    }
    sums[lane] = sum;
    some[lane] = any;
    for (unsigned half = r.down / 2; half > 0; half /= 2) {
        __syncthreads();
        unsigned other = lane + half * r.across;
        if (down < half && some[other])
            sums[lane] = combined<sum_of<T>>(r.kind, sums[lane], sums[other]);
    }
    if (!is_there || down > 0)
        return;
    sum = sums[lane];
    if (r.last && (r.kind == GM_REDUCE_SUM || r.kind == GM_REDUCE_MEAN))
        sum += (sum_of<T>)0; /* NumPy's sums begin with 0: none is -0.0 */
    if (r.last && r.kind == GM_REDUCE_MEAN)
        sum = (sum_of<T>)((double)sum / r.divisor);
    if (r.last)
        gm_store_number(r.result, r.dtype, outer * r.inner + col, sum);
    else
        ((sum_of<T> *)r.result)[(outer * r.parts + part) * r.inner + col] = sum;
}

static unsigned power_of_two(uint64_t least, unsigned most)
{
    unsigned power = 1;

    while (power < least && power < most)
        power *= 2;
    return power;
}

template <typename T>
static enum gm_status launch_reduce(const gm_device_program<T> &p, reduction r,
                                    struct gm_exec *exec)
{
    r.across = power_of_two(r.inner, 64);
    r.down = power_of_two(gm_ceil_div(r.each, N), THREADS / r.across);
    r.outers = THREADS / (r.across * r.down);
    r.bands = gm_ceil_div(r.inner, r.across);
    return gm_launches(gm_ceil_div(r.outer, r.outers) * r.parts * r.bands, GM_GRID_X_MAX,
                       [&](uint64_t first, uint64_t blocks) {
                           return p.is_near && p.count <= UINT32_MAX
                                      ? gm_launch(exec, reduce<T, uint32_t>, dim3((unsigned)blocks),
                                                  dim3(THREADS), 0, p, r, first)
                                      : gm_launch(exec, reduce<T, uint64_t>, dim3((unsigned)blocks),
                                                  dim3(THREADS), 0, p, r, first);
                       });
}

/* The results of the parts, as a program that reads them. */
template <typename S>
static enum gm_status reduce_parts(const struct gm_program *p, const reduction &of,
                                   struct gm_exec *exec)
{
    struct gm_program parts = {};
    reduction r = of;

    parts.batch = p->outer;
    parts.rows = of.parts;
    parts.cols = p->inner;
    parts.inputs = parts.code = 1;
    parts.instruction[0].kind = GM_DO_LOAD;
    parts.instruction[0].from = GM_FROM_INPUT;
    parts.input[0] = {p->scratch, (int64_t)(of.parts * p->inner), (int64_t)p->inner, 1,
                      gm_is_whole<S> ? GM_I64 : GM_F64};
    r.along = r.each = of.parts;
    r.parts = 1;
    r.last = true;
    r.result = p->result;
    return launch_reduce<S>(gm_device_program_of<S>(&parts), r, exec);
}

extern "C" enum gm_status GM_ENTRY(reduction)(const struct gm_program *p, struct gm_exec *exec);

extern "C" enum gm_status GM_ENTRY(reduction)(const struct gm_program *p, struct gm_exec *exec)
{
    struct gm_division parts = gm_program_parts(p);

    return gm_by_compute_type(p->compute_type, [&](auto tag) {
        using T = typename decltype(tag)::type;
        reduction r = {};

        r.kind = p->reduction;
        r.dtype = p->dtype;
        r.outer = p->outer;
        r.along = p->along;
        r.inner = p->inner;
        r.parts = parts.parts;
        r.each = parts.each;
        r.divisor = (double)p->along;
        r.last = parts.parts == 1;
        r.result = r.last ? p->result : p->scratch;
        enum gm_status status = launch_reduce<T>(gm_device_program_of<T>(p), r, exec);
        return status == GM_OK && !r.last ? reduce_parts<sum_of<T>>(p, r, exec) : status;
    });
}
