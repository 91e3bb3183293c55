/*
 * device.h - what compiled kernels call in the simulator: where a thread is, barriers, warp
 * operations, atomics, launches. For <simt.h>, which gives these CUDA's names.
 *
 * All but gm_sim_run and those of struct gm_exec are called by simulated threads alone.
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

/* Constant for as long as a simulated thread lives. */
struct gm_sim_dim gm_sim_thread_idx(void) __attribute__((const));
struct gm_sim_dim gm_sim_block_idx(void) __attribute__((const));
struct gm_sim_dim gm_sim_block_dim(void) __attribute__((const));
struct gm_sim_dim gm_sim_grid_dim(void) __attribute__((const));
void *gm_sim_dynamic_shared(void) __attribute__((const));
bool gm_sim_is_shared(const void *at);

enum gm_sim_warp_op {
    GM_SIM_SYNC,
    GM_SIM_ACTIVE, /* who is here too: its mask is not looked at, and it orders nothing */
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
/* Waits for the lanes of mask, and does what op says with their values. */
uint64_t gm_sim_warp(enum gm_sim_warp_op op, unsigned mask, uint64_t value, int lane, int width);
void gm_sim_fence(void);
void gm_sim_wait_for_primary(void);
void gm_sim_trigger_dependent(void);

/* The value before, which `needs_value` says shall have been written; then, as often as needed, a
 * swap that succeeds where it returns `expected`. */
uint64_t gm_sim_atomic_begin(void *at, size_t bytes, bool needs_value);
uint64_t gm_sim_atomic_swap_if(void *at, size_t bytes, uint64_t expected, uint64_t desired);

/* Copies bytes - zeros bytes and writes zeros after them, as one access of `bytes`. */
void gm_sim_copy_async(void *to, const void *from, size_t bytes, size_t zeros);

struct gm_sim_launch {
    const void *kernel;            /* the address that names it */
    void (*run)(const void *call); /* calls the kernel with the arguments in call */
    const void *call;
    size_t call_bytes;
    struct gm_sim_dim grid, block;
    uint64_t dynamic_shared;
    bool dependent; /* it may begin while the launch before it still runs */
};

/* GM_OK, GM_CANCELLED, or GM_KERNEL_FAULT with what a check found in exec. */
enum gm_status gm_sim_run(struct gm_exec *exec, const struct gm_sim_launch *launch);

void *gm_scratch(const struct gm_exec *exec);
struct gm_kept *gm_kept_of(const struct gm_exec *exec);
const struct gm_gpu *gm_gpu_of(const struct gm_exec *exec);
enum gm_status gm_begin_pass(struct gm_exec *exec, enum gm_pass pass);

#ifdef __cplusplus
}
#endif
#endif
