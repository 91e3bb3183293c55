/*
 * reply.h - a reply, as handlers fill it in, and the one place that turns it into what the HTTP
 * library sends.
 */
#ifndef GM_SERVER_REPLY_H
#define GM_SERVER_REPLY_H

#include "proto/codec.h"

struct gm_request;

#define GM_REPLY_HEADERS_MAX 8

struct gm_reply {
    int http; /* status; 0 while there is no reply */
    const char *media_type;
    bool close;  /* the connection ends after it */
    bool failed; /* something of it is missing, for want of memory: it is not sent */

    /* The body is head[0..head_len) and then body[0..body_len). Both belong to the request, as
     * does `text`, which is freed with it: body usually points into it, or into a slab. */
    char head[GM_HEAD_MAX];
    size_t head_len;
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

/* The whole reply as bytes on the wire, for when the library cannot send it: free() it. */
char *gm_reply_wire(const struct gm_reply *reply, const char *request_id, size_t *ret_len);

/*
 * Queues the reply on an MHD connection (struct MHD_Connection *). The response holds a
 * reference to the request until the last byte is out. false: the connection must be closed.
 */
bool gm_reply_send(struct gm_request *request, void *connection);

#endif
