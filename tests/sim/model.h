/*
 * model.h - what kernels touch, computed without the simulator: each kernel's loops written out
 * warp by warp in plain C, and sectors and wavefronts counted by their definition.
 */
#ifndef GM_TESTS_SIM_MODEL_H
#define GM_TESTS_SIM_MODEL_H

#include "kernels/access.h"

/* One request: lane i touches `bytes` at address[i] if active[i]. Buffers and shared arrays begin
 * at address 0: all of them are aligned to more than matters. */
struct model_request {
    enum gm_access_kind kind;
    unsigned bytes;
    bool active[GM_WARP];
    uint64_t address[GM_WARP];
};

/* Distinct units of `unit` (a power of two) bytes that active lanes from..to-1 touch, and that are
 * in `bank` where that is not -1. */
unsigned model_distinct(const struct model_request *request, unsigned from, unsigned to,
                        unsigned unit, int bank);
/* *ideal: with no two words in one bank. */
unsigned model_wavefronts(const struct model_request *request, unsigned *ideal);

/* Adds a request, if any lane is active. */
void model_add(struct gm_access_totals *totals, const struct model_request *request);

/* "transpose_naive", and so on: the variants of which there is a model; NULL behind the last. */
const char *model_name(size_t i);

/* What a variant's kernel touches in all, for an operation on row-major single matrices with alpha
 * 1 and no c; false where this has no model of it. `tile`: the width that matmul_dynamic_tile
 * chose. */
bool model_variant(const char *name, const struct gm_op *op, unsigned tile,
                   struct gm_access_totals *ret);

#endif
