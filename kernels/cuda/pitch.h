/*
 * pitch.h - operands copied so that a slab's rows lie side by side and begin where 16 bytes do.
 *
 * From copied rows slabs are filled by 16 bytes an asynchronous copy, instead of by 8 or by
 * elements (ways.h). The pass reads and writes the operand once, and turns it where k is along its
 * rows; the product reads it once for each of its tiles in the other direction. It counts as the
 * kernel, not as preparing: an event between the two would keep them from overlapping.
 */
#ifndef GM_KERNELS_CUDA_PITCH_H
#define GM_KERNELS_CUDA_PITCH_H

#include "kernels/cuda/cut.h"
#include "kernels/cuda/tiles.h"
#include "kernels/cuda/ways.h"

#define GM_PITCH_THREADS 256u
#define GM_PITCH_TILE 32u /* rows and columns of what a block turns */

/* An operand that is copied: `matrices`, each of `steps` rows (one a step of k) of `span` elements
 * side by side; in the copy rows are `pitch` elements apart. */
struct gm_pitch {
    uint64_t matrices, steps, span, pitch;
};

/* The way of an operand (ways.h) by its strides alone, which are known before its data is. */
template <typename T>
static inline gm_way gm_unpitched_way(const struct gm_view *view, uint64_t stride,
                                      uint64_t stride_k)
{
    struct gm_view aligned = {nullptr, view->batch, view->row, view->col};

    return gm_way_of<T>(&aligned, stride, stride_k);
}

template <typename T>
static inline gm_pitch gm_pitch_of(const struct gm_view *view, uint64_t batch, uint64_t steps,
                                   uint64_t span)
{
    const uint64_t vector = 16 / sizeof(T);

    return {view->batch ? batch : 1, steps, span, gm_ceil_div(span, vector) * vector};
}

#include "kernels/cuda/pitch.inc"

/* Copies the operand to `to`, of p's size, and points the view there. dependent: what was launched
 * before is the copy of another operand. */
template <typename T>
static inline enum gm_status gm_pitch_operand(struct gm_exec *exec, bool dependent,
                                              const gm_pitch &p, void *to, struct gm_view *view,
                                              uint64_t *stride, uint64_t *stride_k)
{
    const uint64_t vectors = p.pitch * sizeof(T) / 16;
    const dim3 rows = gm_block_of_rows(p.steps, vectors, GM_PITCH_THREADS);
    const dim3 turn(GM_PITCH_TILE, GM_PITCH_THREADS / GM_PITCH_TILE);
    const T *from = (const T *)view->data;
    enum gm_status status;

    if (*stride == 1)
        status = gm_tiles(
            p.matrices, p.steps, vectors, rows.y, rows.x, [&](dim3 grid, gm_origin origin) {
                return gm_launch_dependent(exec, dependent, gm_pitched<T>, grid, rows, 0, from,
                                           (T *)to, p, view->batch, *stride_k, origin);
            });
    else
        status = gm_tiles(p.matrices, p.steps, p.pitch, GM_PITCH_TILE, GM_PITCH_TILE,
                          [&](dim3 grid, gm_origin origin) {
                              return gm_launch_dependent(exec, dependent, gm_pitched_turned<T>,
                                                         grid, turn, 0, from, (T *)to, p,
                                                         view->batch, *stride, *stride_k, origin);
                          });
    view->data = to;
    view->batch = view->batch ? p.steps * p.pitch : 0;
    *stride = 1;
    *stride_k = p.pitch;
    return status;
}

#endif
