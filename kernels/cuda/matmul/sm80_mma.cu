/*
 * sm80_mma.cu - multiplies f16 or bf16 matrices on tensor cores, with the instruction mma.sync.
 *
 * Unlike in matmul_multistage, a warp computes with instructions that multiply 16 x 16 by 16 x 8,
 * and sums are in f32. Their operands come from shared memory by ldmatrix, which hands each lane
 * the elements that mma.sync wants of it, transposed if need be. So both operands are loaded as
 * they lie in memory, by asynchronous copies of 16 bytes, three k-tiles ahead; of 8
 * or 4 bytes where rows begin so. Operands of odd rows are first copied to even ones (repack.h).
 *
 * Cost: a warp of 64 x 64 reads 8 KB of shared memory for 32 mma.sync, and shared memory is busy
 * for half of their time. A tile of 128 x 128 loads 64 multiply-adds per element.
 *
 * When it wins: from compute capability 8.0 on over all plain arithmetic. Hopper's tensor cores do
 * at most 0.65 of their rate with this instruction; wgmma has the rest.
 * Source: PTX ISA, "Matrix multiply-accumulate operation using mma instruction" and "ldmatrix";
 * CUTLASS documentation, "Efficient GEMM in CUDA".
 */
#include "kernels/choose/choose.h"
#include "kernels/cuda/matmul/tensor/sm80.h"
#include "kernels/device_facts.h"

/*
 * The tile: 4 warps, each with 64 x 64 of the result (small_tile: 16 x 64).
 *
 *                   BN = 128
 *               warp 0 | warp 1
 *     BM = 128  -------+-------
 *               warp 2 | warp 3
 *
 * The pipeline has 4 stages, and one barrier for each k-tile:
 *
 *     k-tile that is multiplied    0   1   2   3   4   5     i, in stage i % 4
 *     whose loads begin            3   4   5   6   7   8     i + 3, in the stage that i - 1 leaves
 *
 * A k-tile of an operand has its stored order. ldmatrix reads 8 vectors below each other, so both
 * kinds are swizzled. K along the rows (64 bytes): gm_swizzled_64b draws it. K down them (256
 * bytes), with v for vectors of 8 elements:
 *
 *     m or n    0   8   16  24  ..
 *     k 0       v0  v1  v2  v3  ..
 *       1       v1  v0  v3  v2  ..
 *       2       v2  v3  v0  v1  ..
 *
 * The registers of one mma.sync, two elements each. Lane g * 4 + q has
 *
 *     a[0]: row g,     k 2q     a[2]: row g,     k 2q + 8         b[0]: k 2q,     column g
 *     a[1]: row g + 8, k 2q     a[3]: row g + 8, k 2q + 8         b[1]: k 2q + 8, column g
 */
struct large_tile {
    static constexpr unsigned BM = 128, BN = 128, WARPS_M = 2, WARPS_N = 2, BLOCKS = 2;
};
struct small_tile {
    static constexpr unsigned BM = 64, BN = 64, WARPS_M = 4, WARPS_N = 1, BLOCKS = 3;
};
#define BK 32u
#define STAGES 4u
#define THREADS 128u
#define MMA_CAPABILITY 80u
#define MMA_ALIGNED 2u /* elements: the narrowest asynchronous copy */

