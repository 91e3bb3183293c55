/*
 * head.h - whose a request is; and its first lines, as they came: what of them gemmd looks at. The
 * strings are the HTTP library's and live as long as the request. NULL: there was no such header.
 */
#ifndef GM_SERVER_REQUEST_HEAD_H
#define GM_SERVER_REQUEST_HEAD_H

#include "server/limits.h"
#include "server/request/accept.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/*
 * Whose a request is, for those who share things out between clients: an opaque number. The one
 * place that says what a client is.
 */

/*
 * The peer's address: of IPv4 all of it, of IPv6 the first 64 bits, which is what one subscriber
 * has. Ports do not count, so that many connections are no more than one. 0 where there is no
 * address. NULL is fine.
 */
uint64_t gm_client_of(const struct sockaddr *address);

/* The peer's address as people write it, without the port; an IPv4 one as such on any socket.
 * "unknown" where there is none. NULL is fine. */
#define GM_CLIENT_TEXT_MAX 46
void gm_client_text(const struct sockaddr *address, char out[GM_CLIENT_TEXT_MAX]);

/* ---- The head. ---- */

struct gm_request_head {
    uint64_t client; /* whose it is: gm_client_of */
    char address[GM_CLIENT_TEXT_MAX];
    uint64_t bytes; /* what it takes of the connection's pool */
    const char *method, *path;
    const char *content_type, *content_encoding, *expect;
    const char
        *infer_header; /* Inference-Header-Content-Length: of the JSON before binary tensors */
    const char *accept[GM_ACCEPT_LINES_MAX];
    const char *traceparent, *request_id;
    const char *host;
    bool http_1_0;
    const char *repeated;     /* the name of a header that came twice and may not */
    uint64_t content_length;  /* GM_SIZE_UNKNOWN: none was stated */
    unsigned content_lengths; /* headers of that name */
    bool content_length_bad;  /* one of them is no number */
    unsigned chunked; /* Transfer-Encoding headers: the library lets none but "chunked" pass */
    unsigned queries;
    struct {
        const char *name, *value;
        size_t name_len, value_len;
    } query[GM_QUERY_PARAMETERS_MAX + 1]; /* one more than may be: shows that there are too many */
};

/* Takes up a header; most are of no interest. */
void gm_head_header(struct gm_request_head *head, const char *name, const char *value,
                    size_t value_len);
/* Takes up a parameter of the query string; of too many the first that may not be is the last. */
void gm_head_query(struct gm_request_head *head, const char *name, size_t name_len,
                   const char *value, size_t value_len);
/*
 * Gives the last parameter of a target a "=" in place of its first byte (or of the "&" behind it)
 * if it has none: so it is one without a name, which no operation takes. To be called before the
 * library takes the target apart: of a parameter without "=" it knows no value, and where no header
 * follows and a head leaves little of its buffer (some 7 KB do) it takes the end of that for the
 * head's end, and crashes (libmicrohttpd 1.0.1).
 */
void gm_head_mend_target(char *target);
/* The path of a target that may be in absolute form, as clients of a proxy write it. */
const char *gm_head_path(const char *target);

#define GM_REQUEST_ID_MAX 65

/* What a request is called in its reply and in the log: the trace id of a valid traceparent, else
 * the client's own id if it is a plain one, else a new one. */
void gm_request_id(const struct gm_request_head *head, char out[GM_REQUEST_ID_MAX]);

#endif
