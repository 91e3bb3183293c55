/*
 * bench_gpu_result.h - one measured time, and the result file that many of them make.
 */
#ifndef GM_TESTS_BENCH_GPU_RESULT_H
#define GM_TESTS_BENCH_GPU_RESULT_H

#include "bench_gpu_contest.h"
#include "kernels/choose/fit.h"

struct result {
    const struct gm_op *op;
    const struct contender *contender;
    bool is_auto;     /* what `auto` takes */
    double copy_us;   /* of a copy of the same bytes, in the same run; 0 if there was none */
    double copy_gbs;  /* what a copy of memory reaches; 0 if not known */
    double cublas_us; /* of the same product; 0 if not known */
};

void result_print(const struct result *result);

/* The file: opened with the benchmark's name and the facts of the device, closed with the array of
 * results. NULL, with errno, where it cannot be. */
FILE *result_file_open(const char *path, const char *benchmark, const struct device *device,
                       const struct baseline_clocks *clocks);
void result_file_add(FILE *file, const struct result *result);
/* Times of one operation's variants, as kernels/choose measures them, in one row. */
void result_file_add_timed(FILE *file, const struct gm_timed *timed, unsigned count);
/* false where not all of it was written. */
bool result_file_close(FILE *file);

#endif
