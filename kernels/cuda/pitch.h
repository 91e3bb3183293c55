/*
 * pitch.h - operands whose rows begin anywhere, copied so that each begins where 16 bytes do.
 *
 * From copied rows slabs are filled by 16 bytes an asynchronous copy, instead of by 8 or by
 * elements (ways.h). The pass reads and writes the operand once; the product reads it once for each
 * of its tiles in the other direction.
 */
#ifndef GM_KERNELS_CUDA_PITCH_H
#define GM_KERNELS_CUDA_PITCH_H

#include "kernels/cuda/cut.h"
#include "kernels/cuda/tiles.h"
#include "kernels/cuda/ways.h"

#define GM_PITCH_THREADS 256u

/* An operand that is copied: `matrices`, each of `steps` rows (one a step of k) of `span` elements
 * side by side; in the copy rows are `pitch` elements apart. */
struct gm_pitch {
    uint64_t matrices, steps, span, pitch;
};

/* The elements that a copy of this operand (ways.h) moves at once, where these are side by side but
 * rows begin where 16 bytes do not; else 0: it wants no pitch. By its strides alone, which are
 * known before its data is. */
template <typename T>
static inline unsigned gm_wide_unpitched(const struct gm_view *view, uint64_t stride,
                                         uint64_t stride_k)
{
    struct gm_view aligned = {nullptr, view->batch, view->row, view->col};
    gm_way way = gm_way_of<T>(&aligned, stride, stride_k);

    return way == GM_WAY_ELEMENTS || way == GM_WAY_PAIRS ? gm_wide<T>(way) : 0;
}

template <typename T>
static inline gm_pitch gm_pitch_of(const struct gm_view *view, uint64_t batch, uint64_t steps,
                                   uint64_t span)
{
    const uint64_t vector = 16 / sizeof(T);

    return {view->batch ? batch : 1, steps, span, gm_pieces(span, vector) * vector};
}

/* A row's last 16 bytes are filled up with zeros. Where a second operand is copied too, its copy is
 * dependent, and waits for the first when it is done itself: the product waits for the second
 * alone. Neither tells at its beginning that the next may begin (README.md: measured, and slow). */
template <typename T>
static __global__ void __launch_bounds__(GM_PITCH_THREADS)
    gm_pitched(const T *in, T *out, gm_pitch p, uint64_t batch, uint64_t stride_k, gm_origin origin)
{
    constexpr unsigned VECTOR = 16 / sizeof(T);
    uint64_t matrix = origin.matrix + blockIdx.z;
    uint64_t step = origin.row + blockIdx.y * blockDim.y + threadIdx.y;
    uint64_t at = (origin.col + (uint64_t)blockIdx.x * blockDim.x + threadIdx.x) * VECTOR;
    gm_vector<T> vector;

    if (step < p.steps && at < p.pitch) {
#pragma unroll
        for (unsigned i = 0; i < VECTOR; i++)
            vector.x[i] = at + i < p.span ? in[matrix * batch + step * stride_k + at + i] : T(0);
        *(gm_vector<T> *)(out + (matrix * p.steps + step) * p.pitch + at) = vector;
    }
    gm_wait_for_primary();
}

/* Copies the operand to `to`, of p's size, and points the view there. dependent: what was launched
 * before is the copy of another operand. */
template <typename T>
static inline enum gm_status gm_pitch_operand(struct gm_exec *exec, bool dependent,
                                              const gm_pitch &p, void *to, struct gm_view *view,
                                              uint64_t *stride_k)
{
    uint64_t vectors = p.pitch * sizeof(T) / 16;
    dim3 block = gm_block_of_rows(p.steps, vectors, GM_PITCH_THREADS);
    enum gm_status status =
        gm_tiles(p.matrices, p.steps, vectors, block.y, block.x, [&](dim3 grid, gm_origin origin) {
            return gm_launch_dependent(exec, dependent, gm_pitched<T>, grid, block, 0,
                                       (const T *)view->data, (T *)to, p, view->batch, *stride_k,
                                       origin);
        });

    view->data = to;
    view->batch = view->batch ? p.steps * p.pitch : 0;
    *stride_k = p.pitch;
    return status;
}

#endif
