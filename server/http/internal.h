/*
 * internal.h - what the files of http/ share. The HTTP library's own types are named here alone.
 */
#ifndef GM_SERVER_HTTP_INTERNAL_H
#define GM_SERVER_HTTP_INTERNAL_H

#include "server/request/request.h"

#include <stdarg.h>

struct MHD_Connection;

/* read_head.c: a request's head, out of the HTTP library's hands. For its event threads. */

/* What has come, and what it takes of the connection's pool. Strings stay the library's. */
void gm_http_head(struct MHD_Connection *connection, const char *url, const char *method,
                  const char *version, struct gm_request_head *ret);
/* Counts the trailers, which share that pool: once, when a body in chunks is complete. */
void gm_http_head_trailers(struct MHD_Connection *connection, struct gm_request_head *head);

/* For MHD_OPTION_URI_LOG_CALLBACK: see gm_head_mend_target. NULL: no request is known yet. */
void *gm_http_head_target(void *cls, const char *target, struct MHD_Connection *connection);
/*
 * For MHD_OPTION_UNESCAPE_CALLBACK. "%00" stays as it is: decoded, it would end the text before the
 * eyes of whoever reads it. So does "%2f", which is not a separator of paths: a proxy that guards
 * some of them sees it so too.
 */
size_t gm_http_head_unescape(void *cls, struct MHD_Connection *connection, char *text);

/*
 * library_log.c: what the HTTP library says in its log. It refuses by itself what is no HTTP, with
 * a page of its own or by closing the connection, and tells of it nowhere else: those are counted
 * from its words here. The words are those of the version that gemmd was built with, to which tests
 * send each kind.
 */

void gm_library_log(struct gm_stats *stats, const char *format, va_list args);

/* Whether the library that runs is of the version that gemmd was built with. Where it is not, and a
 * warning says so, what it refuses may go uncounted. */
bool gm_library_is_known(void);

/* access_log.c: the line that the log has for each request. */

/* whole: its reply was sent to the last byte. */
void gm_access_log(const struct gm_request *request, bool whole);

/* send.c: turns a reply into what the HTTP library sends. */

/* The whole reply as bytes, for when the library cannot send it: free() it. */
char *gm_reply_bytes(const struct gm_reply *reply, const char *request_id, size_t *ret_len);
/*
 * Queues the reply on an MHD connection. The response holds a reference to the request until the
 * last byte is out. false: the connection must be closed.
 */
bool gm_reply_send(struct gm_request *request, struct MHD_Connection *connection);

#endif
