/*
 * sm90_wgmma.cu - multiplies f16 or bf16 matrices on Hopper's tensor cores at their full rate.
 *
 * Unlike in matmul_mma, four warps issue one instruction, wgmma, that multiplies 64 x 16 by up to
 * 16 x 256, reads both from shared memory, and runs while they go on. Loading is one thread's work:
 * it asks TMA for boxes of a matrix, which arrive swizzled, with zeros beyond the
 * edges. Blocks are persistent: while the last k-tiles of a tile are multiplied, and while it is
 * stored, those of the next tile arrive. Two blocks of a cluster are one above the other, and each
 * loads half of the B that both need. Operands whose rows do not begin at multiples of 16 bytes are
 * copied to rows that do (repack.h).
 *
 * Cost: a pair of tiles of 128 x 256 loads 128 multiply-adds per element. When it wins: on
 * Hopper, except on small operands of odd rows.
 * Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions", "Tensors"; CUTLASS
 * documentation, "Efficient GEMM in CUDA", warp specialization and persistent kernels.
 */
#include "kernels/choose/choose.h"
#include "kernels/cuda/lib/sm90_tensor_map.h"
#include "kernels/cuda/matmul/tensor/sm80.h"
#include "kernels/device_facts.h"

/*
 * large_tile. A consumer is a warpgroup, 4 warps of 16 rows each; the producer is one thread.
 *
 *     A stage:    +- B stage: 64 of K x 256 columns -+
 *     128 rows    |  consumer 0: rows   0 ..  63     |
 *     x 64 of K   |  consumer 1: rows  64 .. 127     |
 *                 +----------------------------------+
 *
 * The pipeline. At time t the consumers begin to multiply k-tile t (wgmma is asynchronous). When
 * k-tile t - 1 is done, the producer begins to load k-tile t + 3 into its stage:
 *
 *     time      t = 0      t = 1      t = 2      t = 3      t = 4
 *     stage 0   WGMMA 0    load 4     :          :          WGMMA 4
 *     stage 1   :          WGMMA 1    load 5     :          :
 *     stage 2   :          :          WGMMA 2    load 6     :
 *     stage 3   :          :          :          WGMMA 3    load 7
 *     load t waits for empty[stage]: all consumers that read k-tile t - 4 are done with it
 *     WGMMA t waits for full[stage]: the bytes of k-tile t have arrived
 *
 * A stage is boxes of rows of 128 bytes, swizzled (gm_swizzled_128b): 64 of K by all rows of the
 * tile, or, where K runs down the rows in memory, 64 rows or columns of the result by 64 of K.
 */
struct large_tile {
    static constexpr unsigned BM = 128, BN = 256, STAGES = 4, BUFFERS = 2;
    static constexpr unsigned CONSUMERS = 2, BLOCKS = 1, CLUSTER = 2, REGISTERS = 232;
};
struct wide_tile {
    static constexpr unsigned BM = 128, BN = 192, STAGES = 5, BUFFERS = 1;
    static constexpr unsigned CONSUMERS = 2, BLOCKS = 1, CLUSTER = 2, REGISTERS = 232;
};
struct square_tile {
    static constexpr unsigned BM = 128, BN = 128, STAGES = 6, BUFFERS = 2;
    static constexpr unsigned CONSUMERS = 2, BLOCKS = 1, CLUSTER = 2, REGISTERS = 232;
};
struct lone_tile : square_tile {
    static constexpr unsigned CLUSTER = 1;
};
/* For few tiles: half of lone_tile, and more of K under way, since memory is far. */
struct low_tile : lone_tile {
    static constexpr unsigned BM = 64, STAGES = 8, BUFFERS = 1, CONSUMERS = 1;
};
struct narrow_tile : lone_tile {
    static constexpr unsigned BN = 64, STAGES = 8, BUFFERS = 1;
};
struct small_tile {
    static constexpr unsigned BM = 64, BN = 64, STAGES = 4, BUFFERS = 1;
    static constexpr unsigned CONSUMERS = 1, BLOCKS = 3, CLUSTER = 1, REGISTERS = 120;
};
#define BK 64u
#define BOX GM_BOX_COLS /* elements of 128 bytes */
#define PRODUCER_REGISTERS 40

