/*
 * text_stream.h - a text in memory that is written like a file, and at its end is whole or not
 * there at all.
 */
#ifndef GM_SERVER_REQUEST_TEXT_STREAM_H
#define GM_SERVER_REQUEST_TEXT_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

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

#endif
