/*
 * op.h - what is to be computed: validated here once, so that every kernel may rely on it.
 *
 *   copy       result = a                              (the baseline; not an endpoint)
 *   transpose  result[i,j] = a[j,i]
 *   matmul     result = alpha * op(a) op(b) + beta * c, op(x) = x or its transpose
 *   add        result[i,j] = a[i,j] + b[i,j]
 *   flip       result[i,j] = a[i,cols-1-j]
 *
 * A stack is computed matrix by matrix. A single matrix broadcasts over the other's stack; in add
 * so do a single row and a single column, as in NumPy. Results are row-major. Arithmetic is in the
 * operands' type; f16 and bf16 are computed in f32 and rounded once; integers wrap. As in BLAS,
 * alpha = 0 does not read a and b, and beta = 0 does not read c.
 */
#ifndef GM_KERNELS_OP_H
#define GM_KERNELS_OP_H

#include "proto/codec.h"
#include "proto/matrix.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GM_OP_LIST(X)                                                                              \
    X(COPY, "copy")                                                                                \
    X(TRANSPOSE, "transpose")                                                                      \
    X(MATMUL, "matmul")                                                                            \
    X(ADD, "add")                                                                                  \
    X(FLIP, "flip")

enum gm_op_kind {
#define X(name, text) GM_OP_##name,
    GM_OP_LIST(X)
#undef X
        GM_OP_COUNT
};

/* ieee: plain arithmetic in the type. fp32: no worse than that, by any means. The others: opt-in
 * speed for f32, a permission and not a demand. */
#define GM_PRECISION_LIST(X)                                                                       \
    X(FP32, "fp32")                                                                                \
    X(IEEE, "ieee")                                                                                \
    X(TF32, "tf32")                                                                                \
    X(BF16_PRODUCTS, "bf16")

enum gm_precision {
#define X(name, text) GM_PRECISION_##name,
    GM_PRECISION_LIST(X)
#undef X
        GM_PRECISION_COUNT
};

/* A factor as it was written: integers beyond 2^53 stay exact for integer matrices. */
struct gm_scalar {
    double real;
    int64_t integer;
    bool is_integer; /* integer holds the value exactly */
};

struct gm_op {
    enum gm_op_kind kind;
    enum gm_precision precision;
    bool transa, transb;
    struct gm_scalar alpha, beta; /* `integer` for integer types, else `real`, as f32 has it */
    unsigned operands;            /* how many of these are there */
    struct gm_matrix operand[GM_OPERANDS_MAX];
    struct gm_matrix result; /* data is NULL until storage is known */
};

/* What a request says beside its operands; all zero is what it means unsaid. */
struct gm_op_options {
    enum gm_precision precision;
    bool transa, transb;
    bool has_alpha, has_beta;
    struct gm_scalar alpha, beta;
};

const char *gm_op_name(enum gm_op_kind kind);
bool gm_op_from_name(const char *name, enum gm_op_kind *ret);
bool gm_precision_from_name(const char *name, size_t len, enum gm_precision *ret);

/* The number of operands an operation must have, and may have. */
unsigned gm_op_operands_min(enum gm_op_kind kind);
unsigned gm_op_operands_max(enum gm_op_kind kind);
/* Whether it computes (and so takes arithmetic types alone) or only moves elements. */
bool gm_op_computes(enum gm_op_kind kind);

/*
 * Checks operands against the operation and derives the result's type and shape. Operands are
 * copied by value: present[i] false means that one was not given. Errors: missing or extra
 * operands, types or shapes that do not fit, factors that an integer type cannot hold (a whole
 * number may be written 2.0) or that are beyond f32 where that is what computes, beta without c,
 * transa where none is. A c without beta means beta = 1. *ret is untouched on failure.
 */
enum gm_status gm_op_init(struct gm_op *ret, enum gm_op_kind kind,
                          const struct gm_op_options *options,
                          const struct gm_matrix operand[GM_OPERANDS_MAX],
                          const bool present[GM_OPERANDS_MAX], struct gm_error *err);

/* matmul: rows of the result, its columns, the length of the sums. */
uint64_t gm_op_m(const struct gm_op *op);
uint64_t gm_op_n(const struct gm_op *op);
uint64_t gm_op_k(const struct gm_op *op);

/* Whether operand `index` is there and its elements count: a factor of 0 leaves them unread. */
bool gm_op_reads(const struct gm_op *op, unsigned index);

/* Arithmetic operations the definition asks for: 2mnk of a matmul that reads a and b, an addition
 * for each element of a sum, else 0. As a double: it may pass 2^64. */
double gm_op_flops(const struct gm_op *op);

/* Compulsory traffic: each element that is read, once; each of the result, once. UINT64_MAX on
 * overflow. */
uint64_t gm_op_bytes_min(const struct gm_op *op);

/* Whether the elements lie as row-major ones would: so do those of a column-major vector. */
bool gm_lies_row_major(const struct gm_matrix *matrix);

/* Whether the result is the bytes of operand a: a copy, a transpose that moves nothing (of a
 * vector, of one column-major matrix), or a flip of rows of one element. */
bool gm_op_is_copy(const struct gm_op *op);

/*
 * op_shape.c: of an operation whose operands, flags and kind are set, the dimensions of its result.
 * GM_BAD_SHAPE, naming the shapes, where the operands do not fit together.
 */
enum gm_status gm_op_shape(const struct gm_op *op, struct gm_shape *ret, struct gm_error *err);

#ifdef __cplusplus
}
#endif
#endif
