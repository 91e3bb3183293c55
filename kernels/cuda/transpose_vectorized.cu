/*
 * transpose_vectorized.cu - 16 bytes an access on both sides, turned in registers on the way.
 *
 * The difference to transpose_padded: a thread takes a block of N x N elements, N of which are 16
 * bytes: it loads one piece of each of N rows, turns the block in its registers (gm_turn), puts N
 * pieces into shared memory, and takes N others out to store. Elements of 4 bytes: a fourth of the
 * loads and stores, 16 elements a thread under way at once; of 1 byte: a sixteenth, and 256. A tile
 * is 16 x 16 such blocks, so that its rows, and those it writes, are 256 bytes.
 *
 * Padding would put pieces where 16 bytes cannot be stored at once, so the tile is swizzled: in row
 * c of the turned tile piece y stands at y ^ (c / N) % 8 (pieces of 16 bytes). The 8 lanes that are
 * served together write one piece each into 8 rows, N apart and all at piece y: the XOR puts them
 * in 8 groups of four banks; and reading a row they find its pieces in another order, in as many
 * groups.
 *
 * Blocks go down columns of tiles first, but of tall matrices along their rows, or down the columns
 * of one band of them after the other (walk.h).
 *
 * Small matrices have too few tiles of this size to keep all multiprocessors busy, and those of a
 * stack may fill a tile badly: tiles of pieces of 8 and 4 bytes are half and a fourth as high and
 * as wide.
 *
 * Where the operand's rows are no multiple of 256 bytes, a tile's 256 bytes of a row lie in two of
 * the stretches of 256 bytes that DRAM answers best. There the loads have the L2 cache fetch whole
 * stretches: the neighbour to the right will find its part of them.
 *
 * Where the result's rows are no whole sectors of 32 bytes, every other one begins in the middle of
 * one, and so would a tile's part of it: two blocks would write half of a sector each. There tiles
 * of pieces of 16 bytes overlap: one also loads the last pieces of the tile above, and stores of
 * each row of the result 16 of 17 pieces, from the first where that begins a sector, else from the
 * second. (Not of elements of 16 bytes, of 1 byte only large matrices: HUNT.md.) Rows of 17 pieces
 * are not closed under XOR, so there piece y stands at (y + (c / N) % 8) % 17; where that passes
 * the end of a row, lanes meet in banks.
 *
 * Of large matrices of elements of up to 4 bytes fewer blocks are resident than would fit, if their
 * tiles do not overlap: what is touched at the same time is then in fewer of DRAM's pages. A block
 * asks for more shared memory than its tile needs, which keeps others out; and how much of a
 * multiprocessor's memory is shared is asked for too (gm_shared_carveout), since the rest is the L1
 * cache, which gathers halves of sectors. Both numbers are measured (HUNT.md, "Fewer blocks at
 * once").
 *
 * Cost, pieces of 16 bytes: 16 sectors a request, all useful. Shared memory 4 wavefronts a request,
 * which 512 bytes need; of overlapping tiles up to 6.
 *
 * When it wins: where rows and columns are whole pieces, but for a few of them (transpose_skinny)
 * and for stacks of the smallest (transpose_stack).
 *
 * Source: the swizzles of NVIDIA's CUTLASS; Harris (transpose_padded) for the rest.
 */
#include "kernels/cuda/turn.h"
#include "kernels/cuda/walk.h"

#define SIDE 16u /* blocks of a tile, across and, but for overlapping ones, down */
#define SECTOR 32u

#define LARGE_BYTES ((uint64_t)64 << 20) /* beyond what caches hold */
#define LARGE_TILES 8u                   /* either way: HUNT.md */

/* Of a large matrix: blocks on a multiprocessor (0: as many as fit, which was best), and how much
 * of its memory they share. */
template <typename T>
static constexpr unsigned RESIDENT = sizeof(T) > 4    ? 0
                                     : sizeof(T) == 4 ? 4
                                                      : 2;
#define SHARED_PERCENT 72

/* Of a tile: the blocks in a column of it, one more where it overlaps the tile above, and where
 * piece y of row c of it stands, turned. `group` is c / N, which callers know without dividing:
 * that leaves registers for one more block on a multiprocessor. */
