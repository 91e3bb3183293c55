/*
 * ceiling.h - measures the processor's ceilings, by all threads of the pool.
 *
 * They are bytes copied and arithmetic operations done per second.
 */
#ifndef GM_KERNELS_CPU_BACKEND_CEILING_H
#define GM_KERNELS_CPU_BACKEND_CEILING_H

#include "exec.h"
#include "kernels/backend.h"

/* 10^9 bytes read + written per second by the better of the copy variants, on buffers beyond
 * twice `cache_bytes` (within limits); 0 where there is no memory for it. */
double gm_ceiling_copy(struct gm_exec *exec, uint64_t cache_bytes, uint64_t memory_bytes);

/* 10^9 operations per second: multiply-adds, two operations each, in registers only. f16 and bf16
 * have the ceiling of f32, in which they are computed. */
void gm_ceiling_arithmetic(struct gm_exec *exec, struct gm_device_facts *facts);

#endif
