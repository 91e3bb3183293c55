/*
 * planted_gpu.c - the list of variants as a build for GPUs has it, in one that has no such code: so
 * that tests see what `auto` takes on a GPU. None of it runs.
 */
#include "kernels/device_facts.h"
#include "kernels/variant.h"

/* What the files of variants for GPUs alone would define. */
#define gm_cublas_accepts_product gm_accepts_any
#define gm_cublas_accepts_transpose gm_accepts_any
#define gm_split_bf16_accepts accepts_nothing
#define gm_split_bf16_scratch gm_scratch_none
#define gm_mma_accepts accepts_nothing
#define gm_mma_scratch gm_scratch_none
#define gm_wgmma_accepts accepts_nothing
#define gm_wgmma_scratch gm_scratch_none

static enum gm_status accepts_nothing(const struct gm_op *op, const struct gm_device_facts *facts,
                                      struct gm_error *err)
{
    (void)op;
    (void)facts;
    return gm_fail(err, GM_KERNEL_UNAVAILABLE, "this build has no code for it");
}

#define GM_VARIANT(...)
#define GM_PLANTED(entry)                                                                          \
    enum gm_status gm_cuda_##entry(const struct gm_op *op, struct gm_exec *exec);                  \
    enum gm_status gm_cuda_##entry(const struct gm_op *op, struct gm_exec *exec)                   \
    {                                                                                              \
        (void)op;                                                                                  \
        (void)exec;                                                                                \
        return GM_INTERNAL;                                                                        \
    }
#define GM_SIMT(op, entry, ...) GM_PLANTED(entry)
#define GM_GROUPED(op, entry, ...) GM_PLANTED(entry)
#define GM_CUDA(op, entry, ...) GM_PLANTED(entry)
#undef GM_HAVE_CUDA
#define GM_HAVE_CUDA 1
#include "kernels/variants.def"
#undef GM_VARIANT
#undef GM_SIMT
#undef GM_GROUPED
#undef GM_CUDA

#include "kernels/variant.c"
