/*
 * http.c - see http.h. Rules of libmicrohttpd that shape this file:
 *
 *  - It calls the handler on the headers, for each piece of the body, once at the end, and once
 *    more after each resume. A reply can be queued only on the first and the last call.
 *  - A connection is suspended before its request is handed to another thread. The thread resumes
 *    it as its last act.
 *  - Suspended connections have no time-out and notice nothing. All must be resumed before the
 *    library is stopped.
 */
#include "server/http/http.h"

#include "server/http/connection_limiter.h"
#include "server/http/internal.h"
#include "server/limits.h"
#include "server/log.h"
#include "server/request/head.h"
#include "server/request/request.h"

#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if MHD_VERSION < 0x01000100
#error "libmicrohttpd 1.0.1 or later is needed: earlier ones mishandle lengths and disconnects"
#endif

#define LISTENER_DESCRIPTORS (1 + GM_LISTENS_MAX) /* its eventfd and its sockets */
#define LINGER_DESCRIPTORS 2                      /* its pipe */
#define LOOP_DESCRIPTORS 2 /* of each event thread: its epoll and its eventfd */

struct gm_http {
    struct gm_server *server;
    struct MHD_Daemon *daemon, *secure; /* without and with TLS; NULL where nothing listens so */
    pthread_mutex_t tls_mutex;          /* guards tls */
    struct gm_tls *tls;                 /* for new connections; NULL: no TLS */
    struct gm_listener *listener;
    struct gm_linger *linger;
    struct gm_limiter limiter;
};

static void suspend(void *connection)
{
    gm_wait_suspended(1);
    MHD_suspend_connection(connection);
}

static void resume(void *connection)
{
    MHD_resume_connection(connection);
    gm_wait_suspended(-1); /* afterwards: who is awake for this stays so until it has come */
}

static bool send_plain(void *connection, int socket, const void *bytes, size_t len)
{
    (void)connection;
    return gm_socket_send_last(socket, bytes, len);
}

static void *session_of(void *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);

    return info ? info->tls_session : NULL;
}

static bool send_secure(void *connection, int socket, const void *bytes, size_t len)
{
    void *session = session_of(connection);
    bool sent = session && gm_tls_send_last(session, bytes, len);

    if (sent)
        shutdown(socket, SHUT_WR);
    return sent;
}

static const struct gm_transport plain_transport = {suspend, resume,     gm_socket_gone,
                                                    true,    send_plain, true};
static const struct gm_transport secure_transport = {suspend, resume,      gm_socket_gone,
                                                     true,    send_secure, false};

static struct gm_request *new_request(struct gm_http *http, struct MHD_Connection *connection,
                                      const char *url, const char *method, const char *version)
{
    struct gm_request_head head;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    int socket = info ? info->connect_fd : -1;

    gm_http_head(connection, url, method, version, &head);
    return gm_request_new(http->server, &head,
                          session_of(connection) ? &secure_transport : &plain_transport, connection,
                          socket);
}

static void count_answer(struct gm_request *r, int http)
{
    atomic_fetch_add_explicit(&r->server->stats.answered[gm_route_index(r->route)][http], 1,
                              memory_order_relaxed);
}

static void count_reply(struct gm_request *r)
{
    struct gm_stats *stats = &r->server->stats;
    bool head = strcmp(r->head.method, "HEAD") == 0;

    count_answer(r, r->reply.http);
    if (!head)
        gm_stats_add(stats, GM_COUNT_RESPONSE_BODY_BYTES, r->reply.body_len);
    if (r->error.status == GM_MEMORY_FULL)
        gm_limiter_evict_for_memory(&r->server->connections, &r->server->memory, r->head.client);
}

static struct gm_connection *watched(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info ? info->socket_context : NULL;
}

static enum MHD_Result send_reply(struct gm_request *r)
{
    gm_request_finish(r);
    if (!gm_connection_enter(watched(r->connection.handle), GM_CONNECTION_REPLY) ||
        !gm_reply_send(r, r->connection.handle))
        return MHD_NO;
    gm_connection_hold(watched(r->connection.handle), r->reservation.reserved);
    count_reply(r);
    return MHD_YES;
}

/* Records that the connection will close before the client's whole body has been read. */
static void mark_early(const struct gm_request *r)
{
    struct gm_connection *c = watched(r->connection.handle);

    if (c)
        c->answered_early = true;
}

