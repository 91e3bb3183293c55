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
 * Blocks go down columns of tiles first, so that the rows of the result grow in runs, and DRAM is
 * given them as such: what is written costs it more than what is read.
 *
 * Small matrices have too few tiles of this size to keep all multiprocessors busy, and those of a
 * stack may fill a tile badly: tiles of pieces of 8 and 4 bytes are half and a fourth as high and
 * as wide.
 *
 * Where the operand's rows are no multiple of 256 bytes, a tile's 256 bytes of a row lie in two of
 * the stretches of 256 bytes that DRAM answers best. There the loads have the L2 cache fetch whole
 * stretches: the neighbour to the right will find its part of them. And where the result's rows are
 * no whole sectors of 32 bytes, tiles are twice as high (but for elements of 1 byte), so that half
 * as many sectors are written by two of them.
 *
 * Of large matrices fewer blocks are resident than would fit (of elements of up to 4 bytes, and not
 * of the high tiles): what is touched at the same time is then in fewer of DRAM's pages. Each block
 * asks for more shared memory than its tile needs, so that no more fit. How much of a
 * multiprocessor's memory is shared memory is asked for too (gm_shared_carveout): what it leaves to
 * the L1 cache gathers halves of sectors and stretches. How many blocks, and how much memory, are
 * measured (HUNT.md, "Fewer blocks at once"): with more all is slower by far.
 *
 * Cost, pieces of 16 bytes: 16 sectors a request, all useful. Shared memory 4 wavefronts a request,
 * which 512 bytes need.
 *
 * When it wins: where rows and columns are whole pieces, but for a few of them (transpose_skinny)
 * and for stacks of the smallest (transpose_stack).
 *
 * Source: the swizzles of NVIDIA's CUTLASS; Harris (transpose_padded) for the rest.
 */
#include "kernels/cuda/tiles.h"
#include "kernels/cuda/turn.h"

#define SIDE 16u /* blocks of a tile, across and, but for high ones, down */
#define HIGH 32u
/* High ones from so many a multiprocessor, and so many in a column of them. */
#define HIGH_ROUNDS 8u

#define LARGE_BYTES ((uint64_t)64 << 20) /* beyond what caches hold */
#define LARGE_TILES 8u                   /* either way: HUNT.md */

/* Of a large matrix: blocks on a multiprocessor (0: as many as fit, which was best), and how much
 * of its memory they share. */
template <typename T, unsigned DOWN>
static constexpr unsigned RESIDENT = DOWN != SIDE || sizeof(T) > 4 ? 0
                                     : sizeof(T) == 4              ? 4
                                                                   : 2;
#define SHARED_PERCENT 72

template <typename T, unsigned BYTES, unsigned DOWN, bool STRETCH>
static __global__ void __launch_bounds__(SIDE *DOWN)
    transpose_vectorized(const T *in, T *out, uint64_t rows, uint64_t cols, gm_origin origin)
{
    constexpr unsigned N = gm_in_piece<T, BYTES>::count;
    constexpr unsigned SPREAD = 128 / BYTES < SIDE ? 128 / BYTES : SIDE;
    static_assert(SIDE % SPREAD == 0, "the swizzle stays within a row of the tile");
    gm_piece<BYTES> *tile = gm_dynamic_shared<gm_piece<BYTES>>();
    uint64_t matrix = (origin.matrix + blockIdx.z) * rows * cols;
    uint64_t tile_row = origin.col + (uint64_t)blockIdx.x * (DOWN * N);
    uint64_t tile_col = origin.row + (uint64_t)blockIdx.y * (SIDE * N);
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
            tile[(x * N + i) * DOWN + (y ^ x % SPREAD)] = block[i];
    }
    __syncthreads();
    x = threadIdx.x % DOWN;
    y = threadIdx.x / DOWN;
