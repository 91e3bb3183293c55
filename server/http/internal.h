/*
 * internal.h - what the files of http/ share. The HTTP library's own types are named here alone.
 */
#ifndef GM_SERVER_HTTP_INTERNAL_H
#define GM_SERVER_HTTP_INTERNAL_H

#include "proto/status.h"
#include "server/request/request.h"

#include <stdarg.h>
#include <stdbool.h>
#include <sys/socket.h>

/*
 * listener.c: the listening socket and the thread that accepts on it. The HTTP library could do
 * both, but its way of ceasing to listen races with its own event threads, and leaves no moment
 * at which the backlog is known to be empty.
 */

struct gm_listener;

struct gm_listener_options {
    const char *host, *port;
    /* A new connection, which is the callee's to close; false: not now, ask again later. */
    bool (*ready)(void *cls);
    void (*take)(void *cls, int socket, const struct sockaddr *address, socklen_t length);
    /* About four times a second. */
    void (*tick)(void *cls);
    void *cls;
};

/* Binds and listens; the error names the address. The thread starts with gm_listener_start. */
enum gm_status gm_listener_open(const struct gm_listener_options *options, struct gm_listener **ret,
                                struct gm_error *err);
/* "http://127.0.0.1:8080": where it really listens. */
const char *gm_listener_address(const struct gm_listener *listener);
/* Whether that is an address of this machine alone. */
bool gm_listener_loopback(const struct gm_listener *listener);
enum gm_status gm_listener_start(struct gm_listener *listener, struct gm_error *err);
/* Takes what is in the backlog, and ends the thread. */
void gm_listener_stop(struct gm_listener *listener);
/* After that: takes what has come since; whoever comes later is refused, not left waiting. */
void gm_listener_refuse(struct gm_listener *listener);
void gm_listener_close(struct gm_listener *listener);

/*
 * linger.c: a last second for connections that are closed while their client is still sending. A
 * socket that is closed with bytes unread, or that gets more of them, resets the connection, and a
 * reset overtakes the answer: who sends without reading never sees it. So such a socket, whose
 * sending half is closed, is kept; what comes is read and dropped until the client closes, too, or
 * LINGER_MS or LINGER_BYTES_MAX are over. (Lingering close, as RFC 9112, section 9.6, has it.)
 */

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
