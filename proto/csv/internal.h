/*
 * internal.h - declarations shared by the files of csv/: lines, fields and numbers of a CSV text in
 * memory, and writing. codec_csv.c itself reads numbers in JSON's grammar; all other spellings are
 * read here.
 */
#ifndef GM_PROTO_CSV_INTERNAL_H
#define GM_PROTO_CSV_INTERNAL_H

#include "proto/codec.h"
#include "proto/number/number.h"

/* codec_csv_text.c, codec_csv_field.c: reading. */

struct gm_csv {
    const char *start, *end; /* the text, without a byte order mark */
    const char *data;        /* beginning of the first line of numbers; `end` if there is none */
    const char *stop;        /* last byte that no number contains; ends all before it */
    char separator;          /* ',', ';' or tab */
    char blank;              /* beside the space: a tab, unless it separates */
    enum gm_header header;   /* as the request states it */
    bool has_header;
    enum gm_dtype dtype;
    gm_number_reader *read;
    struct gm_error *err;
};

static inline bool gm_csv_ends_line(char c)
{
    return c == '\n' || c == '\r';
}

/* Skips the line end at p: LF, CR, CR LF, or CR CR LF (CR LF written as text on Windows). Stays at
 * the text's end. */
static inline const char *gm_csv_next_line(const char *p, const char *end)
{
    if (p < end && *p++ == '\r') {
        const char *q = p + (p < end && *p == '\r');
        p = q < end && *q == '\n' ? q + 1 : p;
    }
    return p;
}

/* Skips spaces and tabs. */
static inline const char *gm_csv_skip_white(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    return p;
}

/* Skips what may stand around a number. */
static inline const char *gm_csv_skip_blanks(const struct gm_csv *csv, const char *p)
{
    while (p < csv->end && (*p == ' ' || *p == csv->blank))
        p++;
    return p;
}

/* Returns the end of the field at p: its separator, or the end of the line or text. */
const char *gm_csv_field_end(const struct gm_csv *csv, const char *p);

/*
 * Sets start, data, stop, separator and has_header; the caller has set the rest. *ret_cols is the
 * number of columns of the first line of numbers, or of the header if there is none. Error:
 * GM_BAD_CSV.
 */
enum gm_status gm_csv_begin(struct gm_csv *csv, uint64_t *ret_cols);

/*
 * Reads the field at p, with quotes, a plus sign, leading zeros, a bare point, nan or inf. Returns
 * the field's end; NULL if it is no element of the type.
 */
const char *gm_csv_read_field(const struct gm_csv *csv, const char *p, void *ret_element);

/* Whether the field at p is a number, of whatever type and size. */
bool gm_csv_is_number(const struct gm_csv *csv, const char *p);

/* Whether it is a word that programs write for a missing number. */
bool gm_csv_is_missing(const char *text, size_t len);

/* Fails with the reason and the position: GM_BAD_CSV, GM_OUT_OF_RANGE or GM_BAD_DTYPE. `field`
 * counts from 0. */
enum gm_status gm_csv_bad_field(const struct gm_csv *csv, const char *p, uint64_t field);

/* Number of the line of p, counted from 1. */
uint64_t gm_csv_line_number(const struct gm_csv *csv, const char *p);

/*
 * codec_csv_write.c: writes a matrix as CSV: commas, a line feed after each row, an empty line
 * between the matrices of a stack; without elements nothing. The functions are those of codec.h.
 */
enum gm_status gm_csv_encode_bound(const struct gm_matrix *matrix, uint64_t *ret_bytes,
                                   struct gm_error *err);
enum gm_status gm_csv_encode(const struct gm_matrix *matrix,
                             const struct gm_encode_options *options, char *out, uint64_t capacity,
                             uint64_t *ret_len, struct gm_error *err);

#endif
