/*
 * connection_limiter.h - bounds the number of connections, and closes one to admit another.
 *
 * The bound is what this process may have: each connection takes a descriptor, of which the system
 * allows so many (ulimit -n, LimitNOFILE=). As it comes near, each new connection closes the one
 * whose client is furthest behind, so that idle connections keep nobody out. New connections
 * wait in the listen backlog only if every open one is at work.
 */
#ifndef GM_SERVER_HTTP_CONNECTION_LIMITER_H
#define GM_SERVER_HTTP_CONNECTION_LIMITER_H

#include "server/api/stats.h"
#include "server/http/connections.h"
#include "server/request/memory_quota.h"

/* Takes as many as this process may have: what it gets unasked is a number for programs that
 * cannot handle more. */
void gm_descriptors_raise(void);

/*
 * CONNECTIONS_MAX, or what is left beside those that are open, `others` that are still to be
 * opened and OTHER_DESCRIPTORS. Where that is less than CONNECTIONS_MIN the error says how many
 * there would have to be.
 */
enum gm_status gm_descriptors_connections(unsigned others, unsigned *ret, struct gm_error *err);

struct gm_limiter {
    struct gm_connections *connections;
    struct gm_stats *stats;
    unsigned max;
    /* Connections handed to the HTTP library, and those it reported back, since the start; both
     * wrap around. The library does not report one that it dropped: the second tick gives it up. */
    atomic_uint entered, passed;
    unsigned entered_before; /* `entered` at the last tick */
};

/* Opens `connections` too; gm_limiter_close closes it. max: connections at once. */
enum gm_status gm_limiter_open(struct gm_limiter *limiter, unsigned max,
                               struct gm_connections *connections, struct gm_stats *stats,
                               struct gm_error *err);
void gm_limiter_close(struct gm_limiter *limiter);

/* Whether one more connection may be accepted. lingering: connections of linger.c, whose sockets
 * are still open. */
bool gm_limiter_has_room(const struct gm_limiter *limiter, unsigned lingering);
/* A connection is about to be handed to the library. */
void gm_limiter_enter(struct gm_limiter *limiter);
/* The library refused it. */
void gm_limiter_missed(struct gm_limiter *limiter);
/* Whether the library still has connections that it has not reported. */
bool gm_limiter_underway(struct gm_limiter *limiter);
/* The library reported it. NULL if memory ran out: the connection is then not watched. */
struct gm_connection *gm_limiter_passed(struct gm_limiter *limiter, int socket, uint64_t client);
/* After a client was refused memory: closes the connection furthest behind among clients that hold
 * more memory. Small requests are spared. */
void gm_want_memory(struct gm_connections *connections, struct gm_memory_quota *quota,
                    uint64_t client);
/* Closes connections of slow clients. Call it a few times a second, from one thread at a time. */
void gm_limiter_tick(struct gm_limiter *limiter);

#endif