/* Writes to the socket directly, because the library would read on, or may have no room for a
 * reply's headers. */
static enum MHD_Result answer_and_close(struct gm_request *r)
{
    mark_early(r);
    gm_request_finish(r);
    if (gm_raw_reply_send(r))
        count_reply(r);
    return MHD_NO;
}

static void serve(struct gm_connection *c, struct gm_request *r)
{
    gm_receive_reset(c);
    if (c)
        c->request = r;
}

/* The handler's first call: the headers are complete. */
static enum MHD_Result on_headers(struct gm_http *http, struct MHD_Connection *connection,
                                  const char *url, const char *method, const char *version,
                                  void **req_cls)
{
    if (!gm_connection_enter(watched(connection), GM_CONNECTION_BODY))
        return MHD_NO; /* the sweep has just answered it */
    struct gm_request *r = new_request(http, connection, url, method, version);

    if (!r)
        return MHD_NO;
    *req_cls = r;
    serve(watched(connection), r);
    gm_request_begin(r);
    gm_connection_claim(watched(connection), r->head.client);
    gm_connection_hold(watched(connection), r->reservation.reserved);
    if (r->state != GM_REQUEST_DISCARD)
        return MHD_YES;
    if (r->error.status == GM_HEAD_TOO_LARGE)
        return answer_and_close(r);
    uint64_t remaining = gm_body_remaining(&r->body);
    if (remaining == 0 || (remaining <= GM_DISCARD_BYTES_MAX && !r->reply.close))
        return MHD_YES; /* the body is short: read it, and keep the connection */
    mark_early(r);
    r->reply.close = true;
    r->state = GM_REQUEST_REPLY;
    return send_reply(r);
}

/* A piece of the body. */
static enum MHD_Result on_piece(struct gm_request *r, const char *bytes, size_t len)
{
    gm_receive_piece(watched(r->connection.handle), r, bytes, len);
    gm_connection_hold(watched(r->connection.handle), r->reservation.reserved);
    if (r->state != GM_REQUEST_DISCARD)
        return MHD_YES;
    uint64_t remaining = gm_body_remaining(&r->body);
    /* While draining, even a short rest of the body is not awaited. */
    bool keep_reading = r->error.status != GM_DRAINING;
    if (keep_reading && remaining != GM_SIZE_UNKNOWN &&
        remaining + r->discarded <= GM_DISCARD_BYTES_MAX)
        return MHD_YES;
    return answer_and_close(r);
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload_data,
                                  size_t *upload_data_size, void **req_cls)
{
    struct gm_http *http = cls;
    struct gm_request *r = *req_cls;

    if (!r)
        return on_headers(http, connection, url, method, version, req_cls);
    if (*upload_data_size > 0) {
        size_t len = *upload_data_size;
        *upload_data_size = 0;
        gm_connection_moved(watched(connection), len);
        if (gm_connection_end(watched(connection)) != GM_END_NONE)
            return MHD_NO; /* on_completed answers */
        return on_piece(r, upload_data, len);
    }
    if (!gm_connection_enter(watched(connection), GM_CONNECTION_BUSY))
        return MHD_NO; /* the sweep ended it just before its last byte */
    if (r->head.chunked > 0 && (r->state == GM_REQUEST_BODY || r->state == GM_REQUEST_DISCARD))
        gm_http_head_trailers(connection, &r->head);
    if (gm_request_advance(r) != GM_READY)
        return MHD_YES;
    /* What is refused so makes room for another client's connection. */
    if (r->error.status == GM_QUEUE_FULL && gm_limiter_crowded(&http->limiter))
        r->reply.close = true;
    return r->head.bytes > GM_HEAD_BYTES_MAX ? answer_and_close(r) : send_reply(r);
}

