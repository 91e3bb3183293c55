/*
 * internal.h - declarations shared by the files of http/. Only this folder names the HTTP library's
 * types.
 */
#ifndef GM_SERVER_HTTP_INTERNAL_H
#define GM_SERVER_HTTP_INTERNAL_H

#include "proto/status.h"
#include "server/request/request.h"

#include <stdarg.h>
#include <stdbool.h>
#include <sys/socket.h>

/*
 * listener.c: the listening sockets and the thread that accepts on them. The HTTP library could do
 * both. But its way to stop listening races with its own event threads, and never leaves the
 * backlog known to be empty.
 */

struct gm_listener;

struct gm_listener_options {
    const struct gm_listen *listen;
    unsigned listens; /* at least 1 */
    bool secure;      /* those that are not plain speak TLS */
    /* ready: whether take may be called; false: try again later. take: receives a new connection,
     * and must close it. */
    bool (*ready)(void *cls);
    void (*take)(void *cls, bool secure, int socket, const struct sockaddr *address,
                 socklen_t length);
    /* Called about four times a second. */
    void (*tick)(void *cls);
    void *cls;
};

/* Binds and listens. An error names the address. gm_listener_start starts the thread. The file of a
 * Unix socket that nobody listens on any more is replaced; gm_listener_close removes ours. */
enum gm_status gm_listener_open(const struct gm_listener_options *options, struct gm_listener **ret,
                                struct gm_error *err);
/* The i-th address that it listens on, as "http://127.0.0.1:8080" or "unix:/run/gemmd.sock". */
const char *gm_listener_address(const struct gm_listener *listener, unsigned i);
/* The first address that can be reached from beyond this machine, NULL if none can. secure_too:
 * those with TLS count. */
const char *gm_listener_exposed(const struct gm_listener *listener, bool secure_too);
/* The same of a place where nobody listens yet. */
bool gm_listener_is_exposed(const struct gm_listen *listen_at);
enum gm_status gm_listener_start(struct gm_listener *listener, struct gm_error *err);
/* Accepts what is in the backlog, then ends the thread. */
void gm_listener_stop(struct gm_listener *listener);
/* After gm_listener_stop: accepts what has arrived since. Later connections are refused, not left
 * waiting. */
void gm_listener_refuse(struct gm_listener *listener);
void gm_listener_close(struct gm_listener *listener);

/*
 * linger.c: lingering close (RFC 9112, section 9.6), for connections that are closed while their
 * client still sends.
 *
 * A socket that is closed with unread bytes, or that receives more, resets the connection. The
 * reset overtakes the answer, so a client that sends without reading never sees it. linger.c
 * therefore keeps such a socket, whose sending half is closed, and drops what arrives. It closes
 * the socket when the client closes, or after LINGER_MS or LINGER_BYTES_MAX.
 */

struct gm_linger;

/* Starts the thread. max: sockets at a time, at most LINGERING_MAX. */
enum gm_status gm_linger_open(unsigned max, struct gm_linger **ret, struct gm_error *err);
/* Closes all lingering sockets. No thread may call gm_linger_take any more. NULL is fine. */
void gm_linger_close(struct gm_linger *linger);

/* Duplicates the socket, so that the connection outlives the owner's close(). The owner must also
 * close the sending half. Does nothing if the client has closed already. Any thread may call it. */
void gm_linger_take(struct gm_linger *linger, int socket);
/* Number of lingering sockets. */
unsigned gm_linger_count(const struct gm_linger *linger);

/* receive.c: how bodies are received. For a connection's event thread. NULL is fine. */

/* From when the connection is watched, until before its socket is closed. */
void gm_receive_open(struct gm_connection *connection);
void gm_receive_close(struct gm_connection *connection);
/* A request begins or ends: nothing of a body has been received. */
void gm_receive_reset(struct gm_connection *connection);
/* Hands a piece of the body, as the library has it, to the request. */
void gm_receive_piece(struct gm_connection *connection, struct gm_request *request,
                      const char *bytes, size_t len);

/* wait.c: how event threads wait. */

/* Changes when the calling thread is told of events. */
unsigned gm_wait_events(void);

/* Whether one of them may stay awake for the next event: where there is a GPU, and a core to spare.
 */
void gm_wait_awake(bool may);
/* One more connection is suspended (1), or one fewer (-1). Any thread. */
void gm_wait_suspended(int change);

struct MHD_Connection;

/* read_head.c: copies a request's head from the HTTP library. Call these on its event threads. */

/* Fills in the head, and the bytes that it takes of the connection's pool. The library owns the
 * strings. */
void gm_http_head(struct MHD_Connection *connection, const char *url, const char *method,
                  const char *version, struct gm_request_head *ret);
/* Adds the trailers' bytes of the pool. Call it once, when a chunked body is complete. */
void gm_http_head_trailers(struct MHD_Connection *connection, struct gm_request_head *head);

/* For MHD_OPTION_URI_LOG_CALLBACK: calls gm_head_mend_target. Returns NULL, as no request exists
 * yet. */
void *gm_http_head_target(void *cls, const char *target, struct MHD_Connection *connection);
/*
 * For MHD_OPTION_UNESCAPE_CALLBACK. "%00" is not decoded: it would end the string early. Nor is
 * "%2f", which does not separate path segments; a proxy that guards certain paths treats it the
 * same way.
 */
size_t gm_http_head_unescape(void *cls, struct MHD_Connection *connection, char *text);

/*
 * library_log.c: handles the HTTP library's log messages, and counts the refusals among them.
 *
 * The library itself refuses what is not valid HTTP, with its own error page or by closing the
 * connection, and reports it only in its log. The messages are those of the version that gemmd was
 * built with; tests provoke each of them.
 */

void gm_library_log(struct gm_stats *stats, const char *format, va_list args);

/* Whether the running library has the version that gemmd was built with. If not, gemmd warns, and
 * refusals may go uncounted. */
bool gm_library_is_known(void);

/* access_log.c: writes one log line for each request. */

/* whole: the reply was sent to its last byte. */
void gm_access_log(const struct gm_request *request, bool whole);

/* send.c: converts a reply to a response of the HTTP library. */

/* The whole reply, serialized, for a connection that the library does not write to. The caller
 * frees it. */
char *gm_reply_bytes(const struct gm_reply *reply, const char *request_id, size_t *ret_len);
/*
 * Queues the reply on an MHD connection. The response holds a reference to the request until the
 * last byte is sent. Returns false if the connection must be closed.
 */
bool gm_reply_send(struct gm_request *request, struct MHD_Connection *connection);

/* raw_reply.c: replies that bypass the HTTP library, which accepts none in the middle of a body,
 * and none for requests that cannot finish before the daemon ends. */

/* Sends request->reply, unless another thread has answered. Returns whether it was sent. The caller
 * must close the connection in either case. */
bool gm_raw_reply_send(struct gm_request *request);
/* Answers a connection whose request head is incomplete, and which has no TLS. */
void gm_raw_refuse_head(int socket, const struct gm_error *error);

#endif