template <typename T, unsigned BYTES, bool OVERLAPS> struct tile_of {
    static constexpr unsigned N = gm_in_piece<T, BYTES>::count;
    static constexpr unsigned down = SIDE + OVERLAPS;
    static constexpr unsigned height = down * N, width = SIDE * N, step = SIDE * N;
    static constexpr unsigned threads = SIDE * down;
    static constexpr unsigned spread = 128 / BYTES < SIDE ? 128 / BYTES : SIDE;
    static_assert(SIDE % spread == 0, "the swizzle stays within a row of the tile");
    static_assert(!OVERLAPS || 2 * BYTES == SECTOR,
                  "one piece more reaches the sector's beginning");

    static __device__ __forceinline__ unsigned place(unsigned c, unsigned group, unsigned y)
    {
        if (!OVERLAPS)
            return c * down + (y ^ group % spread);
        unsigned turned = y + group % spread;
        return c * down + (turned < down ? turned : turned - down);
    }
};

template <typename T, unsigned BYTES, bool STRETCH, bool OVERLAPS>
static __global__ void __launch_bounds__(tile_of<T, BYTES, OVERLAPS>::threads)
    transpose_vectorized(const T *in, T *out, uint64_t rows, uint64_t cols, gm_banded_walk walk)
{
    using tile_shape = tile_of<T, BYTES, OVERLAPS>;
    constexpr unsigned N = tile_shape::N;
    gm_piece<BYTES> *tile = gm_dynamic_shared<gm_piece<BYTES>>();
    gm_origin at = gm_banded_walk_to(walk, tile_shape::step, tile_shape::width);
    uint64_t matrix = at.matrix * rows * cols;
    /* one that overlaps begins a piece higher; above the matrix the row wraps, beyond all rows */
    uint64_t tile_row = at.row - (OVERLAPS ? N : 0), tile_col = at.col;
    unsigned x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;

    if (tile_row + y * N < rows && tile_col + x * N < cols) {
        const T *from = in + matrix + (tile_row + y * N) * cols + tile_col + x * N;
        gm_piece<BYTES> block[N];
#pragma unroll
        for (unsigned i = 0; i < N; i++)
            block[i] = STRETCH ? gm_get_l2_256<BYTES>(from + i * cols)
                               : *(const gm_piece<BYTES> *)(from + i * cols);
        gm_turn<T>(block);
#pragma unroll
        for (unsigned i = 0; i < N; i++)
            tile[tile_shape::place(x * N + i, x, y)] = block[i];
    }
    __syncthreads();
    if (OVERLAPS && threadIdx.x >= SIDE * SIDE)
        return;
#pragma unroll
    for (unsigned i = 0; i < N; i++) {
        unsigned c = i * SIDE + y; /* of the tile's columns */
        uint64_t col = tile_col + c, begin = matrix + col * rows + tile_row;
        unsigned piece = x;
        if (OVERLAPS) /* not the first piece, if a sector begins with the second */
            piece += ((uintptr_t)out + begin * sizeof(T)) % SECTOR != 0;
        if (tile_row + piece * N < rows && col < cols)
            *(gm_piece<BYTES> *)(out + (begin + piece * N)) =
                tile[tile_shape::place(c, c / N, piece)];
    }
}

/* Whether it is a large matrix, or a stack of them, of many tiles either way. Of thin ones each
 * tile has little under way, and it takes all blocks that fit. */
template <typename T> static bool is_large(const struct gm_op *op)
{
    uint64_t side = LARGE_TILES * SIDE * 16 / sizeof(T);

    return gm_matrix_bytes(&op->result) > LARGE_BYTES && op->result.rows >= side &&
           op->result.cols >= side;
}

/* Whether tiles of such pieces fit, and are enough to keep the device busy: of a large matrix they
 * are; else tiles times an element's bytes, since a thread's block of larger elements is less work,
 * are at least quarters / 4 for each multiprocessor. What it is called with is measured. */
template <typename T>
static bool enough(const struct gm_op *op, const struct gm_gpu *gpu, uint64_t bytes,
                   uint64_t quarters)
{
    const struct gm_matrix *a = &op->operand[0];
    uint64_t side = SIDE * bytes / sizeof(T);
    uint64_t tiles = a->batch * gm_ceil_div(a->rows, side) * gm_ceil_div(a->cols, side);

    return side * side * sizeof(T) <= gpu->shared_per_block &&
           (is_large<T>(op) || 4 * tiles * sizeof(T) >= quarters * gpu->sms);
}

