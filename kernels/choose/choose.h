/*
 * choose.h - chooses the variant that runs an operation.
 *
 * It is a pure function of the operation and the device's facts, so it can be tested without the
 * device.
 */
#ifndef GM_KERNELS_CHOOSE_CHOOSE_H
#define GM_KERNELS_CHOOSE_CHOOSE_H

#include "kernels/backend.h"

/*
 * If `name` is NULL, "" or "auto", *ret is the best variant for this shape. Any other name selects
 * that variant, or fails with GM_KERNEL_UNAVAILABLE and a sentence that lists the variants that can
 * run this operation on this device (and a similar name, if there is one).
 *
 * `auto` may select a variant of another operation that computes the same: the transpose of one
 * column-major matrix is a copy of its bytes.
 */
enum gm_status gm_select(const struct gm_op *op, const struct gm_device_facts *facts,
                         const char *name, const struct gm_variant **ret, struct gm_error *err);

/*
 * The name of what `auto` takes on a GPU of this model, which need not be here, and whose code need
 * not be in this build: by the preferences for GPUs, and by what variants for all GPUs accept. NULL
 * if there is none. *ret_traced: that variant, if the simulator (facts) runs it too, else the first
 * plain one that would be taken.
 */
const char *gm_select_for_gpu(const struct gm_op *op, const struct gm_gpu *gpu,
                              const struct gm_device_facts *facts,
                              const struct gm_variant **ret_traced);

/* tiles.c estimates which kernel with one tile size is fastest, for products of types that were not
 * timed. */

/* Variants of matmul; gm_tiles_name gives their names. */
enum gm_tiles {
    GM_TILES_SMALL_TILE,
    GM_TILES_TILED,
    GM_TILES_REGISTER_TILED,
    GM_TILES_MULTISTAGE,
    GM_TILES_COUNT
};

const char *gm_tiles_name(enum gm_tiles tiles);

/*
 * Returns the fastest kernel for `batch` products of m x k by k x n on an H200, among those that
 * take the type. It is an estimate for operands that are not transposed, within a quarter of the
 * times measured for f32. One exception: on matrices of fewer than 50 rows it overestimates
 * `register_tiled` and `multistage`.
 */
enum gm_tiles gm_least_tiles(enum gm_dtype dtype, uint64_t batch, uint64_t m, uint64_t n,
                             uint64_t k);

/* ---- For the files of this folder: the tables by which `auto` chooses --------------------------
 * The first row wins whose condition holds, and whose variant is in this build and accepts the
 * operation. */

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
