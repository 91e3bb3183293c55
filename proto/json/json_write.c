/*
 * json_write.c - writes a matrix as {"shape":[r,c],"dtype":"f32","data":[[...],[...]] and leaves
 * the object open for the caller. Numbers have the fewest digits that read back to the same bits.
 */
#include "proto/json/json.h"

#include "proto/number/number.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Upper bound of what precedes the rows: three sizes of 20 digits and less than 60
 * bytes. */
#define HEAD_MAX 128

static enum gm_status check_dtype(const struct gm_matrix *matrix, struct gm_error *err)
{
    if (gm_number_writer_of(matrix->dtype))
        return GM_OK;
    return gm_fail(err, GM_CANNOT_ENCODE,
                   "elements of dtype %s cannot be written as JSON; ask for application/x-npy with "
                   "Accept",
                   gm_dtype_name(matrix->dtype));
}

/* A result without elements but with more rows than this is written as []. The shape says it all,
 * and a tiny request for the transpose of 0 x 10^9 does not get a gigabyte. */
#define EMPTY_ROWS_MAX 65536

/* Number of matrices and rows to write. */
struct extent {
    uint64_t batch, rows;
};

static struct extent extent_of(const struct gm_matrix *matrix)
{
    uint64_t rows;

    if (gm_matrix_elements(matrix) > 0 ||
        (gm_size_mul(matrix->batch, matrix->rows > 0 ? matrix->rows : 1, &rows) &&
         rows <= EMPTY_ROWS_MAX))
        return (struct extent){matrix->batch, matrix->rows};
    return (struct extent){matrix->stacked ? 0 : 1, 0};
}

enum gm_status gm_json_encode_bound(const struct gm_matrix *matrix, uint64_t *ret_bytes,
                                    struct gm_error *err)
{
    enum gm_status status = check_dtype(matrix, err);
    if (status != GM_OK)
        return status;

    struct extent extent = extent_of(matrix);
    uint64_t cols = gm_matrix_elements(matrix) > 0 ? matrix->cols : 0;
    /* Each element (null is shorter than any bound) and its comma; brackets and comma of each row,
     * and in a stack of each matrix. */
    uint64_t bytes;
    if (!gm_size_mul(cols, gm_number_width_max(matrix->dtype) + 1, &bytes) ||
        !gm_size_add(bytes, 3, &bytes) || !gm_size_mul(bytes, extent.rows, &bytes) ||
        !gm_size_add(bytes, 3, &bytes) || !gm_size_mul(bytes, extent.batch, &bytes) ||
        !gm_size_add(bytes, HEAD_MAX, &bytes) || bytes > INT64_MAX) {
        char shape[GM_SHAPE_TEXT_MAX];
        return gm_fail(err, GM_TOO_LARGE, "a matrix of %s is too large to be written as JSON",
                       gm_matrix_shape_text(matrix, shape));
    }
    *ret_bytes = bytes;
    return GM_OK;
}

static enum gm_status nonfinite(const struct gm_matrix *matrix, uint64_t batch, uint64_t row,
                                uint64_t col, struct gm_error *err)
{
    char stack[40] = "";
    if (matrix->stacked)
        snprintf(stack, sizeof(stack), "matrix %" PRIu64 ", ", batch);
    return gm_fail(err, GM_NONFINITE_IN_JSON,
                   "the element at %srow %" PRIu64 ", column %" PRIu64
                   " (counted from 0) is NaN or "
                   "infinite, which JSON cannot carry: ask for application/x-npy with Accept, or "
                   "add ?nonfinite=null",
                   stack, row, col);
}

/* Writes the members before the elements, less than HEAD_MAX bytes. The object stays open. */
static struct gm_json_line write_head(const struct gm_matrix *matrix, char *out)
{
    struct gm_json_line line = gm_json_line_begin(out, HEAD_MAX);

    gm_json_line_open(&line, NULL, '{');
    gm_json_line_shape(&line, "shape", matrix);
    gm_json_line_string(&line, "dtype", gm_dtype_name(matrix->dtype));
    return line;
}

static enum gm_status shape_bound(const struct gm_matrix *matrix, uint64_t *ret_bytes,
                                  struct gm_error *err)
{
    (void)matrix;
    (void)err;
    *ret_bytes = HEAD_MAX;
    return GM_OK;
}

static enum gm_status shape_encode(const struct gm_matrix *matrix,
                                   const struct gm_encode_options *options, char *out,
                                   uint64_t capacity, uint64_t *ret_len, struct gm_error *err)
{
    (void)options;
    if (capacity < HEAD_MAX)
        return gm_fail(err, GM_INTERNAL, "%" PRIu64 " bytes were given for a text", capacity);
    struct gm_json_line line = write_head(matrix, out);
    *ret_len = (uint64_t)(line.at - out);
    return GM_OK;
}

const struct gm_codec gm_codec_json_shape = {
    .name = "json shape",
    .media_type = "application/json",
    .carries_stats = true,
    .encode_bound = shape_bound,
    .encode = shape_encode,
};

/* Writes one row. At an element that cannot be written, returns NULL and sets *ret_col. */
static char *write_row(char *out, const char *element, uint64_t cols, uint64_t step,
                       gm_number_writer *write, bool nonfinite_null, uint64_t *ret_col)
{
    *out++ = '[';
    for (uint64_t col = 0; col < cols; col++, element += step) {
        char *end = write(out, element);
        if (!end && !nonfinite_null) {
            *ret_col = col;
            return NULL;
        }
        if (!end) {
            memcpy(out, "null", 4);
            end = out + 4;
        }
        *end = ',';
        out = end + 1;
    }
    out -= cols > 0; /* removes the last comma */
    *out++ = ']';
    return out;
}

enum gm_status gm_json_encode(const struct gm_matrix *matrix,
                              const struct gm_encode_options *options, char *out, uint64_t capacity,
                              uint64_t *ret_len, struct gm_error *err)
{
    uint64_t bound;
    enum gm_status status = gm_json_encode_bound(matrix, &bound, err);
    if (status != GM_OK)
        return status;
    if (capacity < bound)
        return gm_fail(err, GM_INTERNAL,
                       "%" PRIu64 " bytes were given for a text of up to %" PRIu64, capacity,
                       bound);

    gm_number_writer *write = gm_number_writer_of(matrix->dtype);
    struct gm_steps steps = gm_steps_of(matrix);
    struct extent extent = extent_of(matrix);
    struct gm_json_line line = write_head(matrix, out);

    gm_json_line_open(&line, "data", '[');
    char *p = line.at;
    for (uint64_t b = 0; b < extent.batch; b++) {
        if (b > 0)
            *p++ = ',';
        if (matrix->stacked)
            *p++ = '[';
        for (uint64_t r = 0; r < extent.rows; r++) {
            uint64_t col;
            const char *row = (const char *)matrix->data + b * steps.batch + r * steps.row;
            if (r > 0)
                *p++ = ',';
            p = write_row(p, row, matrix->cols, steps.col, write, options->nonfinite_null, &col);
            if (!p)
                return nonfinite(matrix, b, r, col, err);
        }
        if (matrix->stacked)
            *p++ = ']';
    }
    *p++ = ']';
    *ret_len = (uint64_t)(p - out);
    return GM_OK;
}
