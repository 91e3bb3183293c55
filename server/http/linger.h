/*
 * linger.h - a last second for connections that are closed while their client is still sending. A
 * socket that is closed with bytes unread, or that gets more of them, resets the connection, and a
 * reset overtakes the answer: who sends without reading never sees it. So such a socket, whose
 * sending half is closed, is kept; what comes is read and dropped until the client closes, too, or
 * LINGER_MS or LINGER_BYTES_MAX are over. (Lingering close, as RFC 9112, section 9.6, has it.)
 */
#ifndef GM_SERVER_HTTP_LINGER_H
#define GM_SERVER_HTTP_LINGER_H

#include "proto/status.h"

struct gm_linger;

/* Starts a thread that reads. max: that linger at once, LINGERING_MAX at most. */
enum gm_status gm_linger_open(unsigned max, struct gm_linger **ret, struct gm_error *err);
/* Closes what lingers. Nobody may call gm_linger_take any more. NULL is fine. */
void gm_linger_close(struct gm_linger *linger);

/* Keeps the connection when its owner closes this socket, who is to close the sending half too. It
 * may be called from any thread, and does nothing where the client has closed already. */
void gm_linger_take(struct gm_linger *linger, int socket);
/* How many linger. */
unsigned gm_linger_count(const struct gm_linger *linger);

#endif
