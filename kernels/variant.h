/*
 * variant.h - declares the one list of kernel variants.
 *
 * A variant is one file and one row in variants.def. Dispatch, tests, benchmarks, GET /v1/kernels
 * and the documentation iterate over that list.
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

/* Sets of element types, as masks of 1 << enum gm_dtype. */
#define GM_DTYPE_BIT(dtype) (1u << (dtype))
#define GM_TYPES_ARITHMETIC                                                                        \
    (GM_DTYPE_BIT(GM_F16) | GM_DTYPE_BIT(GM_BF16) | GM_DTYPE_BIT(GM_F32) | GM_DTYPE_BIT(GM_F64) |  \
     GM_DTYPE_BIT(GM_I32) | GM_DTYPE_BIT(GM_I64))
#define GM_TYPES_OF_1_BYTE                                                                         \
    (GM_DTYPE_BIT(GM_BOOL) | GM_DTYPE_BIT(GM_I8) | GM_DTYPE_BIT(GM_U8) | GM_DTYPE_BIT(GM_V1))
#define GM_TYPES_ALL (((1u << GM_DTYPE_COUNT) - 1u) & ~1u)

/* Layouts that a variant accepts without a pass that rearranges the operand first. */
#define GM_FOLDS_NOTHING 0u
#define GM_FOLDS_TRANS (1u << 0) /* transa, transb, and so column-major single matrices */
#define GM_FOLDS_ROWS (1u << 1)  /* rows of several products by one matrix (gm_gather_op) */

/* The passes of a variant: the kernel itself, and passes that only rearrange data. Their times are
 * reported separately. */
enum gm_pass { GM_PASS_COMPUTES, GM_PASS_PREPARES };

struct gm_device_facts; /* device_facts.h */
struct gm_exec;         /* defined by each backend: threads, a stream, ... */

/* Computes op into op->result.data. Operands are row-major, or in a layout that the variant folds;
 * others were rearranged before. A variant that groups computes all of op[0] to op[n - 1], n being
 * gm_op_count(exec). Returns GM_OK, GM_CANCELLED (exec said stop), or the device's error. */
typedef enum gm_status gm_kernel_fn(const struct gm_op *op, struct gm_exec *exec);

/* What a host function keeps from one repetition of a task for the next; all zeros before the
 * first. */
#define GM_KEPT_BYTES 256
struct gm_kept {
    bool made;
    uint64_t words[GM_KEPT_BYTES / 8];
};

/* The most operations that one launch computes together: as many as fit into the 4 KB of a kernel's
 * parameters. */
#define GM_GROUP_MAX 48u
/* The most bytes of such an operation, and of all in a launch: 80 us of a PCIe 5.0 link with 16
 * lanes, for no small job is to wait longer for others. `auto` takes such a kernel for fewer. */
#define GM_GROUP_BYTES ((uint64_t)4 << 20)

/* When a block of a launch began and ended, by the device's clock. end_ns is 0 until the host can
 * read all that the block has written. */
struct gm_block_time {
    uint64_t begin_ns, end_ns;
};
#define GM_BLOCK_TIMES_MAX 64u /* blocks of such a launch */

/* Checks what a variant demands of shape and device: GM_OK, or GM_KERNEL_UNAVAILABLE with the
 * reason. */
typedef enum gm_status gm_accepts_fn(const struct gm_op *op, const struct gm_device_facts *facts,
                                     struct gm_error *err);

/* Bytes of device memory that run() needs in addition to operands and result (gm_scratch in
 * kernels/cuda/lib/kernel.h); UINT64_MAX on overflow. */
typedef uint64_t gm_scratch_fn(const struct gm_op *op);

struct gm_variant {
    enum gm_op_kind op;
    const char *name;
    uint32_t dtypes;        /* GM_DTYPE_BIT(...) */
    unsigned folds;         /* GM_FOLDS_... */
    gm_accepts_fn *accepts; /* gm_accepts_any if there are no other conditions */
    gm_scratch_fn *scratch;
    gm_kernel_fn *run[GM_DEVICE_KINDS]; /* NULL on devices that cannot run it */
    /* One launch computes several operations of one element type, whatever their shapes. On a GPU
     * its kernel reads operands and writes results where they are, also in the host's memory. */
    bool groups;
    bool wants_blas;          /* needs the device's BLAS library: facts.tuned_blas */
    unsigned tensor_products; /* tensor-core products for one product; 0: no tensor cores */
    const char *needs;        /* for display: "OpenBLAS", "compute capability 9.0"; or "" */
    const char *note;         /* one sentence: the idea */
};

/* Whether the device has the code and the library that the variant needs. */
bool gm_variant_is_there(const struct gm_variant *variant, const struct gm_device_facts *facts);

/* The variants of this build; NULL past the end. */
const struct gm_variant *gm_variant_at(size_t index);

/* Resolves old names (aliases) of variants; returns any other name unchanged. */
const char *gm_variant_name(const char *name);

/* For rows that accept every shape, and for rows that need no scratch memory. */
gm_accepts_fn gm_accepts_any;
gm_scratch_fn gm_scratch_none;

/* Whether the variant can run op on that device: GM_OK, or GM_KERNEL_UNAVAILABLE with the reason. A
 * copy can also run transposes and flips that leave the bytes unchanged (gm_op_is_copy). */
enum gm_status gm_variant_check(const struct gm_variant *variant, const struct gm_op *op,
                                const struct gm_device_facts *facts, struct gm_error *err);

#ifdef __cplusplus
}
#endif
#endif
