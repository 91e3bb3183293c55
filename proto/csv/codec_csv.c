/*
 * codec_csv.c - reads matrices from CSV: one line per row, fields separated by commas, semicolons
 * or tabs; an empty line between the matrices of a stack. A text holds one operand.
 *
 * The text is read in two passes. The first counts the lines and the fields of the first line; that
 * is the shape. The second reads each field straight to its element, and checks that all lines have
 * equally many. The operand's size is bounded by the text's: an element and its separator take at
 * least two bytes.
 */
#include "proto/codec.h"
#include "proto/csv/internal.h"

#include <inttypes.h>
#include <string.h>

/* Counts the lines of each matrix. */
struct lines {
    uint64_t matrices, rows;
};

/* Walks the lines, without reading the same bytes twice. */
struct cursor {
    const char *at, *end;
    const char *line_end; /* the next LF at or after `at`, or the end; NULL: not looked for */
};

/* To the end of the line. */
static void to_line_end(struct cursor *c)
{
    if (!c->line_end || c->line_end < c->at) {
        c->line_end = memchr(c->at, '\n', (size_t)(c->end - c->at));
        c->line_end = c->line_end ? c->line_end : c->end;
    }
    const char *cr = memchr(c->at, '\r', (size_t)(c->line_end - c->at));
    c->at = cr ? cr : c->line_end;
}

static enum gm_status uneven(const struct gm_csv *csv, const char *at, const struct lines *lines,
                             uint64_t rows)
{
    return gm_fail(csv->err, GM_BAD_SHAPE,
                   "the matrix that ends at line %" PRIu64 " has %" PRIu64 " rows where %" PRIu64
                   " are expected, as in the first (an empty line begins the next matrix of a "
                   "stack)",
                   gm_csv_line_number(csv, at), rows, lines->rows);
}

/* The first pass: counts lines. */
static enum gm_status count_lines(const struct gm_csv *csv, struct lines *ret)
{
    struct cursor c = {.at = csv->data, .end = csv->end};
    struct lines lines = {0};
    const char *last = csv->data; /* in the last line that was not blank */
    uint64_t rows = 0;

    for (;; c.at = gm_csv_next_line(c.at, c.end)) {
        c.at = gm_csv_skip_white(c.at, c.end);
        if (c.at < c.end && !gm_csv_ends_line(*c.at)) {
            rows++;
            last = c.at;
            to_line_end(&c);
            continue;
        }
        if (rows > 0) {
            lines.rows = lines.matrices > 0 ? lines.rows : rows;
            if (rows != lines.rows)
                return uneven(csv, last, &lines, rows);
            lines.matrices++;
        }
        rows = 0;
        if (c.at == c.end)
            break;
    }
    *ret = lines;
    return GM_OK;
}

static enum gm_status ragged(const struct gm_csv *csv, const char *line, uint64_t cols)
{
    uint64_t have = 1;

    for (const char *p = gm_csv_field_end(csv, line); p < csv->end && *p == csv->separator;
         p = gm_csv_field_end(csv, p + 1))
        have++;
    return gm_fail(csv->err, GM_BAD_SHAPE,
                   "line %" PRIu64 " has %" PRIu64 " fields where %" PRIu64
                   " are expected, as in line %" PRIu64,
                   gm_csv_line_number(csv, line), have, cols, gm_csv_line_number(csv, csv->data));
}

/*
 * Reads the line at *p into out, whose elements are `step` bytes apart, and moves *p to the line's
 * end. Numbers in JSON's grammar, quoted or not, are read in place.
 */
static enum gm_status read_line(const struct gm_csv *csv, const char **p, uint64_t cols, char *out,
                                size_t step)
{
    const char *at = *p, *end = csv->end;

    for (uint64_t field = 0;; at++) {
        const char *begin = at;
        at = gm_csv_skip_blanks(csv, at);
        bool quoted = at < end && *at == '"';
        at = at + quoted < csv->stop ? csv->read(at + quoted, out) : NULL;
        if (at && quoted)
            at = *at == '"' ? at + 1 : NULL;
        at = at ? gm_csv_skip_blanks(csv, at) : NULL;
        if (!at || (at < end && *at != csv->separator && !gm_csv_ends_line(*at)))
            at = gm_csv_read_field(csv, begin, out);
        if (!at)
            return gm_csv_bad_field(csv, begin, field);
        field++;
        out += step;
        bool more = at < end && *at == csv->separator;
        if (more != (field < cols))
            return ragged(csv, *p, cols);
        if (!more)
            break;
    }
    *p = at;
    return GM_OK;
}

/* The second pass. With out NULL it only finds the error. */
static enum gm_status read_lines(const struct gm_csv *csv, uint64_t cols, char *out)
{
    char nowhere[16];
    size_t step = out ? gm_dtype_size(csv->dtype) : 0;

    out = out ? out : nowhere;
    for (const char *p = csv->data; p < csv->end; p = gm_csv_next_line(p, csv->end)) {
        const char *first = gm_csv_skip_white(p, csv->end);
        if (first == csv->end || gm_csv_ends_line(*first)) {
            p = first;
            continue;
        }
        enum gm_status status = read_line(csv, &p, cols, out, step);
        if (status != GM_OK)
            return status;
        out += cols * step;
    }
    return GM_OK;
}

static enum gm_status decode(const char *text, size_t len, const struct gm_decode_plan *plan,
                             struct gm_error *err)
{
    enum gm_dtype dtype = plan->dtype ? plan->dtype : GM_F32;
    struct gm_csv csv = {.start = text,
                         .end = text + len,
                         .header = plan->header,
                         .dtype = dtype,
                         .read = gm_number_reader_of(dtype),
                         .err = err};
    struct lines lines = {0};
    struct gm_matrix matrix;
    uint64_t cols = 0;
    void *data;

    if (!csv.read)
        return gm_fail(err, GM_BAD_DTYPE,
                       "elements of dtype %s cannot be written as CSV; send them as NPY",
                       gm_dtype_name(dtype));
    enum gm_status status = gm_csv_begin(&csv, &cols);
    if (status == GM_OK)
        status = count_lines(&csv, &lines);
    if (status != GM_OK)
        return status;

    struct gm_shape shape = {lines.matrices > 1 ? 3 : 2, {lines.rows, cols}};
    if (lines.matrices > 1)
        shape = (struct gm_shape){3, {lines.matrices, lines.rows, cols}};
    uint64_t elements;
    if (!gm_size_mul(lines.matrices, lines.rows, &elements) ||
        !gm_size_mul(elements, cols, &elements) || elements > len / 2 + 1) {
        status = read_lines(&csv, cols, NULL);
        return status != GM_OK ? status : gm_fail(err, GM_INTERNAL, "the lines were miscounted");
    }
    status = gm_matrix_init(&matrix, dtype, GM_ROW_MAJOR, &shape, err);
    if (status == GM_OK)
        status = plan->sink.operand(plan->sink.cls, plan->operand_first, &matrix, &data, err);
    return status == GM_OK ? read_lines(&csv, cols, data) : status;
}

const struct gm_codec gm_codec_csv = {
    .name = "csv",
    .media_type = "text/csv",
    .decode = decode,
    .encode_bound = gm_csv_encode_bound,
    .encode = gm_csv_encode,
};
