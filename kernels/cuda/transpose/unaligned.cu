/*
 * unaligned.cu - transposes rows of any length with vector loads and stores.
 *
 * Rows need not be 16-byte aligned, in operand or result. The operand is read by unaligned vector
 * loads (vec.h). Rows of the result are stored in aligned vectors, which begin at another place of
 * the tile in each row, so each is assembled from two vectors of shared memory. To complete them,
 * tiles overlap by 32 bytes (1-byte elements: 8), and a tile stores the sectors that begin in its
 * own part (drawn below). Registers are bounded so that several blocks share a multiprocessor, and
 * loads, transposes and stores overlap.
 *
 * Cost: twice the requests of transpose_vectorized in global and shared loads, and some 15
 * instructions a vector on either side. DRAM sees each byte once.
 * When it wins: from 8 MB on (8 and 16 bytes: 28 and 64 MB) if rows or columns are not whole
 * vectors and not few (skinny). Smaller matrices have too few tiles: padded. For 1 byte, packed_u8.
 */
#include "kernels/cuda/lib/register_transpose.h"
#include "kernels/cuda/lib/vec.h"
#include "kernels/cuda/transpose/tile_order.h"

/*
 * Tile config by element size: bytes of a vector, N x N blocks across and down, threads, blocks per
 * multiprocessor. Tiles are higher for 1, 8 and 16 bytes, where the overlap would be a large part
 * of a tile. Elements of 1 byte use vectors of 8 bytes: 16 rows of two 16-byte vectors would take
 * 128 registers.
 *
 *     tile t     |=========== step ===========|~ overlap ~|
 *     tile t+1                                |=========== step ===========|~ overlap ~|
 *     stored     ....|  whole sectors that begin in the tile's own part  |
 */
template <unsigned SIZE> struct shape {
    static constexpr unsigned bytes = SIZE == 1 ? 8 : 16, across = 16;
    static constexpr unsigned down = SIZE == 2 || SIZE == 4 ? 16 : 32;
    static constexpr unsigned threads = SIZE == 1 ? 512 : 256;
    static constexpr unsigned resident = SIZE == 1 ? 2 : SIZE == 2 ? 3 : 4;
    static constexpr unsigned overlap = (SIZE == 1 ? 8 : 32) / SIZE; /* elements */

    static constexpr unsigned n = bytes / SIZE; /* elements of a block, across and down */
    static constexpr unsigned rows = down * n, cols = across * n;
    static constexpr unsigned step = rows - overlap; /* rows from a tile to the next */
    static constexpr unsigned rounds = down * across / threads;
    static constexpr unsigned swizzle = 128 / bytes;

    static_assert(down * across % threads == 0, "each thread has as many blocks");
    static_assert(down % swizzle == 0, "the swizzle stays within a row of the tile");
    static_assert(overlap % n == 0 && step % overlap == 0, "tiles begin where sectors may");
};

/* A tile, and its place in operand and result. */
template <typename T> struct part {
    const T *from; /* its first element in the operand and in the result */
    T *to;
    const uint8_t *end;     /* of the operand */
    uint64_t rows, cols;    /* of the matrix */
    unsigned height, width; /* the part of the tile in the matrix */
    bool first;             /* the topmost tile of its column */
    bool inner;             /* all its rows, and all vectors that they touch, exist */
};

/* The swizzled position of vector `y` in row c of the transposed tile (as in
 * transpose_vectorized). */
template <typename T> __device__ __forceinline__ unsigned place(unsigned c, unsigned y)
{
    using S = shape<sizeof(T)>;

    return c * S::down + (y ^ c / S::n % S::swizzle);
}

/* Loads a block's row element by element: it extends beyond the matrix, or touches the operand's
 * end. */
template <typename T>
__device__ __forceinline__ gm_vec<shape<sizeof(T)>::bytes> load_edge(const T *from, unsigned left)
{
    using S = shape<sizeof(T)>;
    gm_elements<T, S::bytes> elements = {};

#pragma unroll
    for (unsigned e = 0; e < S::n; e++)
        if (e < left)
            elements.element[e] = from[e];
    return elements.vec;
}

/* Loads the rows of a thread's block, each as a pair of aligned vectors. */
template <typename T>
__device__ __forceinline__ void load_block(const part<T> &p, unsigned row, unsigned col,
                                           gm_vec_pair<shape<sizeof(T)>::bytes> *pair)
{
    using S = shape<sizeof(T)>;
    const T *from = p.from + row * p.cols + col;

    if (col >= p.width)
        return;
    if (p.inner) {
#pragma unroll
        for (unsigned i = 0; i < S::n; i++)
            pair[i] = gm_load_vec_pair<S::bytes>(from + i * p.cols);
        return;
    }
#pragma unroll
    for (unsigned i = 0; i < S::n; i++) {
        const T *at = from + i * p.cols;
        pair[i] = {};
        if (row + i < p.height && col + S::n <= p.width &&
            (const uint8_t *)at + 2 * S::bytes <= p.end)
            pair[i] = gm_load_vec_pair<S::bytes>(at);
    }
}

