/*
 * epilogue.h - moves a finished tile from the registers that accumulated it into C.
 *
 * Where rows of C begin at 16 bytes, each thread stores its vectors. Elsewhere a warp first passes
 * its rows through shared memory, so that it stores neighbours: a thread's accumulators alone would
 * fill a small part of many sectors.
 *
 * Few instructions matter: a block multiplies nothing while it stores, and where its tile is large
 * no other block shares the multiprocessor. So places are steps from a pointer, and what is beyond
 * the edges is one comparison.
 */
#ifndef GM_KERNELS_CUDA_MATMUL_MULTISTAGE_EPILOGUE_H
#define GM_KERNELS_CUDA_MATMUL_MULTISTAGE_EPILOGUE_H

#include "kernels/cuda/lib/vec.h"
#include "kernels/cuda/matmul/multistage/tile_config.h"

/* A warp tile of C, and this lane's part of it: acc[i][j] belongs in the warp tile's row
 * y * VEC + down(i) and column x * VEC + across(j). TILE is a gm_tile. */
template <typename TILE> struct gm_epilogue {
    using T = typename TILE::type;
    using S = gm_acc<T>;
    static constexpr unsigned VEC = TILE::VEC, TM = TILE::TM, TN = TILE::TN;

    uint64_t matrix, row, col; /* where the warp tile begins */
    unsigned x, y;             /* the lane's place in it */

    static constexpr __device__ int down(unsigned i)
    {
        return (int)(i / VEC * VEC * TILE::LANES_M + i % VEC);
    }
    static constexpr __device__ int across(unsigned j)
    {
        return (int)(j / VEC * VEC * TILE::LANES_N + j % VEC);
    }
    /* How many of the warp tile's rows, or columns, C has from `from` on; 0 or less: none. */
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

    /* Adds beta c, if there is a c. Returns the factor of the accumulators that is still due. */
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

    /* From registers, 16 bytes a store. */
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
     * Through shared memory, WIDTH elements a store. Row i of every lane's thread tile at a time:
     *
     *     registers, row i                shared memory of the warp      C
     *     lane (y, x) writes vectors  ->  LANES_M rows of WN elements ->  the warp stores spans of
     *     at y, x * VEC + across(j)       and a padding of 4 VEC          32 * WIDTH neighbours
     *
     * `shared`: room that no thread of the block needs for anything else any more.
     */
    template <unsigned WIDTH>
    __device__ __forceinline__ void store_through_shared(const gm_product<T> &p, S factor,
                                                         const S (&acc)[TM][TN], T *out,
                                                         S *shared) const
    {
        using vec = gm_vec<WIDTH * sizeof(T)>;
        constexpr unsigned WN = TILE::WN, LD = WN + 4 * VEC; /* two rows, mostly all banks */
        constexpr unsigned ROOM = TILE::LANES_M * LD;
        static_assert(ROOM * TILE::THREADS / GM_WARP <= TILE::STAGES * TILE::STAGE,
                      "the stages leave room for a row of each lane");
        constexpr unsigned SPAN = GM_WARP * WIDTH; /* of one store: a part of a row, or rows */
        static_assert(SPAN % WN == 0 || WN % SPAN == 0,
                      "a store is whole rows, or a row whole stores");
        constexpr unsigned SPANS = SPAN < WN ? WN / SPAN : 1; /* of a row */
        constexpr unsigned ROWS = SPAN < WN ? 1 : SPAN / WN;  /* of a span */
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

    /* Stores the tile to `out`, by as many elements at once as its rows begin at multiples of. */
    __device__ __forceinline__ void store(const gm_product<T> &p, S (&acc)[TM][TN], T *out,
                                          S *shared) const
    {
        constexpr unsigned PAIR = VEC > 2 ? 2 : 1; /* else two elements are a vector */
        S factor = add_c(p, acc);
        uint64_t begins = p.N | (uintptr_t)p.result / sizeof(*out);

        if (begins % VEC == 0) {
            store_direct(p, factor, acc, out);
        } else {
            __syncthreads(); /* the last k-tile has been read */
            if (PAIR > 1 && begins % PAIR == 0)
                store_through_shared<PAIR>(p, factor, acc, out, shared);
            else
                store_through_shared<1>(p, factor, acc, out, shared);
        }
    }
};

#endif
