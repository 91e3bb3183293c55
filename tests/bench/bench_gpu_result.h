/*
 * bench_gpu_result.h - one measured time, and the result file that many of them make.
 */
#ifndef GM_TESTS_BENCH_GPU_RESULT_H
#define GM_TESTS_BENCH_GPU_RESULT_H

#include "bench_gpu_yardstick.h"

#include <stdio.h>

/* Times in microseconds; of the kernel, and of what prepares (0 where nothing does). */
struct timing {
    unsigned runs;
    double median, least, prepare;
    double spread; /* the middle half over the median */
};

struct result {
    const struct gm_op *op;
    const char *variant;
    struct timing timing;
    double copy_gbs;      /* of the run: what 100 % of a copy is; 0 if not known */
    double cublas_gflops; /* of the same product; 0 if not known */
};

void result_print(const struct result *result);

/* The file: opened with the facts of the device, closed with the array of results. NULL, with
 * errno, where it cannot be. */
FILE *result_file_open(const char *path, const struct device *device,
                       const struct yardstick_clocks *clocks);
void result_file_add(FILE *file, const struct result *result);
/* false where not all of it was written. */
bool result_file_close(FILE *file);

#endif
