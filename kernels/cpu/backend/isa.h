/*
 * isa.h - names the instruction sets that hot loops are compiled for, chosen at run time.
 *
 * Each loop has a plain table of functions, and no ifunc, so that sanitizers and tests can choose
 * any.
 */
#ifndef GM_KERNELS_CPU_BACKEND_ISA_H
#define GM_KERNELS_CPU_BACKEND_ISA_H

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

/* The best that this processor and this build have. */
enum gm_isa gm_isa_best(void);
const char *gm_isa_name(enum gm_isa isa);

#endif