/* Answers a request whose connection the sweep ended during the body. */
static void answer_late(struct gm_request *r, enum gm_connection_end why)
{
    double rate = gm_client_rate_min(r->reservation.reserved, r->server->memory.limit);
    char text[160];

    if (why == GM_END_WANTED)
        snprintf(text, sizeof text,
                 "its client fell behind the minimum rate of %.0f bytes per second for the memory "
                 "that it holds, and another client needs that memory",
                 rate);
    else if (why == GM_END_CROWDED)
        snprintf(text, sizeof text, "its client was the slowest while all connections were taken");
    else
        snprintf(text, sizeof text,
                 "its client is %d seconds behind the minimum rate of %.0f bytes per second",
                 GM_CLIENT_GRACE_S, rate);
    gm_request_give_up(r, text);
    if (r->state == GM_REQUEST_DISCARD)
        answer_and_close(r);
}

/* Waits for a thread that is just answering it. */
static bool was_refused(struct gm_request *r)
{
    pthread_mutex_lock(&r->list->mutex);
    bool refused = r->connection.refused.status != GM_OK;
    pthread_mutex_unlock(&r->list->mutex);
    return refused;
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
    gm_connection_hold(c, 0);
    if (end == GM_END_SLOW || end == GM_END_CROWDED || end == GM_END_WANTED)
        answer_late(r, end);
    bool whole = code == MHD_REQUEST_TERMINATED_COMPLETED_OK || r->connection.sent_raw;
    if (!whole && was_refused(r)) {
        count_answer(r, gm_status_http(r->connection.refused.status));
        gm_stats_add(&r->server->stats, GM_COUNT_RESPONSE_BODY_BYTES,
                     r->connection.refused.body_len);
        whole = true;
    }
    if (!whole)
        gm_stats_add(&r->server->stats, GM_COUNT_ABORTED, 1);
    gm_access_log(r, whole);
    gm_request_unref(r);
}

static void on_library_log(void *cls, const char *format, va_list args)
{
    gm_library_log(&((struct gm_http *)cls)->server->stats, format, args);
}

/* If epoll_ctl runs out of memory, the library closes the connection without reporting the end of
 * its request. The request's head is invalid by then. */
static void drop_lost(struct gm_connection *c)
{
    if (!c || !c->request)
        return;
    gm_stats_add(&c->request->server->stats, GM_COUNT_ABORTED, 1);
    gm_request_unref(c->request);
    c->request = NULL;
}

/* Whether the client may still be sending: the rest of a refused body, or what follows a head or
 * chunk that the library itself refused. */
static bool is_early(const struct gm_connection *c, int socket)
{
    return (c && c->answered_early) || gm_socket_unread(socket) > 0;
}

/* Watches a new connection, and sets up its session if it has one. */
static struct gm_connection *begin_connection(struct gm_http *http,
                                              struct MHD_Connection *connection, int fd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    uint64_t client = gm_client_of(info ? info->client_addr : NULL);
    void *session = session_of(connection);
    struct gm_tls *tls = NULL;

    if (session) {
        pthread_mutex_lock(&http->tls_mutex);
        tls = gm_tls_ref(http->tls);
        pthread_mutex_unlock(&http->tls_mutex);
    }
    struct gm_connection *c = gm_limiter_passed(&http->limiter, fd, client, tls);
    gm_receive_open(c);
    /* A session that is not set up has no certificate: its handshake fails. */
    if (c && tls)
        gm_tls_attach(tls, session);
    else
        gm_tls_unref(tls);
    return c;
}

/* The library has added a connection, or is about to close it. */
static void on_connection(void *cls, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct gm_http *http = cls;

    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        int fd = info ? info->connect_fd : -1;
        *context = fd >= 0 ? begin_connection(http, connection, fd) : NULL;
    } else {
        struct gm_connection *c = *context;
        struct gm_tls *tls = c ? c->tls : NULL;
        gm_receive_close(c);
        drop_lost(c);
        if (info && is_early(c, info->connect_fd)) {
            /* Of a TLS connection the library has ended the session alone. */
            if (tls)
                shutdown(info->connect_fd, SHUT_WR);
            gm_linger_take(http->linger, info->connect_fd);
        }
        gm_connections_remove(&http->server->connections, c);
        gm_tls_unref(tls);
        *context = NULL;
    }
}

/* Callbacks of the listener. */
static bool has_room(void *cls)
{
    const struct gm_http *http = cls;

    return gm_limiter_has_room(&http->limiter, gm_linger_count(http->linger));
}