/* Whether a tile of half the side holds a whole matrix. One that it does not hold is better off in
 * a larger tile, even if that stays mostly empty: smaller pieces are less under way. */
template <typename T> static bool half_holds(const struct gm_op *op, uint64_t bytes)
{
    uint64_t side = SIDE * bytes / sizeof(T) / 2;

    return op->result.rows <= side && op->result.cols <= side;
}

/* Whether the result's rows begin within sectors, and tiles are to overlap for it. */
template <typename T> static bool overlaps(const struct gm_op *op, const struct gm_gpu *gpu)
{
    using tile_shape = tile_of<T, 16, true>;

    return op->operand[0].rows * sizeof(T) % SECTOR != 0 && (sizeof(T) > 1 || is_large<T>(op)) &&
           tile_shape::height * tile_shape::width * sizeof(T) <= gpu->shared_per_block;
}

/* What each of so many resident blocks can have of shared memory, with room for rounding up. */
static size_t part_of(const struct gm_gpu *gpu, unsigned resident)
{
    return gpu->shared_per_sm / 100 * SHARED_PERCENT / resident - 2 * gpu->shared_reserved;
}

template <typename T, unsigned BYTES, bool STRETCH = false, bool OVERLAPS = false>
static enum gm_status transpose(const struct gm_op *op, struct gm_exec *exec)
{
    using tile_shape = tile_of<T, BYTES, OVERLAPS>;
    const struct gm_matrix *a = &op->operand[0];
    constexpr unsigned resident = BYTES == 16 && !OVERLAPS ? RESIDENT<T> : 0;
    size_t shared = tile_shape::height * tile_shape::width * sizeof(T);

    if constexpr (resident > 0) {
        bool large = is_large<T>(op);

        gm_shared_carveout(transpose_vectorized<T, BYTES, STRETCH, OVERLAPS>,
                           large ? SHARED_PERCENT : GM_CARVEOUT_DEFAULT);
        size_t part = large ? part_of(gm_gpu_of(exec), resident) : 0;
        shared = part > shared ? part : shared;
    }
    /* The last that overlaps stores a column's end too: an odd number of pieces leaves room. */
    return gm_banded_walk_tiles(
        a, tile_shape::step, tile_shape::width, [&](dim3 grid, gm_banded_walk walk) {
            return gm_launch(exec, transpose_vectorized<T, BYTES, STRETCH, OVERLAPS>, grid,
                             dim3(tile_shape::threads), shared, gm_in<T>(op, 0), gm_out<T>(op),
                             a->rows, a->cols, walk);
        });
}

GM_ROW_FUNCTION enum gm_status gm_transpose_vectorized_accepts(const struct gm_op *op,
                                                               const struct gm_device_facts *,
                                                               struct gm_error *err)
{
    const struct gm_matrix *a = &op->operand[0];
    uint64_t count = 16 / gm_dtype_size(a->dtype);
    char shape[GM_SHAPE_TEXT_MAX];

    if (a->rows % count == 0 && a->cols % count == 0)
        return GM_OK;
    return gm_fail(err, GM_KERNEL_UNAVAILABLE,
                   "vectorized moves 16 bytes at once: rows and columns of %s must be multiples of "
                   "%llu, and these are %s",
                   gm_dtype_name(a->dtype), (unsigned long long)count,
                   gm_matrix_shape_text(a, shape));
}

extern "C" enum gm_status GM_ENTRY(transpose_vectorized)(const struct gm_op *op,
                                                         struct gm_exec *exec)
{
    return gm_by_size(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        const struct gm_gpu *gpu = gm_gpu_of(exec);

        if constexpr (sizeof(T) < 16) {
            bool halve = !enough<T>(op, gpu, 16, 48) || half_holds<T>(op, 16);
            if constexpr (sizeof(T) < 8) {
                if (halve && (!enough<T>(op, gpu, 8, 3) || half_holds<T>(op, 8)))
                    return transpose<T, 4>(op, exec);
            }
            if (halve)
                return transpose<T, 8>(op, exec);
            if (overlaps<T>(op, gpu))
                return transpose<T, 16, true, true>(op, exec);
        }
        if (op->operand[0].cols * sizeof(T) % GM_STRETCH != 0)
            return transpose<T, 16, true>(op, exec);
        return transpose<T, 16>(op, exec);
    });
}
