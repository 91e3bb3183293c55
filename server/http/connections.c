#include "server/http/connections.h"

#include "server/http/socket_info.h"
#include "server/limits.h"

#include <stdlib.h>
#include <sys/socket.h>

/* Sweeps that must agree: a client may close its sending half right behind a whole request,
 * which its event thread is about to see. */
#define DESERTED_SWEEPS 2

/* Sweeps in a row for which bytes that nobody reads are our fault: beyond, the library is stuck. */
#define UNREAD_SWEEPS 8

/* And so many until one that was ended is shut down for good: two seconds for its last word. */
#define OVERDUE_SWEEPS 8

/* What one look can add. If this process was stopped for an hour, no client was late for one. */
#define STEP_NS_MAX (INT64_C(10) * 1000000000)

#define TURN_STEP 8u /* above the phases */
#define FIRST_TURN (TURN_STEP + GM_CONNECTION_HEAD)
#define SECOND INT64_C(1000000000)

double gm_client_rate_min(uint64_t held, uint64_t memory)
{
    double part = memory > 0 ? (double)held / (double)memory : 0;
    double rate = (double)held * part / GM_CLIENT_MEMORY_S;

    return rate > GM_CLIENT_RATE_MIN ? rate : GM_CLIENT_RATE_MIN;
}

void gm_client_lag_start(struct gm_client_lag *p, int64_t now_ns, uint64_t bytes)
{
    *p = (struct gm_client_lag){.seen_ns = now_ns, .bytes = bytes};
}

void gm_client_lag_look(struct gm_client_lag *p, int64_t now_ns, uint64_t bytes, double rate,
                        bool ours)
{
    int64_t step = now_ns - p->seen_ns;
    double credit = (double)(bytes - p->bytes) * (1e9 / rate);

    if (step > STEP_NS_MAX)
        step = STEP_NS_MAX;
    if (!ours)
        p->late_ns += step;
    p->late_ns = credit < (double)p->late_ns ? p->late_ns - (int64_t)credit : 0;
    p->seen_ns = now_ns;
    p->bytes = bytes;
}

static enum gm_phase_of_connection phase_of(unsigned turn)
{
    return (enum gm_phase_of_connection)(turn % TURN_STEP);
}

enum gm_status gm_connections_open(struct gm_connections *connections, struct gm_error *err)
{
    *connections = (struct gm_connections){0};
    if (pthread_mutex_init(&connections->mutex, NULL) != 0)
        return gm_fail(err, GM_INTERNAL, "no lock for the list of connections");
    return GM_OK;
}

void gm_connections_close(struct gm_connections *connections)
{
    pthread_mutex_destroy(&connections->mutex);
}

struct gm_connection *gm_connections_add(struct gm_connections *connections, int socket,
                                         uint64_t client)
{
    struct gm_connection *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    c->socket = socket;
    c->client = client;
    atomic_init(&c->turn, FIRST_TURN);
    pthread_mutex_lock(&connections->mutex);
    LIST_INSERT_HEAD(&connections->list, c, link);
    atomic_fetch_add(&connections->count, 1);
    pthread_mutex_unlock(&connections->mutex);
    return c;
}

void gm_connections_remove(struct gm_connections *connections, struct gm_connection *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&connections->mutex);
    LIST_REMOVE(c, link);
    if (phase_of(atomic_load(&c->turn)) == GM_CONNECTION_ENDED)
        atomic_fetch_sub(&connections->leaving, 1);
    atomic_fetch_sub(&connections->count, 1);
    pthread_mutex_unlock(&connections->mutex);
    free(c);
}

bool gm_connection_enter(struct gm_connection *c, enum gm_phase_of_connection phase)
{
    if (!c)
        return true;
    unsigned turn = atomic_load(&c->turn), next;

    do {
        if (phase_of(turn) == GM_CONNECTION_ENDED)
            return false;
        next = turn - phase_of(turn) + TURN_STEP + phase;
    } while (!atomic_compare_exchange_weak(&c->turn, &turn, next));
    return true;
}

