/*
 * http.c - see http.h. The rules of the library that shape this file:
 *  - A handler is called on the headers, once for each piece of the body, and once at the end;
 *    after a resume, once more. A reply can be queued on the first and the last call only.
 *  - A connection is suspended before its request is given away, and resumed as the last act of
 *    whoever got it.
 *  - Suspended connections have no time-out and notice nothing; all of them must be resumed
 *    before the library is stopped.
 */
#include "server/http.h"

#include "server/access_log.h"
#include "server/door.h"
#include "server/http_head.h"
#include "server/library_log.h"
#include "server/limits.h"
#include "server/listener.h"
#include "server/log.h"
#include "server/peer.h"
#include "server/request.h"
#include "server/wire.h"

#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if MHD_VERSION < 0x01000100
#error "libmicrohttpd 1.0.1 or later is needed: earlier ones mishandle lengths and disconnects"
#endif

struct gm_http {
    struct gm_server *server;
    struct MHD_Daemon *daemon;
    struct gm_listener *listener;
    struct gm_door door;
};

static void suspend(void *connection)
{
    MHD_suspend_connection(connection);
}

static void resume(void *connection)
{
    MHD_resume_connection(connection);
}

static const struct gm_carrier carrier = {suspend, resume, gm_peer_gone, true};

static struct gm_request *new_request(struct gm_http *http, struct MHD_Connection *connection,
                                      const char *url, const char *method, const char *version)
{
    struct gm_request_head head;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    int socket = info ? info->connect_fd : -1;

    gm_http_head(connection, url, method, version, &head);
    return gm_request_new(http->server, &head, &carrier, connection, socket);
}

static void count_reply(struct gm_request *r)
{
    struct gm_stats *stats = &r->server->stats;
    bool head = strcmp(r->head.method, "HEAD") == 0;

    atomic_fetch_add_explicit(&stats->answered[gm_route_index(r->route)][r->reply.http], 1,
                              memory_order_relaxed);
    if (!head)
        gm_stats_add(stats, GM_COUNT_RESPONSE_BODY_BYTES, r->reply.head_len + r->reply.body_len);
}

static struct gm_connection *watched(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info ? info->socket_context : NULL;
}

static enum MHD_Result send_reply(struct gm_request *r)
{
    if (!gm_connection_enter(watched(r->connection), GM_CONNECTION_REPLY) ||
        !gm_reply_send(r, r->connection))
        return MHD_NO;
    count_reply(r);
    return MHD_YES;
}

/* Past the library: because it reads on, or may have no room for any reply. */
static enum MHD_Result answer_and_close(struct gm_request *r)
{
    if (gm_wire_answer(r))
        count_reply(r);
    return MHD_NO;
}

static void serve(struct gm_connection *c, struct gm_request *r)
{
    if (c)
        c->request = r;
}

/* The first call: the headers are there. */
static enum MHD_Result on_headers(struct gm_http *http, struct MHD_Connection *connection,
                                  const char *url, const char *method, const char *version,
                                  void **req_cls)
{
    if (!gm_connection_enter(watched(connection), GM_CONNECTION_BODY))
        return MHD_NO; /* it has just been told that it was too late */
    struct gm_request *r = new_request(http, connection, url, method, version);

    if (!r)
        return MHD_NO;
    *req_cls = r;
    serve(watched(connection), r);
    gm_request_begin(r);
    if (r->state != GM_REQUEST_DISCARD)
        return MHD_YES;
    if (r->error.status == GM_HEAD_TOO_LARGE)
        return answer_and_close(r);
    uint64_t remaining = gm_request_remaining(r);
    if (remaining == 0 || (remaining <= GM_DISCARD_BYTES_MAX && !r->head.expect && !r->reply.close))
        return MHD_YES; /* the body is short: read it, and keep the connection */
    r->reply.close = true;
    r->state = GM_REQUEST_REPLY;
    return send_reply(r);
}

