/*
 * reply.h - a reply, as handlers fill it in, whatever sends it.
 */
#ifndef GM_SERVER_REQUEST_REPLY_H
#define GM_SERVER_REQUEST_REPLY_H

#include "proto/codec.h"

#define GM_REPLY_HEADERS_MAX 8

struct gm_reply {
    int http; /* status; 0 while there is no reply */
    const char *media_type;
    bool close;  /* the connection ends after it */
    bool failed; /* something of it is missing, for want of memory: it is not sent */

    /* The body is head[0..head_len) and then body[0..body_len). Both belong to the request, as
     * does `text`, which is freed with it: body usually points into it, or into a buffer. */
    const char *head;
    size_t head_len;
    char head_room[GM_HEAD_MAX]; /* for head, where that is short */
    const void *body;
    uint64_t body_len;
    char *text;

    unsigned headers;
    struct {
        const char *name; /* a literal */
        char *value;      /* freed with the request */
    } header[GM_REPLY_HEADERS_MAX];
};

/* Copies the value. Without memory, or beyond the maximum, the reply has failed. */
void gm_reply_header(struct gm_reply *reply, const char *name, const char *value);

/* A whole text as the body; takes over `text`. NULL (no memory): the reply has failed. */
void gm_reply_text(struct gm_reply *reply, int http, const char *media_type, char *text);

/* Frees what the reply owns. */
void gm_reply_clear(struct gm_reply *reply);

/* Replaces whatever the reply held by application/problem+json (RFC 9457). retry_after_s 0: no
 * Retry-After. */
void gm_reply_problem(struct gm_reply *reply, const struct gm_error *error, const char *request_id,
                      unsigned retry_after_s);

/* The same, in the form that errors have at this path (NULL: none is known): {"error":"..."} under
 * /v2, else a problem document. */
void gm_reply_error(struct gm_reply *reply, const struct gm_error *error, const char *path,
                    const char *request_id, unsigned retry_after_s);

#endif
