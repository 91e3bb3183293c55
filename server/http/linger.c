#include "server/http/internal.h"

#include "server/clock.h"
#include "server/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define SOCKET_READ_BYTES 262144 /* maximum read from one socket before the next one is read */

struct gm_linger {
    int pipe[2]; /* passes descriptors to the thread; its end of file ends the thread */
    pthread_t thread;
    bool started;
    unsigned max;
    atomic_uint count; /* including those still in the pipe */

    /* For the thread only. set[0] is the pipe. */
    unsigned kept;
    int next; /* descriptor being read from the pipe; next_bytes have arrived */
    size_t next_bytes;
    struct pollfd set[1 + GM_LINGERING_MAX];
    struct {
        int64_t until_ns;
        uint64_t left; /* bytes that it may still send */
    } due[1 + GM_LINGERING_MAX];
    char scratch[SOCKET_READ_BYTES];
};

static void end(struct gm_linger *l, unsigned i)
{
    close(l->set[i].fd);
    l->set[i] = l->set[l->kept];
    l->due[i] = l->due[l->kept];
    l->kept--;
    atomic_fetch_sub(&l->count, 1);
}

/* Reads and drops what has arrived. Returns false if the socket must be closed. */
static bool drop_input(struct gm_linger *l, unsigned i, int64_t now_ns)
{
    ssize_t n = -1;

    errno = EAGAIN;
    if (l->set[i].revents)
        n = recv(l->set[i].fd, l->scratch, sizeof l->scratch, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        return false;
    if (n > 0)
        l->due[i].left -= (uint64_t)n < l->due[i].left ? (uint64_t)n : l->due[i].left;
    return l->due[i].left > 0 && now_ns < l->due[i].until_ns;
}

/* Index of the socket that expires first. */
static unsigned oldest(const struct gm_linger *l)
{
    unsigned first = 1;

    for (unsigned i = 2; i <= l->kept; i++)
        if (l->due[i].until_ns < l->due[first].until_ns)
            first = i;
    return first;
}

static void keep(struct gm_linger *l, int socket)
{
    if (l->kept == l->max)
        end(l, oldest(l));
    l->kept++;
    l->set[l->kept] = (struct pollfd){.fd = socket, .events = POLLIN};
    l->due[l->kept].until_ns = gm_now_ns() + (int64_t)GM_LINGER_MS * 1000000;
    l->due[l->kept].left = GM_LINGER_BYTES_MAX;
}

/* Takes new sockets from the pipe. Returns false at its end. */
static bool receive_sockets(struct gm_linger *l)
{
    ssize_t n;

    /* A read may end within a descriptor's bytes; the next read gets the rest. */
    while ((n = read(l->pipe[0], (char *)&l->next + l->next_bytes,
                     sizeof l->next - l->next_bytes)) > 0) {
        l->next_bytes += (size_t)n;
        if (l->next_bytes < sizeof l->next)
            continue;
        l->next_bytes = 0;
        keep(l, l->next);
    }
    return n != 0;
}

static int wait_ms(const struct gm_linger *l)
{
    int64_t left_ns = l->kept > 0 ? l->due[oldest(l)].until_ns - gm_now_ns() : 0;

    return l->kept == 0 ? -1 : left_ns < 0 ? 0 : (int)(left_ns / 1000000) + 1;
}

static void *linger_main(void *cls)
{
    struct gm_linger *l = cls;

    l->set[0] = (struct pollfd){.fd = l->pipe[0], .events = POLLIN};
    for (;;) {
        if (poll(l->set, 1 + l->kept, wait_ms(l)) < 0)
            continue;
        int64_t now_ns = gm_now_ns();
        for (unsigned i = l->kept; i > 0; i--)
            if (!drop_input(l, i, now_ns))
                end(l, i);
        if (l->set[0].revents && !receive_sockets(l))
            break;
    }
    while (l->kept > 0)
        end(l, l->kept);
    return NULL;
}

enum gm_status gm_linger_open(unsigned max, struct gm_linger **ret, struct gm_error *err)
{
    struct gm_linger *l = calloc(1, sizeof *l);

    if (!l)
        return gm_fail(err, GM_INTERNAL, "no memory for lingering connections");
    l->max = max < GM_LINGERING_MAX ? max : GM_LINGERING_MAX;
    if (pipe2(l->pipe, O_CLOEXEC | O_NONBLOCK) != 0) {
        free(l);
        return gm_fail(err, GM_INTERNAL, "no descriptors for lingering connections");
    }
    l->started = pthread_create(&l->thread, NULL, linger_main, l) == 0;
    if (!l->started) {
        gm_linger_close(l);
        return gm_fail(err, GM_INTERNAL, "cannot start the thread for lingering connections");
    }
    *ret = l;
    return GM_OK;
}

void gm_linger_close(struct gm_linger *l)
{
    if (!l)
        return;
    close(l->pipe[1]);
    if (l->started)
        pthread_join(l->thread, NULL);
    close(l->pipe[0]);
    free(l);
}

void gm_linger_take(struct gm_linger *l, int socket)
{
    int kept = -1;

    if (gm_socket_gone(socket, false))
        return;
    /* The thread closes the oldest when a new one arrives, but may be behind in a burst: so there
     * is a second bound. */
    if (atomic_fetch_add(&l->count, 1) < 2 * l->max)
        kept = fcntl(socket, F_DUPFD_CLOEXEC, 0);
    if (kept >= 0 && write(l->pipe[1], &kept, sizeof kept) == sizeof kept)
        return; /* all or nothing: a pipe writes up to PIPE_BUF bytes atomically */
    atomic_fetch_sub(&l->count, 1);
    if (kept >= 0)
        close(kept);
}

unsigned gm_linger_count(const struct gm_linger *l)
{
    return atomic_load(&l->count);
}
