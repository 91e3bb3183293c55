/*
 * multipart.h - parses multipart/form-data (RFC 7578, on RFC 2046) as a stream. Bytes are pushed in
 * any pieces, and come out as parts: begin, data, ..., end. How the input is split affects only how
 * data is split.
 *
 * Data are slices of the caller's buffer, never copied or kept. Bytes at the end of a push that may
 * begin a boundary are only counted; if they are data, they come later from the boundary's own
 * text. Only a part's header is kept, and its length is bounded.
 *
 * A boundary is "\r\n--BOUNDARY" followed by "--", a blank or a line's end. Anything else is data.
 */
#ifndef GM_PROTO_MULTIPART_MULTIPART_H
#define GM_PROTO_MULTIPART_MULTIPART_H

#include "proto/status.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GM_MULTIPART_TYPE "multipart/form-data"

/* RFC 2046, section 5.1.1. */
#define GM_MULTIPART_BOUNDARY_MAX 70
/* Twice the number of operands and parameters: more can only be a mistake. */
#define GM_MULTIPART_PARTS_MAX 40
/* Bytes of a part's header: a type, a name, and a file's name in two spellings take 1500. */
#define GM_MULTIPART_HEADER_MAX 4096
/* Bytes before the first boundary and after the last, together. HTTP clients write none. */
#define GM_MULTIPART_OUTSIDE_MAX 4096

/* A part's header. */
struct gm_multipart_part {
    const char *name; /* name in Content-Disposition, escapes resolved */
    const char *type; /* Content-Type; "" if there is none */
};

/* Receives the parts. Each function may fail; its status ends the parsing. */
struct gm_multipart_events {
    /* The strings are valid until it returns. */
    enum gm_status (*begin)(void *cls, const struct gm_multipart_part *part, struct gm_error *err);
    /* More of the part's data: len > 0. */
    enum gm_status (*data)(void *cls, const void *bytes, size_t len, struct gm_error *err);
    enum gm_status (*end)(void *cls, struct gm_error *err);
    void *cls;
};

/* Whether a Content-Type (NULL: there is none) is multipart/form-data, whatever its parameters. */
bool gm_multipart_is(const char *content_type);

struct gm_multipart;

/*
 * Content-Type states the boundary. Errors: GM_BAD_MULTIPART for a violation of the syntax or of a
 * bound above, GM_BODY_TRUNCATED if the last boundary is missing, GM_BODY_TRAILING for too much
 * behind it, GM_UNSUPPORTED_MEDIA_TYPE for an encoding. After a failure only `close` may be called.
 */
enum gm_status gm_multipart_open(const char *content_type, const struct gm_multipart_events *events,
                                 struct gm_multipart **ret, struct gm_error *err);
enum gm_status gm_multipart_push(struct gm_multipart *multipart, const void *bytes, size_t len,
                                 struct gm_error *err);
/* Ends the input. Error: GM_BODY_TRUNCATED if the last boundary is missing. */
enum gm_status gm_multipart_finish(struct gm_multipart *multipart, struct gm_error *err);
void gm_multipart_close(struct gm_multipart *multipart); /* NULL is fine */

/* multipart_header.c: reads the header lines. */

/* Reads the boundary from a Content-Type, NUL-terminated. */
enum gm_status gm_multipart_boundary(const char *content_type,
                                     char ret[GM_MULTIPART_BOUNDARY_MAX + 1], struct gm_error *err);

/*
 * Reads a part's header of `len` bytes: lines that end in CR LF, the last of them empty. The text
 * is changed, and *ret points into it.
 */
enum gm_status gm_multipart_header_read(char *header, size_t len, struct gm_multipart_part *ret,
                                        struct gm_error *err);

#ifdef __cplusplus
}
#endif
#endif
