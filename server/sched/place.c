/*
 * place.c - chooses between the preferred device and the CPU, for jobs that name no device.
 */
#include "kernels/choose/choose.h"
#include "server/sched/devices.h"

#include <math.h>

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

/* Seconds from now to the end of the job there: waiting, copies, kernel. No kernel is faster than
 * the device's measured ceilings. */
static double ends_in(const struct gm_device *device, const struct gm_op *op)
{
    return gm_sched_load(device->sched).wait_s +
           fmax(1e-6 * gm_job_us(op, device->facts), gm_cost_seconds(op, device->facts));
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
