/*
 * vectorized.cu - transposes in registers, with 16-byte loads and stores.
 *
 * Unlike in transpose_padded, a thread loads one vector from each of N rows (N elements a vector),
 * transposes the N x N block in registers, writes N vectors to shared memory and reads N others to
 * store. Padding would misalign 16-byte accesses, so the tile is swizzled (drawn at tile_of). Small
 * matrices have too few large tiles: their vectors are 8 or 4 bytes, and their tiles half or a
 * quarter as high and wide.
 *
 * Cost, 16-byte vectors: 16 sectors a request, all useful; shared memory 4 wavefronts a request,
 * which 512 bytes need (overlapping tiles up to 6).
 * When it wins: where rows and columns are whole vectors, unless one is few (skinny) or the
 * matrices of a stack are small (batched).
 * Source: the swizzles of NVIDIA's CUTLASS; Harris (transpose_padded) for the rest.
 */
#include "kernels/cuda/lib/register_transpose.h"
#include "kernels/cuda/transpose/tile_order.h"

#define SIDE 16u /* N x N blocks of a tile, across and (unless tiles overlap) down */
#define SECTOR 32u

#define LARGE_BYTES ((uint64_t)64 << 20) /* more than caches hold */
#define LARGE_TILES 8u                   /* across and down: EXPERIMENTS.md */

/* Blocks per multiprocessor for large matrices of elements of up to 4 bytes; 0: as many as fit.
 * Fewer blocks than fit touch fewer of DRAM's pages at a time. A block asks for more shared memory
 * than its tile needs, which keeps others out, and the carveout keeps L1 cache to merge halves of
 * sectors. Both numbers are measured (EXPERIMENTS.md, "Fewer blocks at once"). */
template <typename T>
static constexpr unsigned RESIDENT = sizeof(T) > 4    ? 0
                                     : sizeof(T) == 4 ? 4
                                                      : 2;
#define VECTORIZED_SHARED_PERCENT 72

/*
 * Tile geometry: N x N blocks, SIDE across and SIDE down, and the swizzled position of vector y in
 * row c of the transposed tile: y ^ (c / N) % 8. With N = 4, vectors of 16 bytes (4 banks each):
 *
 *     position     0  1  2  3  4  5  6  7 ..
 *     row 0 ..3    0  1  2  3  4  5  6  7        8 lanes that write vector 0 of rows 0, 4, 8, ...
 *     row 4 ..7    1  0  3  2  5  4  7  6        use positions 0, 1, 2, ...: 8 groups of banks;
 *     row 8 ..11   2  3  0  1  6  7  4  5        so do 8 lanes that read a row
 *      :
 *
 * OVERLAPS: for results whose rows are not whole 32-byte sectors. Otherwise two blocks would each
 * write half of a sector. A tile also loads the last vectors of the tile above, and stores 16 of
 * the 17 vectors of each row: from the first if a sector begins with it, else from the second. Rows
 * of 17 are not closed under XOR, so the position is (y + (c / N) % 8) % 17. Not used for elements
 * of 16 bytes, and for 1 byte only in large matrices (EXPERIMENTS.md).
 *
 * `group` is c / N. Callers pass it because they know it without a division; that saves registers
 * for one more block per multiprocessor.
 */
template <typename T, unsigned BYTES, bool OVERLAPS> struct tile_of {
    static constexpr unsigned N = gm_per_vec<T, BYTES>::count;
    static constexpr unsigned down = SIDE + OVERLAPS;
    static constexpr unsigned height = down * N, width = SIDE * N, step = SIDE * N;
    static constexpr unsigned threads = SIDE * down;
    static constexpr unsigned swizzle = 128 / BYTES < SIDE ? 128 / BYTES : SIDE;
    static_assert(SIDE % swizzle == 0, "the swizzle stays within a row of the tile");
    static_assert(!OVERLAPS || 2 * BYTES == SECTOR,
                  "one vector more reaches the sector's beginning");

    static __device__ __forceinline__ unsigned place(unsigned c, unsigned group, unsigned y)
    {
        if (!OVERLAPS)
            return c * down + (y ^ group % swizzle);
        unsigned rotated = y + group % swizzle;
        return c * down + (rotated < down ? rotated : rotated - down);
    }
};

