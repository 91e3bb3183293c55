/*
 * text.h - writes texts into memory: as a stream, as JSON documents, and as one line of JSON.
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
void gm_json_line_true(struct gm_json_line *line, const char *name);

#endif
