/*
 * sm90.h - wraps Hopper's instructions (sm_90a): bulk copies with mbarriers, and wgmma on tensor
 * cores.
 *
 * A kernel that uses them puts its body under __CUDA_ARCH_FEAT_SM90_ALL, and is launched only on
 * such a device.
 *
 * Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions", "mbarrier", "cp.async.bulk".
 */
#ifndef GM_KERNELS_CUDA_LIB_SM90_H
#define GM_KERNELS_CUDA_LIB_SM90_H

#include "kernels/cuda/lib/kernel.h"

constexpr unsigned GM_WARPGROUP = 128; /* threads */

/*
 * The 64-byte swizzle: the byte offset of 16-byte vector `vec` of a row. The 8 rows that wgmma
 * reads at once then use 8 different groups of 4 banks. Stored vectors of a row, left to right:
 *
 *     rows 0, 1: 0 1 2 3    rows 2, 3: 1 0 3 2    rows 4, 5: 2 3 0 1    rows 6, 7: 3 2 1 0
 */
__device__ static inline unsigned gm_swizzled_64b(unsigned row, unsigned vec)
{
    return row * 64 + ((vec ^ (row >> 1 & 3)) << 4);
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

__device__ static inline uint32_t gm_shared_address(const void *at)
{
    return (uint32_t)__cvta_generic_to_shared(at);
}
__device__ static inline void gm_barrier_init(uint64_t *barrier, unsigned arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(gm_shared_address(barrier)),
                 "r"(arrivals));
}
__device__ static inline void gm_barrier_expect(uint64_t *barrier, unsigned bytes)
{
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(gm_shared_address(barrier)),
        "r"(bytes)
        : "memory");
}
__device__ static inline void gm_barrier_arrive(uint64_t *barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(gm_shared_address(barrier))
                 : "memory");
}
/* Waits until the phase of that parity is complete. */
__device__ static inline void gm_barrier_wait(uint64_t *barrier, unsigned parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}\n" ::"r"(gm_shared_address(barrier)),
                 "r"(parity)
                 : "memory");
}
__device__ static inline void gm_copy_bulk(void *to, const void *from, unsigned bytes,
                                           uint64_t *barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(gm_shared_address(to)),
                 "l"(from), "r"(bytes), "r"(gm_shared_address(barrier))
                 : "memory");
}

/*
 * The wgmma matrix descriptor of an operand: K contiguous, rows of 64 bytes (32 elements), groups
 * of 8 rows 512 bytes apart, 64-byte swizzle (gm_swizzled_64b).
 */
__device__ static inline uint64_t gm_descriptor_64b(uint32_t address)
{
    constexpr uint64_t group_bytes = 512, swizzle_64b = 2;

    return (address & 0x3FFFF) >> 4 | 1ull << 16 | (group_bytes >> 4) << 32 | swizzle_64b << 62;
}

/*
 * wgmma m64nNk16 by the four warps of a warpgroup. `add`: accumulates into d; otherwise d is
 * overwritten. For each 8 columns j a thread holds, in d[4j .. 4j + 3]:
 *
 *     row 16 * warp + lane / 4, columns 8j + lane % 4 * 2 and + 1; then the same 8 rows below
 */
#define GM_D8(i)                                                                                   \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),    \
        "+f"(d[i + 6]), "+f"(d[i + 7])
__device__ static inline void gm_wgmma(float (&d)[32], uint64_t a, uint64_t b, bool add)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, "
                 "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                 "%32, %33, p, 1, 1, 0, 0;\n}\n"
                 : GM_D8(0), GM_D8(8), GM_D8(16), GM_D8(24)
                 : "l"(a), "l"(b), "r"((int)add));
}
__device__ static inline void gm_wgmma(float (&d)[64], uint64_t a, uint64_t b, bool add)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, "
                 "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
                 "%64, %65, p, 1, 1, 0, 0;\n}\n"
                 : GM_D8(0), GM_D8(8), GM_D8(16), GM_D8(24), GM_D8(32), GM_D8(40), GM_D8(48),
                   GM_D8(56)
                 : "l"(a), "l"(b), "r"((int)add));
}
__device__ static inline void gm_wgmma_begin()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ static inline void gm_wgmma_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int PENDING> __device__ static inline void gm_wgmma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

/* sum += d. The asm statement keeps the compiler from reading d before the wait. */
template <unsigned N> __device__ static inline void gm_promote(float (&sum)[N], float (&d)[N])
{
#pragma unroll
    for (unsigned i = 0; i < N; i++) {
        asm volatile("" : "+f"(d[i]));
        sum[i] += d[i];
    }
}
#undef GM_D8

#endif
#endif
