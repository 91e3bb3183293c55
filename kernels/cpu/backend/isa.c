/*
 * isa.c - detects the instruction sets that this processor has and the system allows.
 */
#include "facts.h"

enum gm_isa gm_isa_best(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("f16c")) {
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
            return GM_ISA_AVX512;
        return GM_ISA_AVX2;
    }
#endif
    return GM_ISA_BASE;
}

const char *gm_isa_name(enum gm_isa isa)
{
    static const char *const names[GM_ISA_COUNT] = {
#if defined(__x86_64__)
        [GM_ISA_BASE] = "SSE2",
#elif defined(__aarch64__)
        [GM_ISA_BASE] = "NEON",
#else
        [GM_ISA_BASE] = "baseline",
#endif
        [GM_ISA_AVX2] = "AVX2",
        [GM_ISA_AVX512] = "AVX-512",
    };
    return names[isa];
}
