/*
 * prove.h - one operation on the GPU by every variant, against the oracle.
 */
#ifndef GM_TESTS_GPU_PROVE_H
#define GM_TESTS_GPU_PROVE_H

#include "device.h"
#include "tests/unit/test_cpu_case.h"

/*
 * Runs a sealed case by each variant of ours for GPUs that takes it, or by those named `only` where
 * that is not NULL. A variant that refuses must say why; one that accepts must be right, write all
 * of the result and nothing else, and do so twice with the same bits. An empty result asks nothing
 * of a kernel; an operand in a layout that a variant does not fold is not its work.
 */
void prove_all(struct device *device, const struct kernel_case *made, const char *only);

/* Prints how often each variant ran, and fails where one never did. */
void prove_ran(const struct device *device, const char *only);

#endif
