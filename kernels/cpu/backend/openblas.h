/*
 * openblas.h - the OpenBLAS of this build, for the cpu backend's facts.
 */
#ifndef GM_KERNELS_CPU_BACKEND_OPENBLAS_H
#define GM_KERNELS_CPU_BACKEND_OPENBLAS_H

#include "isa.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Keeps OpenBLAS on the calling threads from now on; text: "OpenBLAS 0.3.21 (SkylakeX)". The
 * name in brackets is what it takes this processor for. False where that is one with narrower
 * vectors than `isa`: to a release that is older than the processor it may be a Prescott of 2004.
 */
bool gm_openblas_open(enum gm_isa isa, char *text, size_t size);

#endif
