/*
 * sm90_split_bf16.cu - multiplies f32 matrices on Hopper's tensor cores, as six bf16 products.
 *
 * A float has 24 significant bits, a bf16 has 8: x = hi + mid + lo. That is exact for magnitudes
 * from 2^-110 on; below, bits under 2^-133, the least bf16, are lost. Of the nine products of two
 * such sums the six large ones are computed; the other three are below 2^-25 of the whole. A first
 * pass splits both operands into images of shared memory, so the kernel needs no tensor map and
 * takes any layout. Tensor cores truncate when they accumulate. So hi * hi moves to f32 registers
 * every 32 steps of K, and the five small products have their own accumulators, whose truncation
 * error is 2^-8 of that.
 *
 * Cost: 6 tensor-core products, and a pass that reads 4 and writes 6 bytes an element.
 * When it wins: from some 10^9 operations on, at over twice the rate of any f32 arithmetic.
 * Source: M. Fasi, N. Higham et al., "Numerical behavior of NVIDIA tensor cores"; H. Ootomo and R.
 * Yokota, "Recovering single precision accuracy from Tensor Cores"; PTX ISA, wgmma.
 */
#include "kernels/choose/choose.h"
#include "kernels/cuda/matmul/sm90_split_bf16_result.h"
#include "kernels/device_facts.h"

/*
 * The tile and the pipeline. A block computes BM x BN of the result. Each of two consumer
 * warpgroups has 64 rows. One thread of a third warpgroup, the producer, fills the stages:
 *
 *              B stage: BN columns x 32 of K, planes hi mid lo
 *            +--------------------------------+
 *     A      | consumer 0: rows   0 .. 63     |    stage:  0   1   2   3   0   1  ...
 *   stage:   |  (4 warps x 16 rows)           |    load    #   #   #   #   .   #
 *   BM rows  +--------------------------------+    wgmma       #   #   #   #   #
 *   x 32     | consumer 1: rows  64 .. 127    |    full[s]: the bytes of stage s have arrived
 *            +--------------------------------+    empty[s]: both consumers have used stage s
 */
struct large_tile {
    static constexpr unsigned BM = 128, BN = 128, STAGES = 4;
};
struct small_tile {
    static constexpr unsigned BM = 128, BN = 64, STAGES = 6;
};

#define CONSUMERS 2u /* warpgroups */
#define CONSUMER_REGISTERS 232
#define PRODUCER_REGISTERS 40

/* The stages in shared memory. */
template <typename C> struct stages {
    alignas(1024) __nv_bfloat16 a[C::STAGES][GM_SPLIT_PLANES][C::BM * GM_SPLIT_BK];
    alignas(1024) __nv_bfloat16 b[C::STAGES][GM_SPLIT_PLANES][C::BN * GM_SPLIT_BK];
    uint64_t full[C::STAGES], empty[C::STAGES];
};
/* Dynamic shared memory is 128-byte aligned; the swizzle needs 1024. */
template <typename C> constexpr size_t shared_bytes = sizeof(stages<C>) + 1024;

/* wgmma and bulk copies exist on sm_90a only; the kernel is never launched elsewhere. */
#ifdef __CUDA_ARCH_FEAT_SM90_ALL

template <typename C> __device__ static void produce(const gm_split_product &s, stages<C> &shared)
{
    constexpr unsigned A_BYTES = sizeof(shared.a[0]), B_BYTES = sizeof(shared.b[0]);
    const gm_split_work<float> &w = s.work;
    gm_ring<C::STAGES> ring;

    for (uint32_t unit = blockIdx.x; unit < w.units; unit += gridDim.x) {
        gm_split_unit at = gm_split_unit_at(w, unit);
        uint64_t a_tile = (w.p.a.batch ? (uint64_t)at.matrix * w.tile_rows : 0) + at.row;
        uint64_t b_tile = (w.p.b.batch ? (uint64_t)at.matrix * w.tile_cols : 0) + at.col;
        const char *a = (const char *)s.a + a_tile * w.k_tiles * A_BYTES;
        const char *b = (const char *)s.b + b_tile * w.k_tiles * B_BYTES;

        for (uint64_t k = at.k_first; k < at.k_end; k++) {
            uint64_t *full = &shared.full[ring.stage];
            gm_barrier_wait(&shared.empty[ring.stage], ring.parity ^ 1);
            gm_barrier_expect(full, A_BYTES + B_BYTES);
            gm_copy_bulk(shared.a[ring.stage], a + k * A_BYTES, A_BYTES, full);
            gm_copy_bulk(shared.b[ring.stage], b + k * B_BYTES, B_BYTES, full);
            ring.next();
        }
    }
}

/* Of an operand: groups of 8 rows of 64 bytes. */
__device__ static inline uint64_t descriptor(uint32_t address)
{
    return gm_descriptor<GM_SWIZZLE_64B>(address, 8 * GM_SPLIT_ROW_BYTES);
}

