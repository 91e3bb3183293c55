/*
 * params.h - the parameters of an operation, from the query string or from members of a JSON body.
 *
 * GM_PARAM_LIST names them, the operations that have them, and how to read them.
 */
#ifndef GM_SERVER_REQUEST_PARAMS_H
#define GM_SERVER_REQUEST_PARAMS_H

#include "kernels/gpu.h"
#include "server/limits.h"

#include <string.h>

#define GM_RESULT_REGION GM_OPERANDS_MAX /* the result's index among regions */

typedef char gm_param_text[GM_PARAMETER_BYTES_MAX + 1]; /* empty: not stated */

#define GM_PARAM_OF(op) (1u << GM_OP_##op)
#define GM_PARAM_OF_ALL (~0u)
#define GM_PARAM_OF_OPS (~GM_PARAM_OF(EVAL)) /* of operations on a, b and c */
#define GM_PARAM_SHAPE "a shape: RxC, or BxRxC for a stack"
#define GM_PARAM_REGION "the name of a region of shared memory"
#define GM_PARAM_OFFSET "a whole number of bytes"
#define GM_PARAM_REF "ref:NAME, a named matrix; other operands are in the body"
#define GM_PARAM_RANGE "an index, or a range of them from 0, as 7, 0:100 or 50:"
#define GM_PARAM_RESULTS (GM_PARAM_OF_ALL & ~GM_PARAM_OF(COPY))
#define GM_PARAM_BOOLEAN "true or false (or 1 or 0)"
/* The GPUs of kernels/gpu.h; a test compares. */
#define GM_PARAM_GPU "one of H200, H100, A100, B200, RTX 5090, RTX 4090, RTX 3090, L4 and T4"

/*
 * The list. OWN(type, member, name, operations, reader, max, takes) declares a member of struct
 * gm_params; PART(member, ...) reads into an existing one. `reader`: the function read_... of
 * params.c that parses the value. `max`: the largest number or length. `takes`: the valid values,
 * for people.
 */
#define GM_PARAM_LIST(OWN, PART)                                                                   \
    OWN(gm_param_text, kernel, "kernel", GM_PARAM_OF_OPS, text, GM_PARAMETER_BYTES_MAX,            \
        "auto or the name of a kernel, see /v1/kernels")                                           \
    OWN(gm_param_text, device, "device", GM_PARAM_OF_ALL, text, GM_PARAMETER_BYTES_MAX,            \
        "the name of a device, see /v1/devices")                                                   \
    OWN(enum gm_dtype, dtype, "dtype", GM_PARAM_OF_ALL, dtype, 0, "an element type")               \
    PART(shape[0], "shape", GM_PARAM_OF_OPS, shape, 0, GM_PARAM_SHAPE)                             \
    PART(shape[0], "shape_a", GM_PARAM_OF_OPS, shape, 0, GM_PARAM_SHAPE)                           \
    PART(shape[1], "shape_b", GM_PARAM_OF(MATMUL) | GM_PARAM_OF(ADD), shape, 0, GM_PARAM_SHAPE)    \
    PART(shape[2], "shape_c", GM_PARAM_OF(MATMUL), shape, 0, GM_PARAM_SHAPE)                       \
    PART(region[0], "region", GM_PARAM_OF_OPS, text, GM_PARAMETER_BYTES_MAX, GM_PARAM_REGION)      \
    PART(region[0], "region_a", GM_PARAM_OF_OPS, text, GM_PARAMETER_BYTES_MAX, GM_PARAM_REGION)    \
    PART(region[1], "region_b", GM_PARAM_OF(MATMUL) | GM_PARAM_OF(ADD), text,                      \
         GM_PARAMETER_BYTES_MAX, GM_PARAM_REGION)                                                  \
    PART(region[2], "region_c", GM_PARAM_OF(MATMUL), text, GM_PARAMETER_BYTES_MAX,                 \
         GM_PARAM_REGION)                                                                          \
    PART(region[GM_RESULT_REGION], "region_result", GM_PARAM_OF_OPS, text, GM_PARAMETER_BYTES_MAX, \
         GM_PARAM_REGION)                                                                          \
    PART(offset[0], "offset", GM_PARAM_OF_OPS, size, 0, GM_PARAM_OFFSET)                           \
    PART(offset[0], "offset_a", GM_PARAM_OF_OPS, size, 0, GM_PARAM_OFFSET)                         \
    PART(offset[1], "offset_b", GM_PARAM_OF(MATMUL) | GM_PARAM_OF(ADD), size, 0, GM_PARAM_OFFSET)  \
    PART(offset[2], "offset_c", GM_PARAM_OF(MATMUL), size, 0, GM_PARAM_OFFSET)                     \
    PART(offset[GM_RESULT_REGION], "offset_result", GM_PARAM_OF_OPS, size, 0, GM_PARAM_OFFSET)     \
    PART(ref[0], "a", GM_PARAM_OF_OPS, ref, GM_PARAMETER_BYTES_MAX, GM_PARAM_REF)                  \
    PART(ref[1], "b", GM_PARAM_OF(MATMUL) | GM_PARAM_OF(ADD), ref, GM_PARAMETER_BYTES_MAX,         \
         GM_PARAM_REF)                                                                             \
    PART(ref[2], "c", GM_PARAM_OF(MATMUL), ref, GM_PARAMETER_BYTES_MAX, GM_PARAM_REF)              \
    OWN(gm_param_text, keep, "keep", GM_PARAM_RESULTS, name, 64,                                   \
        "a name: letters, digits and _, with no digit first, 64 at most")                          \
    OWN(enum gm_return, returns, "return", GM_PARAM_RESULTS, returns, 0, "result or account")      \
    OWN(uint64_t, ttl_s, "ttl", GM_PARAM_OF_ALL, count, GM_MATRIX_TTL_S_MAX,                       \
        "a whole number of seconds from 1 to 31536000")                                            \
    OWN(gm_param_text, share, "share", GM_PARAM_OF_ALL, share, GM_PARAMETER_BYTES_MAX,             \
        "*, or names of keys with commas between")                                                 \
    OWN(struct gm_range, rows, "rows", GM_PARAM_OF(COPY), range, 0, GM_PARAM_RANGE)                \
    OWN(struct gm_range, cols, "cols", GM_PARAM_OF(COPY), range, 0, GM_PARAM_RANGE)                \
    PART(op.transa, "transa", GM_PARAM_OF(MATMUL), boolean, 0, GM_PARAM_BOOLEAN)                   \
    PART(op.transb, "transb", GM_PARAM_OF(MATMUL), boolean, 0, GM_PARAM_BOOLEAN)                   \
    PART(op, "alpha", GM_PARAM_OF(MATMUL), alpha, 0, "a finite number")                            \
    PART(op, "beta", GM_PARAM_OF(MATMUL), beta, 0, "a finite number")                              \
    PART(op.precision, "precision", GM_PARAM_OF_ALL, precision, 0, "fp32, ieee, tf32 or bf16")     \
    OWN(uint64_t, repeat, "repeat", GM_PARAM_OF_OPS, count, GM_REPEAT_MAX,                         \
        "a whole number from 1 to 1000")                                                           \
    OWN(uint64_t, timeout_ms, "timeout_ms", GM_PARAM_OF_ALL, count, GM_TIMEOUT_MS_MAX,             \
        "a whole number of milliseconds from 1 to 3600000")                                        \
    OWN(bool, nonfinite_null, "nonfinite", GM_PARAM_OF_ALL, nonfinite, 0, "error or null")         \
    OWN(enum gm_header, header, "header", GM_PARAM_OF_ALL, header, 0, GM_PARAM_BOOLEAN)            \
    OWN(gm_param_text, format, "format", GM_PARAM_OF_OPS, text, 7,                                 \
        "text, json or svg, of those that a report has")                                           \
    OWN(const struct gm_gpu *, gpu, "gpu", GM_PARAM_OF_OPS, gpu, 0, GM_PARAM_GPU)                  \
    OWN(bool, explain_plan, "explain", GM_PARAM_OF(EVAL), plan, 0, "plan: nothing runs")           \
    OWN(gm_param_text, against, "against", GM_PARAM_OF_OPS, text, GM_PARAMETER_BYTES_MAX,          \
        "the name of a kernel")

