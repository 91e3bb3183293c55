/*
 * op.h - describes an operation; gm_op_init validates it once, so that kernels need no checks.
 *
 *   copy       result = a                              (the baseline; not an endpoint)
 *   transpose  result[i,j] = a[j,i]
 *   matmul     result = alpha * op(a) op(b) + beta * c, op(x) = x or its transpose
 *   add        result[i,j] = a[i,j] + b[i,j]
 *   flip       result[i,j] = a[i,cols-1-j]
 *   eval       result = an expression: a graph of such operations and of programs (graph.h)
 *
 * A stack is computed matrix by matrix. A single matrix broadcasts over the other's stack; in add,
 * a single row or column does too, as in NumPy. Results are row-major. Arithmetic is in the
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
    X(FLIP, "flip")                                                                                \
    X(EVAL, "eval")

enum gm_op_kind {
#define X(name, text) GM_OP_##name,
    GM_OP_LIST(X)
#undef X
        GM_OP_COUNT
};

/* ieee: plain arithmetic in the type. fp32: any method that is no less accurate, where factors are
 * 0 or from 2^-110 on. The others permit, but do not demand, less accurate and faster f32
 * arithmetic. */
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

/* A factor as the client wrote it: integers beyond 2^53 stay exact for integer matrices. */
struct gm_scalar {
    double real;
    int64_t integer;
    bool is_integer; /* integer holds the value exactly */
};

/* How multistage_tuned divides a product: a tile config (choose/choose.h), the blocks that share K,
 * and which operands are repacked. splits: 0 where that was not chosen. */
struct gm_tile_choice {
    unsigned config, splits;
    bool repack[2];
};

struct gm_graph; /* graph.h */

struct gm_op {
    enum gm_op_kind kind;
    enum gm_precision precision;
    bool transa, transb;
    struct gm_scalar alpha, beta; /* integer types use `integer`, others `real` */
    unsigned operands;            /* length of operand[] */
    struct gm_matrix operand[GM_OPERANDS_MAX];
    struct gm_matrix result; /* data is NULL until memory is allocated */
    struct gm_tile_choice tiles;
    /* matmul: rows of several products, gathered into one (layout.h). Each is summed in the order
     * that it has alone. */
    bool gathered;
    /* eval: its steps, which belong to the caller, and what they take together. It has no operand
     * of its own. */
    struct gm_graph *graph;
    double graph_flops;
    uint64_t graph_bytes;
};

/* The parameters of a request; all zero is the default. */
struct gm_op_options {
    enum gm_precision precision;
    bool transa, transb;
    bool has_alpha, has_beta;
    struct gm_scalar alpha, beta;
};

const char *gm_op_name(enum gm_op_kind kind);
bool gm_op_from_name(const char *name, enum gm_op_kind *ret);
bool gm_precision_from_name(const char *name, size_t len, enum gm_precision *ret);

/* The least and the greatest number of operands; none for eval, whose graph has them. */
unsigned gm_op_operands_min(enum gm_op_kind kind);
unsigned gm_op_operands_max(enum gm_op_kind kind);
/* Whether the operation computes, and so takes only arithmetic types, or only moves elements. */
bool gm_op_computes(enum gm_op_kind kind);

/*
 * Checks operands against the operation, and derives the result's type and shape. Operands are
 * copied by value; present[i] says whether operand i was given. Errors: missing or extra operands;
 * types or shapes that do not fit; factors that an integer type cannot hold (a whole number may be
 * written 2.0), or that exceed f32 if f32 computes; beta without c; transa on operations other than
 * matmul. A c without beta means beta = 1. *ret is untouched on failure.
 */
enum gm_status gm_op_init(struct gm_op *ret, enum gm_op_kind kind,
                          const struct gm_op_options *options,
                          const struct gm_matrix operand[GM_OPERANDS_MAX],
                          const bool present[GM_OPERANDS_MAX], struct gm_error *err);

/* matmul's M, N and K. */
uint64_t gm_op_m(const struct gm_op *op);
uint64_t gm_op_n(const struct gm_op *op);
uint64_t gm_op_k(const struct gm_op *op);

/* Whether operand `index` exists and is read: a factor of 0 leaves it unread. */
bool gm_op_reads(const struct gm_op *op, unsigned index);

/* Arithmetic operations by definition: 2 M N K for a matmul that reads a and b, one addition per
 * element for add, else 0. A double, because it may exceed 2^64. */
double gm_op_flops(const struct gm_op *op);

/* Compulsory traffic in bytes: each element that is read, once, and each of the result, once.
 * UINT64_MAX on overflow. */
uint64_t gm_op_bytes_min(const struct gm_op *op);

/* Whether the elements are in row-major order. Those of a column-major vector are too. */
bool gm_lies_row_major(const struct gm_matrix *matrix);

/* Whether the result has the bytes of operand a: a copy, a transpose that moves nothing (of a
 * vector, or of one column-major matrix), or a flip of rows of one element. */
bool gm_op_is_copy(const struct gm_op *op);

/* Derives the result's dimensions from kind, operands and flags. GM_BAD_SHAPE, with the shapes, if
 * the operands do not fit together. */
enum gm_status gm_op_shape(const struct gm_op *op, struct gm_shape *ret, struct gm_error *err);

#ifdef __cplusplus
}
#endif
#endif
