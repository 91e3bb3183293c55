#include "tests/clients/scripted.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Waits for bytes; false: the server is being stopped. */
static bool wait_for(struct scripted *s, int fd)
{
    struct pollfd both[2] = {{.fd = fd, .events = POLLIN}, {.fd = s->stop[0], .events = POLLIN}};

    return poll(both, 2, -1) > 0 && !(both[1].revents & (POLLIN | POLLHUP));
}

/* Whether the bytes are a whole request: head, and a body of the stated length, or chunks. */
static bool is_whole(char *bytes, size_t len)
{
    bytes[len] = '\0';
    const char *end = strstr(bytes, "\r\n\r\n");
    const char *length = strcasestr(bytes, "\r\nContent-Length: ");

    if (!end)
        return false;
    if (strcasestr(bytes, "\r\nTransfer-Encoding: chunked"))
        return len >= 5 && memcmp(bytes + len - 5, "0\r\n\r\n", 5) == 0;
    size_t body = length && length < end ? strtoul(length + 18, NULL, 10) : 0;
    return len >= (size_t)(end + 4 - bytes) + body;
}

/* One connection; false: the script has ended, or the server is being stopped. */
static bool converse(struct scripted *s, int fd)
{
    while (s->requests < s->count) {
        char *request = s->request[s->requests];
        size_t *len = &s->request_len[s->requests];
        *len = 0;
        do {
            if (!wait_for(s, fd))
                return false;
            ssize_t got = read(fd, request + *len, SCRIPTED_REQUEST_BYTES - 1 - *len);
            if (got <= 0)
                return true; /* the client has closed: another connection may come */
            *len += (size_t)got;
        } while (!is_whole(request, *len));
        const struct scripted_reply *reply = &s->reply[s->requests++];
        if (send(fd, reply->bytes, reply->len, MSG_NOSIGNAL) < 0)
            return true;
        if (reply->then == STALL)
            wait_for(s, -1);
        if (reply->then != KEEP)
            return reply->then == CLOSE;
    }
    /* The script has ended: the client may close first. */
    char byte;
    while (wait_for(s, fd) && read(fd, &byte, 1) > 0)
        ;
    return false;
}

static void *serve(void *cls)
{
    struct scripted *s = cls;

    while (wait_for(s, s->listener)) {
        int fd = accept(s->listener, NULL, NULL);
        if (fd < 0)
            break;
        s->connections++;
        bool more = converse(s, fd);
        close(fd);
        if (!more)
            break;
    }
    return NULL;
}

static int listen_tcp(struct scripted *s)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0)
        return -1;
    snprintf(s->url, sizeof s->url, "http://127.0.0.1:%u", ntohs(address.sin_port));
    return fd;
}

static int listen_unix(struct scripted *s, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    snprintf(s->path, sizeof s->path, "%s", path);
    snprintf(s->url, sizeof s->url, "unix:%s", path);
    return fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 ? fd : -1;
}

struct scripted *scripted_start(const char *unix_path, const struct scripted_reply *replies,
                                size_t count)
{
    struct scripted *s = calloc(1, sizeof *s);

    if (!s || count > SCRIPTED_MAX)
        abort();
    memcpy(s->reply, replies, count * sizeof *replies);
    s->count = count;
    s->listener = unix_path ? listen_unix(s, unix_path) : listen_tcp(s);
    if (s->listener < 0 || listen(s->listener, 8) != 0 || pipe(s->stop) != 0 ||
        pthread_create(&s->thread, NULL, serve, s) != 0)
        abort();
    return s;
}

void scripted_stop(struct scripted *s)
{
    close(s->stop[1]); /* which ends every wait */
    pthread_join(s->thread, NULL);
    close(s->stop[0]);
    close(s->listener);
    if (s->path[0])
        unlink(s->path);
}

void scripted_free(struct scripted *s)
{
    free(s);
}
