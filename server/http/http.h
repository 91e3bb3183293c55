/*
 * http.h - the libmicrohttpd adapter: turns its callbacks into a request's events. The event
 * threads belong to the library; connections come to it from a listener of ours.
 */
#ifndef GM_SERVER_HTTP_HTTP_H
#define GM_SERVER_HTTP_HTTP_H

#include "server/server.h"

struct gm_http;

/* Listens and serves as server->config says. The error names the address. */
enum gm_status gm_http_open(struct gm_server *server, struct gm_http **ret, struct gm_error *err);
/* "http://127.0.0.1:8080": where it really listens. */
const char *gm_http_address(const struct gm_http *http);

/* What the listener does now and then, for when it has stopped: ends whoever is too slow. */
void gm_http_tick(struct gm_http *http);

/* Takes the connections that the kernel has completed. */
void gm_http_stop_accepting(struct gm_http *http);
/* After that: takes those that have come since, then refuses new ones. */
void gm_http_refuse_connections(struct gm_http *http);
/* After that: whether no request is being served, and none has come that has yet to be read. */
bool gm_http_idle(struct gm_http *http);
/* Whether only this machine can reach it. */
bool gm_http_loopback(const struct gm_http *http);
/* Whether it has as many connections as it takes. */
bool gm_http_full(struct gm_http *http);
/* Ends all connections and threads. No request may be with a device or a worker any more. */
void gm_http_close(struct gm_http *http);

#endif
