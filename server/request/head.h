/*
 * head.h - a request's head: the parts that gemmd uses, and the client that sent it.
 *
 * The strings belong to the HTTP library, or are among `made`; they live as long as the request.
 * NULL: no such header.
 */
#ifndef GM_SERVER_REQUEST_HEAD_H
#define GM_SERVER_REQUEST_HEAD_H

#include "proto/status.h"
#include "server/limits.h"
#include "server/request/accept.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/*
 * A client id: an opaque number that fair sharing tells clients apart by. Only this file defines
 * what a client is.
 */

/*
 * The client id of a peer's address: all of an IPv4 address, the first 64 bits of an IPv6 address,
 * which one subscriber has. Ports do not count, so many connections are one client. GM_CLIENT_UNIX
 * if there is no address. NULL is fine.
 */
uint64_t gm_client_of(const struct sockaddr *address);

/* The peer's address as text, without the port. An IPv4 address is written as such on any socket.
 * "unknown" if there is none. NULL is fine. */
#define GM_CLIENT_TEXT_MAX 46
void gm_client_text(const struct sockaddr *address, char out[GM_CLIENT_TEXT_MAX]);

/* Whether it is an IP address of this machine alone. NULL is fine. */
bool gm_client_is_loopback(const struct sockaddr *address);

/* ---- The head. ---- */

#define GM_HEAD_MADE_MAX 5

struct gm_request_head {
    uint64_t client; /* client id: gm_client_of, or of its key: quota.h */
    bool loopback;   /* gm_client_is_loopback */
    char address[GM_CLIENT_TEXT_MAX];
    uint64_t bytes; /* bytes that it takes of the connection's pool */
    const char *method, *path;
    const char *content_type, *content_encoding, *content_range, *expect;
    const char
        *infer_header; /* Inference-Header-Content-Length: of the JSON before binary tensors */
    const char *accept, *accept_encoding;
    const char *traceparent, *request_id;
    const char *host;
    const char *authorization;
    const char *origin, *fetch_site, *fetch_mode; /* of browsers; fetch_...: Sec-Fetch-... */
    const char *preflight_method;                 /* Access-Control-Request-Method */
    const char *if_match, *if_none_match;
    char *made[GM_HEAD_MADE_MAX]; /* lists of several lines, joined; the target's host */
    bool no_memory;               /* for one of these */
    bool http_1_0;
    const char *repeated;     /* name of a header that came twice but may not */
    uint64_t content_length;  /* GM_SIZE_UNKNOWN: not stated */
    unsigned content_lengths; /* number of Content-Length headers */
    bool content_length_bad;  /* one of them is not a number */
    unsigned chunked; /* number of Transfer-Encoding headers: the library accepts only "chunked" */
    unsigned queries;
    struct {
        const char *name, *value;
        size_t name_len, value_len;
    } query[GM_QUERY_PARAMETERS_MAX + 1]; /* one more than the maximum, to detect too many */
};

/* Stores a header, if gemmd uses it. Several lines of a list are one list (RFC 9110, section 5.3).
 */
void gm_head_header(struct gm_request_head *head, const char *name, const char *value,
                    size_t value_len);
/* Stores a parameter of the query string, up to one more than the maximum. */
void gm_head_query(struct gm_request_head *head, const char *name, size_t name_len,
                   const char *value, size_t value_len);
/* GM_BAD_PARAMETER if there are more. */
enum gm_status gm_head_check_queries(const struct gm_request_head *head, struct gm_error *err);
/*
 * Works around a crash of libmicrohttpd 1.0.1, in place, before the library parses the target.
 *
 * If the last parameter has no "=", replaces its first byte (or the "&" behind it) by "=". The
 * parameter then has no name, and no operation takes it. Otherwise the library has no value for it.
 * If no header follows and the head leaves little of the buffer (some 7 KB do), the library takes
 * the end of the buffer for the end of the head, and crashes.
 */
void gm_head_mend_target(char *target);
/* Stores the path of a target without its query. If it is in absolute form, as clients of a proxy
 * send it, its host replaces that of the header (RFC 9112, section 3.2.2): call it after those. */
void gm_head_target(struct gm_request_head *head, const char *target);
/* Frees what the head has made. */
void gm_head_clear(struct gm_request_head *head);

#define GM_REQUEST_ID_MAX 65

/* The request's id in its reply and in the log: the trace id of a valid traceparent, else the
 * client's own id if it has only plain characters, else a new one. */
void gm_request_id(const struct gm_request_head *head, char out[GM_REQUEST_ID_MAX]);

#endif
