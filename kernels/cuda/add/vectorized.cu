/*
 * vectorized.cu - adds two matrices, 16 bytes of the result per thread.
 *
 * Unlike in add_direct, the result is one long row of vectors, one per thread. An operand with the
 * result's layout is loaded in the same vectors; so is an operand whose rows repeat, or lie
 * elsewhere, but are whole vectors. A column that repeats gives one element to all of a vector.
 * Everything else (odd rows that repeat, column-major) is loaded element by element, mostly from
 * the L1 cache. The load mode of each operand is chosen before the launch.
 *
 * Cost, without broadcasts: two loads and a store of 16 sectors a request: a quarter of direct's
 * requests for elements of 4 bytes.
 *
 * When it wins: always, except on a handful of elements, where it is as good. One vector a thread
 * beats several, and as many blocks as there is work beats a grid-stride loop (as in copy_vector).
 */
#include "kernels/cuda/add/sum.h"
#include "kernels/cuda/lib/vec.h"

#define THREADS 128u

/* The load mode of an operand, best first. */
enum reading { AS_RESULT, BY_VECTORS, ONE_ELEMENT, BY_ELEMENTS };

/* I: a 32-bit index type if positions fit, because 64-bit multiplications and divisions take
 * several instructions each, and would be the limit. */
template <typename I> struct operand {
    const void *data;
    I batch, row, col; /* strides */
    enum reading reading;
};

template <typename I> struct place {
    I at; /* in the result, as one long row */
    I matrix, row, col;
    unsigned length; /* elements left from there on, at most a vector */
};

template <typename T> using values = gm_elements<T, 16>;

template <typename T, typename I>
__device__ __forceinline__ values<T> read_elements(const operand<I> &operand, const T *from,
                                                   place<I> place, I rows, I cols)
{
    constexpr unsigned N = gm_per_vec<T, 16>::count;
    values<T> read = {};

    if (place.col + N <= cols) {
#pragma unroll
        for (unsigned e = 0; e < N; e++)
            read.element[e] = from[e * operand.col];
        return read;
    }
#pragma unroll
    for (unsigned e = 0; e < N; e++) {
        if (e < place.length)
            read.element[e] =
                ((const T *)operand.data)[place.matrix * operand.batch + place.row * operand.row +
                                          place.col * operand.col];
        if (++place.col == cols) {
            place.col = 0;
            if (++place.row == rows) {
                place.row = 0;
                place.matrix++;
            }
        }
    }
    return read;
}

template <typename T, typename I>
__device__ __forceinline__ const T *from_of(const operand<I> &operand, const place<I> &place)
{
    return (const T *)operand.data +
           (operand.reading == AS_RESULT
                ? place.at
                : place.matrix * operand.batch + place.row * operand.row + place.col * operand.col);
}

/* For the last, possibly partial vector, and for load modes for which the kernel has no branch: odd
 * rows that repeat, column-major operands. */
template <typename T, typename I>
__device__ __forceinline__ values<T> read_any(const operand<I> &operand, const place<I> &place,
                                              I rows, I cols)
{
    constexpr unsigned N = gm_per_vec<T, 16>::count;
    const T *from = from_of<T, I>(operand, place);
    values<T> read = {};

    if (operand.reading == BY_ELEMENTS)
        return read_elements<T, I>(operand, from, place, rows, cols);
    if (operand.reading <= BY_VECTORS && place.length == N) {
        read.vec = *(const gm_vec<16> *)from;
        return read;
    }
#pragma unroll
    for (unsigned e = 0; e < N; e++)
        if (e < place.length)
            read.element[e] = from[operand.reading == ONE_ELEMENT ? 0 : e];
    return read;
}

template <typename T>
__device__ __forceinline__ values<T> sum_of(const values<T> &left, const values<T> &right)
{
    values<T> sum;

#pragma unroll
    for (unsigned e = 0; e < gm_per_vec<T, 16>::count; e++)
        sum.element[e] = gm_store<T>(gm_load(left.element[e]) + gm_load(right.element[e]));
    return sum;
}

/* A's load mode is at least as good as B's. Two cases have their own branches, with both loads side
 * by side: vectors of both, and a vector of A with one element of B. If the loads were in branches
 * that merge again, each would be waited for where they merge. */
