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
#include "kernels/choose/choose.h"
#include "kernels/cuda/matmul/multistage/launch.h"
#include "kernels/cuda/matmul/multistage/repack.h"
#include "kernels/cuda/matmul/split_k.h"

#include <cmath>
#include <cstring>

/*
 * The tile configs, largest tiles first: choose/multistage.c chooses among them. In addition to
 * tile sizes (tile_config.h), a config names:
 *
 *     SPECIALIZED    common load modes have their own kernels (tile_config.h)
 *     RESIDENT       blocks that share a multiprocessor, as measured
 */
struct f32_128x256_by_8x16 : gm_f32_128x256 {
    static constexpr bool SPECIALIZED = true;
    static constexpr unsigned RESIDENT = 1;
};
struct f32_64x128_by_16x8
    : gm_schedules<gm_schedule<7, GM_EVEN_FORWARD>, gm_schedule<1, GM_ODD_FORWARD, GM_BY_COLUMNS>> {
    static constexpr unsigned BM = 64, BN = 128, BK = 8, WM = 64, WN = 64, TM = 16, TN = 8;
    static constexpr unsigned STAGES = 4, BLOCKS_PER_SM = 4, STAGED_MAX = 1;
    static constexpr bool SPECIALIZED = true;
    static constexpr unsigned RESIDENT = 4;
};
struct f32_64x128_by_8x8 : gm_schedules<gm_schedule<7, GM_EVEN_FORWARD>> {
    static constexpr unsigned BM = 64, BN = 128, BK = 8, WM = 32, WN = 64, TM = 8, TN = 8;
    static constexpr unsigned STAGES = 4, BLOCKS_PER_SM = 3, STAGED_MAX = 2;
    static constexpr bool SPECIALIZED = true;
    static constexpr unsigned RESIDENT = 3;
};
struct f32_32x128_by_8x8 : gm_schedules<gm_schedule<9, GM_EVEN_FORWARD, GM_BY_COLUMNS>> {
    static constexpr unsigned BM = 32, BN = 128, BK = 16, WM = 32, WN = 64, TM = 8, TN = 8;
    static constexpr unsigned STAGES = 3, BLOCKS_PER_SM = 6, STAGED_MAX = 0;
    static constexpr bool SPECIALIZED = true;
    static constexpr unsigned RESIDENT = 6;
};
struct f32_64x64_by_8x8 : gm_schedules<gm_schedule<24, GM_EVEN_FORWARD, GM_BY_COLUMNS>> {
    static constexpr unsigned BM = 64, BN = 64, BK = 16, WM = 32, WN = 64, TM = 8, TN = 8;
    static constexpr unsigned STAGES = 3, BLOCKS_PER_SM = 6, STAGED_MAX = 0;
    static constexpr bool SPECIALIZED = true;
    static constexpr unsigned RESIDENT = 6;
};
struct f32_64x64_by_4x8 : gm_schedules<gm_schedule<24, GM_EVEN_FORWARD>> {
    static constexpr unsigned BM = 64, BN = 64, BK = 16, WM = 16, WN = 64, TM = 4, TN = 8;
    static constexpr unsigned STAGES = 3, BLOCKS_PER_SM = 4, STAGED_MAX = 2;
    static constexpr bool SPECIALIZED = true;
    static constexpr unsigned RESIDENT = 4;
};
struct f32_32x64_by_8x8 : gm_schedules<gm_schedule<7, GM_EVEN_FORWARD>> {
    static constexpr unsigned BM = 32, BN = 64, BK = 8, WM = 32, WN = 64, TM = 8, TN = 8;
    static constexpr unsigned STAGES = 3, BLOCKS_PER_SM = 12, STAGED_MAX = 2;
    static constexpr bool SPECIALIZED = true;
    static constexpr unsigned RESIDENT = 12;
};
struct f32_32x32_by_8x4 : gm_schedules<gm_schedule<1, GM_EVEN_FORWARD>> {
    static constexpr unsigned BM = 32, BN = 32, BK = 8, WM = 32, WN = 32, TM = 8, TN = 4;
    static constexpr unsigned STAGES = 4, BLOCKS_PER_SM = 16, STAGED_MAX = 2;
    static constexpr bool SPECIALIZED = true;
    static constexpr unsigned RESIDENT = 16;
};
struct f32_32x32_by_4x4 : gm_schedules<gm_schedule<0, GM_EVEN_FORWARD>> {
    static constexpr unsigned BM = 32, BN = 32, BK = 16, WM = 16, WN = 32, TM = 4, TN = 4;
    static constexpr unsigned STAGES = 4, BLOCKS_PER_SM = 8, STAGED_MAX = 0;
    static constexpr bool SPECIALIZED = true;
    static constexpr unsigned RESIDENT = 10;
};
struct f32_16x32_by_4x4 : gm_schedules<gm_schedule<1, GM_EVEN_FORWARD, GM_BY_COLUMNS>> {
    static constexpr unsigned BM = 16, BN = 32, BK = 16, WM = 16, WN = 32, TM = 4, TN = 4;
    static constexpr unsigned STAGES = 4, BLOCKS_PER_SM = 8, STAGED_MAX = 1;
    static constexpr bool SPECIALIZED = true;
    static constexpr unsigned RESIDENT = 15;
};
struct f32_16x64_by_4x8 : gm_schedules<gm_schedule<9, GM_ODD_FORWARD>> {
    static constexpr unsigned BM = 16, BN = 64, BK = 16, WM = 16, WN = 64, TM = 4, TN = 8;
    static constexpr unsigned STAGES = 4, BLOCKS_PER_SM = 4, STAGED_MAX = 1;
    static constexpr bool SPECIALIZED = false;
    static constexpr unsigned RESIDENT = 8;
};
struct f32_64x16_by_8x4 : gm_schedules<gm_schedule<9, GM_ODD_FORWARD>> {
    static constexpr unsigned BM = 64, BN = 16, BK = 16, WM = 64, WN = 16, TM = 8, TN = 4;
    static constexpr unsigned STAGES = 4, BLOCKS_PER_SM = 4, STAGED_MAX = 1;
    static constexpr bool SPECIALIZED = false;
    static constexpr unsigned RESIDENT = 8;
};
struct f64_128x128_by_8x8 : gm_f64_128x128 {
    static constexpr bool SPECIALIZED = false;
    static constexpr unsigned RESIDENT = 1;
};
struct f64_32x64_by_4x4 : gm_schedules<gm_schedule<6, GM_EVEN_FORWARD>> {
    static constexpr unsigned BM = 32, BN = 64, BK = 8, WM = 16, WN = 32, TM = 4, TN = 4;
    static constexpr unsigned STAGES = 4, BLOCKS_PER_SM = 4, STAGED_MAX = 1;
    static constexpr bool SPECIALIZED = false;
    static constexpr unsigned RESIDENT = 4;
};
struct f64_16x32_by_4x4 : gm_schedules<gm_schedule<0, GM_EVEN_FORWARD>> {
    static constexpr unsigned BM = 16, BN = 32, BK = 16, WM = 16, WN = 32, TM = 4, TN = 4;
    static constexpr unsigned STAGES = 4, BLOCKS_PER_SM = 8, STAGED_MAX = 1;
    static constexpr bool SPECIALIZED = false;
    static constexpr unsigned RESIDENT = 8;
};