/* What comes back: unsaid, the account alone of a result that is kept or goes into a region, else
 * the result. */
enum gm_return { GM_RETURN_UNSAID, GM_RETURN_RESULT, GM_RETURN_ACCOUNT };

/* Rows or columns: from `from` to before `to`, which is UINT64_MAX for the end. All zero: all. */
struct gm_range {
    bool stated;
    uint64_t from, to;
};

/* All zero: no parameter is stated. */
struct gm_params {
    uint64_t seen;                          /* rows of the list that were given */
    struct gm_shape shape[GM_OPERANDS_MAX]; /* ndim 0: not stated */
    /* Regions of shared memory, of the operands and of the result; "": none. */
    gm_param_text region[GM_OPERANDS_MAX + 1];
    uint64_t offset[GM_OPERANDS_MAX + 1];
    gm_param_text ref[GM_OPERANDS_MAX]; /* named matrices, without "ref:"; "": none */
    struct gm_op_options op;
#define GM_PARAM_MEMBER(type, member, ...) type member;
#define GM_PARAM_NO_MEMBER(...)
    GM_PARAM_LIST(GM_PARAM_MEMBER, GM_PARAM_NO_MEMBER)
#undef GM_PARAM_MEMBER
#undef GM_PARAM_NO_MEMBER
};

/* Whether they leave the kernel to gemmd. */
static inline bool gm_params_take_auto(const struct gm_params *params)
{
    return !*params->kernel || strcmp(params->kernel, "auto") == 0;
}

/* Whether any shape is stated. */
static inline bool gm_params_have_shape(const struct gm_params *params)
{
    return params->shape[0].ndim > 0 || params->shape[1].ndim > 0 || params->shape[2].ndim > 0;
}

/*
 * Finds a parameter of an operation; *ret_bit is its bit in `seen`. Errors: GM_UNKNOWN_PARAMETER
 * (names the nearest), GM_BAD_PARAMETER (names the operations that have it).
 */
enum gm_status gm_params_find(enum gm_op_kind op, const char *name, size_t name_len,
                              uint64_t *ret_bit, struct gm_error *err);
/* Fails if a parameter was stated beside these (bits of `seen`), and names it and `path`, which
 * does not take it. */
enum gm_status gm_params_only(const struct gm_params *params, uint64_t allowed, const char *path,
                              struct gm_error *err);
/* The operation's parameter with the most similar name. */
const char *gm_params_nearest(enum gm_op_kind op, const char *name, size_t name_len);

/*
 * Reads one parameter of an operation into *params, which starts as all zero. A parameter stated
 * twice must have the same value. Errors: GM_UNKNOWN_PARAMETER (names the nearest),
 * GM_BAD_PARAMETER (names the valid values). *params is untouched on failure.
 */
enum gm_status gm_params_set(struct gm_params *params, enum gm_op_kind op, const char *name,
                             size_t name_len, const char *value, size_t value_len,
                             struct gm_error *err);

#endif
