#include "server/process.h"

#include "server/clock.h"
#include "server/config.h"
#include "server/http/http.h"
#include "server/log.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
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

void gm_probe_place(const struct gm_config *config, struct gm_listen *ret, unsigned *ret_index)
{
    unsigned at = 0;

    for (unsigned i = config->listens; i > 0; i--)
        if (config->listen[i - 1].plain)
            at = i - 1;
    *ret = config->listen[at];
    ret->plain = ret->plain || !*config->tls_cert;
    *ret_index = at;
}

/* Returns a connected socket, or -1 with errno. */
static int connect_to(const struct sockaddr *to, socklen_t to_len, int64_t until_ns)
{
    int fault = 0, fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t length = sizeof fault;

    if (fd < 0)
        return -1;
    if (connect(fd, to, to_len) == 0)
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

/* For messages: "HOST port PORT" or "unix:PATH". */
static const char *name_of(const struct gm_listen *at, char out[320])
{
    if (*at->port)
        snprintf(out, 320, "%s port %s", at->host, at->port);
    else
        snprintf(out, 320, "unix:%s", at->host);
    return out;
}

static int connect_unix(const struct gm_listen *at, int64_t until_ns)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    snprintf(address.sun_path, sizeof address.sun_path, "%.*s", (int)sizeof address.sun_path - 1,
             at->host);
    return connect_to((const struct sockaddr *)&address, sizeof address, until_ns);
}

/* A name may have addresses on which nobody listens: uses the first that accepts. */
static int connect_any(const struct gm_listen *at, int64_t until_ns, struct gm_error *err)
{
    struct addrinfo *found = NULL;
    char name[320];
    int fd = -1, fault = *at->port ? gm_resolve(at->host, at->port, 0, &found) : 0;

    if (fault != 0) {
        gm_fail(err, GM_INTERNAL, "cannot find %s: %s", at->host, gai_strerror(fault));
        return -1;
    }
    if (!found)
        fd = connect_unix(at, until_ns);
    for (struct addrinfo *a = found; a && fd < 0; a = a->ai_next) {
        make_reachable(a->ai_addr);
        fd = connect_to(a->ai_addr, a->ai_addrlen, until_ns);
    }
    if (fd < 0)
        gm_fail(err, GM_INTERNAL, "cannot connect to %s: %s", name_of(at, name), strerror(errno));
    if (found)
        freeaddrinfo(found);
    return fd;
}

/* A connection: with TLS if tls.session is set. */
struct line {
    int fd;
    struct gm_tls_client tls;
};

static ssize_t send_some(struct line *line, const char *bytes, size_t len)
{
    return line->tls.session ? gm_tls_client_send(&line->tls, bytes, len)
                             : send(line->fd, bytes, len, MSG_NOSIGNAL);
}

static ssize_t receive_some(struct line *line, char *bytes, size_t len)
{
    return line->tls.session ? gm_tls_client_receive(&line->tls, bytes, len)
                             : recv(line->fd, bytes, len, 0);
}

/* Sends the request. Returns the length of the answer in buf, or -1 with errno. */
static ssize_t ask(struct line *line, int64_t until_ns, char buf[ANSWER_MAX])
{
    size_t sent = 0, got = 0;

    while (sent < sizeof question - 1) {
        if (!wait_for(line->fd, POLLOUT, until_ns))
            return -1;
        ssize_t n = send_some(line, question + sent, sizeof question - 1 - sent);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return -1;
        sent += n > 0 ? (size_t)n : 0;
    }
    /* Reads to the end: closing earlier would count as a client that went away. TLS may have bytes
     * that the socket has not, so reading comes before waiting. */
    while (got < ANSWER_MAX - 1) {
        ssize_t n = receive_some(line, buf + got, ANSWER_MAX - 1 - got);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return -1;
        if (n == 0)
            break;
        got += n > 0 ? (size_t)n : 0;
        if (n < 0 && !wait_for(line->fd, POLLIN, until_ns))
            return -1;
    }
    buf[got] = '\0';
    return (ssize_t)got;
}

enum gm_status gm_probe(const struct gm_listen *at, int64_t until_ns, struct gm_error *err)
{
    char answer[ANSWER_MAX], quoted[160], name[320];
    struct line line = {.fd = connect_any(at, until_ns, err)};
    ssize_t length = -1;

    if (line.fd < 0)
        return GM_INTERNAL;
    if (at->plain || gm_tls_client_open(&line.tls, line.fd, wait_for, until_ns))
        length = ask(&line, until_ns, answer);
    int fault = errno;
    bool refused = line.tls.refused;
    gm_tls_client_close(&line.tls);
    close(line.fd);
    if (refused)
        return GM_OK;
    if (length < 0)
        return gm_fail(err, GM_INTERNAL, "no answer from %s: %s", name_of(at, name),
                       strerror(fault));
    answer[strcspn(answer, "\r\n")] = '\0';
    /* One that asks for a key is alive too. A lost device ends it, so that its health is known. */
    if (strncmp(answer, "HTTP/1.1 200", 12) == 0 || strncmp(answer, "HTTP/1.1 401", 12) == 0)
        return GM_OK;
    return gm_fail(err, GM_INTERNAL, "/healthz of %s answers %s", name_of(at, name),
                   gm_log_quote(quoted, sizeof quoted, answer));
}
