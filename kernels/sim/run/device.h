/*
 * device.h - declares what compiled kernels call in the simulator; <simt.h> gives it CUDA's names.
 *
 * These are thread indices, barriers, warp operations, atomics and launches. Only simulated threads
 * call them, except gm_sim_run and the functions of struct gm_exec.
 */
#ifndef GM_KERNELS_SIM_RUN_DEVICE_H
#define GM_KERNELS_SIM_RUN_DEVICE_H

#include "kernels/gpu.h"
#include "kernels/variant.h"

#ifdef __cplusplus
extern "C" {
#endif

struct gm_sim_dim {
    unsigned x, y, z;
};

/* Constant for the lifetime of a simulated thread. */
struct gm_sim_dim gm_sim_thread_idx(void) __attribute__((const));
struct gm_sim_dim gm_sim_block_idx(void) __attribute__((const));
struct gm_sim_dim gm_sim_block_dim(void) __attribute__((const));
struct gm_sim_dim gm_sim_grid_dim(void) __attribute__((const));
void *gm_sim_dynamic_shared(void) __attribute__((const));
bool gm_sim_is_shared(const void *at);

enum gm_sim_warp_op {
    GM_SIM_SYNC,
    GM_SIM_ACTIVE, /* which lanes are here too: ignores its mask, and orders nothing */
    GM_SIM_BALLOT,
    GM_SIM_SHUFFLE_IDX,
    GM_SIM_SHUFFLE_UP,
    GM_SIM_SHUFFLE_DOWN,
    GM_SIM_SHUFFLE_XOR,
    GM_SIM_MATCH_ANY,
    GM_SIM_ADD,
    GM_SIM_MIN,
    GM_SIM_MAX,
    GM_SIM_AND,
    GM_SIM_OR,
    GM_SIM_XOR
};
enum gm_sim_block_op { GM_SIM_COUNT, GM_SIM_ALL, GM_SIM_ANY };

void gm_sim_syncthreads(void);
int gm_sim_syncthreads_reduce(int value, enum gm_sim_block_op op);
/* Waits for the lanes of `mask`, and applies `op` to their values. */
uint64_t gm_sim_warp(enum gm_sim_warp_op op, unsigned mask, uint64_t value, int lane, int width);
void gm_sim_fence(void);
void gm_sim_wait_for_primary(void);
void gm_sim_trigger_dependent(void);

/* Returns the old value; `needs_value` says that it must have been written. Then the caller repeats
 * the swap until it returns `expected`. */
uint64_t gm_sim_atomic_begin(void *at, size_t bytes, bool needs_value);
uint64_t gm_sim_atomic_swap_if(void *at, size_t bytes, uint64_t expected, uint64_t desired);

/* Copies `bytes - zeros` bytes and writes zeros after them, as one access of `bytes`. */
void gm_sim_copy_async(void *to, const void *from, size_t bytes, size_t zeros);

struct gm_sim_launch {
    const void *kernel;            /* its address identifies it */
    void (*run)(const void *call); /* calls the kernel with the arguments in call */
    const void *call;
    size_t call_bytes;
    struct gm_sim_dim grid, block;
    uint64_t dynamic_shared;
    bool dependent; /* it may begin while the previous launch still runs */
};

/* Runs a launch. Returns GM_OK, GM_CANCELLED, or GM_KERNEL_FAULT with the report of a check in
 * exec. */
enum gm_status gm_sim_run(struct gm_exec *exec, const struct gm_sim_launch *launch);

unsigned gm_op_count(const struct gm_exec *exec);
void *gm_scratch(const struct gm_exec *exec);
struct gm_kept *gm_kept_of(const struct gm_exec *exec);
const struct gm_gpu *gm_gpu_of(const struct gm_exec *exec);
enum gm_status gm_begin_pass(struct gm_exec *exec, enum gm_pass pass);

#ifdef __cplusplus
}
#endif
#endif
