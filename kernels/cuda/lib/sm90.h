/*
 * sm90.h - wraps Hopper's instructions (sm_90a): bulk copies with mbarriers, clusters, and wgmma on
 * tensor cores.
 *
 * A kernel that uses them puts its body under __CUDA_ARCH_FEAT_SM90_ALL.
 *
 * Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions", "mbarrier", "cp.async.bulk".
 */
#ifndef GM_KERNELS_CUDA_LIB_SM90_H
#define GM_KERNELS_CUDA_LIB_SM90_H

#include "kernels/cuda/lib/vec.h"

#include <type_traits>

constexpr unsigned GM_WARPGROUP = 128; /* threads */

/* An attribute of kernels. Devices before Hopper have no clusters. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define GM_CLUSTER(blocks)
#else
#define GM_CLUSTER(blocks) __cluster_dims__(blocks, 1, 1)
#endif

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/* ---- Barriers ---- */

__device__ static inline void gm_barrier_init(uint64_t *barrier, unsigned arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(gm_shared_address(barrier)),
                 "r"(arrivals));
}
/* After all gm_barrier_init of a thread. */
__device__ static inline void gm_barriers_ready()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
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
/* Arrives at the same barrier of block `rank` of the cluster. */
__device__ static inline void gm_barrier_arrive_at(uint64_t *barrier, unsigned rank)
{
    asm volatile(
        "{\n.reg .b32 there;\n"
        "mapa.shared::cluster.u32 there, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [there];\n}\n" ::"r"(gm_shared_address(barrier)),
        "r"(rank)
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
/* The stages of a pipeline in turn, and the parity of their barriers' phase. */
template <unsigned STAGES> struct gm_ring {
    unsigned stage = 0, parity = 0;
    __device__ __forceinline__ void next()
    {
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        parity ^= stage == 0;
    }
};
/* Waits for the cluster's threads, and so its barriers. A release would fence the GPU's memory. */
__device__ static inline void gm_cluster_start()
{
    asm volatile("barrier.cluster.arrive.relaxed.aligned;\n"
                 "barrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}
__device__ static inline unsigned gm_cluster_rank()
{
    unsigned rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

/* Adds its bytes to the barrier when it is complete. */
__device__ static inline void gm_copy_bulk(void *to, const void *from, unsigned bytes,
                                           uint64_t *barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(gm_shared_address(to)),
                 "l"(from), "r"(bytes), "r"(gm_shared_address(barrier))
                 : "memory");
}

/* ---- wgmma ---- */

/*
 * The wgmma matrix descriptor of an operand in shared memory. K along the rows: groups of 8 rows,
 * `next_8` bytes apart. K down the columns (rows of 128 bytes, 128-byte swizzle): groups of 8 rows
 * of K `next_8` bytes apart, and the next 64 rows or columns of the result `next_64` bytes away.
 */
enum { GM_SWIZZLE_128B = 1, GM_SWIZZLE_64B = 2 };
template <uint64_t SWIZZLE>
__device__ static inline uint64_t gm_descriptor(uint32_t address, unsigned next_8,
                                                unsigned next_64 = 16)
{
    return (address & 0x3FFFF) >> 4 | (uint64_t)(next_64 >> 4) << 16 |
           (uint64_t)(next_8 >> 4) << 32 | SWIZZLE << 62;
}

/*
 * gm_wgmma<T, ALONG_K_A, ALONG_K_B>(d, a, b, add): wgmma m64nNk16 of f16 or bf16 by the four warps
 * of a warpgroup, N = 2 * length of d. ALONG_K: K runs along the operand's rows in shared memory.
 * `add`: accumulates into d; otherwise d is overwritten. For each 8 columns j a thread holds, in
 * d[4j .. 4j + 3]:
 *
 *     row 16 * warp + lane / 4, columns 8j + lane % 4 * 2 and + 1; then the same 8 rows below
 */
#define GM_D8(i)                                                                                   \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),    \
        "+f"(d[i + 6]), "+f"(d[i + 7])
#define GM_D32(i) GM_D8(i), GM_D8(i + 8), GM_D8(i + 16), GM_D8(i + 24)
#define GM_REGISTERS_8(ten)                                                                        \
    "%" #ten "0, %" #ten "1, %" #ten "2, %" #ten "3, %" #ten "4, %" #ten "5, %" #ten "6, %" #ten "7"
#define GM_REGISTERS_10(ten) GM_REGISTERS_8(ten) ", %" #ten "8, %" #ten "9, "
#define GM_REGISTERS_60                                                                            \
    GM_REGISTERS_10()                                                                              \
    GM_REGISTERS_10(1) GM_REGISTERS_10(2) GM_REGISTERS_10(3) GM_REGISTERS_10(4) GM_REGISTERS_10(5)

/* N columns; the operands behind the registers: a, b, add, whether K runs down a and b. */
#define GM_WGMMA_AS(type, columns, registers, a, b, added, down_a, down_b, ...)                    \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " added ", 0;\n"                                \
                 "wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." type "." type              \
                 " {" registers "}, " a ", " b ", p, 1, 1, " down_a ", " down_b ";\n}\n"           \
                 : __VA_ARGS__                                                                     \
                 : "l"(of_a), "l"(of_b), "r"((int)add), "n"(ALONG_K_A ? 0 : 1),                    \
                   "n"(ALONG_K_B ? 0 : 1))
#define GM_WGMMA(columns, registers, a, b, added, down_a, down_b, ...)                             \
    template <typename T, bool ALONG_K_A, bool ALONG_K_B>                                          \
    __device__ static inline void gm_wgmma(float(&d)[columns / 2], uint64_t of_a, uint64_t of_b,   \
                                           bool add)                                               \
    {                                                                                              \
        if constexpr (std::is_same<T, gm_bf16>::value)                                             \
            GM_WGMMA_AS("bf16", #columns, registers, a, b, added, down_a, down_b, __VA_ARGS__);    \
        else                                                                                       \
            GM_WGMMA_AS("f16", #columns, registers, a, b, added, down_a, down_b, __VA_ARGS__);     \
    }
GM_WGMMA(64, GM_REGISTERS_10() GM_REGISTERS_10(1) GM_REGISTERS_10(2) "%30, %31", "%32", "%33",
         "%34", "%35", "%36", GM_D32(0))
GM_WGMMA(128, GM_REGISTERS_60 "%60, %61, %62, %63", "%64", "%65", "%66", "%67", "%68", GM_D32(0),
         GM_D32(32))
GM_WGMMA(192,
         GM_REGISTERS_60 GM_REGISTERS_10(6) GM_REGISTERS_10(7)
             GM_REGISTERS_10(8) "%90, %91, %92, %93, %94, %95",
         "%96", "%97", "%98", "%99", "%100", GM_D32(0), GM_D32(32), GM_D32(64))
GM_WGMMA(256,
         GM_REGISTERS_60 GM_REGISTERS_10(6) GM_REGISTERS_10(7) GM_REGISTERS_10(8) GM_REGISTERS_10(9)
             GM_REGISTERS_10(10) GM_REGISTERS_10(11) GM_REGISTERS_8(12),
         "%128", "%129", "%130", "%131", "%132", GM_D32(0), GM_D32(32), GM_D32(64), GM_D32(96))
#undef GM_WGMMA
#undef GM_WGMMA_AS
#undef GM_REGISTERS_60
#undef GM_REGISTERS_10
#undef GM_REGISTERS_8
#undef GM_D32
#undef GM_D8

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
/* Keeps the compiler from reading d before the wait. */
template <unsigned N> __device__ static inline void gm_wgmma_done(float (&d)[N])
{
#pragma unroll
    for (unsigned i = 0; i < N; i++)
        asm volatile("" : "+f"(d[i]));
}

#endif
#endif
