/*
 * json_rows.c - reads arrays of numbers. See internal.h.
 *
 * Storage is requested once, with the exact shape, before the first number is converted. There is
 * no index of the text: besides the text itself, only the matrix takes memory.
 */
#include "proto/json/json.h"

#include "proto/number/number.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool gm_json_rows_begin(char first)
{
    return first == '[' || first == '-' || (first >= '0' && first <= '9') || first == 't' ||
           first == 'f';
}

enum gm_status gm_json_shape(struct gm_json *json, struct gm_shape *ret)
{
    static const char what[] = "shape is an array of up to 3 whole numbers, as in [2,3]";
    struct gm_shape shape = {0};
    if (gm_json_peek(json) != '[')
        return gm_json_fail(json, json->at, "%s", what);
    json->at++;
    gm_json_space(json);
    for (bool more = gm_json_peek(json) != ']'; more;) {
        uint64_t size;
        const char *end = gm_number_reader_of(GM_U64)(json->at, &size);
        if (!end && gm_number_fault(json->at, GM_U64) == GM_NUMBER_SYNTAX)
            return gm_json_fail(json, json->at, "%s", what);
        if (!end || shape.ndim == GM_DIMS_MAX)
            return gm_fail(json->err, GM_BAD_SHAPE, "%s", what);
        shape.dim[shape.ndim++] = size;
        json->at = end;
        gm_json_space(json);
        more = gm_json_peek(json) == ',';
        if (!more && gm_json_peek(json) != ']')
            return gm_json_fail(json, json->at, "',' or ']' is expected in a shape");
        json->at += more;
        gm_json_space(json);
    }
    json->at++;
    *ret = shape;
    return GM_OK;
}

/* Brackets and commas of one array of numbers. */
struct counts {
    uint64_t opens, closes, commas;
};

#define SPAN_COLS 16 /* from this many columns on, reading many numbers at once is faster */
#define BLOCK 64     /* bytes per step of count(), whose sums compilers vectorise */

/* Counts brackets and commas in text[0..end), up to a byte that no array of numbers contains.
 * Returns the position of that byte. */
static const char *count(const char *text, const char *end, struct counts *sum)
{
    const char *p = text;
    for (; end - p >= BLOCK; p += BLOCK) {
        uint8_t stops = 0, opens = 0, closes = 0, commas = 0;
        for (int i = 0; i < BLOCK; i++) {
            stops = (uint8_t)(stops | (p[i] == '"') | (p[i] == '{') | (p[i] == '}'));
            opens = (uint8_t)(opens + (p[i] == '['));
            closes = (uint8_t)(closes + (p[i] == ']'));
            commas = (uint8_t)(commas + (p[i] == ','));
        }
        if (stops)
            break;
        sum->opens += opens;
        sum->closes += closes;
        sum->commas += commas;
    }
    for (; p < end && *p != '"' && *p != '{' && *p != '}'; p++) {
        sum->opens += *p == '[';
        sum->closes += *p == ']';
        sum->commas += *p == ',';
    }
    return p;
}

static inline bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static const char *space_before(const char *p)
{
    while (is_space(p[-1]))
        p--;
    return p;
}

/* No test for the end: the text's last byte is no white space. */
static inline const char *space_after(const char *p)
{
    while (is_space(*p))
        p++;
    return p;
}

enum gm_status gm_json_rows_prescan(struct gm_json *json, struct gm_json_rows *ret)
{
    const char *begin = json->at, *end = begin;
    struct counts sum = {0};
    if (*begin == '[') {
        const char *stop = count(begin, json->end, &sum);
        end = space_before(stop);
        if (end[-1] == ',') { /* the one before the next member */
            end = space_before(end - 1);
            sum.commas--;
        }
        if (stop < json->end && (end[-1] != ']' || sum.opens > sum.closes))
            return gm_json_fail(json, stop, "%s inside an array of numbers",
                                *stop == '"'   ? "a string"
                                : *stop == '{' ? "an object"
                                               : "the end of an object");
        if (sum.opens > sum.closes)
            return gm_json_fail(json, stop, "the text ends inside an array");
    } else {
        while (end < json->end && !is_space(*end) && !strchr(",]}", *end))
            end++;
    }
    *ret = (struct gm_json_rows){begin, end, sum.opens, sum.commas};
    json->at = end;
    gm_json_space(json);
    return GM_OK;
}