/* A piece of the body. */
static enum MHD_Result on_piece(struct gm_request *r, const char *bytes, size_t len)
{
    gm_request_push(r, bytes, len);
    if (r->state != GM_REQUEST_DISCARD)
        return MHD_YES;
    uint64_t remaining = gm_request_remaining(r);
    /* For a daemon that ends a short rest is too much as well. */
    bool patient = r->error.status != GM_DRAINING;
    if (patient && remaining != GM_SIZE_UNKNOWN && remaining + r->discarded <= GM_DISCARD_BYTES_MAX)
        return MHD_YES;
    return answer_and_close(r);
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload_data,
                                  size_t *upload_data_size, void **req_cls)
{
    struct gm_request *r = *req_cls;

    if (!r)
        return on_headers(cls, connection, url, method, version, req_cls);
    if (*upload_data_size > 0) {
        size_t len = *upload_data_size;
        *upload_data_size = 0;
        gm_connection_moved(watched(connection), len);
        return on_piece(r, upload_data, len);
    }
    if (!gm_connection_enter(watched(connection), GM_CONNECTION_BUSY))
        return MHD_NO; /* given up in the very moment when its last byte came */
    if (r->head.chunked > 0 && (r->state == GM_REQUEST_BODY || r->state == GM_REQUEST_DISCARD))
        gm_http_head_trailers(connection, &r->head);
    if (gm_request_advance(r) != GM_READY)
        return MHD_YES;
    return r->head.bytes > GM_HEAD_BYTES_MAX ? answer_and_close(r) : send_reply(r);
}

/* The sweep has ended the connection within the body of a request: it is owed an answer. */
static void answer_late(struct gm_request *r, enum gm_connection_end why)
{
    char text[160];

    if (why == GM_END_CROWDED)
        snprintf(text, sizeof text, "its client made others wait while all connections were taken");
    else
        snprintf(text, sizeof text,
                 "its client is %d seconds behind the least rate of %d bytes a second",
                 GM_CLIENT_GRACE_S, GM_CLIENT_RATE_MIN);
    gm_request_give_up(r, text);
    if (r->state == GM_REQUEST_DISCARD && gm_wire_answer(r))
        count_reply(r);
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **req_cls,
                         enum MHD_RequestTerminationCode code)
{
    struct gm_connection *c = watched(connection);
    struct gm_request *r = *req_cls;
    enum gm_connection_end end = gm_connection_end(c);

    (void)cls;
    gm_connection_enter(c, GM_CONNECTION_HEAD);
    if (!r)
        return;
    *req_cls = NULL;
    serve(c, NULL);
    if (end == GM_END_SLOW || end == GM_END_CROWDED)
        answer_late(r, end);
    bool whole = code == MHD_REQUEST_TERMINATED_COMPLETED_OK || r->sent_past_library;
    if (!whole)
        gm_stats_add(&r->server->stats, GM_COUNT_ABORTED, 1);
    gm_access_log(r, whole);
    gm_request_unref(r);
}

static void on_library_log(void *cls, const char *format, va_list args)
{
    gm_library_log(&((struct gm_http *)cls)->server->stats, format, args);
}

/* Where epoll_ctl finds no memory the library closes the connection, but forgets to say that its
 * request is over. Of that the head is gone by now. */
static void drop_lost(struct gm_connection *c)
{
    if (!c || !c->request)
        return;
    gm_stats_add(&c->request->server->stats, GM_COUNT_ABORTED, 1);
    gm_request_unref(c->request);
    c->request = NULL;
}

/* The library has taken up a connection, or is about to close it. */
static void on_connection(void *cls, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct gm_http *http = cls;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        *context = info ? gm_door_passed(&http->door, info->connect_fd) : NULL;
    } else {
        drop_lost(*context);
        gm_connections_remove(&http->server->connections, *context);
        *context = NULL;
    }
}

/* For the listener. */
static bool has_room(void *cls)
{
    return gm_door_has_room(&((struct gm_http *)cls)->door);
}

