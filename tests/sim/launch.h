/*
 * launch.h - what the kernels of these tests have in common: 32-bit integers in and out, as many
 * as the operation has elements, and a host function that launches them.
 */
#ifndef GM_TESTS_SIM_LAUNCH_H
#define GM_TESTS_SIM_LAUNCH_H

#include "kernels/cuda/lib/kernel.h"

/* The host function of the kernel of that name; `n` is the number of elements. */
#define LAUNCH(name, grid, block, dynamic_shared)                                                  \
    extern "C" enum gm_status GM_ENTRY(name)(const struct gm_op *op, struct gm_exec *exec)         \
    {                                                                                              \
        unsigned n = (unsigned)gm_matrix_elements(&op->result);                                    \
        (void)n;                                                                                   \
        return gm_launch(exec, name, grid, block, dynamic_shared, gm_in<int>(op, 0),               \
                         gm_out<int>(op), n);                                                      \
    }

#endif