template <typename C> struct stages {
    alignas(128) uint16_t a[STAGES][C::BM * BK], b[STAGES][C::BN * BK];
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 10 * MMA_CAPABILITY

/* The offset of a vector in a k-tile. */
template <unsigned SPAN, bool ALONG_K>
__device__ __forceinline__ unsigned offset_in(unsigned row, unsigned vec)
{
    return ALONG_K ? gm_swizzled_64b(row, vec) : row * SPAN * 2 + ((vec ^ (row & 7)) << 4);
}

/* Loads k-tiles of an operand, SPAN rows (columns) of the result high. */
template <unsigned SPAN, bool ALONG_K> struct loader {
    static constexpr unsigned VECTORS = (ALONG_K ? BK : SPAN) / GM_HALF_VEC; /* of a row */
    static constexpr unsigned ROWS = THREADS / VECTORS; /* that the threads load at once */
    static constexpr unsigned COPIES = SPAN * BK / GM_HALF_VEC / THREADS;
    static_assert(ROWS % 8 == 0, "all copies of a thread have the same place in the swizzle");

    const uint16_t *from;
    uint64_t ld;
    uint32_t rows, cols;  /* that are left from this thread's first vector on */
    unsigned to, aligned; /* aligned: rows begin at what multiple of elements */

    __device__ __forceinline__ loader(const gm_half_operand &x, uint32_t matrix, uint64_t across,
                                      uint64_t k)
    {
        unsigned row = threadIdx.x / VECTORS, vec = threadIdx.x % VECTORS;
        uint64_t first = row + (ALONG_K ? across : k),
                 col = vec * GM_HALF_VEC + (ALONG_K ? k : across);

        from = x.data + matrix * x.batch + first * x.ld + col;
        ld = x.ld;
        aligned = (unsigned)(x.ld | x.batch);
        rows = first < x.rows ? (uint32_t)(x.rows - first) : 0;
        cols = col < x.cols ? (uint32_t)(x.cols - col) : 0;
        to = offset_in<SPAN, ALONG_K>(row, vec);
    }
    template <unsigned BYTES> __device__ __forceinline__ void load_by(char *tile)
    {
        unsigned bytes = min(cols, GM_HALF_VEC) * 2;
#pragma unroll
        for (unsigned i = 0; i < COPIES; i++)
            gm_copy_async<BYTES>(tile + to + i * ROWS * VECTORS * 16, from + i * ROWS * ld,
                                 i * ROWS < rows ? bytes : 0);
    }
    /* Beyond the operand there are zeros. */
    __device__ __forceinline__ void load(uint16_t *tile)
    {
        if (aligned % 8 == 0)
            load_by<16>((char *)tile);
        else if (aligned % 4 == 0)
            load_by<8>((char *)tile);
        else
            load_by<4>((char *)tile);
        from += ALONG_K ? BK : BK * ld;
        uint32_t &left = ALONG_K ? cols : rows;
        left = left > BK ? left - BK : 0;
    }
};

/* Four 8 x 8 matrices: two of rows (columns) `across` and + 8, times two of k and k + 8. FIRST_K:
 * those of k come first. */
template <unsigned SPAN, bool ALONG_K, bool FIRST_K>
__device__ __forceinline__ void fragment(uint32_t (&to)[4], const uint16_t *tile, unsigned across,
                                         unsigned k)
{
    unsigned lane = threadIdx.x % GM_WARP, high = lane / 16 * 8, low = lane / 8 % 2 * 8;
    unsigned at_k = k + (FIRST_K ? low : high), at = across + (FIRST_K ? high : low);
    unsigned row = lane % 8 + (ALONG_K ? at : at_k), col = ALONG_K ? at_k : at;
    uint32_t address = gm_shared_address(tile) + offset_in<SPAN, ALONG_K>(row, col / GM_HALF_VEC);

    if constexpr (ALONG_K)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(address)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(address)
                     : "memory");
}

#define MMA(type)                                                                                  \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 "                    \
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                 \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                  \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
template <typename T>
__device__ __forceinline__ void multiply(float *d, const uint32_t *a, const uint32_t *b)
{
    if constexpr (std::is_same<T, gm_bf16>::value)
        MMA("bf16");
    else
        MMA("f16");
}

