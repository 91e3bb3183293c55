/*
 * npy_header.c - reads and writes the head of an NPY file: a Python literal with exactly the keys
 * descr, fortran_order and shape. The keys may come in any order, with either quote and with
 * trailing commas, as Python prints them.
 */
#include "proto/npy/npy_header.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct parser {
    const char *at, *end;
    unsigned major;
    struct gm_error *err;
};

static void skip_space(struct parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r'))
        p->at++;
}

/* Skips white space, and then c if it is next. Returns whether it was. */
static bool take(struct parser *p, char c)
{
    skip_space(p);
    if (p->at == p->end || *p->at != c)
        return false;
    p->at++;
    return true;
}

static bool take_word(struct parser *p, const char *word)
{
    size_t len = strlen(word);
    skip_space(p);
    if ((size_t)(p->end - p->at) < len || memcmp(p->at, word, len) != 0)
        return false;
    p->at += len;
    return true;
}

static enum gm_status malformed(const struct parser *p, const char *expected)
{
    int rest = p->end - p->at > 20 ? 20 : (int)(p->end - p->at);
    return gm_fail(p->err, GM_BAD_NPY, "the header has \"%.*s\" where %s is expected", rest, p->at,
                   expected);
}

/* Reads a string in single or double quotes, without escapes. */
static enum gm_status read_string(struct parser *p, const char *what, const char **ret,
                                  size_t *ret_len)
{
    skip_space(p);
    char quote = p->at < p->end ? *p->at : '\0';
    if (quote != '\'' && quote != '"')
        return malformed(p, what);
    const char *begin = p->at + 1;
    const char *close = memchr(begin, quote, (size_t)(p->end - begin));
    if (!close || memchr(begin, '\\', (size_t)(close - begin)))
        return malformed(p, what);
    *ret = begin;
    *ret_len = (size_t)(close - begin);
    p->at = close + 1;
    return GM_OK;
}

static enum gm_status read_size(struct parser *p, uint64_t *ret)
{
    skip_space(p);
    if (p->at < p->end && *p->at == '-')
        return gm_fail(p->err, GM_BAD_NPY, "the shape has a negative size");
    const char *digits = p->at;
    uint64_t size = 0;
    for (; p->at < p->end && *p->at >= '0' && *p->at <= '9'; p->at++)
        if (!gm_size_mul(size, 10, &size) || !gm_size_add(size, (uint64_t)(*p->at - '0'), &size))
            return gm_fail(p->err, GM_BAD_SHAPE, "the shape has a size of more than 64 bits");
    if (p->at == digits || (*digits == '0' && p->at - digits > 1)) {
        p->at = digits;
        return malformed(p, "a size");
    }
    if (p->major <= 2 && p->at < p->end && *p->at == 'L') /* as Python 2 wrote long integers */
        p->at++;
    *ret = size;
    return GM_OK;
}

/* (), (3,), (3, 4), (3, 4,) */
static enum gm_status read_shape(struct parser *p, struct gm_shape *ret)
{
    struct gm_shape shape = {0};
    unsigned ndim = 0;
    bool comma = true;
    if (!take(p, '('))
        return malformed(p, "the shape, a tuple");
    while (!take(p, ')')) {
        uint64_t size = 0;
        if (!comma)
            return malformed(p, "a comma");
        enum gm_status status = read_size(p, &size);
        if (status != GM_OK)
            return status;
        if (ndim < GM_DIMS_MAX)
            shape.dim[ndim] = size;
        ndim++;
        comma = take(p, ',');
    }
    if (ndim == 1 && !comma)
        return gm_fail(p->err, GM_BAD_NPY, "the shape is a number, not a tuple like (3,)");
    if (ndim > GM_DIMS_MAX)
        return gm_fail(p->err, GM_BAD_SHAPE,
                       "the array has %u dimensions; a matrix has 2, a stack of them 3", ndim);
    shape.ndim = ndim;
    *ret = shape;
    return GM_OK;
}