static void take_connection(void *cls, int fd, const struct sockaddr *address, socklen_t length)
{
    struct gm_http *http = cls;

    gm_door_enter(&http->door);
    if (MHD_add_connection(http->daemon, fd, address, length) == MHD_YES)
        return;
    gm_door_missed(&http->door);
    gm_log(GM_LOG_WARN, "connection", "detail=\"the HTTP library could not take one over\"");
}

static void tick(void *cls)
{
    gm_door_tick(&((struct gm_http *)cls)->door);
}

static unsigned event_threads(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    /* At least two: a handler that is busy for a moment does not stall all connections. */
    return cores < 2 ? 2 : cores > GM_EVENT_THREADS_MAX ? GM_EVENT_THREADS_MAX : (unsigned)cores;
}

static struct MHD_Daemon *start_library(struct gm_http *http)
{
    return MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET |
            MHD_USE_ITC | MHD_USE_ERROR_LOG,
        0, NULL, NULL, on_request, http, MHD_OPTION_EXTERNAL_LOGGER, on_library_log, http,
        MHD_OPTION_THREAD_POOL_SIZE, event_threads(),
        /* Twice: the library deals its limit out to its threads, and connections come unevenly. */
        MHD_OPTION_CONNECTION_LIMIT, 2u * GM_CONNECTIONS_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)GM_CONNECTION_POOL_BYTES,
        /* Ours comes first, and can answer; this is for those who could not be watched. */
        MHD_OPTION_CONNECTION_TIMEOUT, 2u * GM_CONNECTION_IDLE_S, MHD_OPTION_CLIENT_DISCIPLINE_LVL,
        1, MHD_OPTION_URI_LOG_CALLBACK, gm_http_head_target, NULL, MHD_OPTION_UNESCAPE_CALLBACK,
        gm_http_head_unescape, NULL, MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, http, MHD_OPTION_END);
}

enum gm_status gm_http_open(struct gm_server *server, struct gm_http **ret, struct gm_error *err)
{
    struct gm_http *http = calloc(1, sizeof *http);
    enum gm_status status;

    if (!http)
        return gm_fail(err, GM_INTERNAL, "no memory for the HTTP server");
    http->server = server;
    gm_door_open(&http->door, &server->connections, &server->stats);
    const struct gm_listener_options options = {.host = server->config.host,
                                                .port = server->config.port,
                                                .ready = has_room,
                                                .take = take_connection,
                                                .tick = tick,
                                                .cls = http};
    status = gm_listener_open(&options, &http->listener, err);
    if (status != GM_OK)
        goto fail;
    http->daemon = start_library(http);
    status = http->daemon ? gm_listener_start(http->listener, err)
                          : gm_fail(err, GM_INTERNAL, "the HTTP library did not start");
    if (status != GM_OK)
        goto fail;
    *ret = http;
    return GM_OK;
fail:
    gm_http_close(http);
    return status;
}

const char *gm_http_address(const struct gm_http *http)
{
    return gm_listener_address(http->listener);
}

void gm_http_tick(struct gm_http *http)
{
    tick(http);
}

void gm_http_stop_accepting(struct gm_http *http)
{
    gm_listener_stop(http->listener);
}

void gm_http_refuse_connections(struct gm_http *http)
{
    gm_listener_refuse(http->listener);
}

bool gm_http_idle(struct gm_http *http)
{
    /* In this order: a connection is in the second place before it leaves the first. */
    bool unread =
        gm_door_underway(&http->door) || gm_connections_unread(&http->server->connections);

    pthread_mutex_lock(&http->server->mutex);
    bool idle = http->server->request_count == 0;
    pthread_mutex_unlock(&http->server->mutex);
    return idle && !unread;
}

bool gm_http_loopback(const struct gm_http *http)
{
    return gm_listener_loopback(http->listener);
}

bool gm_http_full(struct gm_http *http)
{
    return !has_room(http);
}

void gm_http_close(struct gm_http *http)
{
    if (!http)
        return;
    gm_listener_close(http->listener);
    if (http->daemon)
        MHD_stop_daemon(http->daemon);
    gm_door_close(&http->door);
    free(http);
}
