/*
 * roof.h - gives the ceilings of a variant: the rate of the units that it may use, the time that
 * the link to the host takes; and the times that it was measured to take.
 */
#ifndef GM_KERNELS_ROOF_H
#define GM_KERNELS_ROOF_H

#include "backend.h"

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

/* A task's own volume; and that of all of a run(), for a backend to set in each that succeeded. */
struct gm_volume gm_volume_of(const struct gm_task *task, const struct gm_device_facts *facts);
void gm_volume_share(struct gm_task *task[], unsigned n, const struct gm_device_facts *facts);

/* The least time that the link to the host takes for bytes in and out, which it moves at once, in
 * seconds: what bounds a kernel that reads and writes there (roof "link"). 0 if nothing is moved or
 * the rates are not known. */
double gm_link_seconds(double in, double out, const struct gm_device_facts *facts);

/* The ceiling for `op` by a variant on a device; variant NULL: by plain arithmetic. */
struct gm_roof gm_roof_of(const struct gm_variant *variant, const struct gm_op *op,
                          const struct gm_device_facts *facts);

/* ---- measured.c: times of variants on a real GPU, those of tests/bench/results, so that a report
 * can quote them. Nothing is chosen by them. ---- */

/* The times of one operation, type and shape on one model of GPU. */
struct gm_measured {
    const char *gpu; /* "H200" */
    enum gm_op_kind op;
    enum gm_dtype dtype;
    const char *shape; /* "1024x512 512x256^T": ^T is a transposed operand */
    double copy_us;    /* a copy of as many bytes; 0: not timed */
    const char *times; /* "naive 352.8 tiled 273.2 ...": microseconds */
};

/* The times of the operation itself or, where there are none, of the nearest shape: each dimension
 * within a factor of two, and rows aligned alike. NULL if there is none. *same: of its own shape.
 */
const struct gm_measured *gm_measured_find(const struct gm_gpu *gpu, const struct gm_op *op,
                                           bool *same);

/* Microseconds of a variant; negative if it was not timed. */
double gm_measured_us(const struct gm_measured *measured, const char *variant);

#endif