/* Assembles the block from the pairs. At the edges, rows that could not be loaded as pairs are
 * loaded element by element. */
template <typename T>
__device__ __forceinline__ void align_block(const part<T> &p, unsigned row, unsigned col,
                                            const gm_vec_pair<shape<sizeof(T)>::bytes> *pair,
                                            gm_vec<shape<sizeof(T)>::bytes> *block)
{
    using S = shape<sizeof(T)>;
    const T *from = p.from + row * p.cols + col;

#pragma unroll
    for (unsigned i = 0; i < S::n; i++)
        block[i] = gm_unaligned_vec<T>(pair[i], gm_misalignment<S::bytes>(from + i * p.cols));
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

/* Elements [at, at + N) of row c of the transposed tile. */
template <typename T>
__device__ __forceinline__ gm_vec<shape<sizeof(T)>::bytes>
unaligned_vec(const gm_vec<shape<sizeof(T)>::bytes> *tile, unsigned c, unsigned at)
{
    using S = shape<sizeof(T)>;
    unsigned y = at / S::n, skip = at % S::n * (unsigned)sizeof(T);

    return gm_unaligned_vec<T, S::bytes>({tile[place<T>(c, y)], tile[place<T>(c, y + (skip != 0))]},
                                         skip);
}

/* Elements, in row c of the result, from the tile's first row to the next sector. The tile's own
 * part begins there, and the next tile's part one step further. */
template <typename T> __device__ __forceinline__ unsigned lead_of(const T *to)
{
    return (0u - (unsigned)(uintptr_t)to / (unsigned)sizeof(T)) % shape<sizeof(T)>::overlap;
}

/* Stores vector `j` of row c of the result, for a tile at the matrix's edge. */
template <typename T>
__device__ __forceinline__ void
store_edge(const part<T> &p, const gm_vec<shape<sizeof(T)>::bytes> *tile, unsigned c, unsigned j)
{
    using S = shape<sizeof(T)>;
    T *to = p.to + c * p.rows;
    unsigned lead = lead_of(to);
    int begin = p.first ? 0 : (int)lead;
    int end = min((int)(S::step + lead), (int)p.height);
    int at = begin - (int)((S::overlap - lead + begin) % S::n) + (int)(j * S::n);

    if (at >= begin && at + (int)S::n <= end) {
        gm_store_vec(to + at, unaligned_vec<T>(tile, c, (unsigned)at));
        return;
    }
    for (int i = max(at, begin); i < min(at + (int)S::n, end); i++)
        to[i] = ((const T *)&tile[place<T>(c, (unsigned)i / S::n)])[(unsigned)i % S::n];
}

template <typename T>
__device__ __forceinline__ void store_tile(const part<T> &p,
                                           const gm_vec<shape<sizeof(T)>::bytes> *tile)
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
            gm_store_vec(to + lead + j * S::n, unaligned_vec<T>(tile, c, lead + j * S::n));
    }
}

template <typename T>
static __global__ void __launch_bounds__(shape<sizeof(T)>::threads, shape<sizeof(T)>::resident)
    transpose_unaligned(const T *in, T *out, uint64_t batch, uint64_t rows, uint64_t cols,
                        gm_tile_order order)
{
    using S = shape<sizeof(T)>;
    using vec = gm_vec<S::bytes>;
    vec *tile = gm_dynamic_shared<vec>();
    gm_origin at = gm_tile_at(order, S::step, S::cols);
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
    /* A row's last vectors reach into the next rows, however few columns there are. */
    p.inner = row > 0 && row + S::rows + 2 * S::n <= rows;

    gm_vec_pair<S::bytes> pair[S::rounds][S::n];
#pragma unroll
    for (unsigned k = 0; k < S::rounds; k++) { /* all loads before the first use */
        unsigned id = threadIdx.x + k * S::threads, x = id % S::across, y = id / S::across;
        load_block<T>(p, y * S::n, x * S::n, pair[k]);
    }
#pragma unroll
    for (unsigned k = 0; k < S::rounds; k++) {
        unsigned id = threadIdx.x + k * S::threads, x = id % S::across, y = id / S::across;
        vec block[S::n];
        if (x * S::n >= p.width || (!p.inner && y * S::n >= p.height))
            continue;
        align_block<T>(p, y * S::n, x * S::n, pair[k], block);
        gm_register_transpose<T>(block);
#pragma unroll
        for (unsigned i = 0; i < S::n; i++)
            tile[place<T>(x * S::n + i, y)] = block[i];
    }
    __syncthreads();
    store_tile<T>(p, tile);
}

GM_KERNEL(transpose_unaligned)
{
    const struct gm_matrix *a = &op->operand[0];

    return gm_by_size(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        using S = shape<sizeof(T)>;

        return gm_tiles_in_order(
            a, gm_is_tall(a), S::step, S::cols, [&](dim3 grid, gm_tile_order order) {
                return gm_launch(exec, transpose_unaligned<T>, grid, dim3(S::threads),
                                 S::rows * S::cols * sizeof(T), gm_in<T>(op, 0), gm_out<T>(op),
                                 a->batch, a->rows, a->cols, order);
            });
    });
}
