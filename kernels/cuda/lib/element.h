/*
 * element.h - element types in kernels: what their sums are kept in, and the choice of a template's
 * instance. A part of kernel.h, which includes it where the device language is known.
 */
#ifndef GM_KERNELS_CUDA_LIB_ELEMENT_H
#define GM_KERNELS_CUDA_LIB_ELEMENT_H

#include "kernels/op.h"

#include <simt.h>

/* Carries a type as a value. */
template <typename T> struct gm_tag {
    using type = T;
};

/* What a type's sums are kept in: unsigned where NumPy's integers wrap. */
template <typename T> struct gm_acc_of {
    using type = T;
};
template <> struct gm_acc_of<gm_f16> {
    using type = float;
};
template <> struct gm_acc_of<gm_bf16> {
    using type = float;
};
template <> struct gm_acc_of<int32_t> {
    using type = uint32_t;
};
template <> struct gm_acc_of<int64_t> {
    using type = uint64_t;
};
template <typename T> using gm_acc = typename gm_acc_of<T>::type;

/* An element as its sum's type, and back: rounded once. */
template <typename T> __device__ __forceinline__ gm_acc<T> gm_load(T x)
{
    return (gm_acc<T>)x;
}
template <> __device__ __forceinline__ float gm_load(gm_f16 x)
{
    return gm_widen(x);
}
template <> __device__ __forceinline__ float gm_load(gm_bf16 x)
{
    return gm_widen(x);
}
template <typename T> __device__ __forceinline__ T gm_store(gm_acc<T> x)
{
    return (T)x;
}
template <> __device__ __forceinline__ gm_f16 gm_store<gm_f16>(float x)
{
    return gm_narrow<gm_f16>(x);
}
template <> __device__ __forceinline__ gm_bf16 gm_store<gm_bf16>(float x)
{
    return gm_narrow<gm_bf16>(x);
}

/* A factor (alpha, beta) in the type of the sums. */
template <typename S> static inline S gm_factor(const struct gm_scalar *factor)
{
    return factor->is_integer ? (S)factor->integer : (S)factor->real;
}

/* fn(gm_tag<T>) with T an unsigned type of the element's size: for what only moves elements. */
template <typename F> static inline enum gm_status gm_by_size(enum gm_dtype dtype, F fn)
{
    switch (gm_dtype_size(dtype)) {
    case 1:
        return fn(gm_tag<uint8_t>());
    case 2:
        return fn(gm_tag<uint16_t>());
    case 4:
        return fn(gm_tag<uint32_t>());
    case 8:
        return fn(gm_tag<uint64_t>());
    default:
        return fn(gm_tag<uint4>());
    }
}

/* fn(gm_tag<T>) with the element's own type: for what computes. */
template <typename F> static inline enum gm_status gm_by_type(enum gm_dtype dtype, F fn)
{
    switch (dtype) {
    case GM_F16:
        return fn(gm_tag<gm_f16>());
    case GM_BF16:
        return fn(gm_tag<gm_bf16>());
    case GM_F64:
        return fn(gm_tag<double>());
    case GM_I32:
        return fn(gm_tag<int32_t>());
    case GM_I64:
        return fn(gm_tag<int64_t>());
    default:
        return fn(gm_tag<float>());
    }
}

/* The same of f32 and f64. */
template <typename F> static inline enum gm_status gm_by_float_type(enum gm_dtype dtype, F fn)
{
    return dtype == GM_F64 ? fn(gm_tag<double>()) : fn(gm_tag<float>());
}

#endif
