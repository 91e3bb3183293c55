/*
 * transpose_shifted.cu - the vectorized transpose for rows of any length.
 *
 * The difference to transpose_vectorized: rows need not begin where a piece of 16 bytes does,
 * neither the operand's nor the result's. Where they do not, 16 bytes are loaded as the two pieces
 * that they lie in, and joined (join.h); the neighbour's is the same, so the L1 cache answers one
 * of the two. And a row of the result is stored in the pieces that memory has, which for each row
 * begin elsewhere in the tile: they are joined out of two pieces of the tile's row. So that each is
 * whole, tiles overlap by a sector's 32 bytes of elements (of 1 byte by a piece): a tile stores, of
 * each row of the result, the sectors that begin in its own part. Only a matrix's first and last
 * elements of a row are stored one by one.
 *
 * Tiles are higher for elements of 1, 8 and 16 bytes, where the overlap would be a large part of
 * them. Elements of 1 byte are moved by 8 bytes: 16 rows of two pieces of 16 bytes would take 128
 * registers before they are joined. Blocks are bounded to so few registers that several share a
 * multiprocessor: with one, loading, turning and storing take turns instead of going on at once.
 *
 * Cost: twice the requests of transpose_vectorized in global loads and shared loads, and some 15
 * instructions for each piece on either side. DRAM sees each byte once; what tiles overlap, and
 * what is loaded twice, the caches answer.
 *
 * When it wins: on matrices from 8 MB on (elements of 8 and 16 bytes: 28 and 64 MB) whose rows or
 * columns are no whole pieces, and are not so few that transpose_skinny does better
 * (select_cuda.c). Small ones have too few tiles of this size: transpose_padded is better there. Of
 * elements of 1 byte transpose_bytes is better from 256 rows on.
 *
 * Source: this repository.
 */
#include "kernels/cuda/join.h"
#include "kernels/cuda/turn.h"
#include "kernels/cuda/walk.h"

/* Of the tile, by element: pieces' bytes, blocks across and down, threads, blocks on a
 * multiprocessor. */
template <unsigned SIZE> struct shape {
    static constexpr unsigned bytes = SIZE == 1 ? 8 : 16, across = 16;
    static constexpr unsigned down = SIZE == 2 || SIZE == 4 ? 16 : 32;
    static constexpr unsigned threads = SIZE == 1 ? 512 : 256;
    static constexpr unsigned resident = SIZE == 1 ? 2 : SIZE == 2 ? 3 : 4;
    static constexpr unsigned overlap = (SIZE == 1 ? 8 : 32) / SIZE; /* elements */

    static constexpr unsigned n = bytes / SIZE; /* of a block, either way */
    static constexpr unsigned rows = down * n, cols = across * n;
    static constexpr unsigned step = rows - overlap; /* from a tile to the next */
    static constexpr unsigned rounds = down * across / threads;
    static constexpr unsigned spread = 128 / bytes;

    static_assert(down * across % threads == 0, "each thread has as many blocks");
    static_assert(down % spread == 0, "the swizzle stays within a row of the tile");
    static_assert(overlap % n == 0 && step % overlap == 0, "tiles begin where sectors may");
};

/* A tile, and where it lies. */
template <typename T> struct part {
    const T *from; /* its first element in the operand, and in the result */
    T *to;
    const uint8_t *end;     /* of the operand */
    uint64_t rows, cols;    /* of the matrix */
    unsigned height, width; /* what there is of the tile in it */
    bool first;             /* of those below each other */
    bool inner;             /* all its rows are there, and all pieces that any of them touch */
};

/* Where piece `y` of row c of the turned tile stands. */
template <typename T> __device__ __forceinline__ unsigned place(unsigned c, unsigned y)
{
    using S = shape<sizeof(T)>;

    return c * S::down + (y ^ c / S::n % S::spread);
}

