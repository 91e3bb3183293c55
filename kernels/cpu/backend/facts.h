/*
 * facts.h - what kind of processor this is and how much of it this process may use.
 */
#ifndef GM_KERNELS_CPU_BACKEND_FACTS_H
#define GM_KERNELS_CPU_BACKEND_FACTS_H

#include "isa.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Threads that run at once: the affinity mask's, or fewer where a cgroup's quota says so. */
unsigned gm_cpu_cores(void);

/* Bytes of memory: the machine's, or fewer where a cgroup's limit says so. */
uint64_t gm_cpu_memory(void);

/* Bytes of that memory in use now, without what the system would give back at once: caches of
 * files. 0 if the system does not say. */
uint64_t gm_cpu_memory_used(void);

/* Bytes of the last level of cache; 0 if the system does not say. */
uint64_t gm_cpu_cache(void);

/* "Intel(R) Xeon(R) ...", or the architecture's name. */
void gm_cpu_model(char *buf, size_t size);

/* The texts behind the above, for themselves: "150000 100000" (cpu.max) is 2 cores, "max 100000"
 * and what cannot be read are 0: no limit. "32768K" is 33554432. */
unsigned gm_cpu_parse_quota(const char *text);
uint64_t gm_cpu_parse_bytes(const char *text);
/* The number behind a key in lines of keys and numbers, as /proc/meminfo and memory.stat have; 0:
 * not there. */
uint64_t gm_cpu_find_number(FILE *lines, const char *key);

/*
 * matmul_openblas.c, where this build has OpenBLAS: keeps it on the calling threads from now on;
 * text: "OpenBLAS 0.3.21 (SkylakeX)". The name in brackets is what it takes this processor for.
 * False where that is one with narrower vectors than `isa`: to a release that is older than the
 * processor it may be a Prescott of 2004.
 */
bool gm_openblas_open(enum gm_isa isa, char *text, size_t size);

#endif