void gm_connection_moved(struct gm_connection *c, uint64_t bytes)
{
    if (c)
        atomic_fetch_add_explicit(&c->moved, bytes, memory_order_relaxed);
}

void gm_connection_hold(struct gm_connection *c, uint64_t bytes)
{
    if (c)
        atomic_store_explicit(&c->held, bytes, memory_order_relaxed);
}

enum gm_connection_end gm_connection_end(const struct gm_connection *c)
{
    return c && phase_of(atomic_load(&c->turn)) == GM_CONNECTION_ENDED
               ? (enum gm_connection_end)atomic_load(&c->end)
               : GM_END_NONE;
}

unsigned gm_connections_count(const struct gm_connections *connections)
{
    return atomic_load(&connections->count);
}

unsigned gm_connections_staying(const struct gm_connections *connections)
{
    unsigned leaving = atomic_load(&connections->leaving);

    return atomic_load(&connections->count) - leaving;
}

/*
 * Makes the edge that brings its event thread to close it. A body's sender may still be answered by
 * that thread, so its other half stays open; what a reader does not take is worth nothing to it.
 */
static void shut_down(const struct gm_connection *c, enum gm_phase_of_connection phase)
{
    if (phase == GM_CONNECTION_REPLY)
        gm_socket_drop_unsent(c->socket);
    shutdown(c->socket, phase == GM_CONNECTION_BODY ? SHUT_RD : SHUT_RDWR);
}

/* Unless its event thread is quicker, and the client's turn is over. */
static bool end(struct gm_connections *connections, struct gm_connection *c,
                enum gm_connection_end why)
{
    unsigned turn = c->seen_turn;
    enum gm_phase_of_connection phase = phase_of(turn);

    atomic_store(&c->end, why);
    if (!atomic_compare_exchange_strong(&c->turn, &turn, turn - phase + GM_CONNECTION_ENDED))
        return false;
    atomic_fetch_add(&connections->leaving, 1);
    if (connections->ended)
        connections->ended(connections->cls, c, phase, why);
    /* Whoever sends, if too slowly, is answered with its next piece: bytes that come when both
     * halves are closed reset the connection, and the answer is lost. Who sends nothing: by the
     * next sweep. */
    if (phase != GM_CONNECTION_BODY || why == GM_END_DESERTED)
        shut_down(c, phase);
    return true;
}

/* What moves in this phase: bytes of the body, or of the reply. Of a head nothing counts: it is to
 * be there as a whole. */
static uint64_t moved(const struct gm_connection *c, enum gm_phase_of_connection phase)
{
    uint64_t received, acknowledged;

    if (phase == GM_CONNECTION_BODY)
        return atomic_load_explicit(&c->moved, memory_order_relaxed);
    return phase == GM_CONNECTION_REPLY && gm_socket_bytes(c->socket, &received, &acknowledged)
               ? acknowledged
               : 0;
}

static uint64_t received_in_all(const struct gm_connection *c)
{
    uint64_t received, acknowledged;

    return gm_socket_bytes(c->socket, &received, &acknowledged) ? received : 0;
}

static void start_turn(struct gm_connection *c, unsigned turn, int64_t now_ns)
{
    /* All that has come by a new connection belongs to its first head. */
    if (turn != FIRST_TURN && phase_of(turn) == GM_CONNECTION_HEAD)
        c->head_from = received_in_all(c);
    c->seen_turn = turn;
    c->deserted = c->unread = 0;
    gm_client_lag_start(&c->lag, now_ns, moved(c, phase_of(turn)));
}

static double least_rate(const struct gm_connections *connections, const struct gm_connection *c)
{
    return gm_client_rate_min(atomic_load_explicit(&c->held, memory_order_relaxed),
                              connections->memory);
}