/* The rows of the first matrix of a stack, whose first row begins at p. */
static uint64_t rows_of_first(const char *p, const char *end)
{
    uint64_t n = 1;
    for (;; n++) {
        const char *close = memchr(p, ']', (size_t)(end - p));
        if (!close || close + 1 == end)
            return n;
        p = space_after(close + 1);
        if (*p != ',')
            return n;
    }
}

enum gm_status gm_json_rows_shape(const struct gm_json *json, const struct gm_json_rows *rows,
                                  enum gm_dtype dtype, const char *name, struct gm_shape *ret)
{
    struct gm_shape shape = {0};
    const char *p = rows->begin;
    while (*p == '[') {
        if (shape.ndim == GM_DIMS_MAX)
            return gm_json_fail(json, rows->begin,
                                "%s nests deeper than a stack of matrices, [[[1,2],[3,4]]]", name);
        shape.ndim++;
        p = space_after(p + 1);
    }
    if (shape.ndim == 0) {
        *ret = shape;
        return GM_OK;
    }

    const char *close = memchr(p, ']', (size_t)(rows->end - p));
    struct counts row = {0};
    if (close)
        count(p, close, &row);
    uint64_t cols = *p == ']' ? 0 : row.commas + 1, high = 1, batch = 1;
    if (shape.ndim == 2)
        high = rows->opens - 1;
    if (shape.ndim == 3) {
        high = rows_of_first(p, rows->end);
        batch = (rows->opens - 1) / (high + 1);
    }
    const uint64_t dims[] = {batch, high, cols};
    memcpy(shape.dim, dims + GM_DIMS_MAX - shape.ndim, shape.ndim * sizeof(dims[0]));

    /* Each comma is between two elements, or between two rows that have none. */
    uint64_t elements, places = cols ? cols : 1;
    if (!gm_size_mul(places, high, &elements) || !gm_size_mul(elements, batch, &elements) ||
        elements != rows->commas + 1 ||
        (shape.ndim == 3 && rows->opens != 1 + batch * (high + 1))) {
        enum gm_status status = gm_json_rows_read(json, rows, dtype, name, &shape, NULL);
        return status != GM_OK ? status : gm_json_fail(json, p, "the rows of %s differ", name);
    }
    *ret = shape;
    return GM_OK;
}

struct reader {
    const struct gm_json *json;
    enum gm_dtype dtype;
    const char *name;
    const struct gm_shape *shape;
    gm_number_reader *read;
    gm_number_span *span; /* reads many at once; NULL if there is none, or elements are not kept */
    const char *at, *end;
    char *out;
    size_t step; /* bytes between elements; 0 if they are not kept */
    uint64_t index[GM_DIMS_MAX];
};

#define PLACE_MAX 128

/* Names the position of the first `levels` indices: "row 3, column 5 of a". */
static const char *place(const struct reader *r, unsigned levels, char buf[PLACE_MAX])
{
    static const char *const names[] = {"matrix", "row", "column"};
    const char *const *name = names + GM_DIMS_MAX - r->shape->ndim;
    int len = 0;
    for (unsigned i = 0; i < levels; i++)
        len += snprintf(buf + len, (size_t)(PLACE_MAX - len), "%s%s %" PRIu64, i ? ", " : "",
                        name[i], r->index[i]);
    snprintf(buf + len, (size_t)(PLACE_MAX - len), "%s%s", levels ? " of " : "", r->name);
    return buf;
}

static enum gm_status bad_length(const struct reader *r, unsigned level, uint64_t length)
{
    char buf[PLACE_MAX];
    bool innermost = level + 1 == r->shape->ndim;
    return gm_fail(r->json->err, GM_BAD_SHAPE,
                   "%s has %" PRIu64 " %s where %" PRIu64 " are expected, as in the first (indices "
                   "count from 0)",
                   place(r, level, buf), length, innermost ? "elements" : "rows",
                   r->shape->dim[level]);
}

