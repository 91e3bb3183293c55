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

#include "server/connections.h"
#include "server/limits.h"
#include "server/listener.h"
#include "server/log.h"
#include "server/request.h"
#include "server/wire.h"

#include <microhttpd.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#if MHD_VERSION < 0x01000100
#error "libmicrohttpd 1.0.1 or later is needed: earlier ones mishandle lengths and disconnects"
#endif

struct gm_http {
    struct gm_server *server;
    struct MHD_Daemon *daemon;
    struct gm_listener *listener;
    struct gm_connections connections;
};

static void suspend(void *connection)
{
    MHD_suspend_connection(connection);
}

static void resume(void *connection)
{
    MHD_resume_connection(connection);
}

static bool gone(int fd, bool sending_too)
{
    struct pollfd p = {.fd = fd, .events = POLLRDHUP};

    if (poll(&p, 1, 0) <= 0)
        return false;
    return (p.revents & (POLLHUP | POLLERR)) || (!sending_too && (p.revents & POLLRDHUP));
}

static const struct gm_carrier carrier = {suspend, resume, gone};

static bool parse_length(const char *text, size_t len, uint64_t *ret)
{
    uint64_t n = 0;

    if (len == 0 || len > 19)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        n = n * 10 + (uint64_t)(text[i] - '0');
    }
    *ret = n;
    return true;
}

static enum MHD_Result take_header(void *cls, enum MHD_ValueKind kind, const char *name,
                                   size_t name_len, const char *value, size_t value_len)
{
    struct gm_request_head *head = cls;
    const struct {
        const char *name, **field;
    } wanted[] = {{"Content-Type", &head->content_type},
                  {"Content-Encoding", &head->content_encoding},
                  {"Expect", &head->expect},
                  {"traceparent", &head->traceparent},
                  {"X-Request-Id", &head->request_id}};

    (void)kind;
    (void)name_len;
    if (!value)
        value = "";
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        if (strcasecmp(name, wanted[i].name) != 0)
            continue;
        if (*wanted[i].field)
            head->repeated = wanted[i].name;
        *wanted[i].field = value;
    }
    if (strcasecmp(name, "Content-Length") == 0) {
        head->content_lengths++;
        head->content_length_bad |= !parse_length(value, value_len, &head->content_length);
    }
    if (strcasecmp(name, "Transfer-Encoding") == 0)
        head->chunked++;
    for (unsigned i = 0; i < GM_ACCEPT_LINES_MAX && strcasecmp(name, "Accept") == 0; i++) {
        if (!head->accept[i]) {
            head->accept[i] = value;
            break;
        }
    }
    return MHD_YES;
}

static enum MHD_Result take_query(void *cls, enum MHD_ValueKind kind, const char *name,
                                  size_t name_len, const char *value, size_t value_len)
{
    struct gm_request_head *head = cls;

    (void)kind;
    if (head->queries > GM_QUERY_PARAMETERS_MAX)
        return MHD_NO;
    head->query[head->queries].name = name;
    head->query[head->queries].name_len = name_len;
    head->query[head->queries].value = value ? value : "";
    head->query[head->queries++].value_len = value ? value_len : 0;
    return MHD_YES;
}

/* The path of a target that may be in absolute form, as clients of a proxy write it. */
static const char *path_of(const char *url)
{
    if (strncasecmp(url, "http://", 7) != 0)
        return url;
    const char *slash = strchr(url + 7, '/');
    return slash ? slash : "/";
}

static struct gm_request *new_request(struct gm_http *http, struct MHD_Connection *connection,
                                      const char *url, const char *method)
{
    struct gm_request_head head = {
        .method = method, .path = path_of(url), .content_length = GM_SIZE_UNKNOWN};
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    MHD_get_connection_values_n(connection, MHD_HEADER_KIND, take_header, &head);
    MHD_get_connection_values_n(connection, MHD_GET_ARGUMENT_KIND, take_query, &head);
    return gm_request_new(http->server, &head, &carrier, connection, info ? info->connect_fd : -1);
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

/* Tells the registry whether more of a request is expected on this connection. */
static void touch(struct MHD_Connection *connection, bool reading)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    if (info)
        gm_connections_touch(info->socket_context, reading);
}

static enum MHD_Result send_reply(struct gm_request *r)
{
    touch(r->connection, false);
    if (!gm_reply_send(r, r->connection))
        return MHD_NO;
    count_reply(r);
    return MHD_YES;
}

