/*
 * raw_reply.h - writes a reply directly to the socket, bypassing the HTTP library.
 *
 * The library accepts no reply in the middle of a body, and none for requests that cannot finish
 * before the daemon ends.
 */
#ifndef GM_SERVER_HTTP_RAW_REPLY_H
#define GM_SERVER_HTTP_RAW_REPLY_H

#include "server/request/request.h"

/* Sends request->reply, unless another thread has answered. Returns whether it was sent. The caller
 * must close the connection in either case. */
bool gm_raw_reply_send(struct gm_request *request);

/* Answers a connection whose request head is incomplete. */
void gm_raw_refuse_head(int socket, const struct gm_error *error);

/* Answers every request that has no reply yet with this status, whether it is uploading or on a
 * device. Later results are dropped. */
void gm_raw_refuse_all(struct gm_server *server, enum gm_status status);

#endif
