/*
 * kserve_write.c - names of element types, and writers of replies.
 */
#include "proto/kserve/kserve.h"
#include "proto/number/number.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const datatypes[GM_DTYPE_COUNT] = {
    [GM_BOOL] = "BOOL",  [GM_U8] = "UINT8", [GM_U16] = "UINT16", [GM_U32] = "UINT32",
    [GM_U64] = "UINT64", [GM_I8] = "INT8",  [GM_I16] = "INT16",  [GM_I32] = "INT32",
    [GM_I64] = "INT64",  [GM_F16] = "FP16", [GM_BF16] = "BF16",  [GM_F32] = "FP32",
    [GM_F64] = "FP64",
};

const char *gm_kserve_datatype(enum gm_dtype dtype)
{
    return datatypes[dtype];
}

enum gm_dtype gm_kserve_dtype(const char *name, size_t len)
{
    for (unsigned i = 0; i < GM_DTYPE_COUNT; i++)
        if (datatypes[i] && strlen(datatypes[i]) == len && memcmp(datatypes[i], name, len) == 0)
            return (enum gm_dtype)i;
    return GM_DTYPE_NONE;
}

/* Writes up to the tensor's shape. `size`: at least GM_HEAD_MAX, in which all fits but elements. */
static struct gm_json_line write_tensor(const struct gm_matrix *matrix, char *out, uint64_t size)
{
    struct gm_json_line line = gm_json_line_begin(out, size);

    gm_json_line_open(&line, NULL, '{');
    gm_json_line_open(&line, "outputs", '[');
    gm_json_line_open(&line, NULL, '{');
    gm_json_line_string(&line, "name", "C");
    gm_json_line_string(&line, "datatype", datatypes[matrix->dtype]);
    gm_json_line_shape(&line, "shape", matrix);
    return line;
}

/* Ends the tensor and the list. The reply's object stays open. Returns the length. */
static uint64_t end_tensor(struct gm_json_line *line)
{
    gm_json_line_close(line, '{');
    gm_json_line_close(line, '[');
    return (uint64_t)(line->at - line->begin);
}

static enum gm_status check_dtype(const struct gm_matrix *matrix, struct gm_error *err)
{
    return datatypes[matrix->dtype]
               ? GM_OK
               : gm_fail(err, GM_CANNOT_ENCODE,
                         "elements of dtype %s have no datatype in this protocol",
                         gm_dtype_name(matrix->dtype));
}

static enum gm_status head(const struct gm_matrix *matrix, char out[GM_HEAD_MAX], size_t *ret_len,
                           struct gm_error *err)
{
    enum gm_status status = check_dtype(matrix, err);

    if (status != GM_OK)
        return status;
    struct gm_json_line line = write_tensor(matrix, out, GM_HEAD_MAX);
    gm_json_line_open(&line, "parameters", '{');
    gm_json_line_integer(&line, "binary_data_size", (int64_t)gm_matrix_bytes(matrix));
    gm_json_line_close(&line, '{');
    *ret_len = end_tensor(&line);
    return GM_OK;
}

static enum gm_status region_bound(const struct gm_matrix *matrix, uint64_t *ret_bytes,
                                   struct gm_error *err)
{
    enum gm_status status = check_dtype(matrix, err);

    if (status == GM_OK)
        *ret_bytes = GM_HEAD_MAX;
    return status;
}

static enum gm_status region_encode(const struct gm_matrix *matrix,
                                    const struct gm_encode_options *options, char *out,
                                    uint64_t capacity, uint64_t *ret_len, struct gm_error *err)
{
    (void)options;
    if (capacity < GM_HEAD_MAX)
        return gm_fail(err, GM_INTERNAL, "%" PRIu64 " bytes were given for a text", capacity);
    struct gm_json_line line = write_tensor(matrix, out, capacity);
    *ret_len = end_tensor(&line);
    return GM_OK;
}

static enum gm_status json_bound(const struct gm_matrix *matrix, uint64_t *ret_bytes,
                                 struct gm_error *err)
{
    uint64_t bytes;
    char shape[GM_SHAPE_TEXT_MAX];
    enum gm_status status = check_dtype(matrix, err);

    if (status != GM_OK)
        return status;
    if (!gm_size_mul(gm_matrix_elements(matrix), gm_number_width_max(matrix->dtype) + 1, &bytes) ||
        !gm_size_add(bytes, GM_HEAD_MAX, &bytes) || bytes > INT64_MAX)
        return gm_fail(err, GM_TOO_LARGE, "a matrix of %s is too large to be written as JSON",
                       gm_matrix_shape_text(matrix, shape));
    *ret_bytes = bytes;
    return GM_OK;
}

static enum gm_status nonfinite(uint64_t index, struct gm_error *err)
{
    return gm_fail(
        err, GM_NONFINITE_IN_JSON,
        "element %" PRIu64
        " of C (counted from 0, row by row) is NaN or infinite, which JSON cannot carry: "
        "ask for binary_data, or set the parameter nonfinite to \"null\"",
        index);
}

static enum gm_status json_encode(const struct gm_matrix *matrix,
                                  const struct gm_encode_options *options, char *out,
                                  uint64_t capacity, uint64_t *ret_len, struct gm_error *err)
{
    uint64_t bound = 0;
    enum gm_status status = json_bound(matrix, &bound, err);

    if (status == GM_OK && capacity < bound)
        status = gm_fail(err, GM_INTERNAL, "%" PRIu64 " bytes for a text of up to %" PRIu64,
                         capacity, bound);
    if (status != GM_OK)
        return status;
    struct gm_json_line line = write_tensor(matrix, out, capacity);
    gm_json_line_open(&line, "data", '[');
    char *p = line.at;
    gm_number_writer *write = gm_number_writer_of(matrix->dtype);
    const char *element = matrix->data; /* results are row-major: see kernels/op.h */
    uint64_t elements = gm_matrix_elements(matrix), size = gm_dtype_size(matrix->dtype);
    for (uint64_t i = 0; i < elements; i++, element += size) {
        char *end = write(p, element);
        if (!end && !options->nonfinite_null)
            return nonfinite(i, err);
        p = end ? end : stpcpy(p, "null");
        *p++ = ',';
    }
    line.at = p - (elements > 0); /* removes the last comma */
    gm_json_line_close(&line, '[');
    *ret_len = end_tensor(&line);
    return GM_OK;
}

const struct gm_codec gm_codec_kserve_json = {
    .name = "v2 json",
    .media_type = "application/json",
    .carries_stats = true,
    .encode_bound = json_bound,
    .encode = json_encode,
};

const struct gm_codec gm_codec_kserve_binary = {
    .name = "v2 binary",
    .media_type = "application/octet-stream",
    .carries_stats = true,
    .head = head,
};

const struct gm_codec gm_codec_kserve_region = {
    .name = "v2 region",
    .media_type = "application/json",
    .carries_stats = true,
    .encode_bound = region_bound,
    .encode = region_encode,
};

const struct gm_codec *gm_kserve_codec(enum gm_kserve_place output)
{
    return output == GM_KSERVE_BINARY   ? &gm_codec_kserve_binary
           : output == GM_KSERVE_REGION ? &gm_codec_kserve_region
                                        : &gm_codec_kserve_json;
}
