/*
 * tile_config.h - divides a block tile among warps and threads, and selects load modes.
 *
 * A config names its tile sizes; gm_tile derives the rest and rejects what does not fit together.
 * Sizes are in elements. The result is M x N, K is the direction of the sum.
 */
#ifndef GM_KERNELS_CUDA_MATMUL_MULTISTAGE_TILE_CONFIG_H
#define GM_KERNELS_CUDA_MATMUL_MULTISTAGE_TILE_CONFIG_H

#include "kernels/cuda/matmul/product.h"

#include <type_traits>

/* ---- Load modes. ---- */

/* How an operand's k-tiles are loaded. If its rows in memory are rows of the k-tile: by 16 bytes,
 * by 2 elements, or one by one. If K runs along its rows in memory: one by one, transposed by the
 * loader. ANY: the kernel selects the mode at run time. */
enum gm_load_mode { GM_LOAD_VEC, GM_LOAD_VEC2, GM_LOAD_SCALAR, GM_LOAD_TRANSPOSED, GM_LOAD_ANY };

/* Elements per load. */
template <typename T> static constexpr __host__ __device__ unsigned gm_load_width(gm_load_mode mode)
{
    return mode == GM_LOAD_VEC ? 16 / sizeof(T) : mode == GM_LOAD_VEC2 ? 2 : 1;
}

/* The widest load mode of an operand. stride: from one row of A (column of B) to the next;
 * stride_k: from one step of K to the next. */
template <typename T>
static inline gm_load_mode gm_load_mode_of(const struct gm_view *view, uint64_t stride,
                                           uint64_t stride_k)
{
    const gm_load_mode widest[] = {GM_LOAD_VEC, GM_LOAD_VEC2};

    if (stride != 1)
        return GM_LOAD_TRANSPOSED;
    for (gm_load_mode mode : widest) {
        uint64_t width = gm_load_width<T>(mode);
        if (stride_k % width == 0 && view->batch % width == 0 &&
            (uintptr_t)view->data % (width * sizeof(T)) == 0)
            return mode;
    }
    return GM_LOAD_SCALAR;
}

/* Whether A and B both use the kernel that loads element by element and stages in registers
 * (loader.h): neither is transposed, and at least one cannot be loaded by 16 bytes. */
static inline bool gm_both_scalar(gm_load_mode a, gm_load_mode b)
{
    return a != GM_LOAD_TRANSPOSED && b != GM_LOAD_TRANSPOSED &&
           (a != GM_LOAD_VEC || b != GM_LOAD_VEC);
}

/* A load mode as a type, for functions that choose a kernel by it. */
template <gm_load_mode MODE> struct gm_load_mode_tag {
    static constexpr gm_load_mode mode = MODE;
};

/* ---- Tiles. ---- */

/* 16 bytes of elements. */
template <typename T> struct alignas(16) gm_vec_of {
    T x[16 / sizeof(T)];
};

/* Reads one vector from shared memory in one access. */
template <typename S> __device__ __forceinline__ void gm_load_fragment(S *to, const S *from)
{
    gm_vec_of<S> vec = *(const gm_vec_of<S> *)from;
#pragma unroll
    for (unsigned i = 0; i < 16 / sizeof(S); i++)
        to[i] = vec.x[i];
}

/*
 * The order of a thread's instructions for one k-tile. It is chosen by measurement alone, because
 * it decides how nvcc allocates registers. COPY_AT: the copy of the next k-tile starts before (2 i)
 * or after (2 i + 1) the multiply-adds of step i. Multiply-adds run along lines (rows or columns)
 * of accumulators: even lines forwards and odd ones backwards, or the reverse (gm_multiply says
 * why). GM_BY_COLUMNS also keeps the shared memory offsets in registers (gm_keep).
 */
enum gm_forward { GM_EVEN_FORWARD, GM_ODD_FORWARD };
enum gm_lines { GM_BY_ROWS, GM_BY_COLUMNS };
template <unsigned COPY_AT_, gm_forward FORWARD_, gm_lines LINES_ = GM_BY_ROWS> struct gm_schedule {
    static constexpr unsigned COPY_AT = COPY_AT_, FORWARD = FORWARD_;
    static constexpr bool BY_COLUMNS = LINES_ == GM_BY_COLUMNS;
};

/* One step of K: acc += a b, the outer product of the thread's fragments. Lines run back and forth,
 * so that consecutive multiply-adds share a factor, which the hardware then reads once. */
template <typename TILE, typename SCHEDULE, typename S>
static __device__ __forceinline__ void gm_multiply(S (&acc)[TILE::TM][TILE::TN],
                                                   const S (&a)[TILE::TM], const S (&b)[TILE::TN])
{
    constexpr unsigned LINE = SCHEDULE::BY_COLUMNS ? TILE::TM : TILE::TN;

#pragma unroll
    for (unsigned s = 0; s < TILE::TM * TILE::TN; s++) {
        unsigned line = s / LINE, in = s % LINE;
        unsigned at = line % 2 == SCHEDULE::FORWARD ? in : LINE - 1 - in;
        unsigned i = SCHEDULE::BY_COLUMNS ? at : line, j = SCHEDULE::BY_COLUMNS ? line : at;
        acc[i][j] += a[i] * b[j];
    }
}

