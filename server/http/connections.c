#include "server/http/connections.h"

#include "server/clock.h"
#include "server/limits.h"

#include <stdlib.h>
#include <sys/socket.h>

/* Sweeps that must see a FIN before the client counts as disconnected. A client may close its
 * sending half right after a complete request, which its event thread is about to read. */
#define DISCONNECTED_SWEEPS 2

/* Consecutive sweeps for which unread bytes count as our delay. After that the library is stuck,
 * and the client's time runs. */
#define UNREAD_SWEEPS 8

/* Sweeps until an ended connection is shut down in both directions: two seconds to send the last
 * reply. */
#define OVERDUE_SWEEPS 8

/* Maximum lag that one look adds. If this process was stopped for an hour, no client was late for
 * an hour. */
#define STEP_NS_MAX (INT64_C(10) * 1000000000)

#define EPOCH_STEP 8u /* more than the number of phases */
#define FIRST_EPOCH (EPOCH_STEP + GM_CONNECTION_HEAD)
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

static enum gm_connection_phase phase_of(unsigned epoch)
{
    return (enum gm_connection_phase)(epoch % EPOCH_STEP);
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
                                         uint64_t client, struct gm_tls *tls)
{
    struct gm_connection *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    c->socket = socket;
    c->client = client;
    c->tls = tls;
    c->since_ns = gm_now_ns();
    atomic_init(&c->epoch, FIRST_EPOCH);
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
    if (phase_of(atomic_load(&c->epoch)) == GM_CONNECTION_ENDED)
        atomic_fetch_sub(&connections->leaving, 1);
    atomic_fetch_sub(&connections->count, 1);
    pthread_mutex_unlock(&connections->mutex);
    free(c);
}

bool gm_connection_enter(struct gm_connection *c, enum gm_connection_phase phase)
{
    if (!c)
        return true;
    unsigned epoch = atomic_load(&c->epoch), next;

    do {
        if (phase_of(epoch) == GM_CONNECTION_ENDED)
            return false;
        next = epoch - phase_of(epoch) + EPOCH_STEP + phase;
    } while (!atomic_compare_exchange_weak(&c->epoch, &epoch, next));
    return true;
}