template <typename C> struct stages {
    alignas(1024) uint16_t a[C::STAGES][C::BM * BK], b[C::STAGES][C::BN * BK];
    char staging[C::CONSUMERS * GM_WARPGROUP / GM_WARP][C::BUFFERS][GM_STAGING_BYTES];
    uint64_t full[C::STAGES], empty[C::STAGES];
};
/* Dynamic shared memory is 128-byte aligned; the swizzle needs 1024. */
template <typename C> constexpr size_t shared_bytes = sizeof(stages<C>) + 1024;

/* Of a stage's SPAN rows (columns), those that are loaded: a matrix of fewer has lower boxes. What
 * the others' memory has goes into rows that are not stored. Blocks that share have all. */
template <unsigned SPAN, bool ALONG_K, unsigned BLOCKS>
__host__ __device__ static inline unsigned loaded_of(uint64_t across)
{
    unsigned step = ALONG_K ? 8 : BOX;

    return BLOCKS > 1 || across > SPAN ? SPAN : ((unsigned)across + step - 1) / step * step;
}

/* wgmma and TMA exist on sm_90a only; the kernel is never launched elsewhere. */
#ifdef __CUDA_ARCH_FEAT_SM90_ALL

template <typename T, typename C, bool A_ALONG_K, bool B_ALONG_K>
__device__ static void produce(const gm_split_work<T> &w, const CUtensorMap *a,
                               const CUtensorMap *b, stages<C> &shared, unsigned rank)
{
    gm_ring<C::STAGES> ring;
    bool a_broadcasts = w.p.a.batch == 0, b_broadcasts = w.p.b.batch == 0;
    unsigned a_rows = loaded_of<C::BM, A_ALONG_K, 1>(w.p.M);
    unsigned b_cols = loaded_of<C::BN, B_ALONG_K, C::CLUSTER>(w.p.N);

    for (uint32_t unit = blockIdx.x / C::CLUSTER; unit < w.units; unit += gridDim.x / C::CLUSTER) {
        gm_split_unit at = gm_split_unit_at(w, unit);
        unsigned row = (at.row * C::CLUSTER + rank) * C::BM, col = at.col * C::BN;

        for (uint32_t k = at.k_first; k < at.k_end; k++) {
            gm_barrier_wait(&shared.empty[ring.stage], ring.parity ^ 1);
            gm_barrier_expect(&shared.full[ring.stage], (a_rows + b_cols) * BK * 2);
            gm_copy_boxes<C::BM, A_ALONG_K, 1>(shared.a[ring.stage], a, row, a_rows, k * BK,
                                               a_broadcasts ? 0 : at.matrix, 0,
                                               &shared.full[ring.stage]);
            gm_copy_boxes<C::BN, B_ALONG_K, C::CLUSTER>(shared.b[ring.stage], b, col, b_cols,
                                                        k * BK, b_broadcasts ? 0 : at.matrix, rank,
                                                        &shared.full[ring.stage]);
            ring.next();
        }
    }
    /* This block may end when the cluster's consumers have arrived here for the last time. */
    for (unsigned i = 0; i < C::STAGES; i++) {
        gm_barrier_wait(&shared.empty[ring.stage], ring.parity ^ 1);
        ring.next();
    }
}

/* Groups of 8 rows of 128 bytes are 1024 bytes apart; boxes with K down their rows BOX * BK. */
__device__ static inline uint64_t descriptor(uint32_t address)
{
    return gm_descriptor<GM_SWIZZLE_128B>(address, 8 * 128, 2 * BOX * BK);
}

