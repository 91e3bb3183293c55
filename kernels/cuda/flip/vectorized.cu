/*
 * vectorized.cu - reverses each row 16 bytes at a time, in registers, without shared memory.
 *
 * Unlike in flip_shared, the result is one long row of vectors, one per thread. A vector's elements
 * come from the 16 bytes at the mirrored position, which have any alignment: an unaligned vector
 * load (vec.h), then a reversal in registers. The L1 cache serves what a neighbour loads too. A
 * vector that crosses from one row into the next merges two such loads by a mask. Rows shorter than
 * a vector are loaded element by element.
 *
 * Cost: two loads of 16 or 17 sectors a request and a store of 16, for 512 bytes. Memory sees each
 * sector once.
 *
 * When it wins: against shared beyond some 2^18 elements. On short rows of 1-byte elements
 * instructions are the limit.
 */
#include "kernels/cuda/lib/vec.h"

#define THREADS 128u

/* The elements of a vector in reverse. */
template <typename T> __device__ __forceinline__ gm_vec<16> reversed(const gm_vec<16> &vec)
{
    constexpr unsigned EACH =
        sizeof(T) / 4 > 0 ? sizeof(T) / 4 : 1; /* words of an element, which keep their order */
    gm_vec<16> result;

#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
        uint32_t word = vec.word[(4 / EACH - 1 - i / EACH) * EACH + i % EACH];
        if constexpr (sizeof(T) == 1)
            word = __byte_perm(word, 0, 0x0123);
        if constexpr (sizeof(T) == 2)
            word = __byte_perm(word, 0, 0x1032);
        result.word[i] = word;
    }
    return result;
}

/* The vector that ends with element `last`, reversed. */
template <typename T> __device__ __forceinline__ gm_vec<16> backwards(const T *last)
{
    const T *first = last - (gm_per_vec<T, 16>::count - 1);

    return reversed<T>(
        gm_unaligned_vec<T>(gm_load_vec_pair<16>(first), gm_misalignment<16>(first)));
}

/* The first `bytes` bytes of one, the others of the other. */
__device__ __forceinline__ gm_vec<16> merged(const gm_vec<16> &one, const gm_vec<16> &other,
                                             unsigned bytes)
{
    gm_vec<16> result;

#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
        unsigned of_one = bytes > 4 * i ? bytes - 4 * i : 0;
        uint32_t mask = of_one >= 4 ? 0xFFFFFFFFu : (1u << 8 * of_one) - 1;
        result.word[i] = (one.word[i] & mask) | (other.word[i] & ~mask);
    }
    return result;
}

/* x % d; `small` says that both have 32 bits, for which it is much faster. */
__device__ __forceinline__ uint64_t modulo(uint64_t x, uint64_t d, bool small)
{
    return small ? (uint32_t)x % (uint32_t)d : x % d;
}

/* Iterates over consecutive rows, each backwards. */
template <typename T> struct backward {
    const T *at; /* the next */
    uint64_t col, cols;

    __device__ __forceinline__ T operator()()
    {
        T element = *at;
        if (++col < cols) {
            at--;
        } else {
            col = 0;
            at += 2 * cols - 1;
        }
        return element;
    }
};

/* NARROW: rows are shorter than a vector. */
template <typename T, bool NARROW>
static __global__ void __launch_bounds__(THREADS)
    flip_vectorized(const T *in, T *out, uint64_t count, uint64_t cols, uint64_t first_block)
{
    constexpr unsigned N = gm_per_vec<T, 16>::count;
    uint64_t at = ((first_block + blockIdx.x) * THREADS + threadIdx.x) * N;
    if (at >= count)
        return;

    uint64_t col = modulo(at, cols, count <= UINT32_MAX);
    uint64_t row = at - col; /* where the row begins */
    uint64_t last = row + cols - 1 - col;
    backward<T> next = {in + last, col, cols};
    if constexpr (NARROW) {
        if (at + N <= count) {
            gm_elements<T, 16> elements;
#pragma unroll
            for (unsigned e = 0; e < N; e++)
                elements.element[e] = next();
            gm_store_vec(out + at, elements.vec);
            return;
        }
    } else {
        /* A vector that crosses into the next row takes its other elements from the end of that
         * row, `furthest` being where a second load for them ends. Both loads must lie within the
         * operand. */
        bool crosses = col + N > cols;
        uint64_t furthest = crosses ? last + 2 * cols : last;
        if ((row > 0 || !crosses) && (furthest / N + 1) * N <= count) {
            gm_vec<16> vec = backwards(in + last);
            if (crosses)
                vec = merged(vec, backwards(in + furthest),
                             (unsigned)(cols - col) * (unsigned)sizeof(T));
            gm_store_vec(out + at, vec);
            return;
        }
    }
#pragma unroll 1
    for (uint64_t i = at; i < at + N && i < count; i++)
        out[i] = next();
}

GM_KERNEL(flip_vectorized)
{
    return gm_by_size(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        constexpr unsigned N = gm_per_vec<T, 16>::count;
        uint64_t count = gm_matrix_elements(&op->result), cols = op->result.cols;

        return gm_launches(
            gm_ceil_div(count, THREADS * N), GM_GRID_X_MAX, [&](uint64_t first, uint64_t blocks) {
                return gm_launch(exec,
                                 cols < N ? flip_vectorized<T, true> : flip_vectorized<T, false>,
                                 dim3((unsigned)blocks), dim3(THREADS), 0, gm_in<T>(op, 0),
                                 gm_out<T>(op), count, cols, first);
            });
    });
}
