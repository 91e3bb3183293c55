/*
 * text.h - texts that gemmd writes, in three ways. Where something is missing that shows at the
 * end, and then there is no text.
 */
#ifndef GM_SERVER_REQUEST_TEXT_H
#define GM_SERVER_REQUEST_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A text in memory that is written like a file. */

struct gm_text_stream {
    FILE *out; /* to write to */
    char *text;
    size_t len, room;
    bool lacking; /* something that was written found no memory */
};

/* false: no memory. Otherwise it is to be ended, and must not move until then. */
bool gm_text_stream_begin(struct gm_text_stream *stream);

/* The text with a zero behind it, for free(), and its length if that is wanted; NULL if any of it
 * is missing. */
char *gm_text_stream_end(struct gm_text_stream *stream, size_t *ret_len);

/*
 * JSON documents. Who builds one adds member by member and need not look whether each found
 * memory: that shows in the end.
 */

struct json_t;

/* Once, before the first document. */
void gm_document_init(void);

/*
 * The text of a document that was built on this thread since the last call, for free(); takes over
 * the document, which may be NULL. NULL: something of it found no memory.
 */
char *gm_document_text(struct json_t *document, size_t json_flags);

/*
 * One line of JSON, written in place. For the one document that every reply of an operation
 * carries: to build it as a tree first would cost more than a small operation itself.
 *
 * The caller gives the room and sees to what JSON calls an object: as many closes as opens. What
 * does not fit is left out, and the line says so at its end.
 */

struct gm_json_line {
    char *begin, *at, *end;
    bool full;
};

/* size: at least 1. */
struct gm_json_line gm_json_line_begin(char *text, size_t size);
/* Ends the text; false if it was longer than its room. */
bool gm_json_line_end(struct gm_json_line *line);

/* bracket: '{' or '['. name: NULL in an array, and for the outermost. Names are plain text. */
void gm_json_line_open(struct gm_json_line *line, const char *name, char bracket);
void gm_json_line_close(struct gm_json_line *line, char bracket);

void gm_json_line_string(struct gm_json_line *line, const char *name, const char *value);
void gm_json_line_integer(struct gm_json_line *line, const char *name, int64_t value);
/* The shortest text that reads back to the same value; null for NaN and infinity. */
void gm_json_line_real(struct gm_json_line *line, const char *name, double value);
void gm_json_line_true(struct gm_json_line *line, const char *name);

#endif