/* Elements of a block's row that lies across the matrix's edge, or at the operand's end. */
template <typename T>
__device__ __forceinline__ gm_piece<shape<sizeof(T)>::bytes> load_edge(const T *from, unsigned left)
{
    using S = shape<sizeof(T)>;
    gm_elements<T, S::bytes> elements = {};

#pragma unroll
    for (unsigned e = 0; e < S::n; e++)
        if (e < left)
            elements.element[e] = from[e];
    return elements.piece;
}

/* The rows of a thread's block, each as the pieces that it lies in. */
template <typename T>
__device__ __forceinline__ void load_block(const part<T> &p, unsigned row, unsigned col,
                                           gm_neighbours<shape<sizeof(T)>::bytes> *pair)
{
    using S = shape<sizeof(T)>;
    const T *from = p.from + row * p.cols + col;

    if (col >= p.width)
        return;
    if (p.inner) {
#pragma unroll
        for (unsigned i = 0; i < S::n; i++)
            pair[i] = gm_load_neighbours<S::bytes>(from + i * p.cols);
        return;
    }
#pragma unroll
    for (unsigned i = 0; i < S::n; i++) {
        const T *at = from + i * p.cols;
        pair[i] = {};
        if (row + i < p.height && col + S::n <= p.width &&
            (const uint8_t *)at + 2 * S::bytes <= p.end)
            pair[i] = gm_load_neighbours<S::bytes>(at);
    }
}

/* Joins them to the block. At the edges, rows that could not be loaded so come by elements. */
template <typename T>
__device__ __forceinline__ void join_block(const part<T> &p, unsigned row, unsigned col,
                                           const gm_neighbours<shape<sizeof(T)>::bytes> *pair,
                                           gm_piece<shape<sizeof(T)>::bytes> *block)
{
    using S = shape<sizeof(T)>;
    const T *from = p.from + row * p.cols + col;

#pragma unroll
    for (unsigned i = 0; i < S::n; i++)
        block[i] = gm_join<T>(pair[i], gm_skip<S::bytes>(from + i * p.cols));
    if (p.inner)
        return;
#pragma unroll
    for (unsigned i = 0; i < S::n; i++) {
        const T *at = from + i * p.cols;
        if (row + i < p.height &&
            (col + S::n > p.width || (const uint8_t *)at + 2 * S::bytes > p.end))
            block[i] = load_edge(at, p.width - col);
    }
}

/* Elements [at, at + N) of row c of the turned tile. */
template <typename T>
__device__ __forceinline__ gm_piece<shape<sizeof(T)>::bytes>
joined(const gm_piece<shape<sizeof(T)>::bytes> *tile, unsigned c, unsigned at)
{
    using S = shape<sizeof(T)>;
    unsigned y = at / S::n, skip = at % S::n * (unsigned)sizeof(T);

    return gm_join<T, S::bytes>({tile[place<T>(c, y)], tile[place<T>(c, y + (skip != 0))]}, skip);
}

/* Elements from the tile's first row, in row c of the result, to where a sector begins: there the
 * tile's own part does, and one step further the next's. */
template <typename T> __device__ __forceinline__ unsigned lead_of(const T *to)
{
    return (0u - (unsigned)(uintptr_t)to / (unsigned)sizeof(T)) % shape<sizeof(T)>::overlap;
}

/* Piece `j` of what a tile at the matrix's edge stores of row c of the result. */
template <typename T>
__device__ __forceinline__ void
store_edge(const part<T> &p, const gm_piece<shape<sizeof(T)>::bytes> *tile, unsigned c, unsigned j)
{
    using S = shape<sizeof(T)>;
    T *to = p.to + c * p.rows;
    unsigned lead = lead_of(to);
    int begin = p.first ? 0 : (int)lead;
    int end = min((int)(S::step + lead), (int)p.height);
    int at = begin - (int)((S::overlap - lead + begin) % S::n) + (int)(j * S::n);

    if (at >= begin && at + (int)S::n <= end) {
        gm_put(to + at, joined<T>(tile, c, (unsigned)at));
        return;
    }
    for (int i = max(at, begin); i < min(at + (int)S::n, end); i++)
        to[i] = ((const T *)&tile[place<T>(c, (unsigned)i / S::n)])[(unsigned)i % S::n];
}

