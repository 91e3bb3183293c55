/*
 * text.h - writes texts into memory: as a stream, as JSON documents, and pictures.
 *
 * Memory errors are reported at the end, instead of a text.
 */
#ifndef GM_SERVER_TEXT_H
#define GM_SERVER_TEXT_H

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
 * JSON documents, for reports. (Replies to small operations are written by a gm_json_line of
 * proto/json/json.h, without a tree.) Members can be added without checks: a failed allocation is
 * reported by gm_document_text.
 */

struct json_t;

/* Call once, before the first document. */
void gm_document_init(void);

/*
 * The text of the document built on this thread since the last call, with a newline for terminals.
 * Frees the document, which may be NULL. The caller frees the text. Returns NULL if any allocation
 * failed.
 */
char *gm_document_text(struct json_t *document, size_t json_flags);

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
