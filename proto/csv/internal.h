/*
 * internal.h - what the files of csv/ share: CSV text that is whole in memory, with its lines, its
 * fields, and each field's number; and writing. codec_csv.c itself reads numbers that are written
 * as in JSON; everything else that people and programs write goes through here.
 */
#ifndef GM_PROTO_CSV_INTERNAL_H
#define GM_PROTO_CSV_INTERNAL_H

#include "proto/codec.h"
#include "proto/number/number.h"

/* codec_csv_text.c, codec_csv_field.c: reading. */

struct gm_csv {
    const char *start, *end; /* of the text, behind a byte order mark */
    const char *data;        /* where the first line of numbers begins; end: there is none */
    const char *stop; /* the last byte that no number holds: those that begin before end there */
    char separator;   /* ',', ';' or tab */
    char blank;       /* beside the space: a tab, where that does not separate */
    enum gm_header header; /* what was said of it */
    bool has_header;
    enum gm_dtype dtype;
    gm_number_reader *read;
    struct gm_error *err;
};

static inline bool gm_csv_ends_line(char c)
{
    return c == '\n' || c == '\r';
}

/* Behind the line end at p, which is LF, CR, CR LF, or CR CR LF (what Windows makes of CR LF where
 * it takes that for text). The end stays the end. */
static inline const char *gm_csv_next_line(const char *p, const char *end)
{
    if (p < end && *p++ == '\r') {
        const char *q = p + (p < end && *p == '\r');
        p = q < end && *q == '\n' ? q + 1 : p;
    }
    return p;
}

/* Over spaces and tabs. */
static inline const char *gm_csv_skip_white(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    return p;
}

/* Over what may stand around a number. */
static inline const char *gm_csv_skip_blanks(const struct gm_csv *csv, const char *p)
{
    while (p < csv->end && (*p == ' ' || *p == csv->blank))
        p++;
    return p;
}

/* The end of the field that begins at p: its separator, or the end of the line or of the text. */
const char *gm_csv_field_end(const struct gm_csv *csv, const char *p);

/*
 * Settles start, data, stop, separator and has_header; the rest is given. *ret_cols:
 * of the first line of numbers, or of the header where there is no such line. GM_BAD_CSV.
 */
enum gm_status gm_csv_begin(struct gm_csv *csv, uint64_t *ret_cols);

/*
 * Reads the field at p, with quotes, a plus sign, leading zeros, a bare point, nan or inf.
 * Returns the field's end; NULL where it is no element of the type.
 */
const char *gm_csv_read_field(const struct gm_csv *csv, const char *p, void *ret_element);

/* Whether the field at p is a number of any type, fitting or not. */
bool gm_csv_is_number(const struct gm_csv *csv, const char *p);

/* Whether it is a word that programs write where a number is missing. */
bool gm_csv_is_missing(const char *text, size_t len);

/* Why: GM_BAD_CSV, GM_OUT_OF_RANGE or GM_BAD_DTYPE, with the place. field counts from 0. */
enum gm_status gm_csv_bad_field(const struct gm_csv *csv, const char *p, uint64_t field);

/* The line of the text that p is in, counted from 1, as editors do. */
uint64_t gm_csv_line_number(const struct gm_csv *csv, const char *p);

/*
 * codec_csv_write.c: a matrix as CSV: commas, a line feed behind each row, an empty line between
 * the matrices of a stack. Nothing at all where there are no elements. As in codec.h.
 */
enum gm_status gm_csv_encode_bound(const struct gm_matrix *matrix, uint64_t *ret_bytes,
                                   struct gm_error *err);
enum gm_status gm_csv_encode(const struct gm_matrix *matrix,
                             const struct gm_encode_options *options, char *out, uint64_t capacity,
                             uint64_t *ret_len, struct gm_error *err);

#endif
