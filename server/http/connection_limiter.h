/*
 * connection_limiter.h - who gets in, and who must leave for it. Connections are bounded
 * (descriptors.h says by how many). Before that bound is reached each newcomer ends the connection
 * whose client is furthest behind, so that those who hold connections and send nothing keep nobody
 * out; only where all are at work do newcomers wait in the backlog.
 */
#ifndef GM_SERVER_HTTP_CONNECTION_LIMITER_H
#define GM_SERVER_HTTP_CONNECTION_LIMITER_H

#include "server/api/stats.h"
#include "server/http/connections.h"
#include "server/request/memory_quota.h"

struct gm_door {
    struct gm_connections *connections;
    struct gm_stats *stats;
    unsigned max;
    /* Handed to the HTTP library, and taken up by it, since the start; they wrap around. It does
     * not tell where it could not take one up: that is given up at the second tick after. */
    atomic_uint entered, passed;
    unsigned entered_before; /* the last tick */
};

/* Sets up the registry too, which gm_door_close ends. max: connections at once. */
enum gm_status gm_door_open(struct gm_door *door, unsigned max, struct gm_connections *connections,
                            struct gm_stats *stats, struct gm_error *err);
void gm_door_close(struct gm_door *door);

/* lingering: connections that have left, and whose descriptors are yet to be closed. */
bool gm_door_has_room(const struct gm_door *door, unsigned lingering);
/* One is about to be handed to the library. */
void gm_door_enter(struct gm_door *door);
/* The library could not. */
void gm_door_missed(struct gm_door *door);
/* Whether some are with the library that it has not taken up. */
bool gm_door_underway(struct gm_door *door);
/* The library has taken it up. NULL without memory: then nobody watches it. */
struct gm_connection *gm_door_passed(struct gm_door *door, int socket, uint64_t client);
/* This client was refused memory: ends the connection furthest behind of those whose clients hold
 * more, but for small requests. */
void gm_want_memory(struct gm_connections *connections, struct gm_budget *budget, uint64_t client);
/* A few times a second, by one thread at a time: ends whoever is too slow. */
void gm_door_tick(struct gm_door *door);

#endif
