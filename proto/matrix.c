/*
 * matrix.c - the table of element types, and sizes that cannot overflow.
 */
#include "proto/matrix.h"

#include "proto/number/half.h"
#include "proto/number/number.h"

#include <string.h>

static const struct {
    const char *name, *numpy;
    size_t bytes;
} dtypes[GM_DTYPE_COUNT] = {[GM_DTYPE_NONE] = {"none", "none", 0},
#define X(name, text, numpy, bytes, kind) [GM_##name] = {text, numpy, bytes},
                            GM_DTYPE_LIST(X)
#undef X
};

bool gm_dtype_arithmetic(enum gm_dtype dtype)
{
    return dtype >= GM_F16 && dtype <= GM_I64;
}

size_t gm_dtype_size(enum gm_dtype dtype)
{
    return (unsigned)dtype < GM_DTYPE_COUNT ? dtypes[dtype].bytes : 0;
}

double gm_element_value(enum gm_dtype dtype, const void *data, uint64_t at)
{
    size_t size = gm_dtype_size(dtype);
    uint64_t bits = 0;

    memcpy(&bits, (const char *)data + at * size, size);
    switch (dtype) {
    case GM_F16:
        return (double)gm_f32_of_f16((uint16_t)bits);
    case GM_BF16:
        return (double)gm_f32_of_bf16((uint16_t)bits);
    case GM_F32:
        return (double)gm_f32_of_bits((uint32_t)bits);
    case GM_F64:
        return gm_f64_of_bits(bits);
    case GM_I8:
        return (int8_t)bits;
    case GM_I16:
        return (int16_t)bits;
    case GM_I32:
        return (int32_t)bits;
    case GM_I64:
        return (double)(int64_t)bits;
    default:
        return (double)bits;
    }
}

const char *gm_dtype_name(enum gm_dtype dtype)
{
    return dtypes[(unsigned)dtype < GM_DTYPE_COUNT ? dtype : GM_DTYPE_NONE].name;
}

static bool is_word(const char *word, const char *name, size_t len)
{
    return strlen(word) == len && memcmp(word, name, len) == 0;
}

enum gm_dtype gm_dtype_from_name(const char *name, size_t len)
{
    for (int i = GM_DTYPE_NONE + 1; i < GM_DTYPE_COUNT; i++)
        if (is_word(dtypes[i].name, name, len) || is_word(dtypes[i].numpy, name, len))
            return (enum gm_dtype)i;
    return GM_DTYPE_NONE;
}

const char *gm_dtype_names(void)
{
#define X(name, text, ...) ", " text
    return &GM_DTYPE_LIST(X)[2];
#undef X
}

bool gm_size_mul(uint64_t a, uint64_t b, uint64_t *ret)
{
    uint64_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *ret = product;
    return true;
}

bool gm_size_add(uint64_t a, uint64_t b, uint64_t *ret)
{
    uint64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return false;
    *ret = sum;
    return true;
}

bool gm_shape_parse(const char *text, size_t len, struct gm_shape *ret)
{
    struct gm_shape shape = {0};
    const char *end = text + len;

    for (;;) {
        uint64_t size = 0;
        const char *digits = text;
        for (; text < end && *text >= '0' && *text <= '9'; text++)
            if (!gm_size_mul(size, 10, &size) || !gm_size_add(size, (uint64_t)(*text - '0'), &size))
                return false;
        if (text == digits || shape.ndim == GM_DIMS_MAX)
            return false;
        shape.dim[shape.ndim++] = size;
        if (text == end)
            break;
        if (*text++ != 'x')
            return false;
    }
    *ret = shape;
    return true;
}

enum gm_status gm_matrix_init(struct gm_matrix *ret, enum gm_dtype dtype, enum gm_layout layout,
                              const struct gm_shape *shape, struct gm_error *err)
{
    unsigned ndim = shape->ndim;
    if (ndim > GM_DIMS_MAX)
        return gm_fail(err, GM_BAD_SHAPE, "there are %u dimensions; a matrix has 2, a stack 3",
                       ndim);

    /*
     * The product leaves out dimensions of 0. So the others cannot overflow in any combination, and
     * a transpose of 0 times something needs no further check.
     */
    uint64_t bytes = gm_dtype_size(dtype);
    for (unsigned i = 0; i < ndim; i++)
        if (shape->dim[i] && !gm_size_mul(bytes, shape->dim[i], &bytes))
            bytes = UINT64_MAX;
    if (bytes > INT64_MAX)
        return gm_fail(err, GM_BAD_SHAPE,
                       "a matrix of this shape has more bytes than a 63-bit number can count");

    *ret = (struct gm_matrix){
        .dtype = dtype,
        .layout = layout,
        .stacked = ndim == 3,
        .batch = ndim == 3 ? shape->dim[0] : 1,
        .rows = ndim >= 2 ? shape->dim[ndim - 2] : 1,
        .cols = ndim >= 1 ? shape->dim[ndim - 1] : 1,
    };
    return GM_OK;
}

uint64_t gm_matrix_elements(const struct gm_matrix *matrix)
{
    return matrix->batch * matrix->rows * matrix->cols;
}

uint64_t gm_matrix_bytes(const struct gm_matrix *matrix)
{
    return gm_matrix_elements(matrix) * gm_dtype_size(matrix->dtype);
}

const char *gm_matrix_shape_text(const struct gm_matrix *matrix, char buf[GM_SHAPE_TEXT_MAX])
{
    gm_number_writer *put = gm_number_writer_of(GM_U64);
    char *at = buf;

    if (matrix->stacked) {
        at = put(at, &matrix->batch);
        *at++ = 'x';
    }
    at = put(at, &matrix->rows);
    *at++ = 'x';
    at = put(at, &matrix->cols);
    *at = '\0';
    return buf;
}
