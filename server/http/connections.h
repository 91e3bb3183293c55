/*
 * connections.h - tracks each connection's phase, and closes those of slow or disconnected clients.
 *
 * A phase says whether we wait for the client or the client waits for us, and since when. If all
 * connections are taken, the one whose client is furthest behind is closed.
 *
 * The HTTP library's own time-out covers silence only: one byte now and then would hold a
 * connection, and the memory of its request, for ever. The library also misses some disconnects:
 * its epoll is edge-triggered, and it takes a short read for an empty socket, so a FIN that arrives
 * together with data gives no further edge. The sweep therefore looks at the sockets themselves. It
 * ends a connection by shutting down the socket, which makes an edge (repeated at each sweep, for
 * the same reason). The event thread then closes the connection as if its client had.
 */
#ifndef GM_SERVER_HTTP_CONNECTIONS_H
#define GM_SERVER_HTTP_CONNECTIONS_H

#include "proto/status.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

/*
 * How far a client is behind the minimum rate.
 *
 * While we wait for a client its lag grows with time. Each byte that moves reduces the lag by the
 * time that the byte takes at the minimum rate. The lag is never below zero: a fast start earns
 * no credit. Time in which the client waits for us does not count.
 */
struct gm_client_lag {
    int64_t seen_ns; /* time of the last look */
    int64_t late_ns; /* lag at that time */
    uint64_t bytes;  /* bytes moved until that time */
};

/*
 * The minimum rate, in bytes/s, of a client whose request holds `held` bytes of `memory`: at least
 * CLIENT_RATE_MIN. A request that holds all memory must move it within CLIENT_MEMORY_S, one that
 * holds half of it within twice that time, and so on.
 */
double gm_client_rate_min(uint64_t held, uint64_t memory);

/* Starts to wait for the client. bytes: moved so far. */
void gm_client_lag_start(struct gm_client_lag *lag, int64_t now_ns, uint64_t bytes);
/* Updates the lag. ours: the client has waited for us since the last look. */
void gm_client_lag_look(struct gm_client_lag *lag, int64_t now_ns, uint64_t bytes, double rate,
                        bool ours);

/* ---- Connections. ---- */

struct gm_request;
struct gm_tls;

enum gm_connection_phase {
    GM_CONNECTION_HEAD,  /* we wait for the client: for a request, or idle */
    GM_CONNECTION_BODY,  /* we wait for the client: for the rest of its request */
    GM_CONNECTION_BUSY,  /* the client waits for us */
    GM_CONNECTION_REPLY, /* we wait for the client: to read its reply */
    GM_CONNECTION_ENDED  /* ended by the sweep; the event thread has yet to close it */
};

/* Why the sweep ended a connection. */
enum gm_connection_end {
    GM_END_NONE,
    GM_END_DISCONNECTED,
    GM_END_IDLE,    /* no byte of a request in CONNECTION_IDLE_S */
    GM_END_SLOW,    /* an incomplete head after CONNECTION_IDLE_S; a body or reader behind by
                       CLIENT_GRACE_S */
    GM_END_CROWDED, /* to admit a new connection */
    GM_END_WANTED   /* to free memory for another client */
};

struct gm_connection {
    int socket;
    _Atomic uint64_t client; /* client id, head.h: by address, then that of its last request */
    struct gm_tls *tls;      /* what its TLS session uses; NULL: no TLS */
    int64_t since_ns;        /* when it was accepted */
    /* For the connection's event thread only. */
    struct gm_request *request; /* the request in progress, or NULL */
    bool
        answered_early; /* the reply was sent before the body was read; the connection will close */
    /* receive.c: bytes of the body that are in place, of which the library knows nothing; of which
     * it was told, but has not handed them on; the byte behind them, of the body or of the next
     * request; where its last piece was; what gm_wait_events said when they were read. */
    uint64_t ahead, told;
    char spill;
    bool spilled;
    const void *piece_at;
    unsigned events;