/* Fails with the reason why there is no element at r->at, and its position. */
static enum gm_status bad_element(const struct reader *r)
{
    const char *at = r->at, *dtype = gm_dtype_name(r->dtype);
    char buf[PLACE_MAX];
    const char *where = place(r, r->shape->ndim, buf);

    if (*at == '[')
        return gm_fail(r->json->err, GM_BAD_SHAPE,
                       "%s is an array where the first is a number (indices count from 0)", where);
    if (r->dtype != GM_BOOL && (strncmp(at, "true", 4) == 0 || strncmp(at, "false", 5) == 0))
        return gm_fail(r->json->err, GM_BAD_DTYPE,
                       "%s is true or false, which needs dtype bool; this is %s", where, dtype);
    if (strncmp(at, "null", 4) == 0)
        return gm_json_fail(r->json, at, "%s is null, not a number; NaN can be sent as NPY or raw",
                            where);

    enum gm_number_fault fault = gm_number_fault(at, r->dtype);
    const char *unsigned_at = at + (*at == '-' || *at == '+');
    if (fault == GM_NUMBER_SYNTAX && *unsigned_at && strchr("NnIi", *unsigned_at))
        return gm_json_fail(r->json, at,
                            "JSON has no NaN and no infinity; send them as NPY or raw");
    if (fault == GM_NUMBER_SYNTAX)
        return gm_json_fail(r->json, at,
                            "%s is not a number as JSON writes it (no leading zeros or plus sign, "
                            "digits on both sides of a point)",
                            where);
    if (fault == GM_NUMBER_LENGTH)
        return gm_json_fail(r->json, at, "a number of more than %d characters", GM_NUMBER_TEXT_MAX);

    ptrdiff_t len = gm_number_end(at) - at;
    return gm_fail(r->json->err, GM_OUT_OF_RANGE, "%.*s%s at %s (indices count from 0) %s %s",
                   len > 40 ? 40 : (int)len, at, len > 40 ? "..." : "", where,
                   fault == GM_NUMBER_FRACTION ? "is not a whole number, as those of dtype"
                                               : "does not fit dtype",
                   dtype);
}

/* The text does not end here: the prescan found as many brackets that close as that open. */
static enum gm_status bad_separator(const struct reader *r, const char *at)
{
    return gm_json_fail(r->json, at, "',' or ']' is expected in an array of numbers");
}

static enum gm_status read_row(struct reader *r)
{
    unsigned level = r->shape->ndim - 1;
    uint64_t cols = r->shape->dim[level], n = 0;
    const char *p = space_after(r->at + 1);
    char *out = r->out;
    bool more = *p != ']';
    if (r->span && cols >= SPAN_COLS) {
        const struct gm_number_text text = {r->json->start, r->json->end};
        n = r->span(&text, cols, out, &p);
        out += n * r->step;
    }
    while (more) {
        const char *end = n < cols ? r->read(p, out) : NULL;
        if (!end)
            break;
        n++;
        out += r->step;
        p = space_after(end);
        if (*p != ',' && *p != ']')
            return bad_separator(r, p);
        more = *p == ',';
        p = more ? space_after(p + 1) : p;
    }
    if (more && n < cols) {
        r->at = p;
        r->index[level] = n;
        return bad_element(r);
    }
    if (more) { /* than there should be: how many? */
        struct counts rest = {0};
        const char *close = memchr(p, ']', (size_t)(r->json->end - p));
        if (close)
            count(p, close, &rest);
        return bad_length(r, level, n + rest.commas + 1);
    }
    if (n < cols)
        return bad_length(r, level, n);
    r->at = p + 1;
    r->out = out;
    return GM_OK;
}

static enum gm_status read_array(struct reader *r, unsigned level)
{
    if (*r->at != '[') {
        char buf[PLACE_MAX];
        return *r->at == ']' || *r->at == ','
                   ? gm_json_fail(r->json, r->at, "an array is expected")
                   : gm_fail(r->json->err, GM_BAD_SHAPE,
                             "%s is not an array, as the first is (indices count from 0)",
                             place(r, level, buf));
    }
    if (level + 1 == r->shape->ndim || level + 1 == GM_DIMS_MAX)
        return read_row(r);