/* The client sends, or should. */
static void look_at_sender(struct gm_connections *connections, struct gm_connection *c,
                           int64_t now_ns, bool head)
{
    const int64_t latest = (head ? GM_CONNECTION_IDLE_S : GM_CLIENT_GRACE_S) * SECOND;
    uint64_t bytes = moved(c, phase_of(c->seen_turn));
    ssize_t unread = gm_socket_unread(c->socket);

    c->deserted = unread == 0 && bytes == c->lag.bytes ? c->deserted + 1 : 0;
    c->unread = unread > 0 ? c->unread + 1 : 0;
    gm_client_lag_look(&c->lag, now_ns, bytes, least_rate(connections, c),
                       c->unread > 0 && c->unread <= UNREAD_SWEEPS);
    if (c->deserted >= DESERTED_SWEEPS)
        end(connections, c, GM_END_DESERTED);
    else if (c->lag.late_ns >= latest)
        end(connections, c, head && received_in_all(c) == c->head_from ? GM_END_IDLE : GM_END_SLOW);
}

/* The client takes its reply, or should. Where the kernel does not count, a reader is left to the
 * library's time-out. */
static void look_at_reader(struct gm_connections *connections, struct gm_connection *c,
                           int64_t now_ns)
{
    uint64_t bytes = moved(c, GM_CONNECTION_REPLY);

    gm_client_lag_look(&c->lag, now_ns, bytes, least_rate(connections, c),
                       bytes == 0 || !gm_socket_unsent(c->socket));
    if (c->lag.late_ns >= GM_CLIENT_GRACE_S * SECOND)
        end(connections, c, GM_END_SLOW);
}

static void look_at(struct gm_connections *connections, struct gm_connection *c, int64_t now_ns)
{
    unsigned turn = atomic_load(&c->turn);

    if (phase_of(turn) != GM_CONNECTION_ENDED && turn != c->seen_turn) {
        start_turn(c, turn, now_ns);
        return;
    }
    switch (phase_of(turn)) {
    case GM_CONNECTION_HEAD:
    case GM_CONNECTION_BODY:
        look_at_sender(connections, c, now_ns, phase_of(turn) == GM_CONNECTION_HEAD);
        break;
    case GM_CONNECTION_REPLY:
        look_at_reader(connections, c, now_ns);
        break;
    case GM_CONNECTION_ENDED:
        /* The edge came with a byte, behind which the library saw nothing: another one. Or its
         * thread is busy with an answer to send. */
        shutdown(c->socket, ++c->overdue < OVERDUE_SWEEPS ? SHUT_RD : SHUT_RDWR);
        break;
    case GM_CONNECTION_BUSY:
        break;
    }
}

void gm_connections_sweep(struct gm_connections *connections, int64_t now_ns)
{
    struct gm_connection *c;

    pthread_mutex_lock(&connections->mutex);
    LIST_FOREACH(c, &connections->list, link)
    look_at(connections, c, now_ns);
    pthread_mutex_unlock(&connections->mutex);
}

bool gm_connections_evict(struct gm_connections *connections, enum gm_connection_end why,
                          bool (*may)(void *cls, const struct gm_connection *connection), void *cls)
{
    bool evicted = false;

    pthread_mutex_lock(&connections->mutex);
    for (;;) {
        struct gm_connection *c, *last = NULL;
        int64_t late_ns = GM_CROWDED_S * SECOND;
        LIST_FOREACH(c, &connections->list, link)
        {
            if (c->lag.late_ns < late_ns || atomic_load(&c->turn) != c->seen_turn ||
                (may && !may(cls, c)))
                continue;
            last = c;
            late_ns = c->lag.late_ns;
        }
        /* That one may have moved on just now: then it is no candidate any more. */
        if (!last || (evicted = end(connections, last, why)))
            break;
    }
    pthread_mutex_unlock(&connections->mutex);
    return evicted;
}

bool gm_connections_unread(struct gm_connections *connections)
{
    struct gm_connection *c;
    bool unread = false;

    pthread_mutex_lock(&connections->mutex);
    LIST_FOREACH(c, &connections->list, link)
    {
        enum gm_phase_of_connection phase = phase_of(atomic_load(&c->turn));
        unread = (phase == GM_CONNECTION_HEAD || phase == GM_CONNECTION_BODY) &&
                 gm_socket_unread(c->socket) > 0;
        if (unread)
            break;
    }
    pthread_mutex_unlock(&connections->mutex);
    return unread;
}