template <typename T>
__device__ __forceinline__ void store_tile(const part<T> &p,
                                           const gm_piece<shape<sizeof(T)>::bytes> *tile)
{
    using S = shape<sizeof(T)>;

    if (!p.inner) {
        for (unsigned id = threadIdx.x; id < p.width * S::down; id += S::threads)
            store_edge<T>(p, tile, id / S::down, id % S::down);
        return;
    }
#pragma unroll
    for (unsigned k = 0; k < S::n * S::rounds; k++) {
        unsigned id = threadIdx.x + k * S::threads, c = id / S::down, j = id % S::down;
        T *to = p.to + c * p.rows;
        unsigned lead = lead_of(to);
        if (c < p.width && j < S::step / S::n)
            gm_put(to + lead + j * S::n, joined<T>(tile, c, lead + j * S::n));
    }
}

template <typename T>
static __global__ void __launch_bounds__(shape<sizeof(T)>::threads, shape<sizeof(T)>::resident)
    transpose_shifted(const T *in, T *out, uint64_t batch, uint64_t rows, uint64_t cols,
                      gm_walk walk)
{
    using S = shape<sizeof(T)>;
    using piece = gm_piece<S::bytes>;
    piece *tile = gm_dynamic_shared<piece>();
    gm_origin at = gm_walk_to(walk, S::step, S::cols);
    uint64_t matrix = at.matrix * rows * cols, row = at.row, col = at.col;
    part<T> p;

    p.from = in + matrix + row * cols + col;
    p.to = out + matrix + col * rows + row;
    p.end = (const uint8_t *)(in + batch * rows * cols);
    p.rows = rows;
    p.cols = cols;
    p.height = rows - row < S::rows ? (unsigned)(rows - row) : S::rows;
    p.width = cols - col < S::cols ? (unsigned)(cols - col) : S::cols;
    p.first = row == 0;
    /* a row's last pieces reach into the next rows, of however few columns */
    p.inner = row > 0 && row + S::rows + 2 * S::n <= rows;

    gm_neighbours<S::bytes> pair[S::rounds][S::n];
#pragma unroll
    for (unsigned k = 0; k < S::rounds; k++) { /* all loads before the first use */
        unsigned id = threadIdx.x + k * S::threads, x = id % S::across, y = id / S::across;
        load_block<T>(p, y * S::n, x * S::n, pair[k]);
    }
#pragma unroll
    for (unsigned k = 0; k < S::rounds; k++) {
        unsigned id = threadIdx.x + k * S::threads, x = id % S::across, y = id / S::across;
        piece block[S::n];
        if (x * S::n >= p.width || (!p.inner && y * S::n >= p.height))
            continue;
        join_block<T>(p, y * S::n, x * S::n, pair[k], block);
        gm_turn<T>(block);
#pragma unroll
        for (unsigned i = 0; i < S::n; i++)
            tile[place<T>(x * S::n + i, y)] = block[i];
    }
    __syncthreads();
    store_tile<T>(p, tile);
}

extern "C" enum gm_status GM_ENTRY(transpose_shifted)(const struct gm_op *op, struct gm_exec *exec)
{
    const struct gm_matrix *a = &op->operand[0];

    return gm_by_size(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        using S = shape<sizeof(T)>;

        return gm_walk_tiles(a, gm_is_tall(a), S::step, S::cols, [&](dim3 grid, gm_walk walk) {
            return gm_launch(exec, transpose_shifted<T>, grid, dim3(S::threads),
                             S::rows * S::cols * sizeof(T), gm_in<T>(op, 0), gm_out<T>(op),
                             a->batch, a->rows, a->cols, walk);
        });
    });
}
