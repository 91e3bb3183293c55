/*
 * reply.h - a reply, which handlers fill in independently of how it is sent.
 */
#ifndef GM_SERVER_REQUEST_REPLY_H
#define GM_SERVER_REQUEST_REPLY_H

#include "proto/status.h"

#include <stdbool.h>
#include <stdint.h>

#define GM_REPLY_HEADERS_MAX 20

/* What another thread answered for a request. */
struct gm_refusal {
    enum gm_status status; /* GM_OK: nothing */
    uint64_t body_len;
};

struct gm_reply {
    int http; /* HTTP status; 0: no reply yet */
    const char *media_type;
    bool close;  /* close the connection after the reply */
    bool failed; /* memory ran out for a part of it: it is not sent */

    /* The body belongs to the request, as does `text`, which is freed with it: body points into it,
     * or into a buffer. */
    const void *body;
    uint64_t body_len;
    char *text;

    unsigned headers;
    struct {
        const char *name; /* a literal */
        char *value;      /* freed with the request */
    } header[GM_REPLY_HEADERS_MAX];
};

/* Adds a header; copies the value. If memory runs out, or there are too many headers, sets
 * `failed`. */
void gm_reply_header(struct gm_reply *reply, const char *name, const char *value);

/* Sets `text` as the body, and takes ownership of it. NULL (no memory) sets `failed`. */
void gm_reply_text(struct gm_reply *reply, int http, const char *media_type, char *text);

/* ---- Pages, and files of pages, that are part of the program. ---- */

/* Bytes of the build: from NAME to NAME_end. */
#define GM_EMBED(name, path)                                                                       \
    extern const char name[], name##_end[];                                                        \
    __asm__(".pushsection .rodata\n"                                                               \
            ".globl " #name ", " #name "_end\n"                                                    \
            ".hidden " #name ", " #name "_end\n" #name ":\n"                                       \
            ".incbin \"" path "\"\n" #name "_end:\n"                                               \
            ".popsection\n")

/* What a page may load: scripts, styles and data of this daemon only: none inline, none from
 * elsewhere. */
#define GM_PAGE_POLICY                                                                             \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "        \
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/* Frees what the reply owns. */
void gm_reply_clear(struct gm_reply *reply);

/* Replaces the reply by a problem document, application/problem+json (RFC 9457). retry_after_s 0:
 * no Retry-After. */
void gm_reply_problem(struct gm_reply *reply, const struct gm_error *error, const char *request_id,
                      unsigned retry_after_s);

/* The same, in the format of errors at this path (NULL: no path is known): {"error":"..."} under
 * /v2, else a problem document. */
void gm_reply_error(struct gm_reply *reply, const struct gm_error *error, const char *path,
                    const char *request_id, unsigned retry_after_s);

#endif