static void take_connection(void *cls, bool secure, int fd, const struct sockaddr *address,
                            socklen_t length)
{
    struct gm_http *http = cls;

    gm_limiter_enter(&http->limiter);
    if (MHD_add_connection(secure ? http->secure : http->daemon, fd, address, length) == MHD_YES)
        return;
    gm_limiter_missed(&http->limiter);
    gm_log(GM_LOG_WARN, "connection", "detail=\"the HTTP library could not add a connection\"");
}

static void tick(void *cls)
{
    gm_limiter_tick(&((struct gm_http *)cls)->limiter);
    gm_log_flush(false); /* it does not wait for a thread that writes */
}

static unsigned event_threads(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN), threads = cores / 2 + 1;

    /* The streams' threads, which jobs wait for, and clients on this machine need some, too. With
     * more, as many requests are served, but a thread that has to give up its core keeps its
     * connections waiting for a time slice; with fewer, fewer are served. At least two, so that one
     * busy handler does not stall all connections. */
    return threads < 2                      ? 2
           : threads > GM_EVENT_THREADS_MAX ? GM_EVENT_THREADS_MAX
                                            : (unsigned)threads;
}

static struct MHD_Daemon *start_library(struct gm_http *http, bool secure)
{
    struct MHD_OptionItem more[2] = {{MHD_OPTION_END, 0, NULL}, {MHD_OPTION_END, 0, NULL}};

    /* The library wants a certificate. begin_connection gives each session its own. */
    if (secure)
        more[0] =
            (struct MHD_OptionItem){MHD_OPTION_HTTPS_CERT_CALLBACK, 0, gm_tls_no_certificate()};
    return MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET |
            MHD_USE_ITC | MHD_USE_ERROR_LOG | (secure ? MHD_USE_TLS : 0),
        0, NULL, NULL, on_request, http, MHD_OPTION_EXTERNAL_LOGGER, on_library_log, http,
        MHD_OPTION_THREAD_POOL_SIZE, event_threads(),
        /* Twice the maximum: the library divides its limit among its threads, and connections are
         * spread unevenly. */
        MHD_OPTION_CONNECTION_LIMIT, 2u * GM_CONNECTIONS_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)GM_CONNECTION_POOL_BYTES,
        /* The sweep's time-out comes first, and can answer. This one is for connections that the
         * sweep does not watch. */
        MHD_OPTION_CONNECTION_TIMEOUT, 2u * GM_CONNECTION_IDLE_S, MHD_OPTION_CLIENT_DISCIPLINE_LVL,
        1, MHD_OPTION_URI_LOG_CALLBACK, gm_http_head_target, NULL, MHD_OPTION_UNESCAPE_CALLBACK,
        gm_http_head_unescape, NULL, MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, http, MHD_OPTION_ARRAY, more, MHD_OPTION_END);
}

/* Whether an address listens with, or without, TLS. */
static bool listens(const struct gm_config *config, bool secure)
{
    for (unsigned i = 0; i < config->listens; i++)
        if (secure == (*config->tls_cert && !config->listen[i].plain))
            return true;
    return false;
}

/* Starts a library for each way that is listened. */
static enum gm_status start_libraries(struct gm_http *http, struct gm_error *err)
{
    const struct gm_config *config = &http->server->config;
    bool plain = listens(config, false), secure = listens(config, true);

    if (plain)
        http->daemon = start_library(http, false);
    if (secure)
        http->secure = start_library(http, true);
    return (plain && !http->daemon) || (secure && !http->secure)
               ? gm_fail(err, GM_INTERNAL, "the HTTP library did not start")
               : GM_OK;
}

static enum gm_status refuse_reach(const char *address, struct gm_error *err)
{
    return gm_fail(err, GM_NOT_ALLOWED,
                   "%s can be reached from beyond this machine, by anybody: name who may come in "
                   "with --keys FILE (gemmctl key new makes one), or say --insecure",
                   address);
}

static bool needs_keys(const struct gm_config *config)
{
    return !*config->keys && !config->insecure;
}

enum gm_status gm_http_check_reach(const struct gm_config *config, struct gm_error *err)
{
    for (unsigned i = 0; needs_keys(config) && i < config->listens; i++)
        if (gm_listener_is_exposed(&config->listen[i]))
            return refuse_reach(config->listen[i].host, err);
    return GM_OK;
}

