/*
 * launch.h - launches the multistage kernel (mainloop.h), and checks what it accepts.
 */
#ifndef GM_KERNELS_CUDA_MATMUL_MULTISTAGE_LAUNCH_H
#define GM_KERNELS_CUDA_MATMUL_MULTISTAGE_LAUNCH_H

#include "kernels/cuda/matmul/multistage/mainloop.h"

/* Calls fn(mode of A, mode of B), modes as types. SPECIALIZED: the most common pairs have their own
 * kernels, which cost compile time and save registers and branches. */
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

/* Multiplies a stack, in as few launches as the grid limits allow. With split-K, p is
 * gm_split_of's. SPECIALIZED: see tile_config.h. dependent: the previous launch writes the
 * operands. */
template <typename TILE, bool SPECIALIZED>
static inline enum gm_status gm_launch_multistage(struct gm_exec *exec,
                                                  const gm_product<typename TILE::type> &p,
                                                  unsigned splits, bool dependent)
{
    using T = typename TILE::type;
    struct gm_mainloop how = {};

    how.tiles_m = (unsigned)gm_ceil_div(p.M, TILE::BM);
    how.tiles_n = (unsigned)gm_ceil_div(p.N, TILE::BN);
    how.group = gm_divisor_of(GM_RASTER_ROWS * how.tiles_n);
    how.last_group = gm_divisor_of(how.tiles_m % GM_RASTER_ROWS);
    how.k_tiles = gm_ceil_div(p.K, TILE::BK) / splits;
    how.extra_k_tiles = gm_ceil_div(p.K, TILE::BK) % splits;
    how.mode_a = gm_load_mode_of<T>(&p.a, p.a.row, p.a.col);
    how.mode_b = gm_load_mode_of<T>(&p.b, p.b.col, p.b.row);
    if (SPECIALIZED && TILE::STAGED_MAX > 0 && gm_both_scalar(how.mode_a, how.mode_b))
        how.mode_a = how.mode_b = GM_LOAD_SCALAR;
    how.span_a = gm_ceil_div(p.M, gm_load_width<T>(how.mode_a)) * gm_load_width<T>(how.mode_a);
    how.span_b = gm_ceil_div(p.N, gm_load_width<T>(how.mode_b)) * gm_load_width<T>(how.mode_b);
    return gm_by_load_modes<SPECIALIZED>(how.mode_a, how.mode_b, [&](auto a, auto b) {
        return gm_launches(p.batch, GM_GRID_YZ_MAX, [&](uint64_t matrix, uint64_t matrices) {
            how.matrix = matrix;
            return gm_launch_dependent(exec, dependent,
                                       gm_multistage<TILE, decltype(a)::mode, decltype(b)::mode>,
                                       dim3(how.tiles_m * how.tiles_n, splits, (unsigned)matrices),
                                       dim3(TILE::THREADS), TILE::SHARED_BYTES, p, how);
        });
    });
}

/*
 * The limits of a loader. Offsets in a k-tile have 32 bits. So the matrix must have fewer than 2^32
 * elements, or its rows must be close enough together. The tiles of a matrix must fit in a grid,
 * and eight rows of tiles in 32 bits (gm_tile_of).
 */
#define GM_MULTISTAGE_STRIDE_MAX ((uint64_t)1 << 24)
#define GM_MULTISTAGE_TILES_MAX ((uint64_t)1 << 28)
#define GM_MULTISTAGE_K_MAX ((uint64_t)1 << 34) /* 2^31 k-tiles of 8: counters have 32 bits */

GM_ROW_FUNCTION enum gm_status gm_multistage_accepts(const struct gm_op *op,
                                                     const struct gm_device_facts *facts,
                                                     struct gm_error *err)
{
    (void)facts;
    if (gm_matrix_elements(&op->result) == 0)
        return GM_OK;
    if (gm_op_reads(op, 0) && gm_op_k(op) > GM_MULTISTAGE_K_MAX)
        return gm_fail(err, GM_KERNEL_UNAVAILABLE, "this kernel takes k of at most %llu",
                       (unsigned long long)GM_MULTISTAGE_K_MAX);
    for (unsigned i = 0; i < 2 && gm_op_reads(op, 0); i++) {
        struct gm_view view = gm_op_view(op, i);
        const struct gm_matrix *x = &op->operand[i];
        uint64_t stride = view.row > view.col ? view.row : view.col;
        if (gm_matrix_elements(x) == 0)
            continue;
        if (stride > GM_MULTISTAGE_STRIDE_MAX && x->rows > UINT32_MAX / x->cols)
            return gm_fail(err, GM_KERNEL_UNAVAILABLE,
                           "this kernel takes matrices of rows (or, column-major, columns) of at "
                           "most %llu elements, or of fewer than 2^32 elements in all",
                           (unsigned long long)GM_MULTISTAGE_STRIDE_MAX);
    }
    if (gm_ceil_div(op->result.rows, 16) >
        GM_MULTISTAGE_TILES_MAX / gm_ceil_div(op->result.cols, 16))
        return gm_fail(err, GM_KERNEL_UNAVAILABLE,
                       "this kernel takes results of at most 2^28 tiles of 16 x 16");
    return GM_OK;
}

#endif
