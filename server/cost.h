/*
 * cost.h - what an operation takes at the least, reckoned before it runs: work is bounded by what
 * is known of it, not by how slow somebody's kernel is.
 */
#ifndef GM_SERVER_COST_H
#define GM_SERVER_COST_H

#include "kernels/backend.h"

/* What one run takes at the device's measured ceilings; 0 where they are not known. */
double gm_cost_seconds(const struct gm_op *op, const struct gm_device_facts *facts);

/* Simulated work has no ceilings to reckon with, and takes thousands of times as long:
 * GM_COST_LIMIT where so many runs are too much for a simulated device. */
enum gm_status gm_cost_simulated(const struct gm_op *op, uint64_t runs, struct gm_error *err);

#endif
