#include "server/request/params.h"

#include "proto/number/number.h"
#include "proto/status.h"
#include "server/matrices/matrices.h"

#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct row {
    const char *name;
    unsigned ops;
    /* Reads a zero-terminated value. Returns false if the row does not take it. */
    bool (*read)(const struct row *row, void *member, const char *value, size_t len);
    size_t member; /* offset in struct gm_params */
    uint64_t max;
    const char *takes;
};

static bool read_text(const struct row *row, void *member, const char *value, size_t len)
{
    if (len == 0 || len > row->max)
        return false;
    memset(member, 0, sizeof(gm_param_text));
    memcpy(member, value, len);
    return true;
}

static bool read_dtype(const struct row *row, void *member, const char *value, size_t len)
{
    enum gm_dtype *dtype = member;

    (void)row;
    *dtype = gm_dtype_from_name(value, len);
    return *dtype != GM_DTYPE_NONE;
}

static bool read_shape(const struct row *row, void *member, const char *value, size_t len)
{
    (void)row;
    memset(member, 0, sizeof(struct gm_shape));
    return gm_shape_parse(value, len, member);
}

static bool read_size(const struct row *row, void *member, const char *value, size_t len)
{
    uint64_t *size = member;

    (void)row;
    if (len == 0 || len > 18 || strspn(value, "0123456789") != len)
        return false;
    *size = strtoull(value, NULL, 10);
    return true;
}

static bool read_boolean(const struct row *row, void *member, const char *value, size_t len)
{
    bool *boolean = member;

    (void)row;
    (void)len;
    *boolean = strcmp(value, "true") == 0 || strcmp(value, "1") == 0;
    return *boolean || strcmp(value, "false") == 0 || strcmp(value, "0") == 0;
}

/* Reads a decimal number. Rejects hexadecimal, "inf" and "nan", which strtod accepts. It is an
 * integer if the text is one of i64, as an element's text would be. */
static bool read_number(struct gm_scalar *scalar, const char *value, size_t len)
{
    const char *digits = value + (*value == '+');
    int64_t integer = 0;
    char *end;

    if (len == 0 || strspn(value, "0123456789+-.eE") != len)
        return false;
    double real = strtod(value, &end);
    if (*end || !isfinite(real))
        return false;
    scalar->is_integer = gm_number_reader_of(GM_I64)(digits, &integer) == value + len;
    scalar->real = real;
    scalar->integer = scalar->is_integer ? integer : 0;
    return true;
}

static bool read_alpha(const struct row *row, void *member, const char *value, size_t len)
{
    struct gm_op_options *options = member;

    (void)row;
    options->has_alpha = true;
    return read_number(&options->alpha, value, len);
}

static bool read_beta(const struct row *row, void *member, const char *value, size_t len)
{
    struct gm_op_options *options = member;

    (void)row;
    options->has_beta = true;
    return read_number(&options->beta, value, len);
}

static bool read_precision(const struct row *row, void *member, const char *value, size_t len)
{
    (void)row;
    return gm_precision_from_name(value, len, member);
}

static bool read_count(const struct row *row, void *member, const char *value, size_t len)
{
    uint64_t *count = member;
    size_t digits = strspn(value, "0123456789");

    /* A whole number may be written 3.0: JSON has one kind of numbers. */
    if (digits == 0 || (digits < len && (value[digits] != '.' || digits + 1 == len ||
                                         strspn(value + digits + 1, "0") != len - digits - 1)))
        return false;
    *count = strtoull(value, NULL,
                      10); /* too large a number gives ULLONG_MAX, which exceeds every max */
    return *count >= 1 && *count <= row->max;
}

static bool read_header(const struct row *row, void *member, const char *value, size_t len)
{
    enum gm_header *header = member;
    bool present;

    if (!read_boolean(row, &present, value, len))
        return false;
    *header = present ? GM_HEADER_PRESENT : GM_HEADER_ABSENT;
    return true;
}

static bool read_nonfinite(const struct row *row, void *member, const char *value, size_t len)
{
    bool *null = member;

    (void)row;
    (void)len;
    *null = strcmp(value, "null") == 0;
    return *null || strcmp(value, "error") == 0;
}

static bool read_plan(const struct row *row, void *member, const char *value, size_t len)
{
    bool *plan = member;

    (void)row;
    (void)len;
    *plan = true;
    return strcmp(value, "plan") == 0;
}

static bool read_name(const struct row *row, void *member, const char *value, size_t len)
{
    return gm_matrix_name_ok(value, len) && read_text(row, member, value, len);
}

static bool read_share(const struct row *row, void *member, const char *value, size_t len)
{
    return gm_matrix_share_ok(value, len) && read_text(row, member, value, len);
}

static bool read_ref(const struct row *row, void *member, const char *value, size_t len)
{
    const size_t before = sizeof "ref:" - 1;

    return strncmp(value, "ref:", before) == 0 && gm_matrix_ref_ok(value + before, len - before) &&
           read_text(row, member, value + before, len - before);
}

static bool read_returns(const struct row *row, void *member, const char *value, size_t len)
{
    enum gm_return *returns = member;

    (void)row;
    (void)len;
    *returns = strcmp(value, "account") == 0 ? GM_RETURN_ACCOUNT : GM_RETURN_RESULT;
    return *returns == GM_RETURN_ACCOUNT || strcmp(value, "result") == 0;
}

