/*
 * memory.h - the simulated device's global memory: buffers far apart from each other, so that an
 * index that leaves one of them is seen, and does not reach another.
 */
#ifndef GM_KERNELS_SIM_RUN_MEMORY_H
#define GM_KERNELS_SIM_RUN_MEMORY_H

#include "proto/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define GM_SIM_BUFFERS_MAX 8

struct gm_sim_buffer {
    uintptr_t begin, end;
    bool writable;
    char name[12]; /* "a", "result" */
    void *map;
    uint64_t map_bytes, usable_bytes;
};

struct gm_sim_memory {
    unsigned count;
    struct gm_sim_buffer buffer[GM_SIM_BUFFERS_MAX];
    /* Where the contents mean nothing, as in a sample: pages that may be in memory at a time. When
     * so many were touched all are given back, and are zeros again. 0: no limit. */
    uint32_t pages_max;
    _Atomic uint32_t pages;
    _Atomic uint32_t given_back; /* how often */
};

/*
 * A buffer of `bytes` zeros, 256-byte aligned as cudaMalloc's are, whose pages take memory only
 * when they are touched. GM_DEVICE_MEMORY if there is none.
 */
enum gm_status gm_sim_memory_add(struct gm_sim_memory *memory, const char *name, uint64_t bytes,
                                 bool writable, void **ret, struct gm_error *err);
void gm_sim_memory_clear(struct gm_sim_memory *memory);

/* The pages that `bytes` of memory allow, each with as much for the table that it may need. */
uint32_t gm_sim_memory_pages(uint64_t bytes);
/* Somebody is about to touch a page, perhaps the first to. Any thread. */
void gm_sim_memory_touch(struct gm_sim_memory *memory);

/* What a buffer of that size takes beside its bytes: rounding to pages. */
uint64_t gm_sim_memory_cost(uint64_t bytes);

/* What launches have touched; see watch/dependent.h. No bytes where both are equal. */
struct gm_sim_extent {
    uintptr_t begin, end;
};

/* Of the buffers that can be written. */
struct gm_sim_touched {
    struct gm_sim_extent read[GM_SIM_BUFFERS_MAX], written[GM_SIM_BUFFERS_MAX];
};

#endif
