#include "server/request/params.h"

#include "proto/nearest.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* value is terminated. false: not one of what the row takes. */
typedef bool read_fn(struct gm_params *params, const char *value, size_t len);

#define OP(kind) (1u << GM_OP_##kind)
#define OP_ALL (~0u)

static read_fn read_kernel, read_device, read_dtype, read_shape_a, read_shape_b, read_shape_c;
static read_fn read_transa, read_transb, read_alpha, read_beta, read_precision, read_repeat;
static read_fn read_timeout, read_nonfinite, read_header, read_format, read_gpu;

/* As kernels/gpu.h has them; the test compares. */
#define GPU_NAMES "one of H200, H100, A100, B200, RTX 5090, RTX 4090, RTX 3090, L4 and T4"

static const struct row {
    const char *name;
    unsigned ops;
    read_fn *read;
    const char *takes;
} rows[] = {
    {"kernel", OP_ALL, read_kernel, "auto or the name of a kernel, see /v1/kernels"},
    {"device", OP_ALL, read_device, "the name of a device, see /v1/devices"},
    {"dtype", OP_ALL, read_dtype, "an element type"},
    {"shape", OP_ALL, read_shape_a, "a shape: RxC, or BxRxC for a stack"},
    {"shape_a", OP_ALL, read_shape_a, "a shape: RxC, or BxRxC for a stack"},
    {"shape_b", OP(MATMUL) | OP(ADD), read_shape_b, "a shape: RxC, or BxRxC for a stack"},
    {"shape_c", OP(MATMUL), read_shape_c, "a shape: RxC, or BxRxC for a stack"},
    {"transa", OP(MATMUL), read_transa, "true or false (or 1 or 0)"},
    {"transb", OP(MATMUL), read_transb, "true or false (or 1 or 0)"},
    {"alpha", OP(MATMUL), read_alpha, "a finite number"},
    {"beta", OP(MATMUL), read_beta, "a finite number"},
    {"precision", OP_ALL, read_precision, "fp32, ieee, tf32 or bf16"},
    {"repeat", OP_ALL, read_repeat, "a whole number from 1 to 1000"},
    {"timeout_ms", OP_ALL, read_timeout, "a whole number of milliseconds from 1 to 3600000"},
    {"nonfinite", OP_ALL, read_nonfinite, "error or null"},
    {"header", OP_ALL, read_header, "true or false (or 1 or 0)"},
    {"format", OP_ALL, read_format, "text, json or svg, of those that a report has"},
    {"gpu", OP_ALL, read_gpu, GPU_NAMES},
};
#define ROW_COUNT (sizeof rows / sizeof *rows)
_Static_assert(GM_REPEAT_MAX == 1000 && GM_TIMEOUT_MS_MAX == 3600000, "the table says these");
_Static_assert(ROW_COUNT <= 32, "gm_params.seen has a bit a row");

static bool read_name(char *field, size_t size, const char *value, size_t len)
{
    if (len == 0 || len >= size)
        return false;
    memset(field, 0, size);
    memcpy(field, value, len);
    return true;
}

static bool read_kernel(struct gm_params *p, const char *value, size_t len)
{
    return read_name(p->kernel, sizeof p->kernel, value, len);
}

static bool read_device(struct gm_params *p, const char *value, size_t len)
{
    return read_name(p->device, sizeof p->device, value, len);
}

static bool read_dtype(struct gm_params *p, const char *value, size_t len)
{
    p->dtype = gm_dtype_from_name(value, len);
    return p->dtype != GM_DTYPE_NONE;
}

static bool read_shape(struct gm_params *p, unsigned index, const char *value, size_t len)
{
    p->has_shape[index] = true;
    memset(&p->shape[index], 0, sizeof p->shape[index]);
    return gm_shape_parse(value, len, &p->shape[index]);
}

static bool read_shape_a(struct gm_params *p, const char *value, size_t len)
{
    return read_shape(p, 0, value, len);
}

static bool read_shape_b(struct gm_params *p, const char *value, size_t len)
{
    return read_shape(p, 1, value, len);
}

static bool read_shape_c(struct gm_params *p, const char *value, size_t len)
{
    return read_shape(p, 2, value, len);
}

static bool read_bool(bool *field, const char *value)
{
    *field = strcmp(value, "true") == 0 || strcmp(value, "1") == 0;
    return *field || strcmp(value, "false") == 0 || strcmp(value, "0") == 0;
}

