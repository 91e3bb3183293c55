/*
 * gemmd_http.h - one request of any kind: files of any format, streams, reports and documents.
 * What gemmd.h has no function for. Threads, errors and ownership are as there.
 */
#ifndef GEMMD_HTTP_H
#define GEMMD_HTTP_H

#include "gemmd.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GEMMD_SIZE_UNKNOWN UINT64_MAX

enum gemmd_origin {
    GEMMD_FROM_MEMORY,  /* data */
    GEMMD_FROM_FD,      /* fd, from where it stands; a pipe will do */
    GEMMD_FROM_CALLBACK /* read */
};

/* Up to len bytes into buffer: returns how many, 0 at the end, or -1 to fail the call. */
typedef int64_t gemmd_read_fn(void *cls, void *buffer, size_t len);
/* Takes len bytes. Returns false to fail the call. */
typedef bool gemmd_write_fn(void *cls, const void *bytes, size_t len);

/* Where a body, or a part of one, comes from. A short file or callback fails the call. */
struct gemmd_source {
    const char *name; /* of the part, as "a". NULL for all: the body is one after the other */
    const char *type; /* media type (of the body: the first one's); NULL: the daemon looks at the
                         first bytes */
    enum gemmd_origin origin;
    const void *data;
    int fd;
    gemmd_read_fn *read;
    void *cls;
    uint64_t size; /* bytes; GEMMD_SIZE_UNKNOWN: what is left of a file, or until its end */
};

struct gemmd_request {
    const char *method; /* NULL: GET without sources, else POST */
    const char *path;   /* "/v1/transpose", without parameters */
    const char *accept; /* media type of the reply; NULL: unsaid */
    const struct gemmd_source *sources;
    size_t source_count;
    const struct gemmd_call *call; /* or NULL */
    gemmd_write_fn *write;         /* takes the body of a good reply; NULL: it is collected, up to
                                      GEMMD_DOCUMENT_MAX bytes */
    void *write_cls;
};

#define GEMMD_DOCUMENT_MAX (256u << 20)

struct gemmd_reply {
    int http;
    char type[128]; /* media type, without its parameters */
    char request_id[72];
    char *account; /* JSON, or NULL */
    char *body;    /* NUL-terminated; NULL where `write` took it */
    size_t body_bytes;
};

/* GEMMD_OK for 2xx. A reply with another status is GEMMD_REFUSED, and *err says what it said. */
GEMMD_API enum gemmd_status gemmd_exchange(struct gemmd_client *client,
                                           const struct gemmd_request *request,
                                           struct gemmd_reply *reply, struct gemmd_error *err);
GEMMD_API void gemmd_reply_free(struct gemmd_reply *reply);

#ifdef __cplusplus
}
#endif
#endif
