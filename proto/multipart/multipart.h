/*
 * multipart.h - multipart/form-data (RFC 7578, on RFC 2046) as a stream. Bytes are pushed in, in
 * any pieces, and come out as parts: begin, data, ..., end. The events do not depend on how the
 * bytes are split, except for where one piece of data ends and the next begins.
 *
 * Data are slices of the caller's buffer: never copied, never kept. Bytes at the end of a push that
 * may begin a boundary are only counted, and given out later from the boundary's own text. Only a
 * part's header is kept, and that is bounded.
 *
 * A boundary is "\r\n--BOUNDARY" followed by "--", a blank or a line's end. Followed by anything
 * else it is data.
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
/* Twice as many as there are operands and parameters: more can only be a mistake. */
#define GM_MULTIPART_PARTS_MAX 40
/* Bytes of a part's header: a type, a name, and a file's name in two spellings take 1500. */
#define GM_MULTIPART_HEADER_MAX 4096
/* Bytes before the first boundary and after the last, together: clients of HTTP write none. */
#define GM_MULTIPART_OUTSIDE_MAX 4096

/* What a part's header says. */
struct gm_multipart_part {
    const char *name; /* of Content-Disposition, its escapes resolved */
    const char *type; /* Content-Type; "" if there is none */
};

/* Who is told. Each function may refuse: its status ends the parsing. */
struct gm_multipart_events {
    /* The strings live until it returns. */
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
 * The boundary is taken from the body's Content-Type. Errors: GM_BAD_MULTIPART for whatever breaks
 * the form or one of the bounds above, GM_BODY_TRUNCATED where the last boundary is missing,
 * GM_BODY_TRAILING for too much behind it, GM_UNSUPPORTED_MEDIA_TYPE for an encoding. After a
 * failure only `close` may be called.
 */
enum gm_status gm_multipart_open(const char *content_type, const struct gm_multipart_events *events,
                                 struct gm_multipart **ret, struct gm_error *err);
enum gm_status gm_multipart_push(struct gm_multipart *multipart, const void *bytes, size_t len,
                                 struct gm_error *err);
/* There are no more bytes: was it all? */
enum gm_status gm_multipart_finish(struct gm_multipart *multipart, struct gm_error *err);
void gm_multipart_close(struct gm_multipart *multipart); /* NULL is fine */

/* multipart_header.c: reads the header lines. */

/* The boundary that a Content-Type states, terminated. */
enum gm_status gm_multipart_boundary(const char *content_type,
                                     char ret[GM_MULTIPART_BOUNDARY_MAX + 1], struct gm_error *err);

/*
 * Reads a part's header: `len` bytes of fields, each line ended by CR LF, the last of them empty.
 * It is changed, and what *ret points to lies in it.
 */
enum gm_status gm_multipart_header_read(char *header, size_t len, struct gm_multipart_part *ret,
                                        struct gm_error *err);

#ifdef __cplusplus
}
#endif
#endif