    uint64_t n = 0;
    const char *p = space_after(r->at + 1);
    bool more = *p != ']';
    while (more && (n < r->shape->dim[level] || r->step == 0)) {
        r->at = p;
        r->index[level] = n++;
        enum gm_status status = read_array(r, level + 1);
        if (status != GM_OK)
            return status;
        p = space_after(r->at);
        if (*p != ',' && *p != ']')
            return bad_separator(r, p);
        more = *p == ',';
        p = more ? space_after(p + 1) : p;
    }
    /* Too few in all: the missing one is found at the end. */
    bool behind = level == 0 && !more && p + 1 < r->end;
    if ((more || n != r->shape->dim[level]) && !behind)
        return bad_length(r, level, n + more);
    r->at = p + 1;
    return GM_OK;
}

enum gm_status gm_json_rows_read(const struct gm_json *json, const struct gm_json_rows *rows,
                                 enum gm_dtype dtype, const char *name,
                                 const struct gm_shape *shape, void *out)
{
    char nowhere[16];
    struct reader r = {
        .json = json,
        .dtype = dtype,
        .name = name,
        .shape = shape,
        .read = gm_number_reader_of(dtype),
        .span = out ? gm_number_span_of(dtype) : NULL,
        .at = rows->begin,
        .end = rows->end,
        .out = out ? out : nowhere,
        .step = out ? gm_dtype_size(dtype) : 0,
    };
    if (shape->ndim > 0) {
        enum gm_status status = read_array(&r, 0);
        if (status != GM_OK)
            return status;
    } else {
        const char *end = r.read(r.at, r.out);
        if (!end)
            return bad_element(&r);
        r.at = end;
    }
    if (r.at != r.end)
        return gm_json_fail(json, space_after(r.at),
                            "this does not belong to %s, which ends before", name);
    return GM_OK;
}

/*
 * Whether data with this nesting has the shape: flat, or dimension by dimension. Inside a dimension
 * of 0 nothing can nest: 2x0x3 is [[],[]].
 */
static bool agrees(const struct gm_shape *nested, const struct gm_shape *shape, uint64_t elements)
{
    if (nested->ndim == 1 && nested->dim[0] == elements)
        return true;
    for (unsigned i = 0; i < nested->ndim; i++)
        if (i >= shape->ndim || nested->dim[i] != shape->dim[i])
            return false;
    return nested->ndim == shape->ndim || (nested->ndim > 0 && nested->dim[nested->ndim - 1] == 0);
}

/* Fails because data does not have the stated shape, or for another reason if it has a worse
 * fault. */
static enum gm_status bad_shape(const struct gm_json *json, const struct gm_json_rows *rows,
                                const char *name, const struct gm_shape *nested,
                                const struct gm_matrix *stated)
{
    char want[GM_SHAPE_TEXT_MAX], have[GM_SHAPE_TEXT_MAX];
    struct gm_matrix found;
    enum gm_status status = gm_json_rows_read(json, rows, stated->dtype, name, nested, NULL);
    if (status == GM_OK)
        status = gm_matrix_init(&found, stated->dtype, GM_ROW_MAJOR, nested, json->err);
    if (status != GM_OK)
        return status;
    return gm_fail(json->err, GM_BAD_SHAPE,
                   "%s: shape says %s (%" PRIu64 " elements), data is %s%s", name,
                   gm_matrix_shape_text(stated, want), gm_matrix_elements(stated),
                   nested->ndim == 0 ? "a number" : gm_matrix_shape_text(&found, have),
                   nested->ndim == 1 ? ", flat" : "");
}

enum gm_status gm_json_rows_matrix(const struct gm_json *json, const struct gm_json_rows *rows,
                                   enum gm_dtype dtype, const char *name,
                                   const struct gm_shape *stated, struct gm_shape *ret_nested,
                                   struct gm_matrix *ret)
{
    enum gm_status status = gm_json_rows_shape(json, rows, dtype, name, ret_nested);
    if (status == GM_OK)
        status = gm_matrix_init(ret, dtype, GM_ROW_MAJOR, stated ? stated : ret_nested, json->err);
    if (status != GM_OK || !stated || agrees(ret_nested, stated, gm_matrix_elements(ret)))
        return status;
    return bad_shape(json, rows, name, ret_nested, ret);
}
