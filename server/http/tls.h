/*
 * tls.h - certificates, and what is done with a TLS session beside the HTTP library.
 *
 * The library (libmicrohttpd with GnuTLS) reads and writes the sessions. Which certificate, key,
 * authorities and algorithms a session uses is set here, when its connection begins. So SIGHUP
 * changes them for new connections, and those that exist go on with theirs.
 *
 * A session is GnuTLS's gnutls_session_t, which only tls.c names.
 */
#ifndef GM_SERVER_HTTP_TLS_H
#define GM_SERVER_HTTP_TLS_H

#include "proto/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct gm_config;

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