template <typename T, typename C, bool A_ALONG_K, bool B_ALONG_K>
__device__ static void consume(const gm_split_work<T> &w, const CUtensorMap *result,
                               stages<C> &shared, unsigned rank)
{
    constexpr unsigned A_STEP = A_ALONG_K ? 32 : 16 * 128, B_STEP = B_ALONG_K ? 32 : 16 * 128;
    unsigned thread = threadIdx.x % GM_WARPGROUP, half = threadIdx.x / GM_WARPGROUP;
    unsigned buffer = 0, lane = threadIdx.x % GM_WARP;
    gm_ring<C::STAGES> ring;
    bool by_boxes = w.p.N % GM_HALF_VEC == 0;
    float acc[C::BN / 2];

    for (uint32_t unit = blockIdx.x / C::CLUSTER; unit < w.units; unit += gridDim.x / C::CLUSTER) {
        gm_split_unit at = gm_split_unit_at(w, unit);
        int used = -1; /* the stage whose products are still pending */

        for (uint32_t k = at.k_first; k < at.k_end; k++) {
            gm_barrier_wait(&shared.full[ring.stage], ring.parity);
            uint32_t a = gm_shared_address(shared.a[ring.stage]) + half * 64 * BK * 2;
            uint32_t b = gm_shared_address(shared.b[ring.stage]);
            gm_wgmma_begin();
#pragma unroll
            for (unsigned step = 0; step < BK / 16; step++)
                gm_wgmma<T, A_ALONG_K, B_ALONG_K>(acc, descriptor(a + step * A_STEP),
                                                  descriptor(b + step * B_STEP),
                                                  k > at.k_first || step > 0);
            gm_wgmma_commit();
            gm_wgmma_wait<1>();
            if (used >= 0 && thread < C::CLUSTER)
                gm_barrier_arrive_at(&shared.empty[used], thread);
            used = (int)ring.stage;
            ring.next();
        }
        gm_wgmma_wait<0>();
        gm_wgmma_done(acc);
        if (thread < C::CLUSTER)
            gm_barrier_arrive_at(&shared.empty[used], thread);
        uint64_t row =
            (uint64_t)(at.row * C::CLUSTER + rank) * C::BM + half * 64 + thread / GM_WARP * 16;
        gm_store_fragments(
            w, at, row, (uint64_t)at.col * C::BN, acc,
            [&] {
                if (by_boxes && lane == 0)
                    gm_boxes_read<C::BUFFERS - 1>();
                __syncwarp();
                buffer = (buffer + 1) % C::BUFFERS;
                return shared.staging[threadIdx.x / GM_WARP][buffer];
            },
            [&](uint64_t col, const char *staged) {
                if (by_boxes)
                    gm_box_written();
                __syncwarp();
                if (!by_boxes)
                    gm_store_staged(w.p, at.matrix, row, col, staged);
                else if (lane == 0)
                    gm_store_box(result, (unsigned)col, (unsigned)row, at.matrix, staged);
            });
    }
    if (lane == 0)
        gm_boxes_read<0>();
}
#endif

template <typename T, typename C, bool A_ALONG_K, bool B_ALONG_K>
static __global__ void GM_CLUSTER(C::CLUSTER) __launch_bounds__((C::CONSUMERS + 1) * GM_WARPGROUP,
                                                                C::BLOCKS)
    matmul_wgmma(const gm_split_work<T> w, const __grid_constant__ CUtensorMap a,
                 const __grid_constant__ CUtensorMap b, const __grid_constant__ CUtensorMap result)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    static_assert(C::BM == C::CONSUMERS * 64, "a consumer has wgmma's 64 rows");
    static_assert(C::BLOCKS * (C::CONSUMERS * C::REGISTERS + PRODUCER_REGISTERS) <=
                      65536 / GM_WARPGROUP,
                  "setmaxnreg waits for ever for registers that a multiprocessor does not have");
    extern __shared__ char dynamic[];
    auto &shared = *(stages<C> *)(((uintptr_t)dynamic + 1023) & ~(uintptr_t)1023);
    unsigned rank = C::CLUSTER > 1 ? gm_cluster_rank() : 0;

    if (threadIdx.x == 0) {
        gm_prefetch_map(&a);
        gm_prefetch_map(&b);
        for (unsigned i = 0; i < C::STAGES; i++) {
            gm_barrier_init(&shared.full[i], 1);
            gm_barrier_init(&shared.empty[i], C::CONSUMERS * C::CLUSTER);
        }
        gm_barriers_ready();
    }
    gm_cluster_start();
    gm_trigger_dependent(); /* the launch that adds splits waits for the end of this one */
    if (threadIdx.x / GM_WARPGROUP == C::CONSUMERS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(PRODUCER_REGISTERS));
        if (threadIdx.x % GM_WARPGROUP == 0)
            produce<T, C, A_ALONG_K, B_ALONG_K>(w, &a, &b, shared, rank);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(C::REGISTERS));
        consume<T, C, A_ALONG_K, B_ALONG_K>(w, &result, shared, rank);
    }
