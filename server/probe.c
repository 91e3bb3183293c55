#include "server/probe.h"

#include "server/clock.h"
#include "server/log.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

static const char question[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
                               "User-Agent: gemmd-probe\r\nConnection: close\r\n\r\n";

/* Buffer for the answer: a status line, headers and a short body. */
#define ANSWER_MAX 4096

/* Waits for POLLIN, POLLOUT or an error, which the next call on the socket reports. */
static bool wait_for(int fd, short event, int64_t until_ns)
{
    struct pollfd p = {.fd = fd, .events = event};

    for (;;) {
        int64_t left = until_ns - gm_now_ns();
        if (left <= 0) {
            errno = ETIMEDOUT;
            return false;
        }
        int ready = poll(&p, 1, left / 1000000 >= 60000 ? 60000 : (int)(left / 1000000) + 1);
        if (ready > 0)
            return true;
        if (ready < 0 && errno != EINTR)
            return false;
    }
}

/* Replaces a wildcard address, which is for listening only, by loopback. */
static void make_reachable(struct sockaddr *address)
{
    struct sockaddr_in *four = (struct sockaddr_in *)address;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)address;

    if (address->sa_family == AF_INET && four->sin_addr.s_addr == htonl(INADDR_ANY))
        four->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (address->sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&six->sin6_addr))
        six->sin6_addr = in6addr_loopback;
}

/* Returns a connected socket, or -1 with errno. */
static int connect_to(const struct addrinfo *to, int64_t until_ns)
{
    int fault = 0, fd = socket(to->ai_family, to->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t length = sizeof fault;

    if (fd < 0)
        return -1;
    if (connect(fd, to->ai_addr, to->ai_addrlen) == 0)
        return fd;
    if (errno != EINPROGRESS || !wait_for(fd, POLLOUT, until_ns))
        fault = errno;
    else
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &fault, &length);
    if (fault == 0)
        return fd;
    close(fd);
    errno = fault;
    return -1;
}

int gm_resolve(const char *host, const char *port, int flags, struct addrinfo **ret)
{
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};
    int fault = getaddrinfo(host, port, &hints, ret);

    if (fault != 0 && strcasecmp(host, "localhost") == 0)
        fault = getaddrinfo("127.0.0.1", port, &hints, ret);
    return fault;
}

/* A name may have addresses on which nobody listens: uses the first that accepts. */
static int connect_any(const char *host, const char *port, int64_t until_ns, struct gm_error *err)
{
    struct addrinfo *found;
    int fd = -1, fault = gm_resolve(host, port, 0, &found);

    if (fault != 0) {
        gm_fail(err, GM_INTERNAL, "cannot find %s: %s", host, gai_strerror(fault));
        return -1;
    }
    for (struct addrinfo *a = found; a && fd < 0; a = a->ai_next) {
        make_reachable(a->ai_addr);
        fd = connect_to(a, until_ns);
        if (fd < 0)
            gm_fail(err, GM_INTERNAL, "cannot connect to %s port %s: %s", host, port,
                    strerror(errno));
    }
    freeaddrinfo(found);
    return fd;
}

/* Sends the request. Returns the length of the answer in buf, or -1 with errno. */
static ssize_t ask(int fd, int64_t until_ns, char buf[ANSWER_MAX])
{
    size_t sent = 0, got = 0;

    while (sent < sizeof question - 1) {
        if (!wait_for(fd, POLLOUT, until_ns))
            return -1;
        ssize_t n = send(fd, question + sent, sizeof question - 1 - sent, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return -1;
        sent += n > 0 ? (size_t)n : 0;
    }
    /* Reads to the end: closing earlier would count as a client that went away. */
    while (got < ANSWER_MAX - 1) {
        if (!wait_for(fd, POLLIN, until_ns))
            return -1;
        ssize_t n = recv(fd, buf + got, ANSWER_MAX - 1 - got, 0);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return -1;
        if (n == 0)
            break;
        got += n > 0 ? (size_t)n : 0;
    }
    buf[got] = '\0';
    return (ssize_t)got;
}

enum gm_status gm_probe(const char *host, const char *port, int64_t until_ns, struct gm_error *err)
{
    char answer[ANSWER_MAX], quoted[160];
    int fd = connect_any(host, port, until_ns, err);

    if (fd < 0)
        return GM_INTERNAL;
    ssize_t length = ask(fd, until_ns, answer);
    int fault = errno;
    close(fd);
    if (length < 0)
        return gm_fail(err, GM_INTERNAL, "no answer from %s port %s: %s", host, port,
                       strerror(fault));
    answer[strcspn(answer, "\r\n")] = '\0';
    /* One that asks for a key is alive too. A lost device ends it, so that its health is known. */
    if (strncmp(answer, "HTTP/1.1 200", 12) == 0 || strncmp(answer, "HTTP/1.1 401", 12) == 0)
        return GM_OK;
    return gm_fail(err, GM_INTERNAL, "/healthz of %s port %s answers %s", host, port,
                   gm_log_quote(quoted, sizeof quoted, answer));
}
