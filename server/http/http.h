/*
 * http.h - the libmicrohttpd adapter: turns the library's callbacks into events of a request.
 *
 * The library owns the event threads. It gets its connections from listener.c.
 */
#ifndef GM_SERVER_HTTP_HTTP_H
#define GM_SERVER_HTTP_HTTP_H

#include "server/server.h"

struct gm_http;

/* Listens and serves as server->config says. An error names the address. */
enum gm_status gm_http_open(struct gm_server *server, struct gm_http **ret, struct gm_error *err);
/* The address that it listens on, as "http://127.0.0.1:8080". */
const char *gm_http_address(const struct gm_http *http);

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
/* Whether the address is reachable from this machine only. */
bool gm_http_loopback(const struct gm_http *http);
/* Whether all connections are taken. */
bool gm_http_full(struct gm_http *http);
/* Answers every request that has no reply yet with this status, whether it is uploading or on a
 * device. Later results are dropped. */
void gm_raw_refuse_all(struct gm_server *server, enum gm_status status);
/* Closes all connections and ends all threads. No request may be with a device or worker any
 * more. */
void gm_http_close(struct gm_http *http);

#endif