void gm_connection_claim(struct gm_connection *connection, uint64_t client)
{
    if (connection)
        atomic_store_explicit(&connection->client, client, memory_order_relaxed);
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
    return c && phase_of(atomic_load(&c->epoch)) == GM_CONNECTION_ENDED
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
 * Makes the edge on which the event thread closes the connection. After a body, the sending half
 * stays open, because the thread may still answer. After a reply, unsent bytes are dropped: the
 * client does not read them.
 */
static void shut_down(const struct gm_connection *c, enum gm_connection_phase phase)
{
    if (phase == GM_CONNECTION_REPLY)
        gm_socket_drop_unsent(c->socket);
    shutdown(c->socket, phase == GM_CONNECTION_BODY ? SHUT_RD : SHUT_RDWR);
}

/* Ends the connection. Returns false if its event thread was faster and has changed the phase. */
static bool end(struct gm_connections *connections, struct gm_connection *c,
                enum gm_connection_end why)
{
    unsigned epoch = c->seen_epoch;
    enum gm_connection_phase phase = phase_of(epoch);

    atomic_store(&c->end, why);
    if (!atomic_compare_exchange_strong(&c->epoch, &epoch, epoch - phase + GM_CONNECTION_ENDED))
        return false;
    atomic_fetch_add(&connections->leaving, 1);
    if (connections->ended)
        connections->ended(connections->cls, c, phase, why);
    /* A client that still sends gets its answer when its next bytes arrive. If both halves were
     * closed now, those bytes would reset the connection and the answer would be lost. The next
     * sweep shuts down a client that sends nothing. */
    if (phase != GM_CONNECTION_BODY || why == GM_END_DISCONNECTED)
        shut_down(c, phase);
    return true;
}

/* Bytes moved in this phase: of the body or of the reply. A head counts as 0, because it must be
 * complete in time, whatever its rate. */
static uint64_t moved(const struct gm_connection *c, enum gm_connection_phase phase)
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

static void start_epoch(struct gm_connection *c, unsigned epoch, int64_t now_ns)
{
    /* Everything that a new connection has received belongs to its first head. */
    if (epoch != FIRST_EPOCH && phase_of(epoch) == GM_CONNECTION_HEAD)
        c->head_from = received_in_all(c);
    c->seen_epoch = epoch;
    c->disconnected = c->unread = 0;
    gm_client_lag_start(&c->lag, now_ns, moved(c, phase_of(epoch)));
}

static double rate_min(const struct gm_connections *connections, const struct gm_connection *c)
{
    return gm_client_rate_min(atomic_load_explicit(&c->held, memory_order_relaxed),
                              connections->memory);
}

/* Bytes that came and that the library has not handed on: as gm_socket_unread has it. */
static ssize_t unread_of(const struct gm_connection *c)
{
    return atomic_load_explicit(&c->placed, memory_order_relaxed) ? 1 : gm_socket_unread(c->socket);
}

/* We wait for the client to send. */
static void check_sender(struct gm_connections *connections, struct gm_connection *c,
                         int64_t now_ns, bool head)
{
    const int64_t lag_max = (head ? GM_CONNECTION_IDLE_S : GM_CLIENT_GRACE_S) * SECOND;
    uint64_t bytes = moved(c, phase_of(c->seen_epoch));
    ssize_t unread = unread_of(c);

    c->disconnected = unread == 0 && bytes == c->lag.bytes ? c->disconnected + 1 : 0;
    c->unread = unread > 0 ? c->unread + 1 : 0;
    gm_client_lag_look(&c->lag, now_ns, bytes, rate_min(connections, c),
                       c->unread > 0 && c->unread <= UNREAD_SWEEPS);
    if (c->disconnected >= DISCONNECTED_SWEEPS)
        end(connections, c, GM_END_DISCONNECTED);
    else if (c->lag.late_ns >= lag_max)
        end(connections, c, head && received_in_all(c) == c->head_from ? GM_END_IDLE : GM_END_SLOW);
}

/* We wait for the client to read its reply. If the kernel does not count acknowledged bytes, the
 * library's time-out applies instead. */
static void check_reader(struct gm_connections *connections, struct gm_connection *c,
                         int64_t now_ns)
{
    uint64_t received, bytes = 0;
    bool counted = gm_socket_bytes(c->socket, &received, &bytes); /* else nothing can be told */

    gm_client_lag_look(&c->lag, now_ns, bytes, rate_min(connections, c),
                       !counted || !gm_socket_unsent(c->socket));
    if (c->lag.late_ns >= GM_CLIENT_GRACE_S * SECOND)
        end(connections, c, GM_END_SLOW);
}

static void check_connection(struct gm_connections *connections, struct gm_connection *c,
                             int64_t now_ns)
{
    unsigned epoch = atomic_load(&c->epoch);

    if (phase_of(epoch) != GM_CONNECTION_ENDED && epoch != c->seen_epoch) {
        start_epoch(c, epoch, now_ns);
        return;
    }
    switch (phase_of(epoch)) {
    case GM_CONNECTION_HEAD:
    case GM_CONNECTION_BODY:
        check_sender(connections, c, now_ns, phase_of(epoch) == GM_CONNECTION_HEAD);
        break;
    case GM_CONNECTION_REPLY:
        check_reader(connections, c, now_ns);
        break;
    case GM_CONNECTION_ENDED:
        /* The library missed the first edge, which came together with data: make another one. Or
         * its thread is still busy sending an answer. */
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
    LIST_FOREACH (c, &connections->list, link)
        check_connection(connections, c, now_ns);
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
        LIST_FOREACH (c, &connections->list, link) {
            if (c->lag.late_ns < late_ns || atomic_load(&c->epoch) != c->seen_epoch ||
                (may && !may(cls, c)))
                continue;
            last = c;
            late_ns = c->lag.late_ns;
        }
        /* end() fails if the connection has just changed its phase: then look for another. */
        if (!last || (evicted = end(connections, last, why)))
            break;
    }
    pthread_mutex_unlock(&connections->mutex);
    return evicted;
}

bool gm_connections_unread(struct gm_connections *connections)
{
    const int64_t young_ns = gm_now_ns() - GM_FIRST_REQUEST_S * SECOND;
    struct gm_connection *c;
    bool unread = false;

    pthread_mutex_lock(&connections->mutex);
    LIST_FOREACH (c, &connections->list, link) {
        unsigned epoch = atomic_load(&c->epoch);
        enum gm_connection_phase phase = phase_of(epoch);
        ssize_t bytes =
            phase == GM_CONNECTION_HEAD || phase == GM_CONNECTION_BODY ? unread_of(c) : 0;
        unread = bytes > 0 || (bytes < 0 && epoch == FIRST_EPOCH && c->since_ns > young_ns);
        if (unread)
            break;
    }
    pthread_mutex_unlock(&connections->mutex);
    return unread;
}
