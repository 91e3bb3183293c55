/*
 * flip_vectorized.cu - 16 bytes an access, each reversed in registers; no shared memory.
 *
 * The difference to flip_shared: the result is one long row of pieces of 16 bytes, one a thread,
 * whatever its rows are. The elements of a piece come from one stretch of 16 bytes, the mirror
 * place, which begins anywhere: so the one or two pieces that it lies in are loaded, joined, and
 * reversed in registers (join.h). What a neighbour has loaded too is in the L1 cache. A piece
 * that begins in one row and ends in the next has two such stretches, put together by a mask.
 *
 * Rows that are shorter than a piece have their elements fetched one by one: they lie in a few
 * sectors, which the L1 cache has.
 *
 * Cost: two loads of 16 or 17 sectors a request and a store of 16, for 512 bytes. Memory sees each
 * sector once, the L1 cache answers the rest.
 *
 * When it wins: against shared beyond some 2^18 elements, below which `auto` takes that. Of rows
 * shorter than a piece, those of 1 byte are limited by instructions.
 *
 * Source: this repository. That a warp may touch memory in any order: flip_shared.
 */
#include "kernels/cuda/join.h"

#define THREADS 128u

/* The elements of a piece in reverse. */
template <typename T> __device__ __forceinline__ gm_piece<16> reversed(const gm_piece<16> &piece)
{
    constexpr unsigned EACH =
        sizeof(T) / 4 > 0 ? sizeof(T) / 4 : 1; /* words that stay as they are */
    gm_piece<16> result;

#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
        uint32_t word = piece.word[(4 / EACH - 1 - i / EACH) * EACH + i % EACH];
        if constexpr (sizeof(T) == 1)
            word = __byte_perm(word, 0, 0x0123);
        if constexpr (sizeof(T) == 2)
            word = __byte_perm(word, 0, 0x1032);
        result.word[i] = word;
    }
    return result;
}

/* What ends with `last`, reversed. */
template <typename T> __device__ __forceinline__ gm_piece<16> backwards(const T *last)
{
    const T *first = last - (gm_in_piece<T, 16>::count - 1);

    return reversed<T>(gm_join<T>(gm_load_neighbours<16>(first), gm_skip<16>(first)));
}

/* The first `bytes` of one, the others of the other. */
__device__ __forceinline__ gm_piece<16> merged(const gm_piece<16> &one, const gm_piece<16> &other,
                                               unsigned bytes)
{
    gm_piece<16> result;

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

/* A walk backwards through rows, one after the other. */
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

/* NARROW: rows are shorter than a piece. */
template <typename T, bool NARROW>
static __global__ void __launch_bounds__(THREADS)
    flip_vectorized(const T *in, T *out, uint64_t count, uint64_t cols, uint64_t first_block)
{
    constexpr unsigned N = gm_in_piece<T, 16>::count;
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
            gm_put(out + at, elements.piece);
            return;
        }
    } else {
        /* A piece that crosses into the next row has a second stretch, which ends as many elements
         * after that row as the first gives. All pieces touched must lie within the operand. */
        bool crosses = col + N > cols;
        uint64_t furthest = crosses ? last + 2 * cols : last;
        if ((row > 0 || !crosses) && (furthest / N + 1) * N <= count) {
            gm_piece<16> piece = backwards(in + last);
            if (crosses)
                piece = merged(piece, backwards(in + furthest),
                               (unsigned)(cols - col) * (unsigned)sizeof(T));
            gm_put(out + at, piece);
            return;
        }
    }
#pragma unroll 1
    for (uint64_t i = at; i < at + N && i < count; i++)
        out[i] = next();
}

extern "C" enum gm_status GM_ENTRY(flip_vectorized)(const struct gm_op *op, struct gm_exec *exec)
{
    return gm_by_size(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        constexpr unsigned N = gm_in_piece<T, 16>::count;
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
