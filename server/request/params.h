/*
 * params.h - the parameters of an operation, from the query string or from members of a JSON
 * body: one table in params.c names them, says which operations have them, and reads them.
 */
#ifndef GM_SERVER_REQUEST_PARAMS_H
#define GM_SERVER_REQUEST_PARAMS_H

#include "kernels/gpu.h"
#include "server/limits.h"

#define GM_FORMAT_NAME_MAX 8

struct gm_params {
    uint32_t seen; /* rows of the table that were given */
    char kernel[GM_PARAMETER_BYTES_MAX + 1];
    char device[GM_PARAMETER_BYTES_MAX + 1];
    enum gm_dtype dtype; /* GM_DTYPE_NONE: not stated */
    bool has_shape[GM_OPERANDS_MAX];
    struct gm_shape shape[GM_OPERANDS_MAX];
    struct gm_op_options op;
    uint64_t repeat;     /* 0: not stated */
    uint64_t timeout_ms; /* 0: not stated */
    bool nonfinite_null;
    enum gm_header header;           /* of CSV */
    char format[GM_FORMAT_NAME_MAX]; /* of a report */
    const struct gm_gpu *gpu;        /* NULL: not stated */
};

/*
 * Whether an operation has a parameter; *ret_bit is then its bit in `seen`. Errors:
 * GM_UNKNOWN_PARAMETER (naming the nearest), GM_BAD_PARAMETER (naming the operations that have it).
 */
enum gm_status gm_params_find(enum gm_op_kind op, const char *name, size_t name_len,
                              uint32_t *ret_bit, struct gm_error *err);
/* The operation's parameter whose name is most like this one. */
const char *gm_params_nearest(enum gm_op_kind op, const char *name, size_t name_len);

/*
 * Reads one parameter of an operation into *params, which starts as all zero. Stated twice, it
 * must say the same. Errors: GM_UNKNOWN_PARAMETER (naming the nearest), GM_BAD_PARAMETER (naming
 * what it can be). *params is untouched on failure.
 */
enum gm_status gm_params_set(struct gm_params *params, enum gm_op_kind op, const char *name,
                             size_t name_len, const char *value, size_t value_len,
                             struct gm_error *err);

#endif
