/*
 * packed_u8.cu - transposes 1-byte elements in rows of any length, without unaligned loads.
 *
 * Rows begin at any of a vector's 16 bytes, but rows 16 apart all have the same alignment. So a
 * thread loads vectors of 16 such rows and transposes 16 x 16 bytes in registers (drawn below).
 * Each vector then holds every sixteenth row of a column. In shared memory a column is 16 vectors,
 * one for each residue of the row modulo 16. A thread transposes these 16 again, starting with the
 * residue whose rows begin vectors of the result. (Residues before it begin 16 rows further down:
 * their first byte is dropped.)
 *
 * Cost: 16 bytes an access everywhere; 1.3 instructions a byte, where transpose_unaligned takes 5.
 * An eighth of the matrix is loaded twice, the second time from the caches.
 * When it wins: from about 2000 x 2000 on, if rows or columns are not whole vectors and there are
 * at least a tile's 256 rows and some 130 columns.
 */
#include "kernels/cuda/lib/register_transpose.h"
#include "kernels/cuda/lib/vec.h"
#include "kernels/cuda/transpose/tile_order.h"

/*
 * The two register transposes of a tile of 256 x 256:
 *
 *     pass 1, a thread: residue r, 16 columns      shared memory, column c: 16 vectors
 *         row r        c0 c1 .. c15                    residue 0     rows 0 16 32 .. 240
 *         row r + 16   c0 c1 .. c15           ->       residue 1     rows 1 17 33 .. 241
 *          :                                            :
 *         row r + 240  c0 c1 .. c15                    residue 15    rows 15 31 47 .. 255
 *
 *     pass 2, a thread: column c, 16 residues from `lead` on  ->  vectors of the result's row
 *         | rows lead .. lead + 15 | lead + 16 .. lead + 31 | ...
 */
#define N 16u           /* bytes of a vector, and rows (columns) between equal alignments */
#define SIDE (N * N)    /* rows and columns of a tile, and threads of a block */
#define STEP (SIDE - N) /* rows from a tile to the next below: tiles overlap by N */
static_assert(STEP % N == 0, "a tile's own rows are whole vectors");
#define RESIDENT 2u /* blocks per multiprocessor */
/* Tall matrices of fewer columns are taken along rows. Wider ones are not, because these loads do
 * not fetch 256-byte stretches (EXPERIMENTS.md, "Tall matrices"). */
#define FEW 1024u
/* The shared memory carveout: what the blocks need, and no more. EXPERIMENTS.md says why the rest
 * is better used as L1 cache. */
#define BYTES_SHARED_PERCENT 58

using vec = gm_vec<N>;

/* A tile, and its place in operand and result. */
struct part {
    const uint8_t *from; /* its first element in the operand and in the result */
    uint8_t *to;
    const uint8_t *begin, *end; /* of the operand */
    uint64_t rows, cols;        /* of the matrix */
    unsigned height, width;     /* the part of the tile in the matrix */
    bool first;                 /* the topmost tile of its column */
    bool inner;                 /* all its rows, and all vectors that they touch, exist */
};

/* The swizzled position of the vector of column c and a residue. Lanes that write have neighbouring
 * vectors of a row, so columns 16 apart. Lanes that read have neighbouring columns, and residues
 * that decrease by the length of the result's rows from one column to the next. Both use different
 * banks. */
static __device__ __forceinline__ unsigned place(unsigned c, unsigned residue, unsigned odd_rows)
{
    return c * N + (residue + c / N + (odd_rows ? 0 : c)) % N;
}

/* Loads a vector that may extend beyond the operand's beginning or end. */
static __device__ __forceinline__ vec load_edge(const part &p, const uint8_t *at)
{
    vec got = {};

    if (at >= p.begin && at + N <= p.end)
        return *(const vec *)(at);
#pragma unroll
    for (unsigned i = 0; i < N; i++)
        if (at + i >= p.begin && at + i < p.end)
            got.word[i / 4] |= (uint32_t)at[i] << 8 * (i % 4);
    return got;
}

/* Shifts out the first `bits` bits. */
static __device__ __forceinline__ void drop(vec &x, unsigned bits)
{
#pragma unroll
    for (unsigned i = 0; i < N / 4; i++)
        x.word[i] = __funnelshift_r(x.word[i], i + 1 < N / 4 ? x.word[i + 1] : 0, bits);
}

/* Rows of column c from the tile's first to the one that begins a vector of the result. */
static __device__ __forceinline__ unsigned lead_of(const uint8_t *to)
{
    return (0u - (unsigned)(uintptr_t)to) % N;
}

/* The end of the tile's own part of a column. */
static __device__ __forceinline__ unsigned end_of(const part &p, unsigned lead)
{
    return min(STEP + lead, p.height);
}