static bool read_transa(struct gm_params *p, const char *value, size_t len)
{
    (void)len;
    return read_bool(&p->op.transa, value);
}

static bool read_transb(struct gm_params *p, const char *value, size_t len)
{
    (void)len;
    return read_bool(&p->op.transb, value);
}

/* A decimal number; hexadecimal, "inf" and "nan", which strtod also takes, are none. */
static bool read_scalar(struct gm_scalar *field, const char *value, size_t len)
{
    char *end;

    if (len == 0 || strspn(value, "0123456789+-.eE") != len)
        return false;
    double real = strtod(value, &end);
    if (*end || !isfinite(real))
        return false;
    errno = 0;
    long long integer = strtoll(value, &end, 10);
    bool exact = !*end && errno == 0;
    if (!exact && real == trunc(real) && fabs(real) < 0x1p63) {
        integer = (long long)real;
        exact = strpbrk(value, ".eE") != NULL; /* plain digits too long for 64 bits are not exact */
    }
    field->real = real;
    field->integer = exact ? integer : 0;
    field->is_integer = exact;
    return true;
}

static bool read_alpha(struct gm_params *p, const char *value, size_t len)
{
    p->op.has_alpha = true;
    return read_scalar(&p->op.alpha, value, len);
}

static bool read_beta(struct gm_params *p, const char *value, size_t len)
{
    p->op.has_beta = true;
    return read_scalar(&p->op.beta, value, len);
}

static bool read_precision(struct gm_params *p, const char *value, size_t len)
{
    return gm_precision_from_name(value, len, &p->op.precision);
}

static bool read_count(uint64_t *field, const char *value, size_t len, uint64_t max)
{
    if (len == 0 || strspn(value, "0123456789") != len)
        return false;
    *field = strtoull(value, NULL, 10); /* what is too long for it is more than any max */
    return *field >= 1 && *field <= max;
}

static bool read_repeat(struct gm_params *p, const char *value, size_t len)
{
    return read_count(&p->repeat, value, len, GM_REPEAT_MAX);
}

static bool read_timeout(struct gm_params *p, const char *value, size_t len)
{
    return read_count(&p->timeout_ms, value, len, GM_TIMEOUT_MS_MAX);
}

static bool read_header(struct gm_params *p, const char *value, size_t len)
{
    bool present;

    (void)len;
    if (!read_bool(&present, value))
        return false;
    p->header = present ? GM_HEADER_PRESENT : GM_HEADER_ABSENT;
    return true;
}

static bool read_nonfinite(struct gm_params *p, const char *value, size_t len)
{
    (void)len;
    p->nonfinite_null = strcmp(value, "null") == 0;
    return p->nonfinite_null || strcmp(value, "error") == 0;
}

/* Which of them there are depends on the report: see gm_report_choose. */
static bool read_format(struct gm_params *p, const char *value, size_t len)
{
    return read_name(p->format, sizeof p->format, value, len);
}

static bool read_gpu(struct gm_params *p, const char *value, size_t len)
{
    (void)len;
    p->gpu = gm_gpu_find(value);
    return p->gpu != NULL;
}

const char *gm_params_nearest(enum gm_op_kind op, const char *name, size_t len)
{
    size_t least = SIZE_MAX;
    const char *nearest = rows[0].name;

    for (size_t i = 0; i < ROW_COUNT; i++) {
        size_t distance = gm_edit_distance(name, len, rows[i].name);
        if (distance < least && (rows[i].ops & (1u << op))) {
            least = distance;
            nearest = rows[i].name;
        }
    }
    return nearest;
}

static enum gm_status fail_not_taken(enum gm_op_kind op, const struct row *row,
                                     struct gm_error *err)
{
    char takers[64] = "";
    size_t at = 0;

    for (int kind = 0; kind < GM_OP_COUNT && at < sizeof takers; kind++)
        if (row->ops & (1u << kind))
            at += (size_t)snprintf(takers + at, sizeof takers - at, "%s%s", at ? " and " : "",
                                   gm_op_name((enum gm_op_kind)kind));
    return gm_fail(err, GM_BAD_PARAMETER, "%s does not take '%s': it is a parameter of %s",
                   gm_op_name(op), row->name, takers);
}

