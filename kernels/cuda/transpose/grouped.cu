/*
 * grouped.cu - transposes matrices of many operations in one launch, where they are.
 *
 * One block transposes one tile through padded shared memory. It reads and writes whole vectors of
 * 16 bytes, in spans as long as the tile allows: over the link to the host's memory, short accesses
 * cost as much as long ones.
 *
 * Cost: each element crosses the link once each way.
 * When it wins: small matrices, whose launch and copies would take longer (choose/grouped.c).
 */
#include "kernels/cuda/lib/group.h"
#include "kernels/cuda/lib/region.h"

#define THREADS 256u

template <typename T> struct problem {
    const T *in;
    T *out;
    unsigned rows, cols, across, tiles; /* tiles of a row, and of a matrix */
    unsigned count;                     /* elements of all matrices */
};

/* Rows of a tile have at least 128 bytes, and a tile at most 17 KB. */
template <typename T> constexpr unsigned TILE = sizeof(T) == 1 ? 128 : sizeof(T) >= 8 ? 32 : 64;

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    transpose_grouped(const __grid_constant__ gm_group<problem<T>> group)
{
    constexpr unsigned SIDE = TILE<T>, V = gm_per_vec<T, 16>::count;
    constexpr unsigned APART = sizeof(T) < 4 ? 4 / sizeof(T) : 1; /* a word: no bank conflicts */
    __shared__ T tile[SIDE][SIDE + APART];
    __shared__ gm_elements<T, 16> room[gm_region_room(SIDE, SIDE, V)];

    gm_group_each(group, [&](const problem<T> &p, unsigned index) {
        unsigned matrix = index / p.tiles, at = index - matrix * p.tiles;
        unsigned row = at / p.across * SIDE, col = at % p.across * SIDE;
        unsigned rows = min(SIDE, p.rows - row), cols = min(SIDE, p.cols - col);
        unsigned first = matrix * p.rows * p.cols, begin = first + row * p.cols + col;
        gm_region<const T> from(p.in + begin, rows, cols, p.cols, p.count - begin);
        gm_region<T> to(p.out + first + col * p.rows + row, cols, rows, p.rows);

        gm_region_fetch(from, threadIdx.x, THREADS, room);
        __pipeline_wait_prior(0);
        gm_region_put(
            from, threadIdx.x, THREADS, room,
            [&](unsigned y, unsigned x, const gm_elements<T, 16> &elements) {
#pragma unroll
                for (unsigned e = 0; e < V; e++)
                    tile[y][x + e] = elements.element[e];
            },
            [&](unsigned y, unsigned x, T element) { tile[y][x] = element; });
        __syncthreads();
        gm_region_store(
            to, threadIdx.x, THREADS,
            [&](unsigned y, unsigned x) {
                gm_elements<T, 16> elements;
#pragma unroll
                for (unsigned e = 0; e < V; e++)
                    elements.element[e] = tile[x + e][y];
                return elements;
            },
            [&](unsigned y, unsigned x) { return tile[x][y]; });
    });
}

GM_KERNEL(transpose_grouped)
{
    return gm_by_size(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;

        return gm_group_launch(
            op, exec, transpose_grouped<T>, THREADS, TILE<T> * TILE<T> * sizeof(T), 0,
            [](const struct gm_op *each, problem<T> *ret) {
                const struct gm_matrix *a = &each->operand[0];
                unsigned across = (unsigned)gm_ceil_div(a->cols, TILE<T>);
                unsigned tiles = across * (unsigned)gm_ceil_div(a->rows, TILE<T>);
                *ret = {gm_in<T>(each, 0),
                        gm_out<T>(each),
                        (unsigned)a->rows,
                        (unsigned)a->cols,
                        across,
                        tiles,
                        (unsigned)gm_matrix_elements(a)};
                return (unsigned)a->batch * tiles;
            });
    });
}
