/*
 * program.h - the device's copy of a program (kernels/graph.h), and its elements in memory.
 */
#ifndef GM_KERNELS_CUDA_ELEMENTWISE_PROGRAM_H
#define GM_KERNELS_CUDA_ELEMENTWISE_PROGRAM_H

#include "kernels/cuda/lib/tiles.h"
#include "kernels/cuda/lib/vec.h"
#include "kernels/graph.h"

#include <math.h>
#include <type_traits>

#define GM_PROGRAM_VECTOR 4u /* elements of a vector */

/* How an input is read, best first: as the result lies; in vectors of a row; one element for all of
 * a vector; element by element. */
enum gm_reading { GM_READ_DENSE, GM_READ_ROW_VECTORS, GM_READ_ROW_ONE, GM_READ_ANY };

struct gm_device_input {
    const void *data;
    int64_t batch, row, col;
    enum gm_dtype dtype;
    enum gm_reading reading;
};

template <typename T> struct gm_device_program {
    unsigned code;
    bool places; /* some input is not dense */
    uint64_t count, rows, cols;
    struct gm_divisor by_rows, by_cols;
    struct gm_instruction instruction[GM_PROGRAM_CODE_MAX];
    T constant[GM_PROGRAM_CONSTANTS_MAX];
    gm_device_input input[GM_PROGRAM_INPUTS_MAX];
};

/* Whether a program computes in integers. */
template <typename T> constexpr bool gm_is_whole = std::is_integral<T>::value;

/* ---- Elements: from memory to numbers, and back. ---- */

template <typename T, typename E> __device__ __forceinline__ T gm_number_of(E x)
{
    return (T)x;
}
template <typename T> __device__ __forceinline__ T gm_number_of(gm_f16 x)
{
    return (T)gm_widen(x);
}
template <typename T> __device__ __forceinline__ T gm_number_of(gm_bf16 x)
{
    return (T)gm_widen(x);
}
template <typename T> __device__ __forceinline__ T gm_number_of(uint8_t x)
{
    return (T)(x != 0);
}

/* Calls fn(tag) of the element's type, of those that a program of T reads. */
template <typename T, typename F>
__device__ __forceinline__ void gm_by_number(enum gm_dtype dtype, F fn)
{
    if constexpr (sizeof(T) == 8) {
        if (dtype == GM_I32)
            fn(gm_tag<int32_t>());
        else if (dtype == GM_I64)
            fn(gm_tag<int64_t>());
    }
    if constexpr (!gm_is_whole<T>) {
        if (dtype == GM_F16)
            fn(gm_tag<gm_f16>());
        else if (dtype == GM_BF16)
            fn(gm_tag<gm_bf16>());
        else if (dtype == GM_F32)
            fn(gm_tag<float>());
    }
    if constexpr (!gm_is_whole<T> && sizeof(T) == 8) {
        if (dtype == GM_F64)
            fn(gm_tag<double>());
    }
    if (dtype == GM_BOOL)
        fn(gm_tag<uint8_t>());
}

/* The four elements at `at`, an address of whole vectors; at most 16 bytes a load. */
template <typename T, typename E> __device__ __forceinline__ void gm_load_numbers(const E *at, T *x)
{
    constexpr unsigned BYTES =
        sizeof(E) * GM_PROGRAM_VECTOR < 16 ? sizeof(E) * GM_PROGRAM_VECTOR : 16;
    constexpr unsigned M = BYTES / sizeof(E);

#pragma unroll
    for (unsigned k = 0; k < GM_PROGRAM_VECTOR; k += M) {
        gm_elements<E, BYTES> part;
        part.vec = *(const gm_vec<BYTES> *)(at + k);
#pragma unroll
        for (unsigned e = 0; e < M; e++)
            x[k + e] = gm_number_of<T>(part.element[e]);
    }
}

