/*
 * elementwise.cu - interprets programs (kernels/graph.h): chains of operations in one pass.
 *
 * It is not a variant: the steps of an expression are programs. A thread keeps 16 numbers in
 * registers (8 of 8 bytes), as the accumulator of the program. All threads take the same branch at
 * each instruction, so that one fetch and one jump serve all of them. Inputs are loaded where they
 * are used, by vectors of 4 elements: 16 bytes each for f32.
 *
 * Cost: each input is read once and the result is written once, 16 sectors a request for f32. An
 * instruction takes some 35 issue slots of a warp for its 512 numbers.
 * When it wins: over single operations, which move each intermediate result twice.
 * Source: numexpr, which interprets blocks that fit in a CPU's cache, in the same way.
 */
#include "kernels/cuda/elementwise/evaluate.inc"

#define THREADS 256u
#define V GM_PROGRAM_VECTOR
#define STEP (V * THREADS) /* from a thread's vector to its next */

/* Numbers of a thread: registers hold two sets of them. */
template <typename T> constexpr unsigned numbers_of = sizeof(T) == 4 ? 16 : 8;

/* Loads the numbers of an input: x[v * V + e] is element at + v * STEP + e, while that is before
 * the end. */
template <typename I, typename T>
__device__ __forceinline__ void load_input(const gm_device_program<T> &p, const gm_device_input &in,
                                           uint64_t at, T *x)
{
    constexpr unsigned N = numbers_of<T>;
    const bool whole = at + (N / V - 1) * STEP + V <= p.count;

    gm_by_number<T>(in.dtype, [&](auto tag) {
        using E = typename decltype(tag)::type;
        const E *data = (const E *)in.data;

        if (whole && in.reading == GM_READ_DENSE) {
#pragma unroll
            for (unsigned v = 0; v < N / V; v++)
                gm_load_numbers<T>(data + at + v * STEP, x + v * V);
            return;
        }
        if (whole && in.reading != GM_READ_ANY) {
#pragma unroll
            for (unsigned v = 0; v < N / V; v++) {
                const E *from = data + gm_index_of<I>(in, gm_place_of<I, T>(p, at + v * STEP));
                if (in.reading == GM_READ_ROW_VECTORS) {
                    gm_load_numbers<T>(from, x + v * V);
                    continue;
                }
                T one = gm_number_of<T>(*from);
#pragma unroll
                for (unsigned e = 0; e < V; e++)
                    x[v * V + e] = one;
            }
            return;
        }
        T slow[N]; /* in local memory: short code, and no registers for addresses */
#pragma unroll 1
        for (unsigned v = 0; v < N / V; v++)
#pragma unroll
            for (unsigned e = 0; e < V; e++) {
                uint64_t k = at + v * STEP + e;
                slow[v * V + e] =
                    k < p.count
                        ? gm_number_of<T>(data[in.reading == GM_READ_DENSE
                                                   ? (int64_t)k
                                                   : gm_index_of<I>(in, gm_place_of<I, T>(p, k))])
                        : (T)0;
            }
#pragma unroll
        for (unsigned e = 0; e < N; e++)
            x[e] = slow[e];
    });
}

/* Stores vectors where all are whole, else element by element. */
template <typename T>
__device__ __forceinline__ void store_result(const gm_device_program<T> &p, void *result,
                                             enum gm_dtype dtype, uint64_t at, const T *x)
{
    constexpr unsigned N = numbers_of<T>;

    if (at + (N / V - 1) * STEP + V <= p.count && gm_by_number<T>(dtype, [&](auto tag) {
            using E = typename decltype(tag)::type;
#pragma unroll
            for (unsigned v = 0; v < N / V; v++)
                gm_store_numbers<T>((E *)result + at + v * STEP, x + v * V);
        }))
        return;
    T slow[N];
#pragma unroll
    for (unsigned e = 0; e < N; e++)
        slow[e] = x[e];
#pragma unroll 1
    for (unsigned e = 0; e < N; e++)
        if (at + e / V * STEP + e % V < p.count)
            gm_store_number(result, dtype, at + e / V * STEP + e % V, slow[e]);
}

template <typename T, typename I>
static __global__ void __launch_bounds__(THREADS, sizeof(T) == 4 ? 4 : 3)
    elementwise(const __grid_constant__ gm_device_program<T> p, void *result, enum gm_dtype dtype,
                uint64_t first_block)
{
    constexpr unsigned N = numbers_of<T>;
    uint64_t at = (first_block + blockIdx.x) * (N * THREADS) + threadIdx.x * V;
    T x[N] = {};

    if (at >= p.count)
        return;
    gm_evaluate<N>(p, x, [&](const gm_device_input &in, T *y) { load_input<I, T>(p, in, at, y); });
    store_result<T>(p, result, dtype, at, x);
}

extern "C" enum gm_status GM_ENTRY(reduction)(const struct gm_program *p, struct gm_exec *exec);

extern "C" enum gm_status GM_ENTRY(elementwise)(const struct gm_program *p, struct gm_exec *exec)
{
    uint64_t count = gm_program_elements(p);

    if (p->reduction != GM_REDUCE_NONE)
        return GM_ENTRY(reduction)(p, exec);
    return gm_by_compute_type(p->compute_type, [&](auto tag) {
        using T = typename decltype(tag)::type;
        constexpr unsigned N = numbers_of<T>;
        gm_device_program<T> program = gm_device_program_of<T>(p);
        /* Positions of the last block may lie beyond the end, by less than a block. */
        bool small = program.is_near && count <= UINT32_MAX - THREADS * N;

        return gm_launches(
            gm_ceil_div(count, THREADS * N), GM_GRID_X_MAX, [&](uint64_t first, uint64_t blocks) {
                return small ? gm_launch(exec, elementwise<T, uint32_t>, dim3((unsigned)blocks),
                                         dim3(THREADS), 0, program, p->result, p->dtype, first)
                             : gm_launch(exec, elementwise<T, uint64_t>, dim3((unsigned)blocks),
                                         dim3(THREADS), 0, program, p->result, p->dtype, first);
            });
    });
}
