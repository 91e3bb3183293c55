/* request_id.h - what a request is called in its reply and in the log. */
#ifndef GM_SERVER_REQUEST_ID_H
#define GM_SERVER_REQUEST_ID_H

#include "server/head.h"

#define GM_REQUEST_ID_MAX 65

/* The trace id of a valid traceparent, else the client's own id if it is a plain one, else a new
 * one. */
void gm_request_id(const struct gm_request_head *head, char out[GM_REQUEST_ID_MAX]);

#endif