/* Stores the ends of a column that are not whole vectors, at the matrix's edges. */
static __device__ __forceinline__ void store_rest(const part &p, unsigned c)
{
    uint8_t *to = p.to + c * p.rows;
    unsigned lead = lead_of(to), end = end_of(p, lead);
    unsigned whole = end > lead ? (end - lead) / N * N : 0;

    for (unsigned i = 0; p.first && i < min(lead, end); i++)
        to[i] = p.from[i * p.cols + c];
    for (unsigned i = lead + whole; i < end; i++)
        to[i] = p.from[i * p.cols + c];
}

/* Pass 1: loads a vector from each of 16 rows of one residue, and stores a vector for each of 16
 * columns. */
static __device__ __forceinline__ void load(const part &p, vec *tile)
{
    unsigned x = threadIdx.x % N, residue = threadIdx.x / N;
    const uint8_t *at = p.from + residue * p.cols;
    unsigned skip = gm_misalignment<N>(at);
    vec block[N];

    if (x * N >= skip + p.width)
        return;
    at = at - skip + x * N;
#pragma unroll
    for (unsigned i = 0; i < N; i++) {
        if (p.inner)
            block[i] = *(const vec *)(at + i * N * p.cols);
        else
            block[i] = residue + i * N < p.height ? load_edge(p, at + i * N * p.cols) : vec{};
    }
    gm_register_transpose<uint8_t>(block);
#pragma unroll
    for (unsigned i = 0; i < N; i++) {
        unsigned c = x * N + i - skip; /* wraps if before the tile's first column */
        if (c < p.width)
            tile[place(c, residue, p.rows % 2)] = block[i];
    }
}

/* Pass 2: transposes a column's 16 residues to 16 consecutive vectors of the result's row. The last
 * is not whole if the row begins inside a vector. */
static __device__ __forceinline__ void transpose_tile(const part &p, vec *tile)
{
    unsigned c = threadIdx.x, lead = lead_of(p.to + c * p.rows);
    vec block[N];

    if (c >= p.width)
        return;
#pragma unroll
    for (unsigned i = 0; i < N; i++) {
        block[i] = tile[place(c, (lead + i) % N, p.rows % 2)];
        drop(block[i], (lead + i) / N * 8);
    }
    gm_register_transpose<uint8_t>(block);
#pragma unroll
    for (unsigned i = 0; i < N; i++)
        tile[c * N + (c + i) % N] = block[i];
}

static __device__ __forceinline__ void store(const part &p, const vec *tile)
{
    unsigned j = threadIdx.x % N;

#pragma unroll 4
    for (unsigned i = 0; i < N; i++) {
        unsigned c = i * N + threadIdx.x / N;
        uint8_t *to = p.to + c * p.rows;
        unsigned lead = lead_of(to);
        if (c < p.width && j < STEP / N && (p.inner || lead + (j + 1) * N <= end_of(p, lead)))
            gm_store_vec(to + lead + j * N, tile[c * N + (c + j) % N]);
    }
    if (!p.inner && threadIdx.x < p.width)
        store_rest(p, threadIdx.x);
}

static __global__ void __launch_bounds__(SIDE, RESIDENT)
    transpose_packed_u8(const uint8_t *in, uint8_t *out, uint64_t batch, uint64_t rows,
                        uint64_t cols, unsigned width, gm_tile_order order)
{
    vec *tile = gm_dynamic_shared<vec>();
    gm_origin at = gm_tile_at(order, STEP, width);
    uint64_t matrix = at.matrix * rows * cols, row = at.row, col = at.col;
    part p;

    p.from = in + matrix + row * cols + col;
    p.to = out + matrix + col * rows + row;
    p.begin = in;
    p.end = in + batch * rows * cols;
    p.rows = rows;
    p.cols = cols;
    p.height = rows - row < SIDE ? (unsigned)(rows - row) : SIDE;
    p.width = cols - col < width ? (unsigned)(cols - col) : width;
    p.first = row == 0;
    p.inner =
        row > 0 && row + SIDE + N <= rows; /* N rows are no less than a vector, of any width */

    load(p, tile);
    __syncthreads();
    transpose_tile(p, tile);
    __syncthreads();
    store(p, tile);
}

GM_KERNEL(transpose_packed_u8)
{
    const struct gm_matrix *a = &op->operand[0];
    const uint8_t *in = gm_in<uint8_t>(op, 0);
    unsigned width = a->cols % N == 0 && (uintptr_t)in % N == 0 ? SIDE : SIDE - N;
    bool along_rows = gm_is_tall(a) && a->cols < FEW;

    gm_shared_carveout(transpose_packed_u8, BYTES_SHARED_PERCENT);
    return gm_tiles_in_order(a, along_rows, STEP, width, [&](dim3 grid, gm_tile_order order) {
        return gm_launch(exec, transpose_packed_u8, grid, dim3(SIDE), SIDE * width, in,
                         gm_out<uint8_t>(op), a->batch, a->rows, a->cols, width, order);
    });
}
