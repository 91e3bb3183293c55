/*
 * simt.h for g++ - CUDA's device language on a CPU, as far as plain SIMT kernels speak it, and
 * what kernels/cuda/lib/kernel.h promises beside it. CUDA's own counterpart is
 * kernels/cuda/include/simt.h.
 *
 * Each CUDA thread is a fiber (kernels/sim/run/block.c). Loads and stores are ordinary ones of the
 * compiled code: the compiler, told to look for data races, calls a function before each with
 * its address, and those functions are ours (kernels/sim/watch/hooks.c). So a kernel's source needs
 * no change, and nothing of what it touches is missed.
 */
#ifndef GM_KERNELS_SIM_SIMT_H
#define GM_KERNELS_SIM_SIMT_H

#include "kernels/sim/include/simt/arithmetic.h"
#include "kernels/sim/include/simt/atomic.h"
#include "kernels/sim/include/simt/bits.h"
#include "kernels/sim/include/simt/compile.h"
#include "kernels/sim/include/simt/launch.h"
#include "kernels/sim/include/simt/memory.h"
#include "kernels/sim/include/simt/types.h"
#include "kernels/sim/include/simt/warp.h"

#define threadIdx (gm_sim_thread_idx())
#define blockIdx (gm_sim_block_idx())
#define blockDim (gm_sim_block_dim())
#define gridDim (gm_sim_grid_dim())
#define warpSize 32

#endif
