#include "server/http/internal.h"

#include "server/clock.h"
#include "server/probe.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define TICK_MS 250
#define ACCEPTS_MAX 256 /* connections accepted in a row, so that tick() runs on time */
#define FULL_MS 10      /* delay before trying again; the limiter has already closed a connection */

struct gm_listener {
    struct gm_listener_options options;
    int socket, stop; /* stop: an eventfd */
    bool started;
    pthread_t thread;
    char address[128];
    bool loopback;
};

/* Accepts up to `most` connections from the backlog. Returns false if the callee is not ready. */
static bool accept_some(struct gm_listener *l, unsigned most)
{
    struct sockaddr_storage address;
    socklen_t length;

    for (unsigned i = 0; i < most; i++) {
        if (!l->options.ready(l->options.cls))
            return false;
        length = sizeof address;
        int fd =
            accept4(l->socket, (struct sockaddr *)&address, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
            l->options.take(l->options.cls, fd, (struct sockaddr *)&address, length);
        else if (errno != EINTR && errno != ECONNABORTED)
            return errno == EAGAIN; /* out of descriptors or memory: try later */
    }
    return true;
}

static void *accept_main(void *cls)
{
    struct gm_listener *l = cls;
    struct pollfd p[2] = {{.fd = l->stop, .events = POLLIN}, {.fd = l->socket, .events = POLLIN}};
    int64_t next_tick = 0;
    bool ready = true;

    for (;;) {
        /* While the callee is not ready, the socket is not polled, because its backlog would wake
         * the thread all the time. */
        poll(p, ready ? 2 : 1, ready ? TICK_MS : FULL_MS);
        if (p[0].revents)
            break;
        ready = accept_some(l, ACCEPTS_MAX);
        if (gm_now_ns() >= next_tick) {
            l->options.tick(l->options.cls);
            next_tick = gm_now_ns() + (int64_t)TICK_MS * 1000000;
        }
    }
    accept_some(l, SOMAXCONN);
    return NULL;
}

static int listen_on(const char *host, const char *port, struct gm_error *err)
{
    struct addrinfo *found;
    int fault = gm_resolve(host, port, AI_PASSIVE, &found), one = 1;

    if (fault != 0) {
        gm_fail(err, GM_INTERNAL, "cannot listen on %s: %s", host, gai_strerror(fault));
        return -1;
    }
    int fd = -1;
    /* A name may have several addresses, of which this machine has only some. */
    for (struct addrinfo *a = found; a && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd >= 0)
            setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (fd >= 0 && bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0)
            break;
        gm_fail(err, GM_INTERNAL, "cannot listen on %s port %s: %s", host, port, strerror(errno));
        if (fd >= 0)
            close(fd);
        fd = -1;
    }
    freeaddrinfo(found);
    return fd;
}

static bool set_address(struct gm_listener *l)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    char host[NI_MAXHOST], port[NI_MAXSERV];

    if (getsockname(l->socket, (struct sockaddr *)&address, &length) != 0 ||
        getnameinfo((struct sockaddr *)&address, length, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return false;
    bool six = address.ss_family == AF_INET6;
    snprintf(l->address, sizeof l->address, six ? "http://[%.90s]:%.8s" : "http://%.90s:%.8s", host,
             port);
    l->loopback = strcmp(host, "::1") == 0 || (!six && strncmp(host, "127.", 4) == 0);
    return true;
}

enum gm_status gm_listener_open(const struct gm_listener_options *options, struct gm_listener **ret,
                                struct gm_error *err)
{
    struct gm_listener *l = calloc(1, sizeof *l);

    if (!l)
        return gm_fail(err, GM_INTERNAL, "no memory for a listener");
    l->options = *options;
    l->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    l->socket = listen_on(options->host, options->port, err);
    if (l->socket < 0 || l->stop < 0) {
        enum gm_status status =
            l->socket < 0 ? err->status : gm_fail(err, GM_INTERNAL, "no descriptor for a listener");
        gm_listener_close(l);
        return status;
    }
    if (!set_address(l)) {
        gm_listener_close(l);
        return gm_fail(err, GM_INTERNAL, "cannot read the address of the listening socket");
    }
    *ret = l;
    return GM_OK;
}

const char *gm_listener_address(const struct gm_listener *l)
{
    return l->address;
}

bool gm_listener_loopback(const struct gm_listener *l)
{
    return l->loopback;
}

enum gm_status gm_listener_start(struct gm_listener *l, struct gm_error *err)
{
    if (pthread_create(&l->thread, NULL, accept_main, l) != 0)
        return gm_fail(err, GM_INTERNAL, "cannot start the listener's thread");
    l->started = true;
    return GM_OK;
}

void gm_listener_stop(struct gm_listener *l)
{
    uint64_t one = 1;

    if (!l->started)
        return;
    ssize_t written = write(l->stop, &one, sizeof one);
    (void)written; /* cannot fail: adds one to an eventfd */
    pthread_join(l->thread, NULL);
    l->started = false;
}

void gm_listener_refuse(struct gm_listener *l)
{
    accept_some(l, SOMAXCONN);
    shutdown(l->socket, SHUT_RDWR);
}

void gm_listener_close(struct gm_listener *l)
{
    if (!l)
        return;
    gm_listener_stop(l);
    if (l->socket >= 0)
        close(l->socket);
    if (l->stop >= 0)
        close(l->stop);
    free(l);
}
