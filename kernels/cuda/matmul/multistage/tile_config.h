/*
 * tile_config.h - how a block's tile of C is divided among warps and threads, and how operands get
 * into shared memory: as wide as their layout allows.
 *
 * A config names its tile sizes; gm_tile derives the rest and refuses what does not fit together.
 * Sizes are elements. M is the direction of C's rows, N that of its columns, K that of the sum.
 */
#ifndef GM_KERNELS_CUDA_MATMUL_MULTISTAGE_TILE_CONFIG_H
#define GM_KERNELS_CUDA_MATMUL_MULTISTAGE_TILE_CONFIG_H

#include "kernels/cuda/matmul/product.h"

#include <type_traits>

/* ---- Load modes. ---- */

/* Where rows in memory run as rows of the k-tile do: by 16 bytes, by 2 elements, or one by one.
 * Where k runs along the rows in memory: one by one, transposed on the way. ANY: the kernel finds
 * out at run time. */
enum gm_load_mode { GM_LOAD_VEC, GM_LOAD_VEC2, GM_LOAD_SCALAR, GM_LOAD_TRANSPOSED, GM_LOAD_ANY };

/* Elements that a load moves. */
template <typename T> static constexpr __host__ __device__ unsigned gm_load_width(gm_load_mode mode)
{
    return mode == GM_LOAD_VEC ? 16 / sizeof(T) : mode == GM_LOAD_VEC2 ? 2 : 1;
}

/* The mode of an operand: `stride` from one row of A (column of B) to the next, `stride_k` from one
 * step of k to the next. */
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

/* Whether A and B share the kernel that loads both element by element, staged in registers
 * (loader.h): neither is transposed, and not both can be loaded by 16 bytes. */
static inline bool gm_both_scalar(gm_load_mode a, gm_load_mode b)
{
    return a != GM_LOAD_TRANSPOSED && b != GM_LOAD_TRANSPOSED &&
           (a != GM_LOAD_VEC || b != GM_LOAD_VEC);
}

/* fn(mode of A, mode of B) as types. SPECIALIZED: the commonest pairs have kernels of their own,
 * which take time to compile and save registers and branches. */
template <gm_load_mode MODE> struct gm_load_mode_tag {
    static constexpr gm_load_mode mode = MODE;
};
template <bool SPECIALIZED, typename F>
static inline enum gm_status gm_by_load_modes(gm_load_mode a, gm_load_mode b, F fn)
{
    if constexpr (SPECIALIZED) {
        if (a == GM_LOAD_TRANSPOSED && b == GM_LOAD_VEC)
            return fn(gm_load_mode_tag<GM_LOAD_TRANSPOSED>(), gm_load_mode_tag<GM_LOAD_VEC>());
        if (a == GM_LOAD_TRANSPOSED && b == GM_LOAD_VEC2)
            return fn(gm_load_mode_tag<GM_LOAD_TRANSPOSED>(), gm_load_mode_tag<GM_LOAD_VEC2>());
        if (a == GM_LOAD_TRANSPOSED && b == GM_LOAD_SCALAR)
            return fn(gm_load_mode_tag<GM_LOAD_TRANSPOSED>(), gm_load_mode_tag<GM_LOAD_SCALAR>());
        if (a == GM_LOAD_VEC && b == GM_LOAD_VEC)
            return fn(gm_load_mode_tag<GM_LOAD_VEC>(), gm_load_mode_tag<GM_LOAD_VEC>());
        if (a == GM_LOAD_TRANSPOSED && b == GM_LOAD_TRANSPOSED)
            return fn(gm_load_mode_tag<GM_LOAD_TRANSPOSED>(),
                      gm_load_mode_tag<GM_LOAD_TRANSPOSED>());
        if (a == GM_LOAD_SCALAR && b == GM_LOAD_SCALAR)
            return fn(gm_load_mode_tag<GM_LOAD_SCALAR>(), gm_load_mode_tag<GM_LOAD_SCALAR>());
    }
    return fn(gm_load_mode_tag<GM_LOAD_ANY>(), gm_load_mode_tag<GM_LOAD_ANY>());
}

/* ---- Tiles. ---- */

/* 16 bytes of elements. */
template <typename T> struct alignas(16) gm_vec_of {
    T x[16 / sizeof(T)];
};

/* A vector from shared memory, in one access. */
template <typename S> __device__ __forceinline__ void gm_load_fragment(S *to, const S *from)
{
    gm_vec_of<S> vec = *(const gm_vec_of<S> *)from;
#pragma unroll
    for (unsigned i = 0; i < 16 / sizeof(S); i++)
        to[i] = vec.x[i];
}

/*
 * The order of a thread's instructions for one k-tile. By measurement alone: which registers nvcc
 * finds depends on it. COPY_AT: the copy of the next k-tile starts before (2 i) or after (2 i + 1)
 * the multiply-adds of step i. Multiply-adds go along lines of accumulators (rows, or columns):
 * even lines forwards and odd ones backwards, or the other way round (gm_multiply says why).
 * GM_BY_COLUMNS also keeps the shared memory addresses in registers (gm_keep).
 */
enum gm_forward { GM_EVEN_FORWARD, GM_ODD_FORWARD };
enum gm_lines { GM_BY_ROWS, GM_BY_COLUMNS };
template <unsigned COPY_AT_, gm_forward FORWARD_, gm_lines LINES_ = GM_BY_ROWS> struct gm_schedule {
    static constexpr unsigned COPY_AT = COPY_AT_, FORWARD = FORWARD_;
    static constexpr bool BY_COLUMNS = LINES_ == GM_BY_COLUMNS;
};

/* The schedules of a config: VEC is used where A is transposed on its way and B is loaded by 16
 * bytes, ANY elsewhere. */
template <typename ANY, typename VEC = ANY> struct gm_schedules {
    template <bool IS_VEC> using schedule = std::conditional_t<IS_VEC, VEC, ANY>;
    static constexpr unsigned LAST_COPY_AT =
        ANY::COPY_AT > VEC::COPY_AT ? ANY::COPY_AT : VEC::COPY_AT;
};

/*
 * Two configs that both multistage kernels have. Each config says:
 *
 *     BM, BN, BK     the block tile, and the steps of k in a k-tile
 *     WM, WN         the warp tile
 *     TM, TN         the thread tile: a thread's accumulators
 *     STAGES         k-tiles in shared memory: one in use, the others on their way
 *     BLOCKS_PER_SM  blocks that share a multiprocessor, at least
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
 * gm_f32_128x256, whose vectors are 4 elements (VEC):
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
 * A quad reads two vectors of A and two of B from shared memory: lanes that read one vector are
 * close enough to be served in one wavefront.
 *
 * One stage in shared memory: k runs down the columns of both operands, whatever their layout in
 * global memory. Rows are padded by one vector, so that stores down a column, which transpose an
 * operand on its way, fall in all banks.
 *
 *             BM         VEC                 BN                   VEC
 *          +------------+---+             +--------------------+---+
 *       BK | A[k][m]    |pad|   then   BK | B[k][n]            |pad|
 *          +------------+---+             +--------------------+---+
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