/* "7", "0:100", "50:", ":5", ":" */
static bool read_range(const struct row *row, void *member, const char *value, size_t len)
{
    struct gm_range *range = member;
    size_t digits = strspn(value, "0123456789");
    const char *colon = value + digits, *end = colon;

    (void)row;
    if (len == 0 || digits > 18)
        return false;
    memset(range, 0, sizeof *range);
    range->stated = true;
    range->from = strtoull(value, NULL, 10);
    range->to = range->from + 1;
    if (*colon == ':') {
        size_t more = strspn(colon + 1, "0123456789");
        if (more > 18)
            return false;
        range->to = more > 0 ? strtoull(colon + 1, NULL, 10) : UINT64_MAX;
        end = colon + 1 + more;
    }
    return !*end && (digits > 0 || *colon == ':');
}

static bool read_gpu(const struct row *row, void *member, const char *value, size_t len)
{
    const struct gm_gpu **gpu = member;

    (void)row;
    (void)len;
    *gpu = gm_gpu_find(value);
    return *gpu != NULL;
}

static const struct row rows[] = {
#define PART(member_, name_, ops_, reader, max_, takes_)                                           \
    {.name = (name_),                                                                              \
     .ops = (ops_),                                                                                \
     .read = read_##reader,                                                                        \
     .member = offsetof(struct gm_params, member_),                                                \
     .max = (max_),                                                                                \
     .takes = (takes_)},
#define OWN(type, ...) PART(__VA_ARGS__)
    GM_PARAM_LIST(OWN, PART)
#undef OWN
#undef PART
};
#define ROW_COUNT (sizeof rows / sizeof *rows)
_Static_assert(GM_REPEAT_MAX == 1000 && GM_TIMEOUT_MS_MAX == 3600000, "the list says these");
_Static_assert(GM_PARAMETER_BYTES_MAX == sizeof "ref:" - 1 + GM_MATRIX_REF_MAX - 1, "see limits.h");
_Static_assert(ROW_COUNT <= 64, "gm_params.seen has one bit per row");

/* The beginning of a name in lower case, as names of parameters are. */
static const char *lower_case(const char *name, size_t *len, char text[64])
{
    *len = *len < 64 ? *len : 64;
    for (size_t i = 0; i < *len; i++)
        text[i] = (char)tolower((unsigned char)name[i]);
    return text;
}

const char *gm_params_nearest(enum gm_op_kind op, const char *name, size_t len)
{
    size_t least = SIZE_MAX;
    const char *nearest = rows[0].name;
    char text[64];

    name = lower_case(name, &len, text);
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

/* Fails for an unknown name: names the nearest one, or lists all if none is near. */
static enum gm_status fail_unknown(enum gm_op_kind op, const char *name, size_t len,
                                   struct gm_error *err)
{
    const char *nearest = gm_params_nearest(op, name, len);
    int shown = (int)(len < 64 ? len : 64);
    char names[384] = "", text[64];
    size_t at = 0, text_len = len;

    if (len == 0)
        return gm_fail(err, GM_UNKNOWN_PARAMETER,
                       "a parameter is NAME=VALUE, and one here has no name, or no \"=\"");
    if (gm_is_near(lower_case(name, &text_len, text), text_len, nearest))
        return gm_fail(err, GM_UNKNOWN_PARAMETER,
                       "there is no parameter '%.*s'; the nearest is '%s'", shown, name, nearest);
    for (size_t i = 0; i < ROW_COUNT && at < sizeof names; i++)
        if (rows[i].ops & (1u << op))
            at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", at ? ", " : "",
                                   rows[i].name);
    return gm_fail(err, GM_UNKNOWN_PARAMETER, "there is no parameter '%.*s'; those of %s are %s",
                   shown, name, gm_op_name(op), names);
}

/* Finds the row of a name, if the operation has it. */
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

/* Names of the same parameter, such as shape and shape_a, share one bit: the first one's. */
static uint64_t bit_of(const struct row *row)
{
    size_t first = 0;

    while (rows[first].member != row->member || rows[first].read != row->read)
        first++;
    return UINT64_C(1) << first;
}

enum gm_status gm_params_find(enum gm_op_kind op, const char *name, size_t name_len,
                              uint64_t *ret_bit, struct gm_error *err)
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
    char text[GM_PARAMETER_BYTES_MAX + 1 + 8] = ""; /* a reader of numbers may read 8 bytes on */
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
        ok = row->read(row, (char *)&next + row->member, text, value_len);
    }
    if (!ok && row->read == read_dtype)
        return gm_fail(err, GM_BAD_PARAMETER, "dtype is '%.*s'; it must be one of %s",
                       (int)(value_len < 64 ? value_len : 64), value, gm_dtype_names());
    if (!ok)
        return gm_fail(err, GM_BAD_PARAMETER, "%s is '%.*s'; it must be %s", row->name,
                       (int)(value_len < 64 ? value_len : 64), value, row->takes);
    uint64_t bit = bit_of(row);
    /* memcmp is safe, padding included: `next` is a copy of the whole struct, with fields set. */
    if ((params->seen & bit) && memcmp(&next, params, sizeof next) != 0)
        return gm_fail(err, GM_BAD_PARAMETER, "%s is stated twice, with different values",
                       row->name);
    next.seen |= bit;
    memcpy(params, &next, sizeof next);
    return GM_OK;
}

enum gm_status gm_params_only(const struct gm_params *params, uint64_t allowed, const char *path,
                              struct gm_error *err)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        if ((params->seen & ~allowed & UINT64_C(1) << i))
            return gm_fail(err, GM_BAD_PARAMETER, "%s does not take '%s'", path, rows[i].name);
    return GM_OK;
}
