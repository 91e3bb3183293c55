/*
 * roof.h - gives the arithmetic ceiling of a variant: the rate of the units that it may use.
 */
#ifndef GM_KERNELS_ROOF_H
#define GM_KERNELS_ROOF_H

#include "device_facts.h"

struct gm_roof {
    double gflops;    /* 10^9 operations per second; 0 if not known */
    const char *unit; /* "fp32", "tensor bf16" */
};

/* Reads a rate of the facts, or its time, atomically: measure() of a backend may raise it at the
 * same time. */
static inline double gm_rate(const double *rate)
{
    double now;

    __atomic_load(rate, &now, __ATOMIC_RELAXED);
    return now;
}
static inline int64_t gm_rate_time(const int64_t *time)
{
    return __atomic_load_n(time, __ATOMIC_RELAXED);
}

/* Raises each rate to `found`, if that is higher. One thread at a time. */
void gm_facts_raise(struct gm_device_facts *facts, const struct gm_device_facts *found,
                    int64_t unix_time);

/* The ceiling for `op` by a variant on a device; variant NULL: by plain arithmetic. */
struct gm_roof gm_roof_of(const struct gm_variant *variant, const struct gm_op *op,
                          const struct gm_device_facts *facts);

#endif