    _Atomic unsigned epoch; /* phase + 8 x number of phase changes */
    _Atomic uint64_t moved; /* body bytes handed on */
    _Atomic bool placed;    /* receive.c: there are bytes in place that were not handed on */
    _Atomic uint64_t held;  /* bytes that its request has reserved */
    _Atomic int end;        /* enum gm_connection_end; set before the phase is ENDED */
    /* For the sweep only. */
    unsigned seen_epoch;
    uint64_t
        head_from; /* bytes that the kernel had received when the sweep first saw this HEAD phase */
    unsigned disconnected; /* sweeps that saw the client's FIN and no progress */
    unsigned unread;       /* sweeps that saw bytes that the library has not read */
    unsigned overdue;      /* sweeps since it was ended */
    struct gm_client_lag lag;
    LIST_ENTRY(gm_connection) link;
};

struct gm_connections {
    pthread_mutex_t mutex; /* guards the list; every connection in it has an open socket */
    LIST_HEAD(, gm_connection) list;
    uint64_t memory; /* the memory limit of all requests; 0: unknown */
    atomic_uint count,
        leaving; /* leaving: how many of `count` have been ended but not closed yet */
    /* Called for each connection that is ended, before its socket is shut down. phase: the last one
     * before ENDED. May be NULL. */
    void (*ended)(void *cls, const struct gm_connection *connection, enum gm_connection_phase phase,
                  enum gm_connection_end why);
    void *cls;
};

enum gm_status gm_connections_open(struct gm_connections *connections, struct gm_error *err);
void gm_connections_close(struct gm_connections *connections);

/* Returns NULL if memory ran out; the sweep then does not watch this connection. tls: NULL if it
 * has no TLS; the caller keeps the reference. */
struct gm_connection *gm_connections_add(struct gm_connections *connections, int socket,
                                         uint64_t client, struct gm_tls *tls);
/* Call before the socket is closed. NULL is fine. */
void gm_connections_remove(struct gm_connections *connections, struct gm_connection *connection);

/* Enters the next phase. Returns false if the connection has been ended. Called by its event
 * thread. NULL is fine. */
bool gm_connection_enter(struct gm_connection *connection, enum gm_connection_phase phase);
/* Says whose request is being read. NULL is fine. */
void gm_connection_claim(struct gm_connection *connection, uint64_t client);
/* Counts received body bytes. NULL is fine. */
void gm_connection_moved(struct gm_connection *connection, uint64_t bytes);
/* Records how many bytes its request holds now. NULL is fine. */
void gm_connection_hold(struct gm_connection *connection, uint64_t bytes);
/* Why it was ended; GM_END_NONE if it was not. NULL is fine. */
enum gm_connection_end gm_connection_end(const struct gm_connection *connection);

unsigned gm_connections_count(const struct gm_connections *connections);
/* Count without those that have been ended. */
unsigned gm_connections_staying(const struct gm_connections *connections);
/* Call it a few times a second. */
void gm_connections_sweep(struct gm_connections *connections, int64_t now_ns);
/* Ends the connection whose client is furthest behind, among those for which may() is true (NULL:
 * all). Returns false if every client is less than CROWDED_S behind. */
bool gm_connections_evict(struct gm_connections *connections, enum gm_connection_end why,
                          bool (*may)(void *cls, const struct gm_connection *connection),
                          void *cls);
/* Whether request bytes have arrived that the library has not read yet, or are to be expected: on a
 * connection that has had no request, for FIRST_REQUEST_S. */
bool gm_connections_unread(struct gm_connections *connections);

/* socket_info.c: asks the kernel about a socket, as the HTTP library does not. */

/* What a read would return: > 0 if there are bytes, 0 at the end of the stream, < 0 if there is
 * nothing yet. */
ssize_t gm_socket_unread(int socket);
/* Whether the peer has not yet acknowledged some written bytes. */
bool gm_socket_unsent(int socket);
/* Bytes received, and bytes acknowledged by the peer, since the connection began. Returns false if
 * the socket is not TCP, or the kernel does not count them. */
bool gm_socket_bytes(int socket, uint64_t *ret_received, uint64_t *ret_acknowledged);
/* Whether the peer has closed. sending_too: only if it has closed both directions. */
bool gm_socket_gone(int socket, bool sending_too);
/* Makes close() drop unsent bytes and reset the connection. */
void gm_socket_drop_unsent(int socket);

/* Writes without blocking, and closes the sending half: one or two kilobytes always fit the buffer
 * of an idle socket. Returns whether all were taken. */
bool gm_socket_send_last(int socket, const void *bytes, size_t len);

#endif
