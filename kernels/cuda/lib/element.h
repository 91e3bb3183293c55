/*
 * element.h - element types in kernels: accumulator types, conversions, and template dispatch by
 * dtype.
 *
 * Part of kernel.h, which includes it after <simt.h>.
 */
#ifndef GM_KERNELS_CUDA_LIB_ELEMENT_H
#define GM_KERNELS_CUDA_LIB_ELEMENT_H

#include "kernels/op.h"

#include <simt.h>

/* A type as a value, for generic lambdas. */
template <typename T> struct gm_tag {
    using type = T;
};

/* The accumulator type: float for f16 and bf16; unsigned for integers, because NumPy's wrap. */
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

/* gm_load widens an element to the accumulator type; gm_store rounds back, once. */
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

/* alpha or beta in the accumulator type. */
template <typename S> static inline S gm_factor(const struct gm_scalar *factor)
{
    return factor->is_integer ? (S)factor->integer : (S)factor->real;
}

/* Calls fn(gm_tag<T>) where T is the unsigned type of the element's size: for kernels that only
 * move elements. */
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

/* Calls fn(gm_tag<T>) where T is the element type: for kernels that compute. */
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

/* The same, for kernels that take f32 and f64 only. */
template <typename F> static inline enum gm_status gm_by_float_type(enum gm_dtype dtype, F fn)
{
    return dtype == GM_F64 ? fn(gm_tag<double>()) : fn(gm_tag<float>());
}

/* The same, for kernels that take f16 and bf16 only. */
template <typename F> static inline enum gm_status gm_by_half_type(enum gm_dtype dtype, F fn)
{
    return dtype == GM_F16 ? fn(gm_tag<gm_f16>()) : fn(gm_tag<gm_bf16>());
}

#endif
