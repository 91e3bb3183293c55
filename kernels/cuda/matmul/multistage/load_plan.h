/*
 * load_plan.h - decides how operands are loaded: as they are, or repacked first (repack.h).
 *
 * All tiles in a row, or column, of the result load the same part of an operand. Where those loads
 * are narrow, repacking the operand once, so that all load it by 16 bytes, may cost less. Costs are
 * relative to A transposed on its way and B loaded by 16 bytes, as rates were measured
 * (cost_model.h).
 */
#ifndef GM_KERNELS_CUDA_MATMUL_MULTISTAGE_LOAD_PLAN_H
#define GM_KERNELS_CUDA_MATMUL_MULTISTAGE_LOAD_PLAN_H

#include "kernels/cuda/matmul/multistage/cost_model.h"
#include "kernels/cuda/matmul/multistage/repack.h"

/* What loads of a tile cost, in multiply-adds of the tile; fitted together with the candidates. */
#define GM_COST_B_NARROW 8.5    /* a load of B of 8 bytes, or one that transposes an element */
#define GM_COST_STAGED 4.0      /* more if staged in registers, divided by the scheduler's warps */
#define GM_COST_BOTH_SCALAR 0.5 /* of an element of both, where both are loaded by elements */
#define GM_COST_A_NARROW 7.3    /* a load of A of less than 16 bytes, where nothing is staged */
#define GM_COST_A_VEC (-3.5)    /* an element of A by 16 bytes: less than a transposed one */
/* Rows of A from which on it is repacked: fewer leave the tiles that win empty. */
#define GM_REPACK_ROWS_MIN 64u
#define GM_REPACK_LAUNCH_US 1.5
#define GM_REPACK_BYTES_US 2.1e6                /* of the operand, a microsecond */
#define GM_REPACK_BYTES_MAX ((uint64_t)1 << 29) /* more is a few hundredths of the whole time */

/* Of both operands: how k-tiles are loaded, and how the operand is repacked first (no matrices: it
 * is not). us: what repacking takes. */
struct gm_load_plan {
    gm_load_mode mode[2];
    gm_repack repack[2];
    double us;
};

/* The plan that repacks those operands. Returns false if it cannot pay: the operand already allows
 * 16-byte loads, or A has fewer than GM_REPACK_ROWS_MIN rows, or B would still need narrower loads
 * than A (there is no kernel for that pair: gm_by_load_modes). */
template <typename T>
static inline bool gm_load_plan_of(const gm_product<T> &p, bool repack_a, bool repack_b,
                                   gm_load_plan *ret)
{
    const uint64_t span[] = {p.M, p.N};
    const struct gm_view *view[] = {&p.a, &p.b};
    const bool wanted[] = {repack_a, repack_b};
    gm_load_plan plan = {{gm_load_mode_by_strides<T>(&p.a, p.a.row, p.a.col),
                          gm_load_mode_by_strides<T>(&p.b, p.b.col, p.b.row)},
                         {},
                         0};

    for (unsigned i = 0; i < 2; i++) {
        if (!wanted[i])
            continue;
        gm_repack repack = gm_repack_of<T>(view[i], p.batch, p.K, span[i]);
        double bytes =
            (double)repack.matrices * (double)repack.steps * (double)repack.ld * sizeof(T);
        if (plan.mode[i] == GM_LOAD_VEC || bytes > GM_REPACK_BYTES_MAX)
            return false;
        plan.mode[i] = GM_LOAD_VEC;
        plan.repack[i] = repack;
        plan.us += GM_REPACK_LAUNCH_US + bytes / GM_REPACK_BYTES_US;
    }
    if (repack_a && (plan.mode[1] != GM_LOAD_VEC || p.M < GM_REPACK_ROWS_MIN))
        return false;
    *ret = plan;
    return true;
}

/* What a tile's loads cost in a step of k, in multiply-adds, with so many warps a scheduler. */
template <typename T>
static inline double gm_load_cost(const gm_candidate &candidate, const gm_load_plan &plan,
                                  double warps)
{
    gm_load_mode a = plan.mode[0], b = plan.mode[1];
    bool staged = a == GM_LOAD_TRANSPOSED && b != GM_LOAD_TRANSPOSED &&
                  gm_load_width<T>(b) <= candidate.staged_max;
    double each_a = 0, each_b = 0;

    if (candidate.staged_max > 0 && gm_both_scalar(a, b))
        return GM_COST_BOTH_SCALAR * (candidate.BM + candidate.BN) *
               (candidate.scalar_b + GM_COST_STAGED / warps);
    if (a != GM_LOAD_TRANSPOSED)
        each_a = a == GM_LOAD_VEC ? GM_COST_A_VEC : GM_COST_A_NARROW / gm_load_width<T>(a);
    if (b != GM_LOAD_VEC)
        each_b = (staged                ? candidate.scalar_b + GM_COST_STAGED / warps
                  : b == GM_LOAD_SCALAR ? candidate.scalar_b
                                        : GM_COST_B_NARROW) /
                 gm_load_width<T>(b);
    return candidate.BM * each_a + candidate.BN * each_b;
}

#endif
