/*
 * matrix.h - element types, shapes, and the matrix type of all modules.
 *
 * A matrix is a dense stack of `batch` matrices of rows x cols elements. Sizes have 64 bits, and
 * each product of sizes is checked for overflow.
 */
#ifndef GM_PROTO_MATRIX_H
#define GM_PROTO_MATRIX_H

#include "status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * X(NAME, name on the wire, NumPy's, bytes, NPY kind letter). The first six are for arithmetic; the
 * others are only moved, by transpose and flip. v1 to v16 are opaque elements (NPY's void types).
 */
#define GM_DTYPE_LIST(X)                                                                           \
    X(F16, "f16", "float16", 2, 'f')                                                               \
    X(BF16, "bf16", "bfloat16", 2, 'V')                                                            \
    X(F32, "f32", "float32", 4, 'f')                                                               \
    X(F64, "f64", "float64", 8, 'f')                                                               \
    X(I32, "i32", "int32", 4, 'i')                                                                 \
    X(I64, "i64", "int64", 8, 'i')                                                                 \
    X(BOOL, "bool", "bool", 1, 'b')                                                                \
    X(I8, "i8", "int8", 1, 'i')                                                                    \
    X(U8, "u8", "uint8", 1, 'u')                                                                   \
    X(I16, "i16", "int16", 2, 'i')                                                                 \
    X(U16, "u16", "uint16", 2, 'u')                                                                \
    X(U32, "u32", "uint32", 4, 'u')                                                                \
    X(U64, "u64", "uint64", 8, 'u')                                                                \
    X(C64, "c64", "complex64", 8, 'c')                                                             \
    X(C128, "c128", "complex128", 16, 'c')                                                         \
    X(V1, "v1", "v1", 1, 'V')                                                                      \
    X(V2, "v2", "v2", 2, 'V')                                                                      \
    X(V4, "v4", "v4", 4, 'V')                                                                      \
    X(V8, "v8", "v8", 8, 'V')                                                                      \
    X(V16, "v16", "v16", 16, 'V')

enum gm_dtype {
    GM_DTYPE_NONE, /* not stated */
#define X(name, ...) GM_##name,
    GM_DTYPE_LIST(X)
#undef X
        GM_DTYPE_COUNT
};

enum gm_layout {
    GM_ROW_MAJOR,
    GM_COL_MAJOR /* Fortran order: the first index is fastest, in a stack that of the stack */
};

#define GM_DIMS_MAX 3

/* A shape as written: 0 to 3 dimensions. */
struct gm_shape {
    unsigned ndim;
    uint64_t dim[GM_DIMS_MAX];
};

struct gm_matrix {
    enum gm_dtype dtype;
    enum gm_layout layout;
    bool stacked; /* has three dimensions as read or written; else batch is 1 */
    uint64_t batch, rows, cols;
    void *data; /* batch*rows*cols elements, native byte order, 64-byte aligned; not owned */
};

bool gm_dtype_arithmetic(enum gm_dtype dtype);
size_t gm_dtype_size(enum gm_dtype dtype);
const char *gm_dtype_name(enum gm_dtype dtype);
/* Element `at` of an array, of a type of numbers. Exact, but for integers beyond 2^53. */
double gm_element_value(enum gm_dtype dtype, const void *data, uint64_t at);
/* By either name, f32 or float32. GM_DTYPE_NONE if there is none such. */
enum gm_dtype gm_dtype_from_name(const char *name, size_t len);
/* "f16, bf16, ...": for messages. */
const char *gm_dtype_names(void);

/* On overflow returns false, and leaves *ret unchanged. */
bool gm_size_mul(uint64_t a, uint64_t b, uint64_t *ret);
bool gm_size_add(uint64_t a, uint64_t b, uint64_t *ret);

/* Reads "RxC", "BxRxC" or "N" (1xN): digits, no signs, no spaces. false if the text is none of
 * these. */
bool gm_shape_parse(const char *text, size_t len, struct gm_shape *ret);

/*
 * Sets dtype, layout and sizes from a shape (0-D is 1x1, 1-D is 1xN, 3-D is a stack), and data to
 * NULL. Error: GM_BAD_SHAPE if there are more dimensions, or if the bytes overflow 63 bits, counted
 * without dimensions of 0.
 */
enum gm_status gm_matrix_init(struct gm_matrix *ret, enum gm_dtype dtype, enum gm_layout layout,
                              const struct gm_shape *shape, struct gm_error *err);

/* Cannot overflow for a matrix made by gm_matrix_init. */
uint64_t gm_matrix_elements(const struct gm_matrix *matrix);
uint64_t gm_matrix_bytes(const struct gm_matrix *matrix);

/* "3x4" or "2x3x4". */
#define GM_SHAPE_TEXT_MAX 64
const char *gm_matrix_shape_text(const struct gm_matrix *matrix, char buf[GM_SHAPE_TEXT_MAX]);

#ifdef __cplusplus
}
#endif
#endif
