/*
 * roof.c - which units a product may use. Our kernels compute with plain multiply-adds; cuBLAS
 * takes the tensor cores where the types and the precision asked for allow it, and a ceiling that
 * it can pass would be none.
 */
#include "kernels/roof.h"

static struct gm_roof tensor_roof(const struct gm_op *op, const struct gm_gpu *gpu)
{
    switch (op->result.dtype) {
    case GM_F16:
        return (struct gm_roof){gpu->tensor_f16_gflops, "tensor f16"};
    case GM_BF16:
        return (struct gm_roof){gpu->tensor_f16_gflops, "tensor bf16"};
    case GM_F64:
        return (struct gm_roof){gpu->tensor_fp64_gflops, "tensor fp64"};
    case GM_F32:
        if (op->precision == GM_PRECISION_BF16_PRODUCTS)
            return (struct gm_roof){gpu->tensor_f16_gflops, "tensor bf16"};
        if (op->precision == GM_PRECISION_TF32)
            return (struct gm_roof){gpu->tensor_tf32_gflops, "tensor tf32"};
        break;
    default:
        break;
    }
    return (struct gm_roof){0, NULL};
}

struct gm_roof gm_roof_of(const struct gm_variant *variant, const struct gm_op *op,
                          const struct gm_device_facts *facts)
{
    enum gm_dtype dtype = op->result.dtype;

    if (variant && variant->wants_blas && facts->kind == GM_DEVICE_CUDA && facts->gpu) {
        struct gm_roof tensor = tensor_roof(op, facts->gpu);
        if (tensor.unit)
            return tensor;
    }
    return (struct gm_roof){facts->peak_gflops[dtype], facts->peak_name[dtype]};
}