/* A name that is not a row's: the nearest one, or all where none is near. */
static enum gm_status fail_unknown(enum gm_op_kind op, const char *name, size_t len,
                                   struct gm_error *err)
{
    const char *nearest = gm_params_nearest(op, name, len);
    int shown = (int)(len < 64 ? len : 64);
    char names[256] = "";
    size_t at = 0;

    if (len == 0)
        return gm_fail(err, GM_UNKNOWN_PARAMETER,
                       "a parameter is NAME=VALUE, and one here has no name, or no \"=\"");
    if (gm_is_near(name, len, nearest))
        return gm_fail(err, GM_UNKNOWN_PARAMETER,
                       "there is no parameter '%.*s'; the nearest is '%s'", shown, name, nearest);
    if (len == 1 && *name >= 'a' && *name < 'a' + GM_OPERANDS_MAX)
        return gm_fail(err, GM_UNKNOWN_PARAMETER,
                       "there is no parameter '%c': operands go into the body", *name);
    for (size_t i = 0; i < ROW_COUNT && at < sizeof names; i++)
        if (rows[i].ops & (1u << op))
            at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", at ? ", " : "",
                                   rows[i].name);
    return gm_fail(err, GM_UNKNOWN_PARAMETER, "there is no parameter '%.*s'; those of %s are %s",
                   shown, name, gm_op_name(op), names);
}

/* The row of a name, if the operation has it. */
static enum gm_status find_row(enum gm_op_kind op, const char *name, size_t len,
                               const struct row **ret, struct gm_error *err)
{
    const struct row *row = NULL;

    for (size_t i = 0; i < ROW_COUNT && !row; i++)
        if (strlen(rows[i].name) == len && memcmp(rows[i].name, name, len) == 0)
            row = &rows[i];
    if (!row)
        return fail_unknown(op, name, len, err);
    if (!(row->ops & (1u << op)))
        return fail_not_taken(op, row, err);
    *ret = row;
    return GM_OK;
}

/* Two names of one thing, shape and shape_a, have one bit: that of the first. */
static uint32_t bit_of(const struct row *row)
{
    size_t first = 0;

    while (rows[first].read != row->read)
        first++;
    return UINT32_C(1) << first;
}

enum gm_status gm_params_find(enum gm_op_kind op, const char *name, size_t name_len,
                              uint32_t *ret_bit, struct gm_error *err)
{
    const struct row *row;
    enum gm_status status = find_row(op, name, name_len, &row, err);

    if (status == GM_OK)
        *ret_bit = bit_of(row);
    return status;
}

enum gm_status gm_params_set(struct gm_params *params, enum gm_op_kind op, const char *name,
                             size_t name_len, const char *value, size_t value_len,
                             struct gm_error *err)
{
    const struct row *row;
    char text[GM_PARAMETER_BYTES_MAX + 1];
    enum gm_status status = find_row(op, name, name_len, &row, err);

    if (status != GM_OK)
        return status;
    if (value_len > GM_PARAMETER_BYTES_MAX)
        return gm_fail(err, GM_BAD_PARAMETER, "the value of %s has %zu bytes, and %d is the limit",
                       row->name, value_len, GM_PARAMETER_BYTES_MAX);
    struct gm_params next;
    memcpy(&next, params, sizeof next);
    bool ok = !memchr(value, '\0', value_len);
    if (ok) {
        memcpy(text, value, value_len);
        text[value_len] = '\0';
        ok = row->read(&next, text, value_len);
    }
    if (!ok && row->read == read_dtype)
        return gm_fail(err, GM_BAD_PARAMETER, "dtype is '%.*s'; it must be one of %s",
                       (int)(value_len < 64 ? value_len : 64), value, gm_dtype_names());
    if (!ok)
        return gm_fail(err, GM_BAD_PARAMETER, "%s is '%.*s'; it must be %s", row->name,
                       (int)(value_len < 64 ? value_len : 64), value, row->takes);
    uint32_t bit = bit_of(row);
    /* Copied whole and set field by field, the two differ in bytes only where they differ. */
    if ((params->seen & bit) && memcmp(&next, params, sizeof next) != 0)
        return gm_fail(err, GM_BAD_PARAMETER, "%s is stated twice, and not with the same value",
                       row->name);
    next.seen |= bit;
    memcpy(params, &next, sizeof next);
    return GM_OK;
}
