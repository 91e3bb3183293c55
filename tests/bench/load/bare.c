/*
 * bare.c - what the HTTP library does by itself: a server on libmicrohttpd, with gemmd's settings,
 * that receives a body whole and replies with as many bytes as it is asked for, and does nothing
 * else. It is the measure of what a request costs before any matrix is seen.
 *
 *   bench_bare [suspend]  prints "listening on http://127.0.0.1:PORT"; ends on SIGTERM. With
 * suspend, each request is suspended when its body is there, and resumed by one other thread: what
 * a server must do whose work is done elsewhere, as on a GPU POST /bytes/N     replies with N
 * bytes: the body, from its beginning on and again
 *
 * Nothing is slower than it has to be: connections are dealt out to the event threads one after
 * the other, each keeps its buffer from request to request and leaves it to a later one, and
 * replies are sent from that buffer.
 */
#include "server/limits.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define BYTES_MAX ((uint64_t)4 << 30)
#define HUGE_PAGE ((uint64_t)2 << 20)

/* A connection's, from its beginning to its end. */
struct buffer {
    char *data;
    uint64_t capacity, received;
    struct MHD_Connection *connection;
    bool resumed;
    struct buffer *next;
};

/* Those that connections left, the last one first. */
static struct buffer *idle;
static pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER;

static struct buffer *take_buffer(void)
{
    pthread_mutex_lock(&idle_lock);
    struct buffer *buffer = idle;
    if (buffer)
        idle = buffer->next;
    pthread_mutex_unlock(&idle_lock);
    return buffer ? buffer : calloc(1, sizeof(*buffer));
}

static void leave_buffer(struct buffer *buffer)
{
    pthread_mutex_lock(&idle_lock);
    buffer->next = idle;
    idle = buffer;
    pthread_mutex_unlock(&idle_lock);
}

/* Room for so many bytes; what was there is not kept. Large ones are mapped by huge pages. */
static bool make_room(struct buffer *buffer, uint64_t bytes)
{
    if (bytes <= buffer->capacity)
        return true;
    if (bytes > BYTES_MAX)
        return false;
    free(buffer->data);
    bytes = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    buffer->capacity = 0;
    buffer->data = aligned_alloc(HUGE_PAGE, bytes);
    if (!buffer->data)
        return false;
    madvise(buffer->data, bytes, MADV_HUGEPAGE);
    buffer->capacity = bytes;
    return true;
}

/* With "suspend": those whose requests wait to be resumed, and the thread that does it. */
static bool suspends, ending;
static struct buffer *waiting;
static pthread_mutex_t waiting_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t waiting_changed = PTHREAD_COND_INITIALIZER;
static pthread_t resumer;

static void *resume_all(void *cls)
{
    pthread_mutex_lock(&waiting_lock);
    while (!ending || waiting) {
        struct buffer *list = waiting;
        waiting = NULL;
        if (!list) {
            pthread_cond_wait(&waiting_changed, &waiting_lock);
            continue;
        }
        pthread_mutex_unlock(&waiting_lock);
        while (list) {
            struct buffer *buffer = list;
            list = buffer->next; /* the buffer may be in use again once its request is resumed */
            MHD_resume_connection(buffer->connection);
        }
        pthread_mutex_lock(&waiting_lock);
    }
    pthread_mutex_unlock(&waiting_lock);
    return cls;
}

static void suspend(struct MHD_Connection *connection, struct buffer *buffer)
{
    buffer->resumed = true;
    buffer->connection = connection;
    MHD_suspend_connection(connection);
    pthread_mutex_lock(&waiting_lock);
    buffer->next = waiting;
    waiting = buffer;
    pthread_cond_signal(&waiting_changed);
    pthread_mutex_unlock(&waiting_lock);
}

static struct buffer *buffer_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info ? info->socket_context : NULL;
}

static bool number(const char *text, uint64_t *ret)
{
    char *end;

    if (!text || *text < '0' || *text > '9')
        return false;
    *ret = strtoull(text, &end, 10);
    return *end == '\0' && *ret <= BYTES_MAX;
}

