/*
 * vectorized.cu - reverses each row 16 bytes at a time, in registers, without shared memory.
 *
 * The difference to flip_shared: the result is one long row of vectors, one a thread. A vector's
 * elements come from the 16 bytes at the mirror place, which begin anywhere: an unaligned load
 * (vec.h), then a reversal in registers. The L1 cache has what a neighbour loads too. A
 * vector that begins in one row and ends in the next has two such loads, merged by a mask. Rows
 * shorter than a vector are fetched element by element.
 *
 * Cost: two loads of 16 or 17 sectors a request and a store of 16, for 512 bytes. Memory sees each
 * sector once.
 *
 * When it wins: against shared beyond some 2^18 elements. Short rows of 1-byte elements are
 * limited by instructions.
 */
#include "kernels/cuda/lib/vec.h"

#define THREADS 128u

/* The elements of a vector in reverse. */
template <typename T> __device__ __forceinline__ gm_vec<16> reversed(const gm_vec<16> &vec)
{
    constexpr unsigned EACH =
        sizeof(T) / 4 > 0 ? sizeof(T) / 4 : 1; /* words that stay as they are */
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

/* What ends with `last`, reversed. */
template <typename T> __device__ __forceinline__ gm_vec<16> backwards(const T *last)
{
    const T *first = last - (gm_per_vec<T, 16>::count - 1);

    return reversed<T>(
        gm_unaligned_vec<T>(gm_load_vec_pair<16>(first), gm_misalignment<16>(first)));
}

/* The first `bytes` of one, the others of the other. */
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

/* x % d, which for numbers of 32 bits is much faster when they say so. */
__device__ __forceinline__ uint64_t modulo(uint64_t x, uint64_t d, bool small)
{
    return small ? (uint32_t)x % (uint32_t)d : x % d;
}

/* Iterates backwards through rows, one after the other. */
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
    uint64_t row = at - col; /* where it begins */
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
        /* A vector that crosses into the next row has a second stretch, which ends as many elements
         * after that row as the first gives. All vectors touched must lie within the operand. */
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