#pragma unroll
    for (unsigned i = 0; i < N; i++) {
        unsigned c = i * SIDE + y; /* of the tile's columns */
        uint64_t row = tile_row + x * N, col = tile_col + c;
        if (row < rows && col < cols)
            *(gm_piece<BYTES> *)(out + matrix + col * rows + row) =
                tile[c * DOWN + (x ^ c / N % SPREAD)];
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

static uint64_t tiles(const struct gm_matrix *a, uint64_t height, uint64_t width)
{
    return a->batch * gm_pieces(a->rows, height) * gm_pieces(a->cols, width);
}

/* Whether tiles of such pieces fit, and are enough to keep the device busy: of a large matrix they
 * are; else tiles times an element's bytes, since a thread's block of larger elements is less work,
 * are at least quarters / 4 for each multiprocessor. What it is called with is measured. */
template <typename T>
static bool enough(const struct gm_op *op, const struct gm_gpu *gpu, uint64_t bytes,
                   uint64_t quarters)
{
    uint64_t side = SIDE * bytes / sizeof(T);

    return side * side * sizeof(T) <= gpu->shared_per_block &&
           (is_large<T>(op) ||
            4 * tiles(&op->operand[0], side, side) * sizeof(T) >= quarters * gpu->sms);
}

/* Whether a tile of half the side holds a whole matrix. One that it does not hold is better off in
 * a larger tile, even if that stays mostly empty: smaller pieces are less under way. */
template <typename T> static bool half_holds(const struct gm_op *op, uint64_t bytes)
{
    uint64_t side = SIDE * bytes / sizeof(T) / 2;

    return op->result.rows <= side && op->result.cols <= side;
}

/* Whether tiles twice as high are better: they share fewer sectors of the result's rows. */
template <typename T> static bool high(const struct gm_op *op, const struct gm_gpu *gpu)
{
    const struct gm_matrix *a = &op->operand[0];
    uint64_t height = HIGH * 16 / sizeof(T), width = SIDE * 16 / sizeof(T);

    return a->rows * sizeof(T) % 32 != 0 && height * width * sizeof(T) <= gpu->shared_per_block &&
           a->rows >= HIGH_ROUNDS * height &&
           tiles(a, height, width) >= (uint64_t)HIGH_ROUNDS * gpu->sms;
}

/* What each of so many resident blocks can have of shared memory, with room for rounding up. */
static size_t part_of(const struct gm_gpu *gpu, unsigned resident)
{
    return gpu->shared_per_sm / 100 * SHARED_PERCENT / resident - 2 * gpu->shared_reserved;
}

template <typename T, unsigned BYTES, unsigned DOWN = SIDE, bool STRETCH = false>
static enum gm_status transpose(const struct gm_op *op, struct gm_exec *exec)
{
    const struct gm_matrix *a = &op->operand[0];
    const unsigned height = DOWN * gm_in_piece<T, BYTES>::count;
    const unsigned width = SIDE * gm_in_piece<T, BYTES>::count;
    constexpr unsigned resident = BYTES == 16 ? RESIDENT<T, DOWN> : 0;
    size_t shared = height * width * sizeof(T);

    if constexpr (resident > 0) {
        bool large = is_large<T>(op);

        gm_shared_carveout(transpose_vectorized<T, BYTES, DOWN, STRETCH>,
                           large ? SHARED_PERCENT : GM_CARVEOUT_DEFAULT);
        size_t part = large ? part_of(gm_gpu_of(exec), resident) : 0;
        shared = part > shared ? part : shared;
    }
    /* gm_tiles is given columns as rows: x, and origin.col, go down the matrix */
    return gm_tiles(a->batch, a->cols, a->rows, width, height, [&](dim3 grid, gm_origin origin) {
        return gm_launch(exec, transpose_vectorized<T, BYTES, DOWN, STRETCH>, grid,
                         dim3(SIDE * DOWN), shared, gm_in<T>(op, 0), gm_out<T>(op), a->rows,
                         a->cols, origin);
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
            if constexpr (sizeof(T) > 1) {
                if (high<T>(op, gpu))
                    return transpose<T, 16, HIGH, true>(op, exec);
            }
        }
        if (op->operand[0].cols * sizeof(T) % 256 != 0)
            return transpose<T, 16, SIDE, true>(op, exec);
        return transpose<T, 16>(op, exec);
    });
}
