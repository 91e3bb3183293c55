/*
 * ceiling.h - measures this processor's ceilings: bytes copied and arithmetic done per second by
 * all threads of the pool.
 */
#ifndef GM_KERNELS_CPU_BACKEND_CEILING_H
#define GM_KERNELS_CPU_BACKEND_CEILING_H

#include "exec.h"
#include "kernels/backend.h"

/* 10^9 bytes read + written per second by the better of the copy variants, on buffers beyond
 * twice `cache_bytes` (within limits); 0 where there is no memory for it. */
double gm_ceiling_copy(struct gm_exec *exec, uint64_t cache_bytes, uint64_t memory_bytes);

/* 10^9 operations per second: multiply-adds, of two each, that touch nothing but registers.
 * f16 and bf16 have f32's, in which they are computed. */
void gm_ceiling_arithmetic(struct gm_exec *exec, struct gm_device_facts *facts);

#endif
