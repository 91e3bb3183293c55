/*
 * inject.h - makes calls of the CUDA runtime fail, in a backend built with GM_CUDA_INJECT: the n-th
 * call of a function answers what a test wants. "cudaLaunchKernel" stands for a launch's outcome.
 *
 * A program that is not a test may be told by its environment: INJECT_FAULT=FUNCTION:N:ERROR, as in
 * cudaEventSynchronize:5:719, where N counts from 1.
 */
#ifndef GM_TESTS_FAULT_INJECT_H
#define GM_TESTS_FAULT_INJECT_H

#include "kernels/cuda/backend/call.h"

#define INJECT_FUNCTIONS_MAX 40

struct inject_count {
    const char *function;
    unsigned long calls;
};

/* Counts from 0 again, and lets every call be made. */
void inject_reset(void);
/* From now on. `fired` is called, if it is not NULL, when the call fails. */
void inject_at(const char *function, unsigned long n, cudaError_t error,
               void (*fired)(cudaError_t error));
bool inject_has_fired(void);
/* What was called since inject_reset; returns how many functions. */
unsigned inject_counts(struct inject_count ret[INJECT_FUNCTIONS_MAX]);

#endif
