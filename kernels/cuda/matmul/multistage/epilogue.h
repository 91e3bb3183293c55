/*
 * epilogue.h - stores a finished tile from a block's accumulators to the result.
 *
 * If the result's rows are 16-byte aligned, each thread stores its own vectors. Otherwise a warp
 * first passes its rows through shared memory, so that its lanes store neighbours: direct stores
 * would fill only a small part of many sectors.
 *
 * Few instructions matter here: a block multiplies nothing while it stores, and large tiles leave
 * no other block on the multiprocessor. So addresses are steps from a pointer, and a bounds check
 * is one comparison.
 */
#ifndef GM_KERNELS_CUDA_MATMUL_MULTISTAGE_EPILOGUE_H
#define GM_KERNELS_CUDA_MATMUL_MULTISTAGE_EPILOGUE_H

#include "kernels/cuda/lib/vec.h"
#include "kernels/cuda/matmul/multistage/tile_config.h"

/* A warp tile of the result, and this lane's part of it: acc[i][j] belongs in the warp tile's
 * row y * VEC + down(i) and column x * VEC + across(j). TILE is a gm_tile. With VEC = 4, thread
 * tile 8 x 16 (gm_f32_128x256, drawn in tile_config.h):
 *
 *     i            0  1  2  3   4  5  6  7       j            0 .. 3   4 .. 7    8 .. 11   12 .. 15
 *     down(i)      0  1  2  3  32 33 34 35       across(j)    0 .. 3  16 .. 19  32 .. 35   48 .. 51
 */
