/*
 * pipeline.h - a tile of a product, computed while its operands are still on their way.
 *
 * A block computes HEIGHT x WIDTH of the result. It takes slabs of DEPTH steps of k, of which
 * STAGES lie in shared memory: one is used, the others are being filled by asynchronous copies,
 * which bypass the registers and for which no thread waits (but see feed.h; the method's names are
 * software pipelining, or a multistage kernel). In shared memory both operands' slabs have k down
 * their columns, whatever the operands' order: a[k][row], b[k][col]. In the end the slabs' place is
 * where results are put in order, if their rows do not begin vectors (drain_runs.h).
 *
 * A warp has a part of the tile, of LANES_DOWN x LANES_ACROSS threads, and each thread ROWS x COLS
 * sums in registers. Its rows and columns are vectors of 16 bytes, and those of neighbouring
 * threads lie side by side, so that a warp reads one run of shared memory.
 *
 * Three things that are not to be seen in the arithmetic:
 *
 *     - What a tile has beyond the operand's edge is the operand's last row (or column) again, and
 *       what it has beyond k is zero. The one adds to sums that nobody stores, the other nothing.
 *     - Sums are multiplied by alpha before they are stored, even by 1. A store of 16 bytes takes
 *       four registers in a row. Were the sums stored themselves, nvcc would keep them so all
 *       through the loop, and each in the register bank (registers lie in two, by their parity) of
 *       its column's factor; reading both from one bank takes two cycles. The product is another
 *       register.
 *     - Sums are taken back and forth, one row to the right, the next to the left: a multiplication
 *       has a factor in common with the one before, which the hardware then need not read again.
 */
#ifndef GM_KERNELS_CUDA_PIPELINE_H
#define GM_KERNELS_CUDA_PIPELINE_H

#include "kernels/cuda/divide.h"
#include "kernels/cuda/drain_runs.h"
#include "kernels/cuda/feed.h"
#include "kernels/cuda/pipeline.inc"

/* Launches it for a stack, in as few launches as a grid allows. With slices, p is gm_slice_of.
 * dependent: what was launched before writes its operands. */
template <typename C, bool FIXED>
static inline enum gm_status gm_run_pipelined(struct gm_exec *exec,
                                              const gm_product<typename C::type> &p,
                                              unsigned slices, bool dependent)
{
    using T = typename C::type;
    struct gm_pipeline how = {};

    how.down = (unsigned)gm_ceil_div(p.m, C::HEIGHT);
    how.across = (unsigned)gm_ceil_div(p.n, C::WIDTH);
    how.group = gm_divisor_of(GM_TOGETHER * how.across);
    how.last = gm_divisor_of(how.down % GM_TOGETHER);
    how.slabs = gm_ceil_div(p.k, C::DEPTH) / slices;
    how.more = gm_ceil_div(p.k, C::DEPTH) % slices;
    how.way_a = gm_way_of<T>(&p.a, p.a.row, p.a.col);
    how.way_b = gm_way_of<T>(&p.b, p.b.col, p.b.row);
    if (FIXED && C::HELD > 0 && gm_both_by_elements(how.way_a, how.way_b))
        how.way_a = how.way_b = GM_WAY_ELEMENTS;
    how.span_a = gm_ceil_div(p.m, gm_wide<T>(how.way_a)) * gm_wide<T>(how.way_a);
    how.span_b = gm_ceil_div(p.n, gm_wide<T>(how.way_b)) * gm_wide<T>(how.way_b);
    return gm_by_ways<FIXED>(how.way_a, how.way_b, [&](auto way_a, auto way_b) {
        return gm_launches(p.batch, GM_GRID_YZ_MAX, [&](uint64_t matrix, uint64_t depth) {
            how.matrix = matrix;
            return gm_launch_dependent(exec, dependent,
                                       gm_pipelined<C, decltype(way_a)::way, decltype(way_b)::way>,
                                       dim3(how.down * how.across, slices, (unsigned)depth),
                                       dim3(C::THREADS), C::SHARED, p, how);
        });
    });
}

/*
 * What a feed can address: places in a slab are 32 bits wide, so either the matrix has so few
 * elements, or the distance of its rows is such that a tile's are near enough. And the tiles of a
 * matrix must fit into a grid, and eight rows of them be counted by 32 bits (gm_tile_of).
 */
#define GM_PIPELINE_STRIDE_MAX ((uint64_t)1 << 24)
#define GM_PIPELINE_TILES_MAX ((uint64_t)1 << 28)
#define GM_PIPELINE_K_MAX ((uint64_t)1 << 34) /* 2^31 slabs of 8 steps, counted by 32 bits */

GM_ROW_FUNCTION enum gm_status gm_pipeline_accepts(const struct gm_op *op,
                                                   const struct gm_device_facts *facts,
                                                   struct gm_error *err)
{
    (void)facts;
    if (gm_matrix_elements(&op->result) == 0)
        return GM_OK;
    if (gm_op_reads(op, 0) && gm_op_k(op) > GM_PIPELINE_K_MAX)
        return gm_fail(err, GM_KERNEL_UNAVAILABLE, "this kernel takes k of at most %llu",
                       (unsigned long long)GM_PIPELINE_K_MAX);
    for (unsigned i = 0; i < 2 && gm_op_reads(op, 0); i++) {
        struct gm_view view = gm_op_view(op, i);
        const struct gm_matrix *x = &op->operand[i];
        uint64_t stride = view.row > view.col ? view.row : view.col;
        if (gm_matrix_elements(x) == 0)
            continue;
        if (stride > GM_PIPELINE_STRIDE_MAX && x->rows > UINT32_MAX / x->cols)
            return gm_fail(err, GM_KERNEL_UNAVAILABLE,
                           "this kernel takes matrices of rows (or, column-major, columns) of at "
                           "most %llu elements, or of fewer than 2^32 elements in all",
                           (unsigned long long)GM_PIPELINE_STRIDE_MAX);
    }
    if (gm_ceil_div(op->result.rows, 16) > GM_PIPELINE_TILES_MAX / gm_ceil_div(op->result.cols, 16))
        return gm_fail(err, GM_KERNEL_UNAVAILABLE,
                       "this kernel takes results of at most 2^28 tiles of 16 x 16");
    return GM_OK;
}

#endif
