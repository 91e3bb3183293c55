#include "server/cost.h"

#include "server/limits.h"

#include <math.h>

double gm_cost_seconds(const struct gm_op *op, const struct gm_device_facts *facts)
{
    double peak = facts->peak_gflops[op->result.dtype];
    double memory = facts->copy_gbs > 0 ? (double)gm_op_bytes_min(op) / facts->copy_gbs : 0;
    double arithmetic = peak > 0 ? gm_op_flops(op) / peak : 0;

    return 1e-9 * fmax(memory, arithmetic);
}

enum gm_status gm_cost_simulated(const struct gm_op *op, uint64_t runs, struct gm_error *err)
{
    double flops = gm_op_flops(op) * (double)runs;
    double bytes = (double)gm_op_bytes_min(op) * (double)runs;

    if (flops <= GM_SIM_FLOPS_MAX && bytes <= GM_SIM_BYTES_MAX)
        return GM_OK;
    return gm_fail(err, GM_COST_LIMIT,
                   "this is %.4g operations on %.4g bytes; a simulated device runs at most %d on "
                   "%d. /v1/explain/%s traces a sample of it at any size",
                   flops, bytes, GM_SIM_FLOPS_MAX, GM_SIM_BYTES_MAX, gm_op_name(op->kind));
}
