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
    bool is_stack;
    bool is_near; /* indices of all inputs have 32 bits */
    uint64_t count, rows, cols;
    struct gm_divisor by_rows, by_cols;
    uint64_t instruction[GM_PROGRAM_CODE_MAX]; /* see gm_word_of */
    T constant[GM_PROGRAM_CONSTANTS_MAX];
    gm_device_input input[GM_PROGRAM_INPUTS_MAX];
};

/*
 * Instructions are words, which a thread loads at once. The code of one that fetches no numbers has
 * GM_ALONE added: it has one operand, or a constant, which is then in no register of its own.
 */
#define GM_ALONE 32u

__host__ __device__ static inline unsigned gm_code_of(uint64_t word)
{
    return (unsigned)word & 255;
}
__host__ __device__ static inline unsigned gm_narrow_in(uint64_t word)
{
    return (unsigned)word >> 8 & 255;
}
__host__ __device__ static inline unsigned gm_from_in(uint64_t word)
{
    return (unsigned)word >> 16 & 255;
}
__host__ __device__ static inline unsigned gm_index_in(uint64_t word)
{
    return (unsigned)word >> 24;
}
__host__ __device__ static inline unsigned gm_from_z_in(uint64_t word)
{
    return (unsigned)(word >> 32) & 255;
}
__host__ __device__ static inline unsigned gm_index_z_in(uint64_t word)
{
    return (unsigned)(word >> 40) & 255;
}

/* Host. */
static inline uint64_t gm_word_of(const struct gm_instruction *in)
{
    unsigned kind = in->kind;
    bool heavy = kind == GM_DO_DIV || kind == GM_DO_RDIV || kind == GM_DO_POW ||
                 kind == GM_DO_RPOW || kind == GM_DO_WHERE;
    bool fetches = kind <= GM_DO_WHERE && kind != GM_DO_STORE;
    bool alone = !fetches || (in->from == GM_FROM_CONSTANT && !heavy);

    return (kind + (alone ? GM_ALONE : 0)) | (uint64_t)in->narrow << 8 | (uint64_t)in->from << 16 |
           (uint64_t)in->index << 24 | (uint64_t)in->from_z << 32 | (uint64_t)in->index_z << 40;
}

/* Whether a program computes in integers. */
template <typename T> constexpr bool gm_is_whole = std::is_integral<T>::value;

#include "kernels/cuda/elementwise/elements.inc"

/* ---- Where elements are. ---- */

template <typename I> struct gm_program_place {
    I matrix, row, col;
};

/* I: a 32-bit type if positions fit and the inputs are near, as 64-bit divisions and products take
 * many instructions. */
template <typename I, typename T>
__device__ __forceinline__ gm_program_place<I> gm_place_of(const gm_device_program<T> &p,
                                                           uint64_t at)
{
    I row, matrix;

    if constexpr (sizeof(I) == 4) {
        row = gm_divide((unsigned)at, p.by_cols);
        matrix = p.is_stack ? gm_divide(row, p.by_rows) : 0;
    } else {
        row = at / p.cols;
        matrix = row / p.rows;
    }
    return {matrix, row - matrix * (I)p.rows, (I)at - row * (I)p.cols};
}

/* Sums of unsigned products wrap to the signed ones. */
template <typename I>
__device__ __forceinline__ int64_t gm_index_of(const gm_device_input &in,
                                               const gm_program_place<I> &place)
{
    return (int64_t)(typename std::make_signed<I>::type)(
        place.matrix * (I)in.batch + place.row * (I)in.row + place.col * (I)in.col);
}

/* Host: how far an input's elements are from its first, at most. */
static inline double gm_reach(const struct gm_program *p, const struct gm_program_input *in)
{
    return fabs((double)in->batch) * (double)p->batch + fabs((double)in->row) * (double)p->rows +
           fabs((double)in->col) * (double)p->cols;
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
    made.is_stack = p->batch > 1;
    made.is_near = true;
    made.by_rows = gm_divisor_of((unsigned)p->rows);
    made.by_cols = gm_divisor_of((unsigned)p->cols);
    for (unsigned i = 0; i < p->code; i++)
        made.instruction[i] = gm_word_of(&p->instruction[i]);
    for (unsigned i = 0; i < p->constants; i++)
        made.constant[i] = gm_is_whole<T> ? (T)p->constant[i].integer : (T)p->constant[i].real;
    for (unsigned i = 0; i < p->inputs; i++) {
        const struct gm_program_input *in = &p->input[i];
        made.input[i] = {in->data, in->batch, in->row, in->col, in->dtype, gm_reading_of(p, in)};
        made.is_near = made.is_near && gm_reach(p, in) <= INT32_MAX;
    }
    return made;
}

#endif