/* Writes element `at`. */
template <typename T>
__device__ __forceinline__ void gm_store_number(void *to, enum gm_dtype dtype, uint64_t at, T x)
{
    switch (dtype) {
    case GM_F16:
        ((gm_f16 *)to)[at] = gm_narrow<gm_f16>((float)x);
        break;
    case GM_BF16:
        ((gm_bf16 *)to)[at] = gm_narrow<gm_bf16>((float)x);
        break;
    case GM_F32:
        ((float *)to)[at] = (float)x;
        break;
    case GM_F64:
        ((double *)to)[at] = (double)x;
        break;
    case GM_I32:
        ((int32_t *)to)[at] = (int32_t)(uint32_t)(int64_t)x;
        break;
    case GM_I64:
        ((int64_t *)to)[at] = (int64_t)x;
        break;
    default:
        ((uint8_t *)to)[at] = x != 0;
    }
}

/* ---- Where elements are. ---- */

struct gm_program_place {
    uint64_t matrix, row, col;
};

/* I: a 32-bit type if positions fit, as 64-bit divisions take many instructions. */
template <typename I, typename T>
__device__ __forceinline__ gm_program_place gm_place_of(const gm_device_program<T> &p, uint64_t at)
{
    uint64_t row, matrix;

    if constexpr (sizeof(I) == 4) {
        row = gm_divide((unsigned)at, p.by_cols);
        matrix = gm_divide((unsigned)row, p.by_rows);
    } else {
        row = at / p.cols;
        matrix = row / p.rows;
    }
    return {matrix, row - matrix * p.rows, at - row * p.cols};
}

__device__ __forceinline__ int64_t gm_index_of(const gm_device_input &in,
                                               const gm_program_place &place)
{
    return (int64_t)place.matrix * in.batch + (int64_t)place.row * in.row +
           (int64_t)place.col * in.col;
}

/* Host: how to read an input. */
static inline enum gm_reading gm_reading_of(const struct gm_program *p,
                                            const struct gm_program_input *in)
{
    int64_t rows = (int64_t)p->rows, cols = (int64_t)p->cols, V = GM_PROGRAM_VECTOR;
    int64_t bytes = (int64_t)gm_dtype_size(in->dtype) * V;
    bool aligned = (int64_t)((uintptr_t)in->data % (uintptr_t)(bytes < 16 ? bytes : 16)) == 0;
    bool dense = (cols == 1 || in->col == 1) && (rows == 1 || in->row == cols) &&
                 (p->batch == 1 || in->batch == rows * cols);

    if (dense && aligned)
        return GM_READ_DENSE;
    if (cols % V == 0 && in->col == 1 && in->row % V == 0 && in->batch % V == 0 && aligned)
        return GM_READ_ROW_VECTORS;
    return cols % V == 0 && in->col == 0 ? GM_READ_ROW_ONE : GM_READ_ANY;
}

/* Host: makes the device's copy. */
template <typename T> static gm_device_program<T> gm_device_program_of(const struct gm_program *p)
{
    gm_device_program<T> made = {};

    made.code = p->code;
    made.count = gm_program_elements(p);
    made.rows = p->rows;
    made.cols = p->cols;
    made.by_rows = gm_divisor_of((unsigned)p->rows);
    made.by_cols = gm_divisor_of((unsigned)p->cols);
    for (unsigned i = 0; i < p->code; i++)
        made.instruction[i] = p->instruction[i];
    for (unsigned i = 0; i < p->constants; i++)
        made.constant[i] = gm_is_whole<T> ? (T)p->constant[i].integer : (T)p->constant[i].real;
    for (unsigned i = 0; i < p->inputs; i++) {
        const struct gm_program_input *in = &p->input[i];
        made.input[i] = {in->data, in->batch, in->row, in->col, in->dtype, gm_reading_of(p, in)};
        made.places = made.places || made.input[i].reading != GM_READ_DENSE;
    }
    return made;
}

#endif
