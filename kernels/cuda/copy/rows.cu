/*
 * rows.cu - gathers rows that lie apart into the columns of a matrix, and scatters rows of a
 * result.
 *
 * It is not a variant. The CUDA backend runs it for products of one row by the same matrix, which
 * are computed as one (layout.h). The rows are mostly in pinned memory of the host: both kernels
 * read or write them there, over the link. A thread that gathers has many loads under way at once,
 * as in lib/group.h, because each takes a microsecond or more.
 *
 *     row 0   [a0 a1 a2 ..]        tile in shared memory       matrix   [a0 b0 c0 0|a1 b1 c1 0|..
 *     row 1   [b0 b1 b2 ..]   ->   [step][row]            ->
 *     row 2   [c0 c1 c2 ..]
 *
 * Cost: each element is read and written once; 4 sectors a request for elements of 4 bytes. Shared
 * memory is padded, so that a column of the tile is in different banks.
 */
#include "kernels/cuda/lib/kernel.h"

#define TILE 64u
#define THREADS 256u

/* A launch's parameters. */
struct row_table {
    void *row[GM_GATHERED_MAX];
    uint64_t length;
    unsigned count, padded;
};

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    gather_rows(row_table table, T *matrix, uint64_t first_tile)
{
    __shared__ T tile[TILE][GM_GATHERED_MAX + 1];
    const uint64_t first = (first_tile + blockIdx.x) * TILE;
    const unsigned step = threadIdx.x % TILE, beside = threadIdx.x / TILE;
    T got[GM_GATHERED_MAX * TILE / THREADS];

#pragma unroll
    for (unsigned i = 0; i < GM_GATHERED_MAX * TILE / THREADS; i++) {
        unsigned row = i * (THREADS / TILE) + beside;
        bool exists = row < table.count && first + step < table.length;
        got[i] = exists ? ((const T *)table.row[row])[first + step] : T{};
    }
#pragma unroll
    for (unsigned i = 0; i < GM_GATHERED_MAX * TILE / THREADS; i++)
        tile[step][i * (THREADS / TILE) + beside] = got[i];
    __syncthreads();
    for (unsigned i = threadIdx.x; i < TILE * table.padded; i += THREADS)
        if (first + i / table.padded < table.length)
            matrix[first * table.padded + i] = tile[i / table.padded][i % table.padded];
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    scatter_rows(const T *matrix, row_table table, uint64_t first_block)
{
    const uint64_t at = (first_block + blockIdx.x) * THREADS + threadIdx.x;
    const unsigned row = blockIdx.y;

    if (at < table.length)
        ((T *)table.row[row])[at] = matrix[row * table.length + at];
}

static row_table table_of(const struct gm_rows *rows, unsigned padded)
{
    row_table table = {};

    for (unsigned i = 0; i < rows->count; i++)
        table.row[i] = rows->row[i];
    table.length = rows->length;
    table.count = rows->count;
    table.padded = padded;
    return table;
}

extern "C" enum gm_status GM_ENTRY(gather_rows)(const struct gm_rows *rows, unsigned padded,
                                                void *matrix, struct gm_exec *exec)
{
    return gm_by_size(rows->dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        const row_table table = table_of(rows, padded);

        return gm_launches(gm_ceil_div(rows->length, TILE), GM_GRID_X_MAX,
                           [&](uint64_t first, uint64_t blocks) {
                               return gm_launch(exec, gather_rows<T>, dim3((unsigned)blocks),
                                                dim3(THREADS), 0, table, (T *)matrix, first);
                           });
    });
}

extern "C" enum gm_status GM_ENTRY(scatter_rows)(const void *matrix, const struct gm_rows *rows,
                                                 struct gm_exec *exec)
{
    return gm_by_size(rows->dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        const row_table table = table_of(rows, rows->count);

        return gm_launches(gm_ceil_div(rows->length, THREADS), GM_GRID_X_MAX,
                           [&](uint64_t first, uint64_t blocks) {
                               dim3 grid((unsigned)blocks, rows->count);
                               return gm_launch(exec, scatter_rows<T>, grid, dim3(THREADS), 0,
                                                (const T *)matrix, table, first);
                           });
    });
}
