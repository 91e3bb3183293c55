/*
 * receive.c - how bodies are received: recv in place of libc's.
 *
 * The library reads a body into a connection's pool, 16 KB at a time, and each piece would be
 * copied from there to its operand. So where a request says what place the next bytes have
 * (gm_request_places), recv reads them to that place, as many as there are, and only then tells the
 * library of them, in pieces of the size that it asks for. It does not look at a body of known
 * length, but hands each piece on, and gm_receive_piece knows that its bytes are in place already.
 *
 *   on the socket    BBBBBBBBBBP     recv: to the operand, at once     ahead = 10, P is spilled
 *   the library      BBBB            asks for 4, and is told of 4      ahead = 6, told = 4
 *   the handler                      takes the piece of 4              ahead = 6, told = 0
 *
 * P is a byte beyond the places: of the body, where they are but a part of it, or the first of the
 * next request. If there is none, the socket was empty.
 *
 * A short answer tells the library that the socket is empty, and it does not ask before the next
 * event. But the event of bytes that came later may already be spent. So the last piece is a short
 * one only if the thread was told of no event since the socket was found empty; else the socket is
 * asked again, on the library's behalf.
 */
#include "internal.h"
#include "server/http/connections.h"
#include "server/limits.h"

#include <errno.h>
#include <sys/uio.h>

/* The connections of sockets, for their event threads. TLS has none: its records are no bodies. */
static _Atomic(struct gm_connection *) by_socket[GM_DIRECT_SOCKETS_MAX];

void gm_receive_open(struct gm_connection *c)
{
    if (c && !c->tls && c->socket >= 0 && c->socket < GM_DIRECT_SOCKETS_MAX)
        atomic_store_explicit(&by_socket[c->socket], c, memory_order_relaxed);
}

void gm_receive_close(struct gm_connection *c)
{
    if (c && c->socket >= 0 && c->socket < GM_DIRECT_SOCKETS_MAX)
        atomic_store_explicit(&by_socket[c->socket], NULL, memory_order_relaxed);
}

void gm_receive_reset(struct gm_connection *c)
{
    if (c) {
        c->ahead = c->told = 0;
        c->piece_at = NULL;
        atomic_store_explicit(&c->placed, false, memory_order_relaxed);
    }
}

void gm_receive_piece(struct gm_connection *c, struct gm_request *r, const char *bytes, size_t len)
{
    size_t placed = 0;

    if (c) {
        placed = len < c->told ? len : (size_t)c->told;
        c->told -= placed;
        c->piece_at = bytes;
        if (placed > 0 && c->ahead == 0 && c->told == 0)
            atomic_store_explicit(&c->placed, false, memory_order_relaxed);
    }
    if (placed > 0)
        gm_request_push(r, NULL, placed);
    if (placed < len)
        gm_request_push(r, bytes + placed, len - placed);
}

/* The places of the body's next bytes: how many, and how many bytes they take at a time. */
static unsigned places_of(const struct gm_connection *c, struct iovec place[GM_OPERANDS_MAX],
                          size_t *ret_bytes)
{
    unsigned count = c->request ? gm_request_places(c->request, place) : 0;
    size_t all = 0;

    for (unsigned i = 0; i < count; i++) {
        if (place[i].iov_len > GM_RECEIVE_BYTES_MAX - all)
            place[i].iov_len = GM_RECEIVE_BYTES_MAX - all;
        all += place[i].iov_len;
    }
    *ret_bytes = all;
    return count;
}

/* Reads to those places, and one byte more. */
static ssize_t read_ahead(struct gm_connection *c, struct iovec place[GM_OPERANDS_MAX + 1],
                          unsigned count, size_t all)
{
    struct msghdr message = {.msg_iov = place, .msg_iovlen = count + 1};

    place[count] = (struct iovec){&c->spill, 1};
    /* From here on, for the sweep must see them all the time: the socket has them no more. */
    atomic_store_explicit(&c->placed, true, memory_order_relaxed);
    ssize_t got = recvmsg(c->socket, &message, 0);
    c->spilled = got > (ssize_t)all;
    c->ahead = got > 0 ? (uint64_t)got - c->spilled : 0;
    atomic_store_explicit(&c->placed, c->ahead > 0, memory_order_relaxed);
    c->events = gm_wait_events();
    return got;
}

/* Tells of what is in place, and reads on behind that if there may be more. */
static ssize_t tell(struct gm_connection *c, char *buf, size_t len)
{
    size_t now = len < c->ahead ? len : (size_t)c->ahead;

    c->ahead -= now;
    c->told += now;
    if (now < len && c->spilled) {
        buf[now++] = c->spill;
        c->spilled = false;
    } else if (now == len || c->events == gm_wait_events()) {
        return (ssize_t)now;
    }
    ssize_t more;
    do
        more = now < len ? recvfrom(c->socket, buf + now, len - now, 0, NULL, NULL) : 0;
    while (more < 0 && errno == EINTR);
    if (more < 0 && errno != EAGAIN)
        return more; /* or the library would take it for an empty socket */
    return (ssize_t)now + (more > 0 ? more : 0);
}

ssize_t recv(int socket, void *buf, size_t len, int flags)
{
    struct gm_connection *c = flags == 0 && socket >= 0 && socket < GM_DIRECT_SOCKETS_MAX
                                  ? atomic_load_explicit(&by_socket[socket], memory_order_relaxed)
                                  : NULL;
    struct iovec place[GM_OPERANDS_MAX + 1];
    size_t all = 0;

    if (c && (c->ahead > 0 || c->spilled))
        return tell(c, buf, len);
    /* Where the library has bytes of the body that it has not handed on, it reads behind them. Its
     * buffer's beginning does not move within a body. */
    if (c && c->told == 0 && buf == c->piece_at) {
        unsigned count = places_of(c, place, &all);
        if (all > len) {
            ssize_t got = read_ahead(c, place, count, all);
            return got > 0 ? tell(c, buf, len) : got;
        }
    }
    return recvfrom(socket, buf, len, flags, NULL, NULL);
}
