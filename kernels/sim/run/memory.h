/*
 * memory.h - holds the simulated device's global memory: buffers far apart from each other.
 *
 * So an index that leaves a buffer is noticed, and does not reach another buffer.
 */
#ifndef GM_KERNELS_SIM_RUN_MEMORY_H
#define GM_KERNELS_SIM_RUN_MEMORY_H

#include "proto/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define GM_SIM_BUFFERS_MAX 32 /* eight tasks of a launch, with three operands and a result each */

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
    /* If the contents mean nothing, as in a sample: the most pages in memory at a time. When that
     * many were touched, all are given back and are zeros again. 0: no limit. */
    uint32_t pages_max;
    _Atomic uint32_t pages;
    _Atomic uint32_t given_back; /* times that pages were given back */
};

/*
 * Adds a buffer of `bytes` zeros, 256-byte aligned as by cudaMalloc, whose pages take memory only
 * when touched. GM_DEVICE_MEMORY if there is none.
 */
enum gm_status gm_sim_memory_add(struct gm_sim_memory *memory, const char *name, uint64_t bytes,
                                 bool writable, void **ret, struct gm_error *err);
void gm_sim_memory_clear(struct gm_sim_memory *memory);

/* The number of pages that fit in `bytes`, including as much again for their page tables. */
uint32_t gm_sim_memory_pages(uint64_t bytes);
/* Call before a page may be touched for the first time. Any thread. */
void gm_sim_memory_touch(struct gm_sim_memory *memory);

/* Bytes that a buffer of that size takes beyond its size: rounding to pages. */
uint64_t gm_sim_memory_cost(uint64_t bytes);

/* The bytes that launches touched (watch/dependent.h). Empty if begin equals end. */
struct gm_sim_extent {
    uintptr_t begin, end;
};

/* One extent per writable buffer. */
struct gm_sim_touched {
    struct gm_sim_extent read[GM_SIM_BUFFERS_MAX], written[GM_SIM_BUFFERS_MAX];
};

#endif
