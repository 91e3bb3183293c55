/*
 * multistage_tuned.cu - runs the multistage kernel with the tile config and split-K of least
 * estimated time.
 *
 * In matmul_multistage every tile is 128 x 256, and a result of few tiles leaves multiprocessors
 * idle. Here twelve configs (f64: three) go down to 16 x 32, and if even these give too few tiles,
 * K is split too (split_k.h). Large tiles reuse each load more; small tiles and splits make more
 * blocks. An operand that would be loaded element by element is repacked first, if that costs less
 * in all (repack.h).
 *
 * Cost, f32: as multistage with 128 accumulators a thread (21 multiply-adds a read of shared
 * memory); 16, 11 and 8 multiply-adds with 64, 32 and 16 accumulators. Splits are written and read
 * once.
 *
 * When it wins: among our own kernels on all but small results (small_tile, split_k_dot), single
 * vectors and few long ones (skinny), and stacks that its tiles do not divide (batched).
 */
#include "kernels/cuda/matmul/multistage/candidates.h"
#include "kernels/cuda/matmul/multistage/cost_model.h"
#include "kernels/cuda/matmul/multistage/repack.h"
#include "kernels/cuda/matmul/split_k.h"

#include <cmath>
#include <cstring>

/*
 * The load plan: whether an operand is repacked first (repack.h), and the load modes that follow.
 *
 * All tiles in a row (column) of the result load the same part of A (B). If those loads are narrow,
 * it may cost less to repack the operand once and load it by 16 bytes. Costs are relative to A
 * transposed by the loader and B loaded by 16 bytes, as the rates were measured (cost_model.h).
 */

/* The cost of a tile's loads, in multiply-adds of the tile; fitted together with the candidates. */
#define GM_COST_B_NARROW 8.5    /* a load of B of 8 bytes, or of one element to transpose */
#define GM_COST_STAGED 4.0      /* extra if staged, divided by warps per scheduler */
#define GM_COST_BOTH_SCALAR 0.5 /* an element of A and B, if both are loaded element by element */
#define GM_COST_A_NARROW 7.3    /* a load of A of less than 16 bytes, if nothing is staged */
#define GM_COST_A_VEC (-3.5)    /* an element of A in a 16-byte load: less than a transposed one */
/* The fewest rows of A for which it is repacked: with fewer, the tiles that win stay mostly
 * empty. */
#define GM_REPACK_ROWS_MIN 64u
#define GM_REPACK_LAUNCH_US 1.5
#define GM_REPACK_BYTES_US 2.1e6                /* bytes of the operand per microsecond */
#define GM_REPACK_BYTES_MAX ((uint64_t)1 << 29) /* a larger one gains a few hundredths at most */

/* For A and B: the load mode, and the repacked layout (no matrices: not repacked). us: the time
 * that repacking takes. */
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

/* The cost of a tile's loads in a step of K, in multiply-adds. warps: per scheduler. */
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

/* ---- The choice of a candidate and of the number of splits. ---- */

#define SPLITS_MAX 256u
#define SPLIT_K_TILES_MIN 4u
#define SCRATCH_ALIGNMENT 256u

struct choice {
    unsigned candidate, splits;
    gm_load_plan loads;
};

/* Calls fn(splits) for each number of splits worth an estimate: 1, and then, for each number of
 * blocks per multiprocessor, the most splits that need no more blocks. Blocks go from what two
 * splits need to twice what a multiprocessor holds. Each split has at least SPLIT_K_TILES_MIN
 * k-tiles. */
template <typename F>
static void for_splits(const gm_candidate &candidate, const gm_workload &work, F fn)
{
    uint64_t whole = work.k_tiles / SPLIT_K_TILES_MIN;
    unsigned most = whole < SPLITS_MAX ? (unsigned)whole : SPLITS_MAX, before = 1;

    fn(1u);
    for (double blocks = floor(2 * work.tiles / GM_H200_SMS);
         blocks <= 2 * candidate.blocks_per_sm && before < most; blocks++) {
        double fill = blocks * GM_H200_SMS / work.tiles;
        unsigned splits = fill < most ? (unsigned)fill : most;
        if (splits > before)
            fn(before = splits);
    }
}

