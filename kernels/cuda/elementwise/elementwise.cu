/*
 * elementwise.cu - interprets programs (kernels/graph.h): chains of operations in one pass.
 *
 * It is not a variant: the steps of an expression are programs. A thread keeps 8 numbers in
 * registers, as the accumulator of the program. All threads take the same branch at each
 * instruction, so that one fetch and one jump serve 8 numbers. Inputs are loaded where they are
 * used: two vectors of 4 elements a thread, 16 bytes each for f32.
 *
 * Cost: each input is read once and the result is written once, 16 sectors a request for f32. An
 * instruction takes some 60 issue slots of a warp for its 256 numbers.
 * When it wins: over single operations, which move each intermediate result twice.
 * Source: numexpr, which interprets blocks that fit in a CPU's cache, in the same way.
 */
#include "kernels/cuda/elementwise/evaluate.inc"

#define THREADS 256u
#define V GM_PROGRAM_VECTOR
#define VECTORS 2u      /* of a thread, a block's width apart */
#define N (V * VECTORS) /* numbers of a thread */

/* Loads the numbers of an input: x[v * V + e] is element at[v] + e, while that is before the end.
 */
template <typename I, typename T>
__device__ __forceinline__ void load_input(const gm_device_program<T> &p, const gm_device_input &in,
                                           const uint64_t at[VECTORS], T *x)
{
    gm_by_number<T>(in.dtype, [&](auto tag) {
        using E = typename decltype(tag)::type;
        const E *data = (const E *)in.data;

#pragma unroll
        for (unsigned v = 0; v < VECTORS; v++) {
            bool whole = at[v] + V <= p.count;
            gm_program_place place = {};
            if (in.reading != GM_READ_DENSE && at[v] < p.count)
                place = gm_place_of<I, T>(p, at[v]);
            if (whole && in.reading <= GM_READ_ROW_VECTORS) {
                int64_t first =
                    in.reading == GM_READ_DENSE ? (int64_t)at[v] : gm_index_of(in, place);
                gm_load_numbers<T>(data + first, x + v * V);
                continue;
            }
            T one = whole && in.reading == GM_READ_ROW_ONE
                        ? gm_number_of<T>(data[gm_index_of(in, place)])
                        : (T)0;
#pragma unroll
            for (unsigned e = 0; e < V; e++) {
                x[v * V + e] = one;
                if ((whole && in.reading == GM_READ_ROW_ONE) || at[v] + e >= p.count)
                    continue;
                x[v * V + e] =
                    gm_number_of<T>(data[in.reading == GM_READ_DENSE ? (int64_t)(at[v] + e)
                                                                     : gm_index_of(in, place)]);
                if (++place.col == p.cols) {
                    place.col = 0;
                    if (++place.row == p.rows) {
                        place.row = 0;
                        place.matrix++;
                    }
                }
            }
        }
    });
}

/* Stores whole vectors with one instruction, of f32, and the rest element by element. */
template <typename T>
__device__ __forceinline__ void store_result(const gm_device_program<T> &p, void *result,
                                             enum gm_dtype dtype, const uint64_t at[VECTORS],
                                             const T *x)
{
#pragma unroll
    for (unsigned v = 0; v < VECTORS; v++) {
        bool whole = at[v] + V <= p.count;
        if constexpr (sizeof(T) == 4) {
            if (whole && dtype == GM_F32) {
                gm_elements<float, 16> part;
#pragma unroll
                for (unsigned e = 0; e < V; e++)
                    part.element[e] = x[v * V + e];
                gm_store_vec((float *)result + at[v], part.vec);
                continue;
            }
        }
#pragma unroll
        for (unsigned e = 0; e < V; e++)
            if (at[v] + e < p.count)
                gm_store_number(result, dtype, at[v] + e, x[v * V + e]);
    }
}

template <typename T, typename I>
static __global__ void __launch_bounds__(THREADS, sizeof(T) == 4 ? 4 : 2)
    elementwise(const __grid_constant__ gm_device_program<T> p, void *result, enum gm_dtype dtype,
                uint64_t first_block)
{
    uint64_t at[VECTORS];
    T x[N] = {};

#pragma unroll
    for (unsigned v = 0; v < VECTORS; v++)
        at[v] = ((first_block + blockIdx.x) * (VECTORS * THREADS) + v * THREADS + threadIdx.x) * V;
    if (at[0] >= p.count)
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
    return gm_by_cell(p->cell, [&](auto tag) {
        using T = typename decltype(tag)::type;
        gm_device_program<T> program = gm_device_program_of<T>(p);

        return gm_launches(
            gm_ceil_div(count, THREADS * N), GM_GRID_X_MAX, [&](uint64_t first, uint64_t blocks) {
                /* Positions of the last block may lie beyond the end, by less than a block. */
                return count <= UINT32_MAX - THREADS * N
                           ? gm_launch(exec, elementwise<T, uint32_t>, dim3((unsigned)blocks),
                                       dim3(THREADS), 0, program, p->result, p->dtype, first)
                           : gm_launch(exec, elementwise<T, uint64_t>, dim3((unsigned)blocks),
                                       dim3(THREADS), 0, program, p->result, p->dtype, first);
            });
    });
}
