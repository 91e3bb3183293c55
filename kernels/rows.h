/*
 * rows.h - declares the functions that variants.def names: the header of every kernel's file,
 * so that a variant stays one file and one row.
 */
#ifndef GM_KERNELS_ROWS_H
#define GM_KERNELS_ROWS_H

#include "variant.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GM_VARIANT(op, name, dtypes, folds, accepts, run, needs, note)                             \
    gm_accepts_fn accepts;                                                                         \
    gm_kernel_fn run;
#define GM_SIMT(op, entry, name, dtypes, folds, accepts, scratch, needs, note)                     \
    gm_accepts_fn accepts;                                                                         \
    gm_scratch_fn scratch;                                                                         \
    gm_kernel_fn gm_sim_##entry, gm_cuda_##entry;
#define GM_CUDA(op, entry, name, dtypes, folds, accepts, scratch, blas, needs, note)               \
    gm_accepts_fn accepts;                                                                         \
    gm_scratch_fn scratch;                                                                         \
    gm_kernel_fn gm_cuda_##entry;
#include "variants.def"
#undef GM_VARIANT
#undef GM_SIMT
#undef GM_CUDA

#ifdef __cplusplus
}
#endif
#endif
