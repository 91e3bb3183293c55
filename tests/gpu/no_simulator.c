/*
 * no_simulator.c - takes the simulator's place in programs that run kernels on a GPU alone. They
 * are built where the libraries that it needs are not. Each entry says that it is not there.
 */
#include "kernels/backend.h"
#include "kernels/variant.h"

#define GM_VARIANT(op, name, dtypes, folds, accepts, run, needs, note)
#define GM_CUDA(op, entry, name, dtypes, folds, accepts, scratch, blas, products, needs, note)
#define GM_SIMT(op, entry, name, dtypes, folds, accepts, scratch, needs, note)                     \
    gm_kernel_fn gm_sim_##entry;                                                                   \
    enum gm_status gm_sim_##entry(const struct gm_op *unused_op, struct gm_exec *unused_exec)      \
    {                                                                                              \
        (void)unused_op;                                                                           \
        (void)unused_exec;                                                                         \
        return GM_KERNEL_UNAVAILABLE;                                                              \
    }
#define GM_GROUPED(op, entry, name, dtypes, folds, accepts, needs, note)                           \
    GM_SIMT(op, entry, name, dtypes, folds, accepts, gm_scratch_none, needs, note)
#include "kernels/variants.def"

static enum gm_status open_none(const struct gm_backend_options *options, void **ret_context,
                                struct gm_error *err)
{
    (void)options;
    (void)ret_context;
    return gm_fail(err, GM_DEVICE_UNAVAILABLE, "this program has no simulator");
}

const struct gm_backend gm_backend_sim = {.name = "sim", .open = open_none};
