/*
 * bench_gpu_contest.h - several kernels on the same operands: each proved, then timed by turns, so
 * that a clock which drifts drifts for all.
 */
#ifndef GM_TESTS_BENCH_GPU_CONTEST_H
#define GM_TESTS_BENCH_GPU_CONTEST_H

#include "bench_gpu_baseline.h"

#include <stdio.h>

#define CONTENDERS_MAX 24u

/* Times in microseconds; of the kernel, and of what prepares (0 where nothing does). */
struct timing {
    unsigned runs;
    double median, least, prepare;
    double spread; /* the middle half over the median */
};

/* One of those that run an operation: a variant, or a baseline. */
struct contender {
    const char *name;
    const struct gm_variant *variant;
    baseline_fn *baseline;
    struct timing timing; /* contest() sets it */
};

/* Times each of `count` contenders on random operands for `seconds`, after its result was found to
 * be right: the first that is wrong, or fails, ends the program with 1. Sets of operands take
 * turns, so that none larger than half the L2 cache is found there. */
void contest(struct device *device, const struct gm_op *op, struct contender *contenders,
             unsigned count, double seconds, uint64_t *random);

/* Keeps the device busy until its clocks have risen. */
void contest_spin_up(struct device *device);

#endif
