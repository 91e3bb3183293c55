/*
 * aligned.h - checks that the rows of a product's operands are whole 16-byte vectors.
 *
 * For variants that load vectors and nothing else: vector_loads, warp_tiled, double_buffered. Every
 * buffer begins at a multiple of 256 bytes, so whole rows are aligned rows.
 */
#ifndef GM_KERNELS_CUDA_MATMUL_ALIGNED_H
#define GM_KERNELS_CUDA_MATMUL_ALIGNED_H

#include "kernels/cuda/matmul/product.h"

#define GM_FLOATS_OF_A_VECTOR 4u /* 16 bytes */

GM_ROW_FUNCTION enum gm_status gm_aligned_accepts(const struct gm_op *op,
                                                  const struct gm_device_facts *facts,
                                                  struct gm_error *err)
{
    uint64_t k = gm_op_k(op), n = gm_op_n(op);

    (void)facts;
    if (op->transa || op->transb)
        return gm_fail(err, GM_KERNEL_UNAVAILABLE,
                       "this kernel loads 16 bytes along the rows of a and b as they are stored, "
                       "and takes no transa and no transb");
    if (k % GM_FLOATS_OF_A_VECTOR != 0 || n % GM_FLOATS_OF_A_VECTOR != 0)
        return gm_fail(err, GM_KERNEL_UNAVAILABLE,
                       "this kernel loads 16 bytes of a row at once, and takes a and b with rows "
                       "of a multiple of %u elements; these have %llu and %llu",
                       GM_FLOATS_OF_A_VECTOR, (unsigned long long)k, (unsigned long long)n);
    return GM_OK;
}

#endif
