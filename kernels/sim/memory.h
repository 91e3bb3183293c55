/*
 * memory.h - the simulated device's global memory: buffers far apart from each other, so that an
 * index that leaves one of them is seen, and does not reach another.
 */
#ifndef GM_KERNELS_SIM_MEMORY_H
#define GM_KERNELS_SIM_MEMORY_H

#include "proto/status.h"

#include <stdbool.h>
#include <stdint.h>

#define GM_SIM_BUFFERS_MAX 8

struct gm_sim_buffer {
    uintptr_t begin, end;
    bool writable;
    char name[12]; /* "a", "result" */
    void *map;
    uint64_t map_bytes;
};

struct gm_sim_memory {
    unsigned count;
    struct gm_sim_buffer buffer[GM_SIM_BUFFERS_MAX];
};

/*
 * A buffer of `bytes` zeros, 256-byte aligned as cudaMalloc's are, whose pages take memory only
 * when they are touched. GM_DEVICE_MEMORY if there is none.
 */
enum gm_status gm_sim_memory_add(struct gm_sim_memory *memory, const char *name, uint64_t bytes,
                                 bool writable, void **ret, struct gm_error *err);
void gm_sim_memory_clear(struct gm_sim_memory *memory);

/* What a buffer of that size takes beside its bytes: rounding to pages. */
uint64_t gm_sim_memory_cost(uint64_t bytes);

#endif
