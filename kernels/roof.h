/*
 * roof.h - the arithmetic ceiling that a variant works under: the units that it may use.
 */
#ifndef GM_KERNELS_ROOF_H
#define GM_KERNELS_ROOF_H

#include "device_facts.h"

struct gm_roof {
    double gflops;    /* 10^9 operations per second; 0 if not known */
    const char *unit; /* "fp32", "tensor bf16" */
};

/* Of an operation's arithmetic by a variant on a device; variant NULL: by plain arithmetic. */
struct gm_roof gm_roof_of(const struct gm_variant *variant, const struct gm_op *op,
                          const struct gm_device_facts *facts);

#endif