#endif
}

/* ---- The variant: accepts, scratch, launch -------------------------------------------------- */

extern "C" enum gm_status
gm_wgmma_accepts(const struct gm_op *op, const struct gm_device_facts *facts, struct gm_error *err)
{
    if (!GM_HAVE_SM90A || !facts->gpu || facts->gpu->capability != 90)
        return gm_fail(err, GM_KERNEL_UNAVAILABLE,
                       "kernel \"wgmma\" needs a GPU of compute capability 9.0 (Hopper)%s",
                       GM_HAVE_SM90A ? "" : ", and a build for it (GEMMD_CUDA_ARCHITECTURES=90a)");
    return gm_half_accepts(op, "wgmma", small_tile::BM, small_tile::BN, err);
}

extern "C" uint64_t gm_wgmma_scratch(const struct gm_op *op)
{
    return gm_half_scratch(op, gm_wgmma_tiles(op).splits, GM_HALF_VEC);
}

/* A map of an operand, in boxes as high as its share of a stage if K runs along the rows, else BK.
 */
static bool map_of(const gm_half_operand &x, bool is_bf16, unsigned across, CUtensorMap *ret)
{
    return gm_tensor_map(x.data, is_bf16, x.matrices, x.rows, x.cols, x.ld,
                         x.batch ? x.batch : x.rows * x.ld, x.along_k ? across : BK, ret);
}

template <typename T, typename C>
static enum gm_status run(struct gm_exec *exec, const gm_product<T> &p, unsigned splits)
{
    constexpr bool is_bf16 = std::is_same<T, gm_bf16>::value;

    return gm_half_run<C::BM * C::CLUSTER, C::BN, BK>(
        exec, p, GM_HALF_VEC, splits,
        [&](const gm_split_work<T> &w, const gm_half_operand &a, const gm_half_operand &b) {
            CUtensorMap map_a, map_b, map_result = {};
            if (!map_of(a, is_bf16, loaded_of<C::BM, true, 1>(p.M), &map_a) ||
                !map_of(b, is_bf16, loaded_of<C::BN, true, C::CLUSTER>(p.N) / C::CLUSTER, &map_b) ||
                (p.N % GM_HALF_VEC == 0 && !gm_tensor_map(p.result, is_bf16, p.batch, p.M, p.N, p.N,
                                                          p.M * p.N, 16, &map_result)))
                return gm_cuda_launched(exec, cudaErrorInvalidValue, nullptr);
            auto *kernel = a.along_k   ? b.along_k ? matmul_wgmma<T, C, true, true>
                                                   : matmul_wgmma<T, C, true, false>
                             : b.along_k ? matmul_wgmma<T, C, false, true>
                                       : matmul_wgmma<T, C, false, false>;
            unsigned blocks = gm_gpu_of(exec)->sms * C::BLOCKS / C::CLUSTER;
            dim3 grid((w.units < blocks ? w.units : blocks) * C::CLUSTER);
            return gm_launch(exec, kernel, grid, dim3((C::CONSUMERS + 1) * GM_WARPGROUP),
                             shared_bytes<C>, w, map_a, map_b, map_result);
        });
}

GM_KERNEL(matmul_wgmma)
{
    return gm_by_half_type(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        gm_product<T> p = gm_product_of<T>(op);

        if (p.M == 0 || p.N == 0 || p.batch == 0)
            return GM_OK;
        gm_tile_choice tiles = gm_wgmma_tiles(op);
        static constexpr decltype(&run<T, large_tile>) runs[] = {
            run<T, large_tile>, run<T, wide_tile>,   run<T, square_tile>, run<T, lone_tile>,
            run<T, low_tile>,   run<T, narrow_tile>, run<T, small_tile>};
        return runs[tiles.config](exec, p, tiles.splits);
    });
}
