/*
 * codec_csv_write.c - writes CSV; see internal.h. Numbers have the fewest digits that read back to
 * the same bits, as in JSON. NaN and infinity are nan, inf and -inf. Truth values are 1 and 0,
 * which all readers of numbers accept.
 */
#include "proto/csv/internal.h"

#include "proto/number/number.h"

#include <inttypes.h>
#include <string.h>

enum gm_status gm_csv_encode_bound(const struct gm_matrix *matrix, uint64_t *ret_bytes,
                                   struct gm_error *err)
{
    if (!gm_number_writer_of(matrix->dtype))
        return gm_fail(err, GM_CANNOT_ENCODE,
                       "elements of dtype %s cannot be written as CSV; ask for application/x-npy "
                       "with Accept",
                       gm_dtype_name(matrix->dtype));

    /* An upper bound: each element with its separator, and an empty line per matrix. */
    uint64_t elements = gm_matrix_elements(matrix), bytes;
    if (!gm_size_mul(elements, gm_number_width_max(matrix->dtype) + 1, &bytes) ||
        !gm_size_add(bytes, elements > 0 ? matrix->batch : 0, &bytes) || bytes > INT64_MAX) {
        char shape[GM_SHAPE_TEXT_MAX];
        return gm_fail(err, GM_TOO_LARGE, "a matrix of %s is too large to be written as CSV",
                       gm_matrix_shape_text(matrix, shape));
    }
    *ret_bytes = bytes;
    return GM_OK;
}

/* NaN or infinity: all exponent bits are set; of NaN also some bit of the fraction. */
static char *write_nonfinite(char *out, enum gm_dtype dtype, const char *element)
{
    static const unsigned fraction_bits[GM_DTYPE_COUNT] = {
        [GM_F16] = 10, [GM_BF16] = 7, [GM_F32] = 23, [GM_F64] = 52};
    size_t size = gm_dtype_size(dtype);
    uint64_t bits = 0;

    memcpy(&bits, element, size);
    bool nan = bits & ((UINT64_C(1) << fraction_bits[dtype]) - 1);
    const char *text = nan ? "nan" : bits >> (8 * size - 1) ? "-inf" : "inf";
    size_t len = strlen(text);
    memcpy(out, text, len);
    return out + len;
}

static char *write_row(char *out, const struct gm_matrix *matrix, const char *element,
                       uint64_t step)
{
    gm_number_writer *write = gm_number_writer_of(matrix->dtype);

    for (uint64_t col = 0; col < matrix->cols; col++, element += step) {
        char *end = write(out, element);
        if (!end)
            end = write_nonfinite(out, matrix->dtype, element);
        *end = ',';
        out = end + 1;
    }
    out[-1] = '\n';
    return out;
}

static char *write_row_of_bool(char *out, const struct gm_matrix *matrix, const char *element,
                               uint64_t step)
{
    for (uint64_t col = 0; col < matrix->cols; col++, element += step) {
        *out++ = *element ? '1' : '0';
        *out++ = ',';
    }
    out[-1] = '\n';
    return out;
}

enum gm_status gm_csv_encode(const struct gm_matrix *matrix,
                             const struct gm_encode_options *options, char *out, uint64_t capacity,
                             uint64_t *ret_len, struct gm_error *err)
{
    uint64_t bound;
    enum gm_status status = gm_csv_encode_bound(matrix, &bound, err);

    (void)options; /* JSON's writers, which cannot write NaN */
    if (status != GM_OK)
        return status;
    if (capacity < bound)
        return gm_fail(err, GM_INTERNAL,
                       "%" PRIu64 " bytes were given for a text of up to %" PRIu64, capacity,
                       bound);

    struct gm_steps steps = gm_steps_of(matrix);
    char *p = out;
    bool any = gm_matrix_elements(matrix) > 0;
    for (uint64_t b = 0; any && b < matrix->batch; b++) {
        if (b > 0)
            *p++ = '\n';
        for (uint64_t r = 0; r < matrix->rows; r++) {
            const char *row = (const char *)matrix->data + b * steps.batch + r * steps.row;
            p = matrix->dtype == GM_BOOL ? write_row_of_bool(p, matrix, row, steps.col)
                                         : write_row(p, matrix, row, steps.col);
        }
    }
    *ret_len = (uint64_t)(p - out);
    return GM_OK;
}
