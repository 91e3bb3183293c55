/*
 * connection_limiter.h - limits the number of connections, and closes slow ones to admit new ones.
 *
 * Each connection takes a file descriptor, and the system limits those (ulimit -n, LimitNOFILE=).
 * Near the limit, each new connection closes the one whose client is furthest behind, so idle
 * connections never block new ones. New connections wait in the listen backlog only while every
 * open connection is at work.
 */
#ifndef GM_SERVER_HTTP_CONNECTION_LIMITER_H
#define GM_SERVER_HTTP_CONNECTION_LIMITER_H

#include "server/api/stats.h"
#include "server/http/connections.h"
#include "server/sched/memory_quota.h"

/* Raises the soft limit of descriptors to the hard limit. The soft limit's default is low, for
 * programs that use select(). */
void gm_descriptors_raise(void);

/*
 * Number of connections that the descriptor limit allows: at most CONNECTIONS_MAX. It subtracts the
 * open descriptors, `others` that will be opened, and OTHER_DESCRIPTORS. Fails below
 * CONNECTIONS_MIN; the error says how many descriptors are needed.
 */
enum gm_status gm_descriptors_connections(unsigned others, unsigned *ret, struct gm_error *err);

struct gm_limiter {
    struct gm_connections *connections;
    struct gm_stats *stats;
    unsigned max;
    /* Connections handed to the HTTP library, and connections that it reported, since the start;
     * both wrap around. The library does not report a connection that it dropped; the second tick
     * after it counts it as reported. */
    atomic_uint entered, passed;
    unsigned entered_before; /* `entered` at the last tick */
};

/* Also opens `connections`; gm_limiter_close closes it. max: simultaneous connections. */
enum gm_status gm_limiter_open(struct gm_limiter *limiter, unsigned max,
                               struct gm_connections *connections, struct gm_stats *stats,
                               struct gm_error *err);
void gm_limiter_close(struct gm_limiter *limiter);

/* Whether another connection may be accepted. lingering: connections of linger.c, which still hold
 * a socket. */
bool gm_limiter_has_room(const struct gm_limiter *limiter, unsigned lingering);
/* Whether fewer connections are free than should be. */
bool gm_limiter_crowded(struct gm_limiter *limiter);
/* Call before a connection is handed to the library. */
void gm_limiter_enter(struct gm_limiter *limiter);
/* Call if the library refused the connection. */
void gm_limiter_missed(struct gm_limiter *limiter);
/* Whether the library holds connections that it has not reported yet. */
bool gm_limiter_underway(struct gm_limiter *limiter);
/* Call when the library reports the connection. Returns NULL if memory ran out; the sweep then does
 * not watch this connection. */
struct gm_connection *gm_limiter_passed(struct gm_limiter *limiter, int socket, uint64_t client,
                                        struct gm_tls *tls);
/* Call after a client was refused memory. Closes the connection furthest behind among those of
 * clients that hold more memory. Small requests are spared. */
void gm_limiter_evict_for_memory(struct gm_connections *connections, struct gm_memory_quota *quota,
                                 uint64_t client);
/* Closes connections of slow clients. Call it a few times a second, from one thread at a time. */
void gm_limiter_tick(struct gm_limiter *limiter);

#endif
