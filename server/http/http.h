/*
 * http.h - the libmicrohttpd adapter: turns the library's callbacks into events of a request.
 *
 * The library owns the event threads. It gets its connections from listener.c.
 */
#ifndef GM_SERVER_HTTP_HTTP_H
#define GM_SERVER_HTTP_HTTP_H

#include "server/server.h"

#include <sys/types.h>

struct gm_http;

/* Listens and serves as server->config says. An error names the address. */
enum gm_status gm_http_open(struct gm_server *server, struct gm_http **ret, struct gm_error *err);
/* The i-th address that it listens on, as "http://127.0.0.1:8080", "https://..." or "unix:/path".
 */
const char *gm_http_address(const struct gm_http *http, unsigned i);

/* Closes connections of slow clients, as the listener does while it runs. For use after the
 * listener has stopped. */
void gm_http_tick(struct gm_http *http);

/* Accepts all connections in the backlog, then stops the listener's thread. */
void gm_http_stop_accepting(struct gm_http *http);
/* After gm_http_stop_accepting: accepts what has arrived since, then refuses new connections. */
void gm_http_refuse_connections(struct gm_http *http);
/* After gm_http_refuse_connections: whether no request is in progress and no unread request has
 * arrived. */
bool gm_http_idle(struct gm_http *http);
/* The first address that can be reached from beyond this machine, NULL if none can. secure_too:
 * those with TLS count. */
const char *gm_http_exposed(const struct gm_http *http, bool secure_too);
/* GM_NOT_ALLOWED if these options let anybody in from beyond this machine, and do not say so. For
 * --check; gm_http_open looks at what it listens on. */
enum gm_status gm_http_check_reach(const struct gm_config *config, struct gm_error *err);
/* Whether all connections are taken. */
bool gm_http_full(struct gm_http *http);
/* Answers every request that has no reply yet with this status, whether it is uploading or on a
 * device. Later results are dropped. Those over TLS are left to their event threads. */
void gm_http_refuse_requests(struct gm_server *server, enum gm_status status);
/* Reads the certificates again, for new connections. If that fails, the old ones stay. */
enum gm_status gm_http_reload(struct gm_http *http, struct gm_error *err);
/* When the first certificate expires, in Unix time; INT64_MAX: there is none. */
int64_t gm_http_expires(struct gm_http *http);
/* Closes all connections and ends all threads. No request may be with a device or worker any
 * more. */
void gm_http_close(struct gm_http *http);

/*
 * tls.c: certificates, and what is done with a TLS session beside the HTTP library.
 *
 * The library (libmicrohttpd with GnuTLS) reads and writes the sessions. Which certificate, key,
 * authorities and algorithms a session uses is set here, when its connection begins. So SIGHUP
 * changes them for new connections, and those that exist go on with theirs.
 *
 * A session is GnuTLS's gnutls_session_t, which only tls.c names.
 */

/* Certificate, key and client authorities, as the files were when they were read. */
struct gm_tls;

/* Reads the files of the --tls options. An error names the file. The caller has one reference. */
enum gm_status gm_tls_load(const struct gm_config *config, struct gm_tls **ret,
                           struct gm_error *err);
/* Any thread may call these. NULL is fine. */
struct gm_tls *gm_tls_ref(struct gm_tls *tls);
void gm_tls_unref(struct gm_tls *tls);
/* When the first of the certificates expires, in Unix time. */
int64_t gm_tls_expires(const struct gm_tls *tls);

/* Sets up a session that has not begun its handshake. *tls must live as long. Returns false if
 * memory ran out; the handshake then fails. */
bool gm_tls_attach(struct gm_tls *tls, void *session);
/* For MHD_OPTION_HTTPS_CERT_CALLBACK: a session that is not set up has no certificate. */
void *gm_tls_no_certificate(void);
/* Sends bytes and the end of the stream, as the last of this session, without blocking. Only the
 * connection's event thread may call it. Returns whether all were taken. */
bool gm_tls_send_last(void *session, const void *bytes, size_t len);

/* ---- A client, for gemmd's questions to itself. It does not check whom it talks to. ---- */

struct gm_tls_client {
    void *session, *credentials;
    bool refused; /* the server wants a certificate that it trusts, and there is none */
};

/* Does the handshake over a connected, non-blocking socket. wait: until the socket is ready to
 * read (POLLIN) or write (POLLOUT); false at until_ns. Returns false with errno. */
bool gm_tls_client_open(struct gm_tls_client *client, int socket,
                        bool (*wait)(int socket, short event, int64_t until_ns), int64_t until_ns);
/* As send(2) and recv(2): -1 with errno. */
ssize_t gm_tls_client_send(struct gm_tls_client *client, const void *bytes, size_t len);
ssize_t gm_tls_client_receive(struct gm_tls_client *client, void *bytes, size_t len);
void gm_tls_client_close(struct gm_tls_client *client);

#endif
