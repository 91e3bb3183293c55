/*
 * sm90_tensor_map.h - copies boxes of matrices to and from shared memory by Hopper's TMA, the
 * tensor memory accelerator.
 *
 * It finds a box by a tensor map. A map is made on the host and passed as a
 * __grid_constant__ parameter. It describes a stack of matrices and the size of a box. Boxes arrive
 * swizzled, and beyond a matrix they have zeros, which are not stored back.
 *
 * Source: PTX ISA, "cp.async.bulk.tensor"; CUDA driver API, "Tensor Map Object Management".
 */
#ifndef GM_KERNELS_CUDA_LIB_SM90_TENSOR_MAP_H
#define GM_KERNELS_CUDA_LIB_SM90_TENSOR_MAP_H

#include "kernels/cuda/lib/sm90.h"

#include <cuda.h>
#include <cudaTypedefs.h>

constexpr unsigned GM_BOX_COLS = 64; /* elements of 128 bytes, the width of the swizzle */

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/* The box of a tensor map at (x, y, z), x along the rows; to all BLOCKS blocks of the cluster, at
 * the same address and barrier in each. */
template <unsigned BLOCKS>
__device__ static inline void gm_copy_box(void *to, const void *map, unsigned x, unsigned y,
                                          unsigned z, uint64_t *barrier)
{
    if constexpr (BLOCKS == 1)
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(gm_shared_address(to)),
                     "l"(map), "r"(x), "r"(y), "r"(z), "r"(gm_shared_address(barrier))
                     : "memory");
    else
        asm volatile(
            "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
            ".multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(gm_shared_address(to)),
            "l"(map), "r"(x), "r"(y), "r"(z), "r"(gm_shared_address(barrier)),
            "h"((uint16_t)((1u << BLOCKS) - 1))
            : "memory");
}
/* A k-tile of an operand, 64 of K by SPAN rows (columns) of the result from `across` on, or so many
 * boxes as have the `exist` first. K runs along a box's rows, or down it: then SPAN / 64 boxes. Of
 * it, block `rank` loads its share for all BLOCKS. */
template <unsigned SPAN, bool ALONG_K, unsigned BLOCKS>
__device__ static inline void gm_copy_boxes(uint16_t *to, const CUtensorMap *map, unsigned across,
                                            unsigned exist, unsigned k, unsigned matrix,
                                            unsigned rank, uint64_t *full)
{
    constexpr unsigned BOX = GM_BOX_COLS;

    if constexpr (ALONG_K) {
        unsigned first = rank * (SPAN / BLOCKS);
        gm_copy_box<BLOCKS>(to + first * BOX, map, k, across + first, matrix, full);
    } else {
#pragma unroll
        for (unsigned i = 0; i < SPAN / BOX; i++)
            if (i % BLOCKS == rank && i * BOX < exist)
                gm_copy_box<BLOCKS>(to + i * BOX * BOX, map, across + i * BOX, k, matrix, full);
    }
}
/* Begins to load a map, before its first use. */
__device__ static inline void gm_prefetch_map(const void *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
/* Stores a box, within a group that the thread commits. Written by ordinary stores, it needs
 * gm_box_written() by each writer before. */
__device__ static inline void gm_store_box(const void *map, unsigned x, unsigned y, unsigned z,
                                           const void *from)
{
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];\n"
                 "cp.async.bulk.commit_group;" ::"l"(map),
                 "r"(x), "r"(y), "r"(z), "r"(gm_shared_address(from))
                 : "memory");
}
__device__ static inline void gm_box_written()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
/* Waits until all but the last PENDING boxes that this thread stored have been read. */
template <unsigned PENDING> __device__ static inline void gm_boxes_read()
{
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}

#endif

/* The driver's function that makes tensor maps; NULL if it has none. */
static inline PFN_cuTensorMapEncodeTiled_v12000 gm_tensor_map_encoder()
{
    static void *const found = [] {
        cudaDriverEntryPointQueryResult result;
        void *function = nullptr;
#if CUDART_VERSION >= 12050
        cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function,
                                                             12000, cudaEnableDefault, &result);
#else
        cudaError_t error = cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function,
                                                    cudaEnableDefault, &result);
#endif
        return error == cudaSuccess && result == cudaDriverEntryPointSuccess ? function : nullptr;
    }();
    return (PFN_cuTensorMapEncodeTiled_v12000)found;
}

/* Makes a map of a stack of f16 or bf16 matrices of rows x cols, whose rows are `ld` elements and
 * matrices `batch` elements apart, in boxes of box_rows x GM_BOX_COLS. All of it lies at multiples
 * of 16 bytes. Returns false if the driver cannot. */
static inline bool gm_tensor_map(const void *data, bool is_bf16, uint64_t matrices, uint64_t rows,
                                 uint64_t cols, uint64_t ld, uint64_t batch, unsigned box_rows,
                                 CUtensorMap *ret)
{
    auto encode = gm_tensor_map_encoder();
    cuuint64_t dims[] = {cols, rows, matrices}, strides[] = {2 * ld, 2 * batch};
    cuuint32_t box[] = {GM_BOX_COLS, box_rows, 1}, steps[] = {1, 1, 1};

    return encode &&
           encode(ret, is_bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
                  3, (void *)(uintptr_t)data, dims, strides, box, steps,
                  CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

#endif
