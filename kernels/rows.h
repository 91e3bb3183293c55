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

#define GM_VARIANT(op, name, devices, dtypes, folds, accepts, run, needs, note)                    \
    gm_accepts_fn accepts;                                                                         \
    gm_kernel_fn run;
#include "variants.def"
#undef GM_VARIANT

#ifdef __cplusplus
}
#endif
#endif
