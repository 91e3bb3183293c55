/*
 * roof.c - gives the ceiling of an operation: of the arithmetic units that it may use, and of the
 * link; and raises measured rates.
 *
 * SIMT kernels compute with plain multiply-adds. cuBLAS uses tensor cores if types and precision
 * allow it, and mma and wgmma always: a plain ceiling would be too low for them. Kernels that split
 * f32 use them for several bf16 products.
 */
#include "kernels/device_facts.h"

/* The ceiling of an f32 product that is computed as several bf16 products. */
static struct gm_roof split_roof(const struct gm_variant *variant, const struct gm_gpu *gpu)
{
    return (struct gm_roof){gpu->tensor_f16_gflops / variant->tensor_products,
                            "tensor bf16, several products"};
}

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

    if (variant && variant->tensor_products > 1 && facts->gpu)
        return split_roof(variant, facts->gpu);
    if (variant && (variant->wants_blas || variant->tensor_products == 1) &&
        facts->kind == GM_DEVICE_CUDA && facts->gpu) {
        struct gm_roof tensor = tensor_roof(op, facts->gpu);
        if (tensor.unit)
            return tensor;
    }
    return (struct gm_roof){gm_rate(&facts->peak_gflops[dtype]), facts->peak_name[dtype]};
}

double gm_link_seconds(double in, double out, const struct gm_device_facts *facts)
{
    double in_gbs = gm_rate(&facts->link_in_gbs), out_gbs = gm_rate(&facts->link_out_gbs);

    if (!(in_gbs > 0) || !(out_gbs > 0))
        return 0;
    return 1e-9 * (in / in_gbs > out / out_gbs ? in / in_gbs : out / out_gbs);
}

static bool raise_rate(double *rate, double found)
{
    bool more = found > *rate;

    if (more)
        __atomic_store(rate, &found, __ATOMIC_RELAXED);
    return more;
}

void gm_facts_raise(struct gm_device_facts *facts, const struct gm_device_facts *found,
                    int64_t unix_time)
{
    for (int i = 0; i < GM_DTYPE_COUNT; i++)
        raise_rate(&facts->peak_gflops[i], found->peak_gflops[i]);
    raise_rate(&facts->link_in_gbs, found->link_in_gbs);
    raise_rate(&facts->link_out_gbs, found->link_out_gbs);
    if (raise_rate(&facts->copy_gbs, found->copy_gbs))
        __atomic_store_n(&facts->measured_unix, unix_time, __ATOMIC_RELAXED);
    if (found->copy_gbs > 0)
        __atomic_store_n(&facts->looked_unix, unix_time, __ATOMIC_RELAXED);
}