static enum gm_status no_such_type(const char *descr, size_t len, const char *advice,
                                   struct gm_error *err)
{
    return gm_fail(err, GM_BAD_DTYPE, "the array's element type is %.*s: %s",
                   len > 64 ? 64 : (int)len, descr, advice);
}

enum gm_status gm_npy_descr_read(const char *descr, size_t len, enum gm_dtype *ret_dtype,
                                 bool *ret_big_endian, struct gm_error *err)
{
    static const struct {
        enum gm_dtype dtype;
        char kind;
        size_t bytes;
    } types[] = {
#define X(name, text, numpy, bytes, kind) {GM_##name, kind, bytes},
        GM_DTYPE_LIST(X)
#undef X
    };
    bool ordered = len > 0 && strchr("<>=|", descr[0]) && descr[0];
    const char *kind = descr + ordered, *end = descr + len;
    size_t bytes = 0;
    for (const char *p = kind + 1; p < end; p++) {
        if (*p < '0' || *p > '9' || bytes > 1000)
            bytes = SIZE_MAX / 16; /* no type is longer; dates with units end here */
        else
            bytes = bytes * 10 + (size_t)(*p - '0');
    }
    for (size_t i = 0; kind < end && i < sizeof(types) / sizeof(types[0]); i++)
        if (types[i].kind == *kind && types[i].bytes == bytes && types[i].dtype != GM_BF16) {
            *ret_dtype = types[i].dtype;
            /* Opaque elements have no byte order, whatever the file states. */
            *ret_big_endian = descr[0] == '>' && *kind != 'V' && bytes > 1;
            return GM_OK;
        }

    switch (kind < end ? *kind : '\0') {
    case 'O':
        return no_such_type(descr, len, "Python objects; convert it with .astype('f8')", err);
    case 'S':
    case 'U':
    case 'a':
        return no_such_type(descr, len, "text; convert it with .astype('f8')", err);
    case 'M':
    case 'm':
        return no_such_type(descr, len, "dates or times; save it as .view('i8')", err);
    case 'V':
        return no_such_type(
            descr, len, "opaque elements can have 1, 2, 4, 8 or 16 bytes; pad them to that", err);
    case 'f':
    case 'c':
        return no_such_type(descr, len,
                            "not supported; convert it with .astype('f8') or "
                            ".astype('c16')",
                            err);
    default:
        return no_such_type(descr, len, "not one of numpy's numbers, which are written like <f4",
                            err);
    }
}

static enum gm_status read_descr(struct parser *p, struct gm_npy_header *header)
{
    const char *descr;
    size_t len;
    skip_space(p);
    if (p->at < p->end && (*p->at == '[' || *p->at == '('))
        return gm_fail(p->err, GM_BAD_DTYPE,
                       "the array's elements are structured; save it as .view('V8') (or V1, V2, "
                       "V4, V16, as large as one element) to move them whole, or save one field");
    enum gm_status status = read_string(p, "descr, a string", &descr, &len);
    if (status != GM_OK)
        return status;
    return gm_npy_descr_read(descr, len, &header->dtype, &header->big_endian, p->err);
}

static enum gm_status read_bool(struct parser *p, bool *ret)
{
    if (take_word(p, "True"))
        *ret = true;
    else if (take_word(p, "False"))
        *ret = false;
    else
        return malformed(p, "True or False");
    return GM_OK;
}

/* Reads one key and its value. `seen` has a bit for each earlier key. */
static enum gm_status read_item(struct parser *p, struct gm_npy_header *header, unsigned *seen)
{
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    const char *key;
    size_t len;
    unsigned which = 0;
    enum gm_status status = read_string(p, "a key", &key, &len);
    if (status != GM_OK)
        return status;
    while (which < 3 && !(strlen(keys[which]) == len && memcmp(keys[which], key, len) == 0))
        which++;
    if (which == 3)
        return gm_fail(p->err, GM_BAD_NPY, "the header has an unknown key '%.*s'",
                       len > 64 ? 64 : (int)len, key);
    if (*seen & 1u << which)
        return gm_fail(p->err, GM_BAD_NPY, "the header has the key '%s' twice", keys[which]);
    *seen |= 1u << which;
    if (!take(p, ':'))
        return malformed(p, "a colon");
    return which == 0   ? read_descr(p, header)
           : which == 1 ? read_bool(p, &header->fortran_order)
                        : read_shape(p, &header->shape);
}