template <typename T, unsigned BYTES, bool STRETCH, bool OVERLAPS>
static __global__ void __launch_bounds__(tile_of<T, BYTES, OVERLAPS>::threads)
    transpose_vectorized(const T *in, T *out, uint64_t rows, uint64_t cols, gm_banded_order order)
{
    using tile_shape = tile_of<T, BYTES, OVERLAPS>;
    constexpr unsigned N = tile_shape::N;
    gm_vec<BYTES> *tile = gm_dynamic_shared<gm_vec<BYTES>>();
    gm_origin at = gm_banded_tile_at(order, tile_shape::step, tile_shape::width);
    uint64_t matrix = at.matrix * rows * cols;
    /* An overlapping tile begins a vector higher. Above the matrix the row wraps, beyond all
     * rows. */
    uint64_t tile_row = at.row - (OVERLAPS ? N : 0), tile_col = at.col;
    unsigned x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;

    if (tile_row + y * N < rows && tile_col + x * N < cols) {
        const T *from = in + matrix + (tile_row + y * N) * cols + tile_col + x * N;
        gm_vec<BYTES> block[N];
#pragma unroll
        for (unsigned i = 0; i < N; i++)
            block[i] = STRETCH ? gm_load_vec_l2_256<BYTES>(from + i * cols)
                               : *(const gm_vec<BYTES> *)(from + i * cols);
        gm_register_transpose<T>(block);
#pragma unroll
        for (unsigned i = 0; i < N; i++)
            tile[tile_shape::place(x * N + i, x, y)] = block[i];
    }
    __syncthreads();
    if (OVERLAPS && threadIdx.x >= SIDE * SIDE)
        return;
#pragma unroll
    for (unsigned i = 0; i < N; i++) {
        unsigned c = i * SIDE + y; /* column of the tile */
        uint64_t col = tile_col + c, begin = matrix + col * rows + tile_row;
        unsigned vec = x;
        if (OVERLAPS) /* skips the first vector if a sector begins with the second */
            vec += ((uintptr_t)out + begin * sizeof(T)) % SECTOR != 0;
        if (tile_row + vec * N < rows && col < cols)
            *(gm_vec<BYTES> *)(out + (begin + vec * N)) = tile[tile_shape::place(c, c / N, vec)];
    }
}

/* Whether it is a large matrix (or a stack of them) of many tiles across and down. A thin one has
 * little in flight in each tile, and needs all blocks that fit. */
template <typename T> static bool is_large(const struct gm_op *op)
{
    uint64_t side = LARGE_TILES * SIDE * 16 / sizeof(T);

    return gm_matrix_bytes(&op->result) > LARGE_BYTES && op->result.rows >= side &&
           op->result.cols >= side;
}

/* Whether tiles with vectors of `bytes` fit in shared memory and are enough to keep the device
 * busy. A large matrix always has enough. Otherwise tiles times the element size must reach
 * quarters / 4 per multiprocessor, because a block of larger elements is less work for a thread.
 * Callers pass measured values. */
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

/* Whether a tile of half the side holds a whole matrix. A matrix that does not fit in it is better
 * off in a larger tile, even a mostly empty one: smaller vectors have less in flight. */
template <typename T> static bool half_holds(const struct gm_op *op, uint64_t bytes)
{
    uint64_t side = SIDE * bytes / sizeof(T) / 2;

    return op->result.rows <= side && op->result.cols <= side;
}

/* Whether the result's rows begin inside sectors, and tiles should overlap for that. */
template <typename T> static bool overlaps(const struct gm_op *op, const struct gm_gpu *gpu)
{
    using tile_shape = tile_of<T, 16, true>;

    return op->operand[0].rows * sizeof(T) % SECTOR != 0 && (sizeof(T) > 1 || is_large<T>(op)) &&
           tile_shape::height * tile_shape::width * sizeof(T) <= gpu->shared_per_block;
}

/* Shared memory that each of `resident` blocks can have, with room for rounding up. */
static size_t part_of(const struct gm_gpu *gpu, unsigned resident)
{
    return gpu->shared_per_sm / 100 * VECTORIZED_SHARED_PERCENT / resident -
           2 * gpu->shared_reserved;
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
                           large ? VECTORIZED_SHARED_PERCENT : GM_CARVEOUT_DEFAULT);
        size_t part = large ? part_of(gm_gpu_of(exec), resident) : 0;
        shared = part > shared ? part : shared;
    }
    /* The last overlapping tile also stores the end of a column: an odd number of vectors leaves
     * room for it. */
    return gm_tiles_in_banded_order(
        a, tile_shape::step, tile_shape::width, [&](dim3 grid, gm_banded_order order) {
            return gm_launch(exec, transpose_vectorized<T, BYTES, STRETCH, OVERLAPS>, grid,
                             dim3(tile_shape::threads), shared, gm_in<T>(op, 0), gm_out<T>(op),
                             a->rows, a->cols, order);
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

GM_KERNEL(transpose_vectorized)
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