static bool has_gpu(const struct gm_devices *devices)
{
    bool has = false;

    for (unsigned i = 0; i < devices->count; i++)
        has = has || devices->device[i].facts->kind == GM_DEVICE_CUDA;
    return has;
}

enum gm_status gm_http_open(struct gm_server *server, struct gm_http **ret, struct gm_error *err)
{
    unsigned connections_max;
    enum gm_status status = gm_descriptors_connections(
        (*server->config.shared_memory ? GM_REGIONS_MAX : 0) + LISTENER_DESCRIPTORS +
            LINGER_DESCRIPTORS + 2 * LOOP_DESCRIPTORS * event_threads(),
        &connections_max, err);

    if (status != GM_OK)
        return status;
    struct gm_http *http = calloc(1, sizeof *http);
    if (!http)
        return gm_fail(err, GM_INTERNAL, "no memory for the HTTP server");
    http->server = server;
    pthread_mutex_init(&http->tls_mutex, NULL);
    gm_wait_awake(has_gpu(&server->devices));
    if (!gm_library_is_known())
        gm_log(
            GM_LOG_WARN, "http",
            "detail=\"libmicrohttpd %s is not the version that gemmd was built with: requests that "
            "it refuses itself may go uncounted\"",
            MHD_get_version());
    status =
        gm_limiter_open(&http->limiter, connections_max, &server->connections, &server->stats, err);
    if (status != GM_OK) {
        free(http);
        return status;
    }
    /* As many connections again as are kept free: those can be closed for new ones. */
    atomic_store(&server->slots.most, connections_max - 2 * (connections_max / GM_SPARE_PART));
    server->connections.memory = server->memory.limit;
    const char *exposed = NULL;
    const struct gm_listener_options options = {.listen = server->config.listen,
                                                .listens = server->config.listens,
                                                .secure = *server->config.tls_cert,
                                                .ready = has_room,
                                                .take = take_connection,
                                                .tick = tick,
                                                .cls = http};
    if (*server->config.tls_cert)
        status = gm_tls_load(&server->config, &http->tls, err);
    if (status == GM_OK)
        status = gm_listener_open(&options, &http->listener, err);
    if (status == GM_OK)
        exposed = gm_listener_exposed(http->listener, true);
    if (exposed && needs_keys(&server->config))
        status = refuse_reach(exposed, err);
    if (status == GM_OK)
        status = gm_linger_open(connections_max / GM_SPARE_PART, &http->linger, err);
    if (status == GM_OK)
        status = start_libraries(http, err);
    if (status == GM_OK)
        status = gm_listener_start(http->listener, err);
    if (status == GM_OK)
        *ret = http;
    else
        gm_http_close(http);
    return status;
}

enum gm_status gm_http_reload(struct gm_http *http, struct gm_error *err)
{
    struct gm_tls *tls = NULL, *before;
    enum gm_status status = http->tls ? gm_tls_load(&http->server->config, &tls, err) : GM_OK;

    if (status != GM_OK || !tls)
        return status;
    pthread_mutex_lock(&http->tls_mutex);
    before = http->tls;
    http->tls = tls;
    pthread_mutex_unlock(&http->tls_mutex);
    gm_tls_unref(before);
    return GM_OK;
}

int64_t gm_http_expires(struct gm_http *http)
{
    pthread_mutex_lock(&http->tls_mutex);
    int64_t expires = http->tls ? gm_tls_expires(http->tls) : INT64_MAX;
    pthread_mutex_unlock(&http->tls_mutex);
    return expires;
}

const char *gm_http_address(const struct gm_http *http, unsigned i)
{
    return gm_listener_address(http->listener, i);
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
    /* The order matters: a connection is counted by the second test before it leaves the first. */
    bool owed = gm_limiter_underway(&http->limiter) ||
                gm_connections_unread(&http->server->connections) ||
                gm_linger_count(http->linger) > 0;

    return gm_requests_count(http->server) == 0 && !owed;
}

const char *gm_http_exposed(const struct gm_http *http, bool secure_too)
{
    return gm_listener_exposed(http->listener, secure_too);
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
    if (http->secure)
        MHD_stop_daemon(http->secure);
    gm_tls_unref(http->tls);
    pthread_mutex_destroy(&http->tls_mutex);
    gm_linger_close(http->linger);
    gm_limiter_close(&http->limiter);
    free(http);
}