static enum MHD_Result reply(struct MHD_Connection *connection, struct buffer *buffer,
                             const char *url)
{
    uint64_t bytes;

    if (strncmp(url, "/bytes/", 7) != 0 || !number(url + 7, &bytes) || buffer->received == 0 ||
        bytes > buffer->capacity)
        return MHD_NO;
    for (uint64_t at = buffer->received; at < bytes; at += buffer->received) {
        uint64_t left = bytes - at;
        memcpy(buffer->data + at, buffer->data, left < buffer->received ? left : buffer->received);
    }
    struct MHD_Response *response = MHD_create_response_from_buffer_static(bytes, buffer->data);
    if (!response)
        return MHD_NO;
    enum MHD_Result result = MHD_queue_response(connection, 200, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload_data,
                                  size_t *upload_data_size, void **req_cls)
{
    struct buffer *buffer = *req_cls;
    uint64_t length, bytes;

    (void)cls, (void)version;
    if (!buffer) {
        const char *text = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
                                                       MHD_HTTP_HEADER_CONTENT_LENGTH);
        *req_cls = buffer = buffer_of(connection);
        if (!buffer || strcmp(method, "POST") != 0 || !number(text, &length) ||
            !number(strrchr(url, '/') + 1, &bytes) ||
            !make_room(buffer, length > bytes ? length : bytes))
            return MHD_NO;
        buffer->received = 0;
        buffer->resumed = false;
        return MHD_YES;
    }
    if (*upload_data_size == 0 && suspends && !buffer->resumed) {
        suspend(connection, buffer);
        return MHD_YES;
    }
    if (*upload_data_size == 0)
        return reply(connection, buffer, url);
    if (buffer->received + *upload_data_size > buffer->capacity)
        return MHD_NO;
    memcpy(buffer->data + buffer->received, upload_data, *upload_data_size);
    buffer->received += *upload_data_size;
    *upload_data_size = 0;
    return MHD_YES;
}

static void on_connection(void *cls, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    (void)cls, (void)connection;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *context = take_buffer();
    } else if (*context) {
        leave_buffer(*context);
        *context = NULL;
    }
}

/* One for each core: no streams need any here. */
static unsigned event_threads(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    return cores < 2 ? 2 : cores > GM_EVENT_THREADS_MAX ? GM_EVENT_THREADS_MAX : (unsigned)cores;
}

static struct MHD_Daemon *start(void)
{
    return MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME |
                                MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ITC | MHD_USE_ERROR_LOG,
                            0, NULL, NULL, on_request, NULL, MHD_OPTION_THREAD_POOL_SIZE,
                            event_threads(), MHD_OPTION_CONNECTION_LIMIT, 2u * GM_CONNECTIONS_MAX,
                            MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)GM_CONNECTION_POOL_BYTES,
                            MHD_OPTION_CONNECTION_TIMEOUT, 2u * GM_CONNECTION_IDLE_S,
                            MHD_OPTION_CLIENT_DISCIPLINE_LVL, 1, MHD_OPTION_NOTIFY_CONNECTION,
                            on_connection, NULL, MHD_OPTION_END);
}

static void on_signal(int number_of_signal)
{
    (void)number_of_signal; /* accept is interrupted */
}

int main(int argc, char **argv)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct sigaction action = {.sa_handler = on_signal};
    socklen_t length = sizeof(address);
    int fd, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    sigaction(SIGTERM, &action, NULL);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) != 0 ||
        listen(listener, SOMAXCONN) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0) {
        perror("bench_bare");
        return 1;
    }
    suspends = argc > 1 && strcmp(argv[1], "suspend") == 0;
    struct MHD_Daemon *daemon = start();
    if (!daemon || (suspends && pthread_create(&resumer, NULL, resume_all, NULL) != 0)) {
        fprintf(stderr, "bench_bare: the HTTP library did not start\n");
        return 1;
    }
    printf("listening on http://127.0.0.1:%u\n", ntohs(address.sin_port));
    fflush(stdout);
    while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        length = sizeof(address);
        getpeername(fd, (struct sockaddr *)&address, &length);
        MHD_add_connection(daemon, fd, (struct sockaddr *)&address, length);
    }
    if (suspends) {
        pthread_mutex_lock(&waiting_lock);
        ending = true;
        pthread_cond_signal(&waiting_changed);
        pthread_mutex_unlock(&waiting_lock);
        pthread_join(resumer, NULL);
    }
    MHD_stop_daemon(daemon);
    close(listener);
    while (idle) {
        struct buffer *buffer = idle;
        idle = buffer->next;
        free(buffer->data);
        free(buffer);
    }
    return 0;
}