template <typename T, typename I>
static __global__ void __launch_bounds__(THREADS)
    add_vectorized(operand<I> a, operand<I> b, T *result, I batch, I rows, I cols, I first_block)
{
    constexpr unsigned N = gm_per_vec<T, 16>::count;
    I count = batch * rows * cols;
    place<I> place = {};

    place.at = ((first_block + blockIdx.x) * THREADS + threadIdx.x) * N;
    if (place.at >= count)
        return;
    place.length = count - place.at < N ? (unsigned)(count - place.at) : N;
    if (b.reading != AS_RESULT) {
        I row = place.at / cols; /* the row in all matrices */
        place.col = place.at - row * cols;
        place.matrix = batch == 1 ? 0 : row / rows;
        place.row = row - place.matrix * rows;
    }
    const T *from_a = from_of<T, I>(a, place), *from_b = from_of<T, I>(b, place);
    values<T> left, right;
    if (place.length == N && b.reading <= BY_VECTORS) {
        left.vec = *(const gm_vec<16> *)from_a;
        right.vec = *(const gm_vec<16> *)from_b;
        gm_store_vec(result + place.at, sum_of(left, right).vec);
    } else if (place.length == N && b.reading == ONE_ELEMENT && a.reading <= BY_VECTORS) {
        T element = *from_b;
        left.vec = *(const gm_vec<16> *)from_a;
#pragma unroll
        for (unsigned e = 0; e < N; e++)
            right.element[e] = element;
        gm_store_vec(result + place.at, sum_of(left, right).vec);
    } else {
        left = read_any<T, I>(a, place, rows, cols);
        right = read_any<T, I>(b, place, rows, cols);
        values<T> sum = sum_of(left, right);
        if (place.length == N)
            gm_store_vec(result + place.at, sum.vec);
#pragma unroll
        for (unsigned e = 0; e < N; e++)
            if (e < place.length && place.length < N)
                result[place.at + e] = sum.element[e];
    }
}

template <typename T>
static enum reading reading_of(const struct gm_view &view, const gm_addition<T> &sum)
{
    constexpr uint64_t N = gm_per_vec<T, 16>::count;
    bool in_row = sum.cols == 1 || view.col == 1, whole = sum.cols % N == 0;
    bool contiguous_rows = sum.rows == 1 || view.row == sum.cols;
    bool contiguous_matrices = sum.batch == 1 || view.batch == sum.rows * sum.cols;

    if (in_row && contiguous_rows && contiguous_matrices)
        return AS_RESULT;
    bool whole_rows = (sum.rows == 1 || view.row % N == 0) && view.batch % N == 0;
    if (whole && view.col == 1 && whole_rows)
        return BY_VECTORS;
    return whole && view.col == 0 ? ONE_ELEMENT : BY_ELEMENTS;
}

template <typename T, typename I>
static operand<I> operand_of(const struct gm_view &view, const gm_addition<T> &sum)
{
    return {view.data, (I)view.batch, (I)view.row, (I)view.col, reading_of(view, sum)};
}

template <typename T, typename I>
static enum gm_status add(const gm_addition<T> &sum, struct gm_exec *exec)
{
    uint64_t count = sum.batch * sum.rows * sum.cols;
    operand<I> a = operand_of<T, I>(sum.a, sum), b = operand_of<T, I>(sum.b, sum);

    if (a.reading > b.reading) { /* a sum is commutative */
        operand<I> other = a;
        a = b;
        b = other;
    }
    return gm_launches(gm_ceil_div(count, THREADS * gm_per_vec<T, 16>::count), GM_GRID_X_MAX,
                       [&](uint64_t first, uint64_t blocks) {
                           return gm_launch(exec, add_vectorized<T, I>, dim3((unsigned)blocks),
                                            dim3(THREADS), 0, a, b, sum.result, sum.batch, sum.rows,
                                            sum.cols, first);
                       });
}

GM_KERNEL(add_vectorized)
{
    return gm_by_type(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        gm_addition<T> sum = gm_addition_of<T>(op);

        /* Positions of the last block may lie beyond the result, by less than a block. */
        return sum.batch * sum.rows * sum.cols <= UINT32_MAX - THREADS * 16
                   ? add<T, uint32_t>(sum, exec)
                   : add<T, uint64_t>(sum, exec);
    });
}