template <typename T>
static struct choice choose(const gm_candidate *candidates, unsigned count, const gm_product<T> &p)
{
    gm_load_plan plans[4]; /* repacks neither operand, A, B, both; those that can pay */
    unsigned many = 0;
    struct choice best = {0, 1, {}};
    double least = INFINITY;

    for (unsigned repack = 0; repack < 4; repack++)
        many += gm_load_plan_of(p, repack & 1, repack & 2, &plans[many]);
    for (unsigned i = 0; i < count; i++) {
        gm_workload work = gm_workload_of(candidates[i], p);
        for_splits(candidates[i], work, [&](unsigned splits) {
            gm_estimate estimate = gm_estimate_of(candidates[i], work, splits);
            for (unsigned j = 0; j < many; j++) {
                double cost = gm_load_cost<T>(candidates[i], plans[j], estimate.warps);
                double us = estimate.us + plans[j].us + estimate.load_us * cost;
                if (us < least) {
                    least = us;
                    best = {i, splits, plans[j]};
                }
            }
        });
    }
    return best;
}

/* Scratch memory: the splits, then the repacked operands, each at at[i]. */
struct plan {
    struct choice choice;
    uint64_t at[2], scratch;
};

template <typename T> static struct plan plan_of(const struct gm_op *op)
{
    using candidates = candidates_of<T>;
    struct plan plan = {};

    plan.choice = choose(candidates::LIST, candidates::COUNT, gm_product_of<T>(op));
    if (plan.choice.splits > 1)
        plan.scratch = gm_splits_bytes(op, plan.choice.splits);
    for (unsigned i = 0; i < 2 && plan.scratch < UINT64_MAX - 4 * GM_REPACK_BYTES_MAX; i++) {
        const gm_repack &repack = plan.choice.loads.repack[i];
        if (repack.matrices == 0)
            continue;
        plan.at[i] = gm_ceil_div(plan.scratch, SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT;
        plan.scratch = plan.at[i] + repack.matrices * repack.steps * repack.ld * sizeof(T);
    }
    return plan;
}

/* The first repetition of a task makes the plan; the others reuse it. */
template <typename T> static struct plan kept_plan(const struct gm_op *op, struct gm_exec *exec)
{
    struct gm_kept *kept = gm_kept_of(exec);
    struct plan plan = {};

    static_assert(sizeof(plan) <= sizeof(kept->words), "it is kept");
    if (kept && kept->made) {
        memcpy(&plan, kept->words, sizeof(plan));
        return plan;
    }
    plan = plan_of<T>(op);
    if (kept) {
        memcpy(kept->words, &plan, sizeof(plan));
        kept->made = true;
    }
    return plan;
}

GM_ROW_FUNCTION uint64_t gm_multistage_tuned_scratch(const struct gm_op *op)
{
    uint64_t bytes = 0;

    (void)gm_by_float_type(op->result.dtype, [&](auto tag) {
        bytes = plan_of<typename decltype(tag)::type>(op).scratch;
        return GM_OK;
    });
    return bytes;
}

GM_KERNEL(matmul_multistage_tuned)
{
    return gm_by_float_type(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        using candidates = candidates_of<T>;
        gm_product<T> p = gm_product_of<T>(op);
        struct plan plan = kept_plan<T>(op, exec);
        uint8_t *scratch = plan.scratch > 0 ? (uint8_t *)gm_scratch(exec) : nullptr;
        const gm_repack *repack = plan.choice.loads.repack;
        bool repacks_a = repack[0].matrices > 0, repacks_b = repack[1].matrices > 0;
        bool repacks = repacks_a || repacks_b;
        enum gm_status status = GM_OK;

        if (repacks_a)
            status = gm_repack_operand<T>(exec, false, repack[0], scratch + plan.at[0], &p.a,
                                          &p.a.row, &p.a.col);
        if (status == GM_OK && repacks_b)
            status = gm_repack_operand<T>(exec, repacks_a, repack[1], scratch + plan.at[1], &p.b,
                                          &p.b.col, &p.b.row);
        if (status != GM_OK || plan.choice.splits == 1)
            return status == GM_OK ? candidates::run(plan.choice.candidate, exec, p, 1, repacks)
                                   : status;
        status = candidates::run(plan.choice.candidate, exec, gm_split_of(p, scratch),
                                 plan.choice.splits, repacks);
        return status == GM_OK ? gm_reduce_splits(exec, p, scratch, plan.choice.splits) : status;
    });
}