/* An unnamed namespace, because the simulator compiles this file too. FIRST: in the list of
 * choose.h. */
namespace
{
constexpr gm_tile_config listed[] = {GM_TILE_CONFIGS};

constexpr bool same_config(const gm_tile_config &a, const gm_tile_config &b)
{
    return a.BM == b.BM && a.BN == b.BN && a.BK == b.BK && a.staged_max == b.staged_max &&
           a.warps == b.warps && a.resident == b.resident;
}

template <typename T, unsigned FIRST, typename... CONFIG> struct candidates {
    static constexpr bool as_listed()
    {
        unsigned i = FIRST;

        return (
            same_config(listed[i++], {CONFIG::BM, CONFIG::BN, CONFIG::BK,
                                      CONFIG::SPECIALIZED ? CONFIG::STAGED_MAX : 0,
                                      gm_tile<T, CONFIG>::THREADS / GM_WARP, CONFIG::RESIDENT}) &&
            ...);
    }

    /* Runs config `index` of the list. */
    static enum gm_status run(unsigned index, struct gm_exec *exec, const gm_product<T> &p,
                              unsigned splits, bool dependent)
    {
        enum gm_status status = GM_OK;
        unsigned i = FIRST;

        (void)((i++ == index &&
                (status = gm_launch_multistage<gm_tile<T, CONFIG>, CONFIG::SPECIALIZED>(
                     exec, p, splits, dependent),
                 true)) ||
               ...);
        return status;
    }
};

template <typename T> struct candidates_of;
template <>
struct candidates_of<float>
    : candidates<float, 0, f32_128x256_by_8x16, f32_64x128_by_16x8, f32_64x128_by_8x8,
                 f32_32x128_by_8x8, f32_64x64_by_8x8, f32_64x64_by_4x8, f32_32x64_by_8x8,
                 f32_32x32_by_8x4, f32_32x32_by_4x4, f32_16x32_by_4x4, f32_16x64_by_4x8,
                 f32_64x16_by_8x4> {
};
template <>
struct candidates_of<double>
    : candidates<double, GM_F32_CONFIGS, f64_128x128_by_8x8, f64_32x64_by_4x4, f64_16x32_by_4x4> {
};
static_assert(candidates_of<float>::as_listed() && candidates_of<double>::as_listed(),
              "choose.h lists these configs");
} // namespace

/* ---- The plan, and the launches --------------------------------------------------------------
 */

#define SCRATCH_ALIGNMENT 256u

/* Scratch memory: the splits, then the repacked operands, each at at[i]. */
struct plan {
    struct gm_tile_choice choice;
    gm_repack repack[2]; /* of A and B; no matrices: not repacked */
    uint64_t at[2], scratch;
};

template <typename T> static struct plan plan_of(const struct gm_op *op)
{
    gm_product<T> p = gm_product_of<T>(op);
    const struct gm_view *view[] = {&p.a, &p.b};
    const uint64_t span[] = {p.M, p.N};
    struct plan plan = {};

    plan.choice = op->tiles.splits > 0 ? op->tiles : gm_choose_tiles(op, nullptr);
    if (plan.choice.splits > 1)
        plan.scratch = gm_splits_bytes(op, plan.choice.splits);
    for (unsigned i = 0; i < 2; i++) {
        if (!plan.choice.repack[i] || plan.scratch >= UINT64_MAX / 2)
            continue;
        gm_repack &repack = plan.repack[i] = gm_repack_of<T>(view[i], p.batch, p.K, span[i]);
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
        const gm_repack *repack = plan.repack;
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
            return status == GM_OK ? candidates::run(plan.choice.config, exec, p, 1, repacks)
                                   : status;
        status = candidates::run(plan.choice.config, exec, gm_split_of(p, scratch),
                                 plan.choice.splits, repacks);
        return status == GM_OK ? gm_reduce_splits(exec, p, scratch, plan.choice.splits) : status;
    });
}
