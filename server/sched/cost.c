#include "server/sched/cost.h"

#include "kernels/device_facts.h"
#include "server/limits.h"

#include <math.h>

/* Overhead of any launch. Without it, tiny tasks would distort the slowness of kernels. */
#define LAUNCH_S 20e-6
/* Rates for a device without measured ceilings, such as the simulator: the right order of
 * magnitude. */
#define UNKNOWN_FLOPS 1e8
#define UNKNOWN_BYTES 5e8
#define TEXT_BYTES 3e8   /* per second, in either direction */
#define COPIED_BYTES 4e9 /* per second, by one thread, beyond its caches */
#define TRACE_S 0.02     /* expected time of a trace, before any has run */
/* A kernel may be this much slower than the ceiling: e^14 is a million. It is not faster. */
#define LOG_SLOWNESS_MAX 14.0f

double gm_cost_seconds(const struct gm_op *op, const struct gm_device_facts *facts)
{
    double peak = gm_rate(&facts->peak_gflops[op->result.dtype]);
    double copy = gm_rate(&facts->copy_gbs);
    double memory = copy > 0 ? (double)gm_op_bytes_min(op) / copy : 0;
    double arithmetic = peak > 0 ? gm_op_flops(op) / peak : 0;

    return 1e-9 * fmax(memory, arithmetic);
}

double gm_cost_work(double flops, double bytes, enum gm_dtype dtype,
                    const struct gm_device_facts *facts)
{
    double peak = gm_rate(&facts->peak_gflops[dtype]), copy = gm_rate(&facts->copy_gbs);

    if (!(copy > 0) && facts->gpu)
        copy = facts->gpu->dram_gbs;
    for (unsigned i = 0; i < GM_DTYPE_COUNT && !(gm_rate(&facts->peak_gflops[dtype]) > 0); i++)
        peak = fmax(peak, gm_rate(&facts->peak_gflops[i]));
    return fmax(flops / (peak > 0 ? peak * 1e9 : UNKNOWN_FLOPS),
                bytes / (copy > 0 ? copy * 1e9 : UNKNOWN_BYTES));
}

bool gm_cost_is_tiny(const struct gm_op *op)
{
    return gm_op_flops(op) <= GM_INLINE_FLOPS_MAX && gm_op_bytes_min(op) <= GM_INLINE_BYTES_MAX;
}

/* Least time of the whole task, launch overhead included. */
static double least(const struct gm_task *task, const struct gm_device_facts *facts)
{
    double once = gm_cost_seconds(&task->op, facts);

    if (!(once > 0))
        once = gm_op_flops(&task->op) / UNKNOWN_FLOPS +
               (double)gm_op_bytes_min(&task->op) / UNKNOWN_BYTES;
    return LAUNCH_S + once * (task->repeat > 1 ? task->repeat : 1);
}

/* Index of a variant. Variants beyond the table share its last entry. */
static size_t index_of(const struct gm_variant *variant)
{
    size_t i = 0;

    while (i < GM_COST_VARIANTS_MAX - 1 && gm_variant_at(i) && gm_variant_at(i) != variant)
        i++;
    return i;
}

double gm_cost_expected(const struct gm_cost_model *model, const struct gm_task *task,
                        const struct gm_device_facts *facts)
{
    size_t i = index_of(task->variant);

    if (task->report)
        return TRACE_S * exp(atomic_load_explicit(&model->log_trace[i], memory_order_relaxed));
    return least(task, facts) *
           exp(atomic_load_explicit(&model->log_slowness[i], memory_order_relaxed));
}

/* Averages the old and the new value in logarithms, because kernels differ by factors, and one
 * disturbed run must not dominate. */
void gm_cost_learn(struct gm_cost_model *model, const struct gm_task *task,
                   const struct gm_device_facts *facts, double seconds, bool stopped)
{
    size_t i = index_of(task->variant);
    _Atomic float *known = task->report ? &model->log_trace[i] : &model->log_slowness[i];
    float now = (float)log(seconds / (task->report ? TRACE_S : least(task, facts)));
    float min = task->report ? -LOG_SLOWNESS_MAX : 0;

    now = now > min ? fminf(now, LOG_SLOWNESS_MAX) : min;
    float before = atomic_load_explicit(known, memory_order_relaxed);
    if (!stopped || now > before)
        atomic_store_explicit(known, (before + now) / 2, memory_order_relaxed);
    if (!stopped && !atomic_load_explicit(&model->has_run[i], memory_order_relaxed))
        atomic_store_explicit(&model->has_run[i], true, memory_order_relaxed);
}

bool gm_cost_is_learnt(const struct gm_cost_model *model, const struct gm_variant *variant)
{
    return atomic_load_explicit(&model->has_run[index_of(variant)], memory_order_relaxed);
}

double gm_cost_text(uint64_t bytes)
{
    return (double)bytes / TEXT_BYTES;
}

double gm_cost_copy(uint64_t bytes)
{
    return (double)bytes / COPIED_BYTES;
}

enum gm_status gm_cost_simulated(const struct gm_op *op, uint64_t runs, struct gm_error *err)
{
    double flops = gm_op_flops(op) * (double)runs;
    double bytes = (double)gm_op_bytes_min(op) * (double)runs;

    if (flops <= GM_SIM_FLOPS_MAX && bytes <= GM_SIM_BYTES_MAX)
        return GM_OK;
    if (op->kind == GM_OP_EVAL)
        return gm_fail(err, GM_COST_LIMIT,
                       "this is %.4g operations on %.4g bytes; a simulated device runs at most %d "
                       "on %d",
                       flops, bytes, GM_SIM_FLOPS_MAX, GM_SIM_BYTES_MAX);
    return gm_fail(err, GM_COST_LIMIT,
                   "this is %.4g operations on %.4g bytes; a simulated device runs at most %d on "
                   "%d. /v1/explain/%s traces a sample of it at any size",
                   flops, bytes, GM_SIM_FLOPS_MAX, GM_SIM_BYTES_MAX, gm_op_name(op->kind));
}