/* Multiplies one stage: adds the five small products to `low`; hi * hi is `high`. add_low: `low`
 * has those of stages before. */
template <typename C>
__device__ static inline void multiply_stage(const stages<C> &shared, unsigned stage, unsigned half,
                                             float (&high)[C::BN / 2], float (&low)[C::BN / 2],
                                             bool add_low)
{
    constexpr unsigned A_PLANE = C::BM * GM_SPLIT_ROW_BYTES, B_PLANE = C::BN * GM_SPLIT_ROW_BYTES;
    constexpr unsigned of_a[5] = {2, 0, 1, 1, 0}, of_b[5] = {0, 2, 1, 0, 1};
    uint32_t a = gm_shared_address(shared.a[stage]) + half * 64 * GM_SPLIT_ROW_BYTES;
    uint32_t b = gm_shared_address(shared.b[stage]);

    gm_wgmma_begin();
#pragma unroll
    for (unsigned k = 0; k < GM_SPLIT_BK / 16; k++) {
#pragma unroll
        for (unsigned i = 0; i < 5; i++)
            gm_wgmma<gm_bf16, true, true>(low, descriptor(a + of_a[i] * A_PLANE + k * 32),
                                          descriptor(b + of_b[i] * B_PLANE + k * 32),
                                          add_low || k > 0 || i > 0);
        gm_wgmma<gm_bf16, true, true>(high, descriptor(a + k * 32), descriptor(b + k * 32), k > 0);
    }
    gm_wgmma_commit();
}

template <unsigned N> __device__ static inline void promote(float (&sum)[N], float (&d)[N])
{
    gm_wgmma_done(d);
#pragma unroll
    for (unsigned i = 0; i < N; i++)
        sum[i] += d[i];
}

template <typename C>
__device__ static void consume(const gm_split_product &s, stages<C> &shared, unsigned half)
{
    bool first_thread = threadIdx.x % GM_WARPGROUP == 0;
    gm_ring<C::STAGES> ring;
    float high[C::BN / 2], low[C::BN / 2], sum[C::BN / 2];

    for (uint32_t unit = blockIdx.x; unit < s.work.units; unit += gridDim.x) {
        gm_split_unit at = gm_split_unit_at(s.work, unit);
#pragma unroll
        for (unsigned i = 0; i < C::BN / 2; i++)
            sum[i] = low[i] = 0;
        for (unsigned k = at.k_first; k < at.k_end; k++) {
            gm_barrier_wait(&shared.full[ring.stage], ring.parity);
            multiply_stage<C>(shared, ring.stage, half, high, low, k > at.k_first);
            gm_wgmma_wait<0>();
            promote(sum, high);
            if (first_thread)
                gm_barrier_arrive(&shared.empty[ring.stage]);
            ring.next();
        }
        gm_wgmma_wait<0>(); /* none is pending, but the compiler cannot know */
        promote(sum, low);
        unsigned warp = threadIdx.x / GM_WARP;
        bool doubtful = gm_split_store(s.work, at, (uint64_t)at.row * C::BM + warp * 16,
                                       (uint64_t)at.col * C::BN, sum);
        doubtful = __any_sync(0xFFFFFFFFu, doubtful);
        if (threadIdx.x % GM_WARP == 0)
            ((unsigned char *)&s.doubtful[unit])[warp] = doubtful;
    }
}
#endif

template <typename C>
static __global__ void __launch_bounds__((CONSUMERS + 1) * GM_WARPGROUP, 1)
    multiply_split(const __grid_constant__ gm_split_product s)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    static_assert(C::BM == CONSUMERS * 64, "a consumer has the 64 rows of wgmma");
    static_assert(CONSUMERS * GM_WARPGROUP / GM_WARP == sizeof(*s.doubtful), "a byte a warp");
    static_assert(CONSUMERS * CONSUMER_REGISTERS + PRODUCER_REGISTERS <= 65536 / GM_WARPGROUP,
                  "setmaxnreg waits for ever for registers that a multiprocessor does not have");
    extern __shared__ char dynamic[];
    auto &shared = *(stages<C> *)(((uintptr_t)dynamic + 1023) & ~(uintptr_t)1023);
    unsigned warpgroup = threadIdx.x / GM_WARPGROUP;

    if (threadIdx.x == 0) {
        for (unsigned i = 0; i < C::STAGES; i++) {
            gm_barrier_init(&shared.full[i], 1);
            gm_barrier_init(&shared.empty[i], CONSUMERS);
        }
        gm_barriers_ready();
    }
    __syncthreads();
    if (warpgroup == CONSUMERS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(PRODUCER_REGISTERS));
        if (threadIdx.x % GM_WARPGROUP == 0)
            produce<C>(s, shared);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(CONSUMER_REGISTERS));
        consume<C>(s, shared, warpgroup);
    }
#endif
}

