/*
 * raw_reply.h - replies past the HTTP library, straight onto the socket: for when it would take
 * none, in the middle of a body, and for requests that cannot be finished before the daemon ends.
 */
#ifndef GM_SERVER_HTTP_RAW_REPLY_H
#define GM_SERVER_HTTP_RAW_REPLY_H

#include "server/request/request.h"

/* Sends request->reply, unless somebody else has answered. Whether it was sent; the connection must
 * be closed either way. */
bool gm_wire_answer(struct gm_request *request);

/* Answers what has not become a request yet, since its head is not whole. */
void gm_wire_refuse_head(int socket, const struct gm_error *error);

/* Answers every request that has no reply yet with this status, whether it is uploading or with a
 * device; what is made of it later is dropped. */
void gm_wire_refuse_all(struct gm_server *server, enum gm_status status);

#endif
