/*
 * text.h - writes texts into memory: as a stream, as JSON documents, as one line of JSON, and
 * pictures.
 *
 * Memory errors are reported at the end, instead of a text.
 */
#ifndef GM_SERVER_REQUEST_TEXT_H
#define GM_SERVER_REQUEST_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A text in memory, written through a FILE. */

struct gm_text_stream {
    FILE *out; /* to write to */
    char *text;
    size_t len, room;
    bool lacking; /* memory ran out for some of the text */
};

/* Returns false if memory ran out. Otherwise it must be ended, and must not move until then. */
bool gm_text_stream_begin(struct gm_text_stream *stream);

/* Returns the text, which the caller frees, with a terminating zero, and its length if ret_len is
 * not NULL. Returns NULL if memory ran out. */
char *gm_text_stream_end(struct gm_text_stream *stream, size_t *ret_len);

/*
 * JSON documents. Members can be added without checks: a failed allocation is reported by
 * gm_document_text.
 */

struct json_t;

/* Call once, before the first document. */
void gm_document_init(void);

/*
 * The text of the document built on this thread since the last call. Frees the document, which may
 * be NULL. The caller frees the text. Returns NULL if any allocation failed.
 */
char *gm_document_text(struct json_t *document, size_t json_flags);

/*
 * One line of JSON, written in place. For the account, which every reply of an operation carries:
 * building a tree first would take longer than a small operation.
 *
 * The caller provides the buffer, and must close every object and array. Text that does not fit is
 * dropped, and gm_json_line_end returns false.
 */

#define GM_DECIMAL_PLACES_MAX 18

struct gm_json_line {
    char *begin, *at, *end;
    bool full;
};

/* size: at least 1. */
struct gm_json_line gm_json_line_begin(char *text, size_t size);
/* Ends the text. Returns false if it did not fit. */
bool gm_json_line_end(struct gm_json_line *line);

/* bracket: '{' or '['. name: NULL inside arrays and for the outermost one. Names must need no
 * escapes. */
void gm_json_line_open(struct gm_json_line *line, const char *name, char bracket);
void gm_json_line_close(struct gm_json_line *line, char bracket);

void gm_json_line_string(struct gm_json_line *line, const char *name, const char *value);
void gm_json_line_integer(struct gm_json_line *line, const char *name, int64_t value);
/* The shortest text that reads back to the same value; null for NaN and infinity. */
void gm_json_line_real(struct gm_json_line *line, const char *name, double value);
/* value / 10^places, exactly; places: at most GM_DECIMAL_PLACES_MAX. Ten times as fast as
 * gm_json_line_real. */
void gm_json_line_decimal(struct gm_json_line *line, const char *name, int64_t value,
                          unsigned places);
/* So many significant digits of the value, and no more than GM_DECIMAL_PLACES_MAX behind the point;
 * digits: at most 15. Just as fast below 10^18. */
void gm_json_line_rounded(struct gm_json_line *line, const char *name, double value,
                          unsigned digits);
void gm_json_line_true(struct gm_json_line *line, const char *name);

/*
 * Pictures as SVG, for papers and slides: dark on white, no scripts, generic fonts. Texts are
 * escaped; what is not printable ASCII is replaced.
 */

#define GM_SVG_INK "#1b2430"
#define GM_SVG_MUTED "#5b6675"
#define GM_SVG_FAINT "#d5dae1"

void gm_svg_escape(FILE *out, const char *text);
/* The caller ends it with "</svg>". */
void gm_svg_begin(FILE *out, int width, int height, const char *title);
/* anchor: "start", "middle" or "end". */
void gm_svg_text(FILE *out, double x, double y, const char *anchor, const char *fill,
                 const char *words);
/* style: attributes. */
void gm_svg_line(FILE *out, double x1, double y1, double x2, double y2, const char *style);

#endif
