/*
 * variant.h - the one list of kernel variants. A variant is one file and one row in variants.def.
 * Dispatch, tests, benchmarks, GET /v1/kernels and the documentation iterate over that list.
 */
#ifndef GM_KERNELS_VARIANT_H
#define GM_KERNELS_VARIANT_H

#include "op.h"

#ifdef __cplusplus
extern "C" {
#endif

enum gm_device_kind { GM_DEVICE_CPU, GM_DEVICE_SIM, GM_DEVICE_CUDA, GM_DEVICE_KINDS };

/* "cpu", "sim", "cuda" */
const char *gm_device_kind_name(enum gm_device_kind kind);

#define GM_ON_CPU (1u << GM_DEVICE_CPU)
#define GM_ON_SIM (1u << GM_DEVICE_SIM)
#define GM_ON_CUDA (1u << GM_DEVICE_CUDA)

/* Sets of element types, as masks of 1 << enum gm_dtype. */
#define GM_DTYPE_BIT(dtype) (1u << (dtype))
#define GM_TYPES_ARITHMETIC                                                                        \
    (GM_DTYPE_BIT(GM_F16) | GM_DTYPE_BIT(GM_BF16) | GM_DTYPE_BIT(GM_F32) | GM_DTYPE_BIT(GM_F64) |  \
     GM_DTYPE_BIT(GM_I32) | GM_DTYPE_BIT(GM_I64))
#define GM_TYPES_OF_1_BYTE                                                                         \
    (GM_DTYPE_BIT(GM_BOOL) | GM_DTYPE_BIT(GM_I8) | GM_DTYPE_BIT(GM_U8) | GM_DTYPE_BIT(GM_V1))
#define GM_TYPES_ALL (((1u << GM_DTYPE_COUNT) - 1u) & ~1u)

/* Layouts that a variant takes without a pass that rearranges the operand first. */
#define GM_FOLDS_NOTHING 0u
#define GM_FOLDS_TRANS (1u << 0) /* transa, transb, and so column-major single matrices */

/* A variant's passes over the data: those that only rearrange it, and the kernel itself. The
 * account keeps their times apart. */
enum gm_pass { GM_PASS_COMPUTES, GM_PASS_PREPARES };

struct gm_device_facts; /* device_facts.h */
struct gm_exec;         /* each backend's own: what a kernel runs with (threads, a stream, ...) */

/* Computes op into op->result.data. Operands are in the layout the variant folds; anything else
 * was rearranged before. Returns GM_OK, GM_CANCELLED (exec said stop), or a device's failure. */
typedef enum gm_status gm_kernel_fn(const struct gm_op *op, struct gm_exec *exec);

/* What a host function may keep from one repetition of a task for the next: all zeros before the
 * first. */
#define GM_KEPT_BYTES 256
struct gm_kept {
    bool made;
    uint64_t words[GM_KEPT_BYTES / 8];
};

/* What else must hold of shape and device: GM_OK, or GM_KERNEL_UNAVAILABLE and why in *err. */
typedef enum gm_status gm_accepts_fn(const struct gm_op *op, const struct gm_device_facts *facts,
                                     struct gm_error *err);

/* Bytes of device memory that run() wants beside operands and result (gm_scratch in
 * kernels/cuda/lib/kernel.h); UINT64_MAX on overflow. */
typedef uint64_t gm_scratch_fn(const struct gm_op *op);

struct gm_variant {
    enum gm_op_kind op;
    const char *name;
    uint32_t dtypes;        /* GM_DTYPE_BIT(...) */
    unsigned folds;         /* GM_FOLDS_... */
    gm_accepts_fn *accepts; /* gm_accepts_any where nothing else must hold */
    gm_scratch_fn *scratch;
    gm_kernel_fn *run[GM_DEVICE_KINDS]; /* NULL where it does not run */
    bool wants_blas; /* there only where the device has its BLAS library: facts.tuned_blas */
    unsigned tensor_products; /* bf16 products of tensor cores that make one f32 product; 0: none */
    const char *needs;        /* for people: "OpenBLAS", "compute capability 9.0"; "" for nothing */
    const char *note;         /* one sentence: the idea */
};

/* The kinds of devices it runs on: GM_ON_... */
unsigned gm_variant_devices(const struct gm_variant *variant);

/* Whether it runs on that device at all: a library that it wants may not be there. */
bool gm_variant_is_there(const struct gm_variant *variant, const struct gm_device_facts *facts);

/* The rows of this build; NULL past the end. */
const struct gm_variant *gm_variant_at(size_t index);

/* A variant's name, where `name` may be its old one (an alias); any other name as it is. */
const char *gm_variant_name(const char *name);

/* The `accepts` of rows that take every shape, and the `scratch` of those that need none. */
gm_accepts_fn gm_accepts_any;
gm_scratch_fn gm_scratch_none;

/* Whether the variant can run op on that device: GM_OK, or GM_KERNEL_UNAVAILABLE with the reason.
 * A copy can also run the transposes that leave the bytes as they are (gm_op_is_copy). */
enum gm_status gm_variant_check(const struct gm_variant *variant, const struct gm_op *op,
                                const struct gm_device_facts *facts, struct gm_error *err);

#ifdef __cplusplus
}
#endif
#endif
