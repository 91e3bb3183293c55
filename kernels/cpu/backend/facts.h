/*
 * facts.h - reads the processor's model, instruction set and ceilings, and how much of it this
 * process may use.
 */
#ifndef GM_KERNELS_CPU_BACKEND_FACTS_H
#define GM_KERNELS_CPU_BACKEND_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Instruction sets that hot loops are compiled for, chosen at run time. Each loop has a plain table
 * of functions, and no ifunc, so that sanitizers and tests can choose any.
 */
enum gm_isa {
    GM_ISA_BASE,   /* what the compiler targets: 16-byte vectors on x86-64 and on aarch64 */
    GM_ISA_AVX2,   /* x86-64-v3: 32-byte vectors, fused multiply-add, f16 conversions */
    GM_ISA_AVX512, /* x86-64-v4: 64-byte vectors */
    GM_ISA_COUNT
};

#if defined(__x86_64__)
#define GM_TARGET_AVX2 __attribute__((target("avx2,fma,f16c")))
#define GM_TARGET_AVX512                                                                           \
    __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,fma,f16c,prefer-vector-width=512")))
#endif

/* isa.c: the best that this processor and this build have. */
enum gm_isa gm_isa_best(void);
const char *gm_isa_name(enum gm_isa isa);

static inline unsigned gm_isa_vector_bytes(enum gm_isa isa)
{
    return isa == GM_ISA_AVX512 ? 64 : isa == GM_ISA_AVX2 ? 32 : 16;
}

/* Threads that can run at once: by the affinity mask, or fewer by a cgroup's quota. */
unsigned gm_cpu_cores(void);

/* Bytes of memory: the machine's, or fewer by a cgroup's limit. */
uint64_t gm_cpu_memory(void);

/* Bytes of that memory in use now, without what the system would give back at once: caches of
 * files. 0 if the system does not say. */
uint64_t gm_cpu_memory_used(void);

/* Bytes of the largest cache up to a level; 0 if it is not known. */
#define GM_CACHE_LEVELS 8u
uint64_t gm_cpu_cache(unsigned most);

/* "Intel(R) Xeon(R) ...", or the architecture's name. */
void gm_cpu_model(char *buf, size_t size);

/* Parsers of the above. Of cpu.max, "150000 100000" is 2 cores; "max 100000" and unreadable texts
 * are 0: no limit. "32768K" is 33554432. */
unsigned gm_cpu_parse_quota(const char *text);
uint64_t gm_cpu_parse_bytes(const char *text);
/* The number behind a key in lines of keys and numbers, as /proc/meminfo and memory.stat have; 0:
 * not there. */
uint64_t gm_cpu_find_number(FILE *lines, const char *key);
/* The path of the process's cgroup in lines of /proc/self/cgroup, "" for the root: of a controller
 * of version 1, as "memory", or "" for version 2. Returns false, and leaves buf, if there is none.
 */
bool gm_cpu_find_cgroup(FILE *lines, const char *controller, char *buf, size_t size);

struct gm_exec;         /* exec.h */
struct gm_device_facts; /* kernels/device_facts.h */

/* Measured by all threads of the pool. ceiling_copy.c: 10^9 bytes read + written per second by the
 * better of the copy variants, on buffers beyond twice `cache_bytes` (within limits), by copying
 * for `copy_seconds`, but three times by each variant; 0 where there is no memory for it. */
double gm_ceiling_copy(struct gm_exec *exec, uint64_t cache_bytes, uint64_t memory_bytes,
                       double copy_seconds);

/* ceiling_arithmetic.c: 10^9 operations per second: multiply-adds, two operations each, in
 * registers only. f16 and bf16 have the ceiling of f32, in which they are computed. */
void gm_ceiling_arithmetic(struct gm_exec *exec, struct gm_device_facts *facts);

/*
 * matmul_openblas.c, in builds with OpenBLAS: makes OpenBLAS compute on the calling threads from
 * now on. text: "OpenBLAS 0.3.21 (SkylakeX)", where the name in brackets is the core that OpenBLAS
 * detected. Returns false if that core has narrower vectors than `isa`: an OpenBLAS older than the
 * processor may take it for a Prescott of 2004.
 */
bool gm_openblas_open(enum gm_isa isa, char *text, size_t size);

#endif