template <typename T, typename C, bool A_ALONG_K, bool B_ALONG_K>
__device__ static void compute(const gm_split_work<T> &w, const gm_half_operand &a,
                               const gm_half_operand &b)
{
    constexpr unsigned WM = C::BM / C::WARPS_M, WN = C::BN / C::WARPS_N;
    stages<C> &shared = *gm_dynamic_shared<stages<C>>();
    unsigned warp = threadIdx.x / GM_WARP;
    unsigned warp_row = warp / C::WARPS_N * WM, warp_col = warp % C::WARPS_N * WN;
    gm_split_unit at = gm_split_unit_at(w, blockIdx.x);
    uint64_t row = (uint64_t)at.row * C::BM, col = (uint64_t)at.col * C::BN;
    uint64_t k = (uint64_t)at.k_first * BK;
    loader<C::BM, A_ALONG_K> load_a(a, at.matrix, row, k);
    loader<C::BN, B_ALONG_K> load_b(b, at.matrix, col, k);
    unsigned k_tiles = at.k_end - at.k_first;
    gm_trigger_dependent(); /* the launch that adds splits waits for the end of this one */
    float acc[WM / 16][WN / 2] = {};

    auto load_stage = [&](unsigned i) {
        if (i < k_tiles) {
            load_a.load(shared.a[i % STAGES]);
            load_b.load(shared.b[i % STAGES]);
        }
        __pipeline_commit();
    };

    for (unsigned i = 0; i < STAGES - 1; i++)
        load_stage(i);
    for (unsigned i = 0; i < k_tiles; i++) {
        const uint16_t *tile_a = shared.a[i % STAGES], *tile_b = shared.b[i % STAGES];
        __pipeline_wait_prior(STAGES - 2);
        __syncthreads(); /* k-tile i has arrived, and all warps are done with i - 1 */
        load_stage(i + STAGES - 1);
#pragma unroll
        for (unsigned step = 0; step < BK; step += 16) {
            uint32_t left[WM / 16][4], right[WN / 16][4];
#pragma unroll
            for (unsigned m = 0; m < WM / 16; m++)
                fragment<C::BM, A_ALONG_K, false>(left[m], tile_a, warp_row + 16 * m, step);
#pragma unroll
            for (unsigned n = 0; n < WN / 16; n++)
                fragment<C::BN, B_ALONG_K, true>(right[n], tile_b, warp_col + 16 * n, step);
#pragma unroll
            for (unsigned m = 0; m < WM / 16; m++) {
#pragma unroll
                for (unsigned n = 0; n < WN / 8; n++)
                    multiply<T>(&acc[m][4 * n], left[m], &right[n / 2][n % 2 * 2]);
            }
        }
    }
    __syncthreads(); /* the stages become staging */
    char *staging = (char *)&shared + warp * GM_STAGING_BYTES;
#pragma unroll
    for (unsigned m = 0; m < WM / 16; m++) {
        uint64_t first = row + warp_row + 16 * m;
        gm_store_fragments(
            w, at, first, col + warp_col, acc[m],
            [&] {
                __syncwarp();
                return staging;
            },
            [&](uint64_t at_col, const char *staged) {
                __syncwarp();
                gm_store_staged(w.p, at.matrix, first, at_col, staged);
            });
    }
}
#endif

template <typename T, typename C, bool A_ALONG_K, bool B_ALONG_K>
static __global__ void __launch_bounds__(THREADS, C::BLOCKS)
    matmul_mma(gm_split_work<T> w, gm_half_operand a, gm_half_operand b)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 10 * MMA_CAPABILITY
    compute<T, C, A_ALONG_K, B_ALONG_K>(w, a, b);
#endif
}

/* ---- The variant: accepts, scratch, launch -------------------------------------------------- */

extern "C" enum gm_status gm_mma_accepts(const struct gm_op *op,
                                         const struct gm_device_facts *facts, struct gm_error *err)
{
    if (!facts->gpu || facts->gpu->capability < MMA_CAPABILITY)
        return gm_fail(err, GM_KERNEL_UNAVAILABLE,
                       "kernel \"mma\" needs a GPU of compute capability 8.0 or newer");
    return gm_half_accepts(op, "mma", small_tile::BM, small_tile::BN, err);
}

extern "C" uint64_t gm_mma_scratch(const struct gm_op *op)
{
    return gm_half_scratch(op, gm_mma_tiles(op).splits, MMA_ALIGNED);
}

template <typename T, typename C>
static enum gm_status run(struct gm_exec *exec, const gm_product<T> &p, unsigned splits)
{
    return gm_half_run<C::BM, C::BN, BK>(
        exec, p, MMA_ALIGNED, splits,
        [&](const gm_split_work<T> &w, const gm_half_operand &a, const gm_half_operand &b) {
            auto *kernel =
                a.along_k ? b.along_k ? matmul_mma<T, C, true, true> : matmul_mma<T, C, true, false>
                : b.along_k ? matmul_mma<T, C, false, true>
                            : matmul_mma<T, C, false, false>;
            return gm_launch(exec, kernel, dim3(w.units), dim3(THREADS), sizeof(stages<C>), w, a,
                             b);
        });
}

GM_KERNEL(matmul_mma)
{
    return gm_by_half_type(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        gm_product<T> p = gm_product_of<T>(op);
        gm_tile_choice tiles = gm_mma_tiles(op);

        if (p.M == 0 || p.N == 0 || p.batch == 0)
            return GM_OK;
        static constexpr decltype(&run<T, large_tile>) runs[] = {run<T, large_tile>,
                                                                 run<T, small_tile>};
        return runs[tiles.config](exec, p, tiles.splits);
    });
}