/* The schedules of a config: VEC if A is transposed by the loader and B is loaded by 16 bytes, ANY
 * otherwise. */
template <typename ANY, typename VEC = ANY> struct gm_schedules {
    template <bool IS_VEC> using schedule = std::conditional_t<IS_VEC, VEC, ANY>;
    static constexpr unsigned LAST_COPY_AT =
        ANY::COPY_AT > VEC::COPY_AT ? ANY::COPY_AT : VEC::COPY_AT;
};

/*
 * The two configs that both multistage kernels use. A config names:
 *
 *     BM, BN, BK     the block tile, and the steps of K in a k-tile
 *     WM, WN         the warp tile
 *     TM, TN         the thread tile: a thread's accumulators
 *     STAGES         k-tiles in shared memory: one in use, the others in flight
 *     BLOCKS_PER_SM  the least number of blocks that share a multiprocessor
 *     STAGED_MAX     the widest loads, in elements, that are staged in registers (loader.h)
 */
struct gm_f32_128x256
    : gm_schedules<gm_schedule<3, GM_ODD_FORWARD, GM_BY_COLUMNS>, gm_schedule<5, GM_EVEN_FORWARD>> {
    static constexpr unsigned BM = 128, BN = 256, BK = 8, WM = 64, WN = 64, TM = 8, TN = 16;
    static constexpr unsigned STAGES = 4, BLOCKS_PER_SM = 1, STAGED_MAX = 1;
};
struct gm_f64_128x128 : gm_schedules<gm_schedule<6, GM_ODD_FORWARD>> {
    static constexpr unsigned BM = 128, BN = 128, BK = 8, WM = 64, WN = 32, TM = 8, TN = 8;
    static constexpr unsigned STAGES = 3, BLOCKS_PER_SM = 1, STAGED_MAX = 1;
};

/*
 * Block, warp and thread tiles of gm_f32_128x256, with vectors of VEC = 4 elements:
 *
 *     block tile 128 x 256          warp tile 64 x 64          one lane's thread tile 8 x 16:
 *     of 2 x 4 warps                of 8 x 4 lanes, in         2 x 4 squares of VEC x VEC,
 *                                   quads of 2 x 2             32 rows and 16 columns apart
 *        64   64   64   64
 *      +----+----+----+----+            x  0  1  2  3             row  0  #   #   #   #
 *   64 | w0 | w2 | w4 | w6 |          y 0  0  1  4  5                  4
 *      +----+----+----+----+            1  2  3  6  7                  :
 *   64 | w1 | w3 | w5 | w7 |            2  8  9 12 13                 32  #   #   #   #
 *      +----+----+----+----+            3 10 11 14 15                  :
 *                                       :                         column  0  16  32  48
 *
 * A quad reads two vectors of A and two of B from shared memory. Lanes that read the same vector
 * are close enough to be served in one wavefront.
 *
 * One stage in shared memory: K runs down the columns of both operands, whatever their layout in
 * global memory. Rows are padded by one vector, so that the stores down a column that transpose an
 * operand use all banks.
 *
 *             BM         VEC                 BN                   VEC
 *          +------------+---+             +--------------------+---+
 *       BK | A[k][m]    |pad|   then   BK | B[k][n]            |pad|
 *          +------------+---+             +--------------------+---+
 *             LDA = BM + VEC                 LDB = BN + VEC
 */
template <typename T, typename CONFIG> struct gm_tile : CONFIG {
    using C = CONFIG;
    using type = T;
    static constexpr unsigned VEC = 16 / sizeof(T);
    static constexpr unsigned LANES_M = C::WM / C::TM, LANES_N = C::WN / C::TN;
    static constexpr unsigned WARPS_M = C::BM / C::WM, WARPS_N = C::BN / C::WN;
    static constexpr unsigned THREADS = GM_WARP * WARPS_M * WARPS_N;
    static constexpr unsigned LDA = C::BM + VEC, LDB = C::BN + VEC; /* in shared memory */
    static constexpr unsigned TILE_A = C::BK * LDA, TILE_B = C::BK * LDB, STAGE = TILE_A + TILE_B;
    static constexpr size_t SHARED_BYTES = sizeof(T) * C::STAGES * STAGE;

    static_assert(sizeof(gm_acc<T>) == sizeof(T), "elements are accumulated as they are stored");
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "cp.async moves 4, 8 or 16 bytes");
    static_assert(C::WM % C::TM == 0 && C::WN % C::TN == 0 && LANES_M * LANES_N == GM_WARP,
                  "a warp tile is 32 thread tiles");
    static_assert(C::BM % C::WM == 0 && C::BN % C::WN == 0, "a block tile is whole warp tiles");
    static_assert(LANES_M >= 2 && LANES_N >= 4, "lanes lie in quads");
    static_assert(C::TM % VEC == 0 && C::TN % VEC == 0, "a thread tile is whole vectors");
    static_assert(C::BK % 8 == 0, "a warp transposes 8 steps of k at a time");
    static_assert(C::STAGES >= 3, "one in use, one staged in registers, one on its way");
    static_assert(C::LAST_COPY_AT < 2 * (C::BK - 2),
                  "staged loads are stored before they are used");
    static_assert(THREADS * C::BLOCKS_PER_SM <= 1024,
                  "a multiprocessor holds 1024 threads or more");
};

#endif
