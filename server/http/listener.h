/*
 * listener.h - the listening socket and the thread that accepts on it. The HTTP library could do
 * both, but its way of ceasing to listen races with its own event threads, and leaves no moment
 * at which the backlog is known to be empty.
 */
#ifndef GM_SERVER_HTTP_LISTENER_H
#define GM_SERVER_HTTP_LISTENER_H

#include "proto/status.h"

#include <stdbool.h>
#include <sys/socket.h>

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

#endif
