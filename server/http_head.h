/*
 * http_head.h - a request's head, out of the HTTP library's hands. For its event threads.
 */
#ifndef GM_SERVER_HTTP_HEAD_H
#define GM_SERVER_HTTP_HEAD_H

#include "server/head.h"

struct MHD_Connection;

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

#endif
