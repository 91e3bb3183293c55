/*
 * place.c - chooses between the preferred device and the CPU, for jobs that name no device.
 */
#include "server/sched/devices.h"

/* Overhead of a job on a GPU, and the rate of the link to one that was not measured. */
#define GPU_S 20e-6
#define UNKNOWN_LINK_GBS 10.0

const char *gm_placed_name(enum gm_placed placed)
{
    static const char *const names[] = {
        [GM_PLACED_ASKED] = "asked", [GM_PLACED_SHAPE] = "shape", [GM_PLACED_LOAD] = "load"};

    return names[placed];
}

static bool has_same_bits(const struct gm_op *op)
{
    return op->kind != GM_OP_MATMUL || op->result.dtype == GM_I32 || op->result.dtype == GM_I64;
}

static double link_s(uint64_t bytes, double gbs)
{
    return 1e-9 * (double)bytes / (gbs > 0 ? gbs : UNKNOWN_LINK_GBS);
}

/* Seconds from now to the end of the job there: waiting, copies, kernel. */
static double ends_in(const struct gm_device *device, const struct gm_op *op)
{
    const struct gm_device_facts *facts = device->facts;
    double seconds = gm_sched_load(device->sched).wait_s + gm_cost_seconds(op, facts);

    if (facts->kind != GM_DEVICE_CUDA)
        return seconds;
    uint64_t out = gm_matrix_bytes(&op->result), all = gm_op_bytes_min(op);
    return seconds + GPU_S + link_s(all - out, facts->link_in_gbs) +
           link_s(out, facts->link_out_gbs);
}

static struct gm_device *find_cpu(struct gm_devices *d)
{
    for (unsigned i = 0; i < d->count; i++)
        if (d->device[i].facts->kind == GM_DEVICE_CPU && !gm_sched_is_lost(d->device[i].sched))
            return &d->device[i];
    return NULL;
}

struct gm_device *gm_devices_place(struct gm_devices *d, struct gm_device *preferred,
                                   const struct gm_op *op, enum gm_placed *ret)
{
    bool by_load = d->place_by_load || has_same_bits(op);
    struct gm_device *cpu =
        d->automatic && preferred->facts->kind == GM_DEVICE_CUDA ? find_cpu(d) : NULL;

    *ret = by_load ? GM_PLACED_LOAD : GM_PLACED_SHAPE;
    if (!d->automatic)
        *ret = GM_PLACED_ASKED;
    if (!cpu)
        return preferred;
    if (gm_cost_is_tiny(op))
        return cpu;
    return by_load && ends_in(cpu, op) < ends_in(preferred, op) ? cpu : preferred;
}