template <typename TILE> struct gm_epilogue {
    using T = typename TILE::type;
    using S = gm_acc<T>;
    static constexpr unsigned VEC = TILE::VEC, TM = TILE::TM, TN = TILE::TN;

    uint64_t matrix, row, col; /* the warp tile's first element */
    unsigned x, y;             /* the lane's position in it, in vectors */

    static constexpr __device__ int down(unsigned i)
    {
        return (int)(i / VEC * VEC * TILE::LANES_M + i % VEC);
    }
    static constexpr __device__ int across(unsigned j)
    {
        return (int)(j / VEC * VEC * TILE::LANES_N + j % VEC);
    }
    /* Rows (columns) of the warp tile that exist from `from` on; 0 or less: none. */
    static __device__ __forceinline__ int left(uint64_t all, uint64_t begin, unsigned most,
                                               unsigned from)
    {
        uint64_t exist = begin < all ? all - begin : 0;
        return (int)(exist < most ? (unsigned)exist : most) - (int)from;
    }
    __device__ __forceinline__ int rows_left(const gm_product<T> &p, unsigned from) const
    {
        return left(p.M, row, TILE::WM, from);
    }
    __device__ __forceinline__ int cols_left(const gm_product<T> &p, unsigned from) const
    {
        return left(p.N, col, TILE::WN, from);
    }

    /* Adds beta * C, if there is a C. Returns the factor that the accumulators still need. */
    __device__ __forceinline__ S add_c(const gm_product<T> &p, S (&acc)[TM][TN]) const
    {
        if (!p.c.data)
            return p.alpha;
        int rows = rows_left(p, y * VEC), cols = cols_left(p, x * VEC);
        const T *c =
            gm_matrix_of<T>(p.c, matrix) + (row + y * VEC) * p.c.row + (col + x * VEC) * p.c.col;
#pragma unroll
        for (unsigned i = 0; i < TM; i++) {
#pragma unroll
            for (unsigned j = 0; j < TN; j++) {
                acc[i][j] *= p.alpha;
                if (down(i) < rows && across(j) < cols)
                    acc[i][j] += p.beta * c[down(i) * p.c.row + across(j) * p.c.col];
            }
        }
        return 1;
    }

    static __device__ __forceinline__ gm_vec<16> vector(S factor, const S *acc)
    {
        gm_elements<T, 16> elements;

#pragma unroll
        for (unsigned v = 0; v < VEC; v++)
            elements.element[v] = factor * acc[v];
        return elements.vec;
    }

    /* Stores straight from registers, 16 bytes a store. */
    __device__ __forceinline__ void store_direct(const gm_product<T> &p, S factor,
                                                 const S (&acc)[TM][TN], T *out) const
    {
        T *to = out + (row + y * VEC) * p.N + col + x * VEC;
        int rows = rows_left(p, y * VEC), cols = cols_left(p, x * VEC);
        int rows_of[TN / VEC];

#pragma unroll
        for (unsigned j = 0; j < TN; j += VEC)
            rows_of[j / VEC] = across(j) < cols ? rows : 0;
#pragma unroll
        for (unsigned i = 0; i < TM; i++) {
#pragma unroll
            for (unsigned j = 0; j < TN; j += VEC) {
                if (down(i) < rows_of[j / VEC])
                    gm_store_vec(to + across(j), vector(factor, &acc[i][j]));
            }
            if (i + 1 < TM)
                to += (uint64_t)(down(i + 1) - down(i)) * p.N;
        }
    }

    /*
     * Stores through shared memory, WIDTH elements a store, one row i of each lane's thread tile at
     * a time:
     *
     *     registers, row i                shared memory of the warp      result
     *     lane (y, x) writes vectors  ->  LANES_M rows of WN elements ->  the warp stores spans of
     *     at y, x * VEC + across(j)       and a padding of 4 VEC          32 * WIDTH neighbours
     *
     * `shared`: memory that no thread of the block uses any more.
     */
    template <unsigned WIDTH>
    __device__ __forceinline__ void store_through_shared(const gm_product<T> &p, S factor,
                                                         const S (&acc)[TM][TN], T *out,
                                                         S *shared) const
    {
        using vec = gm_vec<WIDTH * sizeof(T)>;
        constexpr unsigned WN = TILE::WN, LD = WN + 4 * VEC; /* two rows use nearly all banks */
        constexpr unsigned ROOM = TILE::LANES_M * LD;
        static_assert(ROOM * TILE::THREADS / GM_WARP <= TILE::STAGES * TILE::STAGE,
                      "the stages leave room for a row of each lane");
        constexpr unsigned SPAN = GM_WARP * WIDTH; /* of one store: part of a row, or rows */
        static_assert(SPAN % WN == 0 || WN % SPAN == 0,
                      "a store is whole rows, or a row whole stores");
        constexpr unsigned SPANS = SPAN < WN ? WN / SPAN : 1; /* per row */
        constexpr unsigned ROWS = SPAN < WN ? 1 : SPAN / WN;  /* per span */
        unsigned lane = threadIdx.x % GM_WARP;
        unsigned first = lane * WIDTH / WN, at = lane * WIDTH % WN;
        T *mine = (T *)shared + threadIdx.x / GM_WARP * ROOM, *from = mine + first * LD + at;
        T *to = out + (row + first * VEC) * p.N + col + at;
        int rows = rows_left(p, first * VEC), cols = cols_left(p, at);
        int rows_of[SPANS];

#pragma unroll
        for (unsigned s = 0; s < SPANS; s++)
            rows_of[s] = (int)(s * SPAN) < cols ? rows : 0;
#pragma unroll
        for (unsigned i = 0; i < TM; i++) {
            vec staged[TN / WIDTH];
#pragma unroll
            for (unsigned j = 0; j < TN; j += VEC)
                *(gm_vec<16> *)&mine[y * LD + x * VEC + across(j)] = vector(factor, &acc[i][j]);
            __syncwarp();
#pragma unroll
            for (unsigned s = 0; s < TN / WIDTH; s++)
                staged[s] = *(const vec *)(from + s / SPANS * ROWS * LD + s % SPANS * SPAN);
            __syncwarp();
            T *line = to;
#pragma unroll
            for (unsigned s = 0; s < TN / WIDTH; s++) {
                if (down(i) + (int)(s / SPANS * ROWS * VEC) < rows_of[s % SPANS])
                    gm_store_vec(line + s % SPANS * SPAN, staged[s]);
                if (s % SPANS == SPANS - 1)
                    line += ROWS * VEC * p.N;
            }
            if (i + 1 < TM)
                to += (uint64_t)(down(i + 1) - down(i)) * p.N;
        }
    }

    /* Stores the tile to `out`, with the widest stores to which its rows are aligned. */
    __device__ __forceinline__ void store(const gm_product<T> &p, S (&acc)[TM][TN], T *out,
                                          S *shared) const
    {
        constexpr unsigned PAIR = VEC > 2 ? 2 : 1; /* 1 if two elements already are a vector */
        S factor = add_c(p, acc);
        uint64_t begins = p.N | (uintptr_t)p.result / sizeof(*out);

        if (begins % VEC == 0) {
            store_direct(p, factor, acc, out);
        } else {
            __syncthreads(); /* all warps have read the last k-tile */
            if (PAIR > 1 && begins % PAIR == 0)
                store_through_shared<PAIR>(p, factor, acc, out, shared);
            else
                store_through_shared<1>(p, factor, acc, out, shared);
        }
    }
};

#endif