/* The first call: the headers are there. */
static enum MHD_Result on_headers(struct gm_http *http, struct MHD_Connection *connection,
                                  const char *url, const char *method, void **req_cls)
{
    struct gm_request *r = new_request(http, connection, url, method);

    if (!r)
        return MHD_NO;
    *req_cls = r;
    gm_request_begin(r);
    if (r->state != GM_REQUEST_DISCARD)
        return MHD_YES;
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
    /* For a client that is too slow, or a daemon that ends, a short rest is too much as well. */
    bool patient = !gm_request_too_slow(r) && r->error.status != GM_DRAINING;
    if (patient && remaining != GM_SIZE_UNKNOWN && remaining + r->discarded <= GM_DISCARD_BYTES_MAX)
        return MHD_YES;
    if (gm_wire_answer(r))
        count_reply(r);
    return MHD_NO;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload_data,
                                  size_t *upload_data_size, void **req_cls)
{
    struct gm_request *r = *req_cls;

    (void)version;
    if (!r)
        return on_headers(cls, connection, url, method, req_cls);
    touch(connection, *upload_data_size > 0);
    if (*upload_data_size > 0) {
        size_t len = *upload_data_size;
        *upload_data_size = 0;
        return on_piece(r, upload_data, len);
    }
    return gm_request_advance(r) == GM_READY ? send_reply(r) : MHD_YES;
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **req_cls,
                         enum MHD_RequestTerminationCode code)
{
    struct gm_request *r = *req_cls;
    char path[160], kernel[96] = "";

    (void)cls;
    touch(connection, true);
    if (!r)
        return;
    *req_cls = NULL;
    bool whole = code == MHD_REQUEST_TERMINATED_COMPLETED_OK || r->sent_past_library;
    if (!whole)
        gm_stats_add(&r->server->stats, GM_COUNT_ABORTED, 1);
    if (r->reply.http == 200 && r->variant && r->account.us[GM_STAGE_KERNEL] >= 0)
        snprintf(kernel, sizeof kernel, " kernel=%s device=%s kernel_us=%.1f", r->variant->name,
                 r->device->name, r->account.us[GM_STAGE_KERNEL]);
    gm_log(r->reply.http == 500 ? GM_LOG_ERROR : GM_LOG_INFO, "request",
           "id=%s method=%s path=%s status=%d code=%s bytes_in=%llu bytes_out=%llu%s outcome=%s",
           r->id, gm_route_index(r->route) < gm_route_count() ? r->head.method : "other",
           gm_log_quote(path, sizeof path, r->head.path), r->reply.http,
           r->reply.http == 0 ? "none" : gm_status_code(r->error.status),
           (unsigned long long)r->received,
           (unsigned long long)(r->reply.head_len + r->reply.body_len), kernel,
           whole ? "sent" : "aborted");
    gm_request_unref(r);
}

/* The library tells of every disconnect: of interest only to who is looking for one. */
static void on_library_log(void *cls, const char *format, va_list args)
{
    char text[512], quoted[600];

    (void)cls;
    vsnprintf(text, sizeof text, format, args);
    gm_log(GM_LOG_DEBUG, "http", "detail=%s", gm_log_quote(quoted, sizeof quoted, text));
}

/* The library has taken up a connection, or is about to close it. */
static void on_connection(void *cls, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct gm_http *http = cls;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        *context = info ? gm_connections_add(&http->connections, info->connect_fd) : NULL;
    } else {
        gm_connections_remove(&http->connections, *context);
        *context = NULL;
    }
}

/* For the listener. */
static bool has_room(void *cls)
{
    return gm_connections_count(&((struct gm_http *)cls)->connections) < GM_CONNECTIONS_MAX;
}

static void take_connection(void *cls, int fd, const struct sockaddr *address, socklen_t length)
{
    struct gm_http *http = cls;

    if (MHD_add_connection(http->daemon, fd, address, length) != MHD_YES)
        gm_log(GM_LOG_WARN, "connection", "detail=\"the HTTP library could not take one over\"");
}

static void sweep(void *cls)
{
    gm_connections_sweep(&((struct gm_http *)cls)->connections);
}

/* "%00" stays as it is: decoded, it would end the text before the eyes of whoever reads it. */
static size_t unescape(void *cls, struct MHD_Connection *connection, char *text)
{
    (void)cls;
    (void)connection;
    return strstr(text, "%00") ? strlen(text) : MHD_http_unescape(text);
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
        0, NULL, NULL, on_request, http, MHD_OPTION_EXTERNAL_LOGGER, on_library_log, NULL,
        MHD_OPTION_THREAD_POOL_SIZE, event_threads(),
        /* Twice: the library deals its limit out to its threads, and connections come unevenly. */
        MHD_OPTION_CONNECTION_LIMIT, 2u * GM_CONNECTIONS_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)GM_CONNECTION_POOL_BYTES, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)GM_CONNECTION_IDLE_S, MHD_OPTION_CLIENT_DISCIPLINE_LVL, 1,
        MHD_OPTION_UNESCAPE_CALLBACK, unescape, NULL, MHD_OPTION_NOTIFY_COMPLETED, on_completed,
        NULL, MHD_OPTION_NOTIFY_CONNECTION, on_connection, http, MHD_OPTION_END);
}

enum gm_status gm_http_open(struct gm_server *server, struct gm_http **ret, struct gm_error *err)
{
    struct gm_http *http = calloc(1, sizeof *http);
    enum gm_status status;

    if (!http)
        return gm_fail(err, GM_INTERNAL, "no memory for the HTTP server");
    http->server = server;
    gm_connections_init(&http->connections);
    const struct gm_listener_options options = {.host = server->config.host,
                                                .port = server->config.port,
                                                .ready = has_room,
                                                .take = take_connection,
                                                .tick = sweep,
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
    bool unread = gm_connections_unread(&http->connections);

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
    gm_connections_destroy(&http->connections);
    free(http);
}
