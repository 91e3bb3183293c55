/*
 * load_mode.h - how an operand gets into shared memory: as wide as its layout allows.
 */
#ifndef GM_KERNELS_CUDA_MATMUL_MULTISTAGE_LOAD_MODE_H
#define GM_KERNELS_CUDA_MATMUL_MULTISTAGE_LOAD_MODE_H

#include "kernels/cuda/lib/kernel.h"

/* Where rows in memory run as rows of the k-tile do: by 16 bytes, by 2 elements, or one by one.
 * Where k runs along the rows in memory: one by one, transposed on the way. ANY: the kernel finds
 * out at run time. */
enum gm_load_mode { GM_LOAD_VEC, GM_LOAD_VEC2, GM_LOAD_SCALAR, GM_LOAD_TRANSPOSED, GM_LOAD_ANY };

/* Elements that a load moves. */
template <typename T> static constexpr __host__ __device__ unsigned gm_load_width(gm_load_mode mode)
{
    return mode == GM_LOAD_VEC ? 16 / sizeof(T) : mode == GM_LOAD_VEC2 ? 2 : 1;
}

/* The mode of an operand: `stride` from one row of A (column of B) to the next, `stride_k` from one
 * step of k to the next. */
template <typename T>
static inline gm_load_mode gm_load_mode_of(const struct gm_view *view, uint64_t stride,
                                           uint64_t stride_k)
{
    const gm_load_mode widest[] = {GM_LOAD_VEC, GM_LOAD_VEC2};

    if (stride != 1)
        return GM_LOAD_TRANSPOSED;
    for (gm_load_mode mode : widest) {
        uint64_t width = gm_load_width<T>(mode);
        if (stride_k % width == 0 && view->batch % width == 0 &&
            (uintptr_t)view->data % (width * sizeof(T)) == 0)
            return mode;
    }
    return GM_LOAD_SCALAR;
}

/* Whether A and B share the kernel that loads both element by element, staged in registers
 * (loader.h): neither is transposed, and not both can be loaded by 16 bytes. */
static inline bool gm_both_scalar(gm_load_mode a, gm_load_mode b)
{
    return a != GM_LOAD_TRANSPOSED && b != GM_LOAD_TRANSPOSED &&
           (a != GM_LOAD_VEC || b != GM_LOAD_VEC);
}

/* fn(mode of A, mode of B) as types. SPECIALIZED: the commonest pairs have kernels of their own,
 * which take time to compile and save registers and branches. */
template <gm_load_mode MODE> struct gm_load_mode_tag {
    static constexpr gm_load_mode mode = MODE;
};
template <bool SPECIALIZED, typename F>
static inline enum gm_status gm_by_load_modes(gm_load_mode a, gm_load_mode b, F fn)
{
    if constexpr (SPECIALIZED) {
        if (a == GM_LOAD_TRANSPOSED && b == GM_LOAD_VEC)
            return fn(gm_load_mode_tag<GM_LOAD_TRANSPOSED>(), gm_load_mode_tag<GM_LOAD_VEC>());
        if (a == GM_LOAD_TRANSPOSED && b == GM_LOAD_VEC2)
            return fn(gm_load_mode_tag<GM_LOAD_TRANSPOSED>(), gm_load_mode_tag<GM_LOAD_VEC2>());
        if (a == GM_LOAD_TRANSPOSED && b == GM_LOAD_SCALAR)
            return fn(gm_load_mode_tag<GM_LOAD_TRANSPOSED>(), gm_load_mode_tag<GM_LOAD_SCALAR>());
        if (a == GM_LOAD_VEC && b == GM_LOAD_VEC)
            return fn(gm_load_mode_tag<GM_LOAD_VEC>(), gm_load_mode_tag<GM_LOAD_VEC>());
        if (a == GM_LOAD_TRANSPOSED && b == GM_LOAD_TRANSPOSED)
            return fn(gm_load_mode_tag<GM_LOAD_TRANSPOSED>(),
                      gm_load_mode_tag<GM_LOAD_TRANSPOSED>());
        if (a == GM_LOAD_SCALAR && b == GM_LOAD_SCALAR)
            return fn(gm_load_mode_tag<GM_LOAD_SCALAR>(), gm_load_mode_tag<GM_LOAD_SCALAR>());
    }
    return fn(gm_load_mode_tag<GM_LOAD_ANY>(), gm_load_mode_tag<GM_LOAD_ANY>());
}

#endif