/* ---- The variant: accepts, scratch, launch -------------------------------------------------- */

/* Calls fn(config, splits of K), the config as a type. */
template <typename F> static auto with_plan(const struct gm_op *op, F fn)
{
    gm_tile_choice tiles = gm_split_bf16_tiles(op);

    return tiles.config == 0 ? fn(large_tile(), tiles.splits) : fn(small_tile(), tiles.splits);
}

extern "C" uint64_t gm_split_bf16_scratch(const struct gm_op *op)
{
    gm_product<float> p = gm_product_of<float>(op);

    if (p.M == 0 || p.N == 0 || p.K == 0 || p.batch == 0)
        return 0;
    return with_plan(op, [&](auto config, unsigned splits) {
        using C = decltype(config);
        uint64_t a = gm_split_image_bytes(gm_split_matrices(p.a, p.batch), p.M, C::BM, p.K);
        uint64_t b = gm_split_image_bytes(gm_split_matrices(p.b, p.batch), p.N, C::BN, p.K), bytes;
        uint64_t partial = splits > 1 ? gm_splits_bytes(op, splits) : 0;
        uint64_t units = gm_split_work_of(p, C::BM, C::BN, GM_SPLIT_BK, splits, NULL).units;
        bool fits = a && b && !__builtin_add_overflow(a, b, &bytes) &&
                    !__builtin_add_overflow(bytes, (units + 1) * sizeof(uint64_t), &bytes) &&
                    !__builtin_add_overflow(bytes, partial, &bytes);
        return fits ? bytes : UINT64_MAX;
    });
}

extern "C" enum gm_status gm_split_bf16_accepts(const struct gm_op *op,
                                                const struct gm_device_facts *facts,
                                                struct gm_error *err)
{
    if (!GM_HAVE_SM90A || !facts->gpu || facts->gpu->capability != 90)
        return gm_fail(err, GM_KERNEL_UNAVAILABLE,
                       "kernel \"split_bf16\" needs a GPU of compute capability 9.0 (Hopper)%s",
                       GM_HAVE_SM90A ? "" : ", and a build for it (GEMMD_CUDA_ARCHITECTURES=90a)");
    if (op->precision == GM_PRECISION_IEEE)
        return gm_fail(
            err, GM_KERNEL_UNAVAILABLE,
            "kernel \"split_bf16\" is not plain f32 arithmetic, which precision ieee asks for");
    return gm_half_accepts(op, "split_bf16", small_tile::BM, small_tile::BN, err);
}

template <typename C>
static enum gm_status run(struct gm_exec *exec, const gm_product<float> &p, unsigned splits)
{
    char *room = (char *)gm_scratch(exec);
    gm_split_operand rows =
        gm_split_operand_of(p.a, p.batch, p.M, p.K, p.a.row, p.a.col, (__nv_bfloat16 *)room);
    room += gm_split_image_bytes(rows.matrices, p.M, C::BM, p.K);
    gm_split_operand cols =
        gm_split_operand_of(p.b, p.batch, p.N, p.K, p.b.col, p.b.row, (__nv_bfloat16 *)room);
    room += gm_split_image_bytes(cols.matrices, p.N, C::BN, p.K);
    gm_split_product s = {gm_split_work_of(p, C::BM, C::BN, GM_SPLIT_BK, splits, room), rows.image,
                          cols.image, NULL};
    room += s.work.partial ? s.work.units / s.work.tiles * p.batch * p.M * p.N * sizeof(float) : 0;
    s.doubtful = (uint64_t *)(((uintptr_t)room + 7) & ~(uintptr_t)7);
    unsigned blocks = gm_gpu_of(exec)->sms;
    dim3 grid(s.work.units < blocks ? s.work.units : blocks);
    enum gm_status status = gm_begin_pass(exec, GM_PASS_PREPARES);

    if (status == GM_OK)
        status = gm_split_both<C::BM, C::BN>(exec, rows, cols);
    if (status == GM_OK)
        status = gm_begin_pass(exec, GM_PASS_COMPUTES);
    if (status == GM_OK)
        status = gm_launch(exec, multiply_split<C>, grid, dim3((CONSUMERS + 1) * GM_WARPGROUP),
                           shared_bytes<C>, s);
    if (status == GM_OK && s.work.partial)
        status = gm_reduce_splits(exec, p, s.work.partial, s.work.units / s.work.tiles);
    if (status == GM_OK)
        status = gm_launch(exec, gm_split_repair<C>, grid, dim3(GM_SPLIT_THREADS), 0, s);
    return status;
}

GM_KERNEL(matmul_split_bf16)
{
    gm_product<float> p = gm_product_of<float>(op);

    if (p.M == 0 || p.N == 0 || p.batch == 0)
        return GM_OK;
    return with_plan(
        op, [&](auto config, unsigned splits) { return run<decltype(config)>(exec, p, splits); });
}
