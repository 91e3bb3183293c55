/*
 * json_line.h - one line of JSON, written in place. For the one document that every reply of an
 * operation carries: to build it as a tree first would cost more than a small operation itself.
 *
 * The caller gives the room and sees to what JSON calls an object: as many closes as opens. What
 * does not fit is left out, and the line says so at its end.
 */
#ifndef GM_SERVER_REQUEST_JSON_LINE_H
#define GM_SERVER_REQUEST_JSON_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
