#include "server/http/internal.h"

#include "server/clock.h"
#include "server/process.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define TICK_MS 250
#define ACCEPTS_MAX 256 /* connections accepted in a row, so that tick() runs on time */
#define FULL_MS 10      /* delay before trying again; the limiter has already closed a connection */

/* A listening socket. */
struct place {
    int socket; /* -1: none */
    bool secure, loopback;
    char address[GM_CONFIG_TEXT_MAX];
    /* Of a Unix socket: its path ("" for others) and which file that was. */
    char path[sizeof((struct sockaddr_un *)NULL)->sun_path];
    dev_t device;
    ino_t inode;
};

struct gm_listener {
    struct gm_listener_options options;
    int stop; /* an eventfd */
    bool started;
    pthread_t thread;
    unsigned places;
    struct place place[GM_LISTENS_MAX];
};

/* Accepts up to `most` connections from a backlog. Returns false if the callee is not ready. */
static bool accept_from(struct gm_listener *l, const struct place *place, unsigned most)
{
    struct sockaddr_storage address;
    socklen_t length;

    for (unsigned i = 0; i < most; i++) {
        if (!l->options.ready(l->options.cls))
            return false;
        length = sizeof address;
        int fd = accept4(place->socket, (struct sockaddr *)&address, &length,
                         SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
            l->options.take(l->options.cls, place->secure, fd, (struct sockaddr *)&address, length);
        else if (errno != EINTR && errno != ECONNABORTED)
            return errno == EAGAIN; /* out of descriptors or memory: try later */
    }
    return true;
}

static bool accept_some(struct gm_listener *l, unsigned most)
{
    bool ready = true;

    for (unsigned i = 0; i < l->places; i++)
        ready = accept_from(l, &l->place[i], most) && ready;
    return ready;
}

static void *accept_main(void *cls)
{
    struct gm_listener *l = cls;
    struct pollfd p[1 + GM_LISTENS_MAX] = {{.fd = l->stop, .events = POLLIN}};
    int64_t next_tick = 0;
    bool ready = true;

    for (unsigned i = 0; i < l->places; i++)
        p[1 + i] = (struct pollfd){.fd = l->place[i].socket, .events = POLLIN};
    for (;;) {
        /* While the callee is not ready, the sockets are not polled, because their backlog would
         * wake the thread all the time. */
        poll(p, ready ? 1 + l->places : 1, ready ? TICK_MS : FULL_MS);
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

/* Whether the file is a socket that nobody listens on: its daemon was killed. */
static bool is_stale(const struct sockaddr_un *address)
{
    struct stat file;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool stale = fd >= 0 && lstat(address->sun_path, &file) == 0 && S_ISSOCK(file.st_mode) &&
                 connect(fd, (const struct sockaddr *)address, sizeof *address) != 0 &&
                 errno == ECONNREFUSED;

    if (fd >= 0)
        close(fd);
    return stale;
}

/* The file never has more permissions than asked for: Linux makes it with those of the socket, less
 * the umask. */
static bool bind_unix(int fd, const struct sockaddr_un *address, unsigned mode)
{
    if (fchmod(fd, mode) != 0)
        return false;
    if (bind(fd, (const struct sockaddr *)address, sizeof *address) != 0 &&
        (errno != EADDRINUSE || !is_stale(address) || unlink(address->sun_path) != 0 ||
         bind(fd, (const struct sockaddr *)address, sizeof *address) != 0)) {
        errno = errno == ECONNREFUSED ? EADDRINUSE : errno;
        return false;
    }
    return chmod(address->sun_path, mode) == 0;
}

static int listen_on_unix(const struct gm_listen *listen_at, struct gm_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%.*s", (int)sizeof address.sun_path - 1,
             listen_at->host);
    if (fd >= 0 && bind_unix(fd, &address, listen_at->mode) && listen(fd, SOMAXCONN) == 0)
        return fd;
    gm_fail(err, GM_INTERNAL, "cannot listen on unix:%s: %s", listen_at->host, strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

static bool set_unix_address(struct place *place, const char *path)
{
    struct stat file;

    snprintf(place->address, sizeof place->address, "unix:%s", path);
    place->loopback = true;
    if (lstat(path, &file) != 0)
        return false;
    memcpy(place->path, path, strnlen(path, sizeof place->path - 1));
    place->device = file.st_dev;
    place->inode = file.st_ino;
    return true;
}

static bool set_address(struct place *place)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    char host[NI_MAXHOST], port[NI_MAXSERV];

    if (getsockname(place->socket, (struct sockaddr *)&address, &length) != 0 ||
        getnameinfo((struct sockaddr *)&address, length, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return false;
    bool six = address.ss_family == AF_INET6;
    snprintf(place->address, sizeof place->address, six ? "%s://[%.90s]:%.8s" : "%s://%.90s:%.8s",
             place->secure ? "https" : "http", host, port);
    place->loopback = gm_client_is_loopback((struct sockaddr *)&address);
    return true;
}

static enum gm_status open_place(struct gm_listener *l, const struct gm_listen *listen_at,
                                 struct gm_error *err)
{
    struct place *place = &l->place[l->places];
    bool local = !*listen_at->port;

    place->secure = l->options.secure && !listen_at->plain;
    place->socket =
        local ? listen_on_unix(listen_at, err) : listen_on(listen_at->host, listen_at->port, err);
    if (place->socket < 0)
        return err->status;
    l->places++;
    if (local ? !set_unix_address(place, listen_at->host) : !set_address(place))
        return gm_fail(err, GM_INTERNAL, "cannot read the address of the listening socket");
    return GM_OK;
}

enum gm_status gm_listener_open(const struct gm_listener_options *options, struct gm_listener **ret,
                                struct gm_error *err)
{
    struct gm_listener *l = calloc(1, sizeof *l);
    enum gm_status status = GM_OK;

    if (!l)
        return gm_fail(err, GM_INTERNAL, "no memory for a listener");
    l->options = *options;
    l->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->stop < 0)
        status = gm_fail(err, GM_INTERNAL, "no descriptor for a listener");
    for (unsigned i = 0; status == GM_OK && i < options->listens; i++)
        status = open_place(l, &options->listen[i], err);
    if (status == GM_OK)
        *ret = l;
    else
        gm_listener_close(l);
    return status;
}

const char *gm_listener_address(const struct gm_listener *l, unsigned i)
{
    return l->place[i].address;
}

const char *gm_listener_exposed(const struct gm_listener *l, bool secure_too)
{
    for (unsigned i = 0; i < l->places; i++)
        if (!l->place[i].loopback && (secure_too || !l->place[i].secure))
            return l->place[i].address;
    return NULL;
}

bool gm_listener_is_exposed(const struct gm_listen *listen_at)
{
    struct addrinfo *found;

    if (!*listen_at->port || gm_resolve(listen_at->host, listen_at->port, AI_PASSIVE, &found) != 0)
        return false;
    bool exposed = !gm_client_is_loopback(found->ai_addr);
    freeaddrinfo(found);
    return exposed;
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
    for (unsigned i = 0; i < l->places; i++)
        shutdown(l->place[i].socket, SHUT_RDWR);
}

/* Removes the file of a Unix socket, unless another daemon has put its own there. */
static void close_place(const struct place *place)
{
    struct stat file;

    if (*place->path && lstat(place->path, &file) == 0 && file.st_dev == place->device &&
        file.st_ino == place->inode)
        unlink(place->path);
    close(place->socket);
}

void gm_listener_close(struct gm_listener *l)
{
    if (!l)
        return;
    gm_listener_stop(l);
    for (unsigned i = 0; i < l->places; i++)
        close_place(&l->place[i]);
    if (l->stop >= 0)
        close(l->stop);
    free(l);
}
