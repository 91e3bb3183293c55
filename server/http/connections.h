/*
 * connections.h - the open connections: whose turn it is on each, and since when. It ends those
 * whose client has gone without the HTTP library noticing, is too slow, or, when all connections
 * are taken, has kept us waiting for longest.
 *
 * The library's time-out is for silence alone: a byte now and then holds a connection, and the
 * memory of its request, for ever. And its epoll is edge-triggered and takes a short read for an
 * empty socket: a FIN that arrives together with data gives no further edge. The sweep looks at
 * the sockets themselves, and shuts down those that are to end, which makes an edge (again at each
 * sweep, for the same reason): their event thread then closes them as if their client had.
 */
#ifndef GM_SERVER_HTTP_CONNECTIONS_H
#define GM_SERVER_HTTP_CONNECTIONS_H

#include "proto/status.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/*
 * How far a client is behind the minimum rate.
 *
 * While we wait for a client its lag grows with time. Each byte that moves reduces the lag by the
 * time that the byte takes at the minimum rate. The lag is never below zero: a fast start earns
 * no credit. Time in which the client waits for us does not count.
 */
struct gm_client_lag {
    int64_t seen_ns; /* of the last look */
    int64_t late_ns; /* the lag then */
    uint64_t bytes;  /* moved until then */
};

/*
 * The minimum rate, in bytes a second, of a client whose request holds `held` bytes of `memory`:
 * CLIENT_RATE_MIN, or more if the request holds much. Then the rate moves all that it holds within
 * CLIENT_MEMORY_S if that is all memory, within twice that time if it is half, and so on.
 */
double gm_client_rate_min(uint64_t held, uint64_t memory);

/* Begins a wait for the client. bytes: moved so far. */
void gm_client_lag_start(struct gm_client_lag *lag, int64_t now_ns, uint64_t bytes);
/* Updates the lag. ours: since the last look the client waited for us. */
void gm_client_lag_look(struct gm_client_lag *lag, int64_t now_ns, uint64_t bytes, double rate,
                        bool ours);

/* ---- Connections. ---- */

struct gm_request;

enum gm_phase_of_connection {
    GM_CONNECTION_HEAD,  /* the client's turn: a request, or none for now */
    GM_CONNECTION_BODY,  /* the client's: the rest of its request */
    GM_CONNECTION_BUSY,  /* ours */
    GM_CONNECTION_REPLY, /* the client's: it takes its reply */
    GM_CONNECTION_ENDED  /* nobody's: the sweep has ended it */
};

/* Why the sweep ended a connection. */
enum gm_connection_end {
    GM_END_NONE,
    GM_END_DESERTED,
    GM_END_IDLE, /* nothing of a request has come for CONNECTION_IDLE_S */
    GM_END_SLOW, /* part of a head in CONNECTION_IDLE_S; a body, a reader: behind CLIENT_GRACE_S */
    GM_END_CROWDED,
    GM_END_WANTED /* another client wants memory */
};

struct gm_connection {
    int socket;
    uint64_t client; /* whose it is: head.h */
    /* Its event thread's. */
    struct gm_request *request; /* the one that is being served */
    bool answered_early;        /* before its body was read, and is to be closed for it */

    _Atomic unsigned turn;  /* enum gm_phase_of_connection + 8 x how often it has changed */
    _Atomic uint64_t moved; /* bytes of bodies that have come */
    _Atomic uint64_t held;  /* bytes of memory that its request has reserved */
    _Atomic int end;        /* enum gm_connection_end; set before the phase is ENDED */
    /* The sweep's own. */
    unsigned seen_turn;
    uint64_t head_from; /* what the kernel had received when this head's turn was first seen */
    unsigned deserted;  /* sweeps that saw it closed, and nothing happen */
    unsigned unread;    /* sweeps that saw bytes of it which nobody has read */
    unsigned overdue;   /* sweeps that saw it ended, and not yet closed */
    struct gm_client_lag lag;
    LIST_ENTRY(gm_connection) link;
};

struct gm_connections {
    pthread_mutex_t mutex; /* guards the list: whoever is on it has an open socket */
    LIST_HEAD(, gm_connection) list;
    uint64_t memory;            /* that all requests together may reserve; 0: not told */
    atomic_uint count, leaving; /* leaving: of those, ended but not yet closed */
    /* Told of each end, before the socket is shut down; `phase`: what it was in. May be NULL. */
    void (*ended)(void *cls, const struct gm_connection *connection,
                  enum gm_phase_of_connection phase, enum gm_connection_end why);
    void *cls;
};

enum gm_status gm_connections_open(struct gm_connections *connections, struct gm_error *err);
void gm_connections_close(struct gm_connections *connections);

/* NULL without memory: then nobody watches this one. */
struct gm_connection *gm_connections_add(struct gm_connections *connections, int socket,
                                         uint64_t client);
/* Before its socket is closed. NULL is fine. */
void gm_connections_remove(struct gm_connections *connections, struct gm_connection *connection);

/* The next phase, as its event thread sees it. false: it has been ended. NULL is fine. */
bool gm_connection_enter(struct gm_connection *connection, enum gm_phase_of_connection phase);
/* Bytes of a body have come. NULL is fine. */
void gm_connection_moved(struct gm_connection *connection, uint64_t bytes);
/* Its request holds so much memory now. NULL is fine. */
void gm_connection_hold(struct gm_connection *connection, uint64_t bytes);
/* GM_END_NONE while it has not been ended. NULL is fine. */
enum gm_connection_end gm_connection_end(const struct gm_connection *connection);

unsigned gm_connections_count(const struct gm_connections *connections);
/* Without those that have been ended. */
unsigned gm_connections_staying(const struct gm_connections *connections);
/* To be called a few times a second. */
void gm_connections_sweep(struct gm_connections *connections, int64_t now_ns);
/* Ends the one whose client is furthest behind, to make room for others: of all, or of those that
 * `may` is true of. false: all are at work. */
bool gm_connections_evict(struct gm_connections *connections, enum gm_connection_end why,
                          bool (*may)(void *cls, const struct gm_connection *connection),
                          void *cls);
/* Whether bytes of a request have come that have not been read yet. */
bool gm_connections_unread(struct gm_connections *connections);

#endif
