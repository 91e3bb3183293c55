/*
 * measured.h - gives the times that variants took on a real GPU, so that a report can quote them.
 *
 * They are those of tests/bench/results. Nothing is chosen by them.
 */
#ifndef GM_KERNELS_MEASURED_H
#define GM_KERNELS_MEASURED_H

#include "gpu.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif
#endif
