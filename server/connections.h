/*
 * connections.h - the open connections, for two questions that the HTTP library does not answer:
 * has a client gone without the library noticing, and is there a request that it has not read?
 *
 * The library's epoll is edge-triggered and takes a short read for an empty socket. A FIN that
 * arrives together with data gives no further edge: the connection, and the memory of its half
 * request, would stay until the idle time-out. gm_connections_sweep finds such sockets and
 * makes an edge.
 */
#ifndef GM_SERVER_CONNECTIONS_H
#define GM_SERVER_CONNECTIONS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct gm_connection {
    int socket;
    atomic_bool reading;  /* headers or a body are expected: nothing is being computed or sent */
    atomic_uint deserted; /* sweeps that saw it closed and nothing happen */
    struct gm_connection *prev, *next;
};

struct gm_connections {
    pthread_mutex_t mutex; /* guards the list: whoever is on it has an open socket */
    struct gm_connection *first;
    unsigned count;
};

void gm_connections_init(struct gm_connections *connections);
void gm_connections_destroy(struct gm_connections *connections);

/* NULL without memory: then nobody watches this one. */
struct gm_connection *gm_connections_add(struct gm_connections *connections, int socket);
/* Before its socket is closed. NULL is fine. */
void gm_connections_remove(struct gm_connections *connections, struct gm_connection *connection);
/* Its event thread has just been called for it. NULL is fine. */
void gm_connections_touch(struct gm_connection *connection, bool reading);

unsigned gm_connections_count(struct gm_connections *connections);
/* Ends connections whose client closed them while a request was incomplete, once two sweeps in a
 * row have seen nothing happen there. */
void gm_connections_sweep(struct gm_connections *connections);
/* Whether bytes of a request have come that have not been read yet. */
bool gm_connections_unread(struct gm_connections *connections);

#endif
