/*
 * preference.h - declares the tables by which `auto` chooses.
 *
 * The first row wins whose condition holds, and whose variant is in this build and accepts the
 * operation.
 */
#ifndef GM_KERNELS_CHOOSE_PREFERENCE_H
#define GM_KERNELS_CHOOSE_PREFERENCE_H

#include "kernels/device_facts.h"

typedef bool gm_condition_fn(const struct gm_op *op, const struct gm_device_facts *facts);

struct gm_preference {
    enum gm_device_kind device;
    enum gm_op_kind op, variant_op; /* variant_op: a copy may do another operation's work */
    const char *name;               /* NULL ends the table */
    gm_condition_fn *holds;
};

/* Conditions that several devices use. */
gm_condition_fn gm_always, gm_is_copy;

static inline uint64_t gm_lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t gm_greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* choose/cuda.c; cuda_matmul.c has products */
extern const struct gm_preference gm_preferences_cuda[], gm_preferences_cuda_matmul[];

#endif
