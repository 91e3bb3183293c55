/*
 * times.c - computes the account's times from the times of all runs.
 */
#include "device.h"

#include <stdlib.h>

/* Runs between two waits of the host, where a stop is noticed: so many that a wait is little beside
 * them, and at most GROUP_US of them. */
#define GROUP_MAX 32u
#define GROUP_US 5000.0

bool gm_cuda_times_open(struct gm_cuda_times *ret, unsigned repeat)
{
    unsigned runs = repeat > 0 ? repeat : 1;
    double *values = runs > 1 ? calloc(2 * (size_t)runs, sizeof(*values)) : ret->one;

    if (!values)
        return false;
    for (size_t i = 0; i < 2 * (size_t)runs; i++)
        values[i] = -1;
    ret->copy_in = ret->rearrange = ret->copy_out = -1;
    ret->runs = runs;
    ret->prepare = values;
    ret->kernel = values + runs;
    return true;
}

void gm_cuda_times_close(struct gm_cuda_times *times)
{
    if (times->runs > 1)
        free(times->prepare);
    times->prepare = times->kernel = NULL;
    times->runs = 0;
}

unsigned gm_cuda_times_group(const struct gm_cuda_times *times, unsigned run, unsigned group)
{
    double us = 0;

    for (unsigned i = run + 1 - group; i <= run; i++)
        us += (times->prepare[i] > 0 ? times->prepare[i] : 0) +
              (times->kernel[i] > 0 ? times->kernel[i] : 0);
    if (us > GROUP_US)
        return group > 1 ? group / 2 : 1;
    return us < GROUP_US / 2 && group < GROUP_MAX ? 2 * group : group;
}

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return a < b ? -1 : a > b;
}

static double sort_and_median(double *values, unsigned count)
{
    qsort(values, count, sizeof(*values), by_size);
    return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

struct gm_times gm_cuda_times_of(struct gm_cuda_times *times)
{
    double passes = sort_and_median(times->prepare, times->runs);
    struct gm_times of = {.h2d = times->copy_in,
                          .prepare = times->rearrange,
                          .kernel = sort_and_median(times->kernel, times->runs),
                          .d2h = times->copy_out};

    if (passes >= 0)
        of.prepare = (of.prepare > 0 ? of.prepare : 0) + passes;
    of.kernel_min = times->kernel[0];
    return of;
}