enum gm_status gm_npy_header_read(const char *text, size_t len, unsigned major,
                                  struct gm_npy_header *ret, struct gm_error *err)
{
    struct parser p = {.at = text, .end = text + len, .major = major, .err = err};
    struct gm_npy_header header = {0};
    unsigned seen = 0;

    if (len == 0 || text[len - 1] != '\n')
        return gm_fail(err, GM_BAD_NPY, "the header does not end in a newline (%s)",
                       GM_NPY_CURL_HINT);
    if (!take(&p, '{'))
        return malformed(&p, "{");
    bool comma = true;
    while (!take(&p, '}')) {
        if (!comma)
            return malformed(&p, "a comma");
        enum gm_status status = read_item(&p, &header, &seen);
        if (status != GM_OK)
            return status;
        comma = take(&p, ',');
    }
    if (seen != 7)
        return gm_fail(err, GM_BAD_NPY, "the header lacks the key '%s'",
                       !(seen & 1)   ? "descr"
                       : !(seen & 2) ? "fortran_order"
                                     : "shape");
    skip_space(&p);
    if (p.at < p.end)
        return malformed(&p, "nothing more");
    *ret = header;
    return GM_OK;
}

enum gm_status gm_npy_version(const unsigned char *prefix, unsigned *ret_major,
                              struct gm_error *err)
{
    unsigned major = prefix[GM_NPY_MAGIC_LEN], minor = prefix[GM_NPY_MAGIC_LEN + 1];
    if (major < 1 || major > 3 || minor != 0)
        return gm_fail(err, GM_BAD_NPY, "NPY version %u.%u is not known; 1.0, 2.0 and 3.0 are (%s)",
                       major, minor, GM_NPY_CURL_HINT);
    *ret_major = major;
    return GM_OK;
}

size_t gm_npy_header_write(const struct gm_matrix *matrix, char out[GM_HEAD_MAX])
{
    static const char kinds[GM_DTYPE_COUNT] = {
#define X(name, text, numpy, bytes, kind) [GM_##name] = kind,
        GM_DTYPE_LIST(X)
#undef X
    };
    size_t bytes = gm_dtype_size(matrix->dtype);
    char kind = kinds[matrix->dtype];
    /* numpy writes '|' if there is no byte order; bf16 is <V2, as ml_dtypes writes it. */
    char order = bytes == 1 || (kind == 'V' && matrix->dtype != GM_BF16) ? '|' : '<';
    char stack[24] = "";
    if (matrix->stacked)
        snprintf(stack, sizeof(stack), "%" PRIu64 ", ", matrix->batch);

    int dict = snprintf(out + GM_NPY_PREFIX_MIN, GM_HEAD_MAX - GM_NPY_PREFIX_MIN,
                        "{'descr': '%c%c%zu', 'fortran_order': %s, 'shape': (%s%" PRIu64
                        ", %" PRIu64 "), }",
                        order, kind, bytes, matrix->layout == GM_COL_MAJOR ? "True" : "False",
                        stack, matrix->rows, matrix->cols);
    size_t used = GM_NPY_PREFIX_MIN + (size_t)dict;
    size_t total = (used + 1 + 63) / 64 * 64;
    memset(out + used, ' ', total - used - 1);
    out[total - 1] = '\n';
    memcpy(out, GM_NPY_MAGIC "\x01", GM_NPY_MAGIC_LEN + 2); /* the literal's NUL is the minor */
    out[8] = (char)((total - GM_NPY_PREFIX_MIN) & 0xFF);
    out[9] = (char)((total - GM_NPY_PREFIX_MIN) >> 8);
    return total;
}
