/* The open connections: who is swept away and when, who is not, who must make room for others,
 * and whose bytes nobody has read. */
#include "server/http/connections.h"
#include "server/limits.h"
#include "tests/unit/check.h"

#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

/* A connection, as the daemon sees it, and its client's end. */
struct pair {
    int ours, client;
    struct gm_connection *connection;
};

#define SECOND INT64_C(1000000000)

static struct gm_connections connections;
static int64_t now_ns = 5 * SECOND; /* the sweep's clock */

/* The last end that was told of, and how many were. */
static struct {
    const struct gm_connection *connection;
    enum gm_connection_phase phase;
    enum gm_connection_end why;
    unsigned count;
} told;

static void on_end(void *cls, const struct gm_connection *c, enum gm_connection_phase phase,
                   enum gm_connection_end why)
{
    CHECK(cls == &told);
    told.connection = c;
    told.phase = phase;
    told.why = why;
    told.count++;
}

/* By TCP, since what its kernel counts is looked at. */
static struct pair connect_pair(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    socklen_t length = sizeof to;
    struct pair p;
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    p.client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listening, (struct sockaddr *)&to, sizeof to) != 0 || listen(listening, 1) != 0 ||
        getsockname(listening, (struct sockaddr *)&to, &length) != 0 ||
        connect(p.client, (struct sockaddr *)&to, sizeof to) != 0)
        abort();
    p.ours = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    close(listening);
    p.connection = gm_connections_add(&connections, p.ours, 0, NULL);
    CHECK(p.connection != NULL);
    return p;
}

static void end_pair(struct pair *p)
{
    gm_connections_remove(&connections, p->connection);
    close(p->ours);
    if (p->client >= 0)
        close(p->client);
}

/* Whether the daemon's end has been shut down: the client could still write to it otherwise. */
static bool ended(const struct pair *p)
{
    struct pollfd fd = {.fd = p->ours, .events = 0};

    return poll(&fd, 1, 0) > 0 && (fd.revents & POLLHUP);
}

/* So many sweeps, over so long. */
static void sweep_for(unsigned times, int64_t ns)
{
    for (unsigned i = 0; i < times; i++) {
        now_ns += ns / times;
        gm_connections_sweep(&connections, now_ns);
    }
}

static void sweep(unsigned times)
{
    sweep_for(times, times);
}

static void test_count(void)
{
    struct pair p[5];

    CHECK_EQ(gm_connections_count(&connections), 0);
    for (unsigned i = 0; i < 5; i++) {
        p[i] = connect_pair();
        CHECK_EQ(gm_connections_count(&connections), i + 1);
    }
    /* Out of the middle, the end and the front of the list. */
    static const unsigned order[] = {2, 0, 4, 3, 1};
    for (unsigned i = 0; i < 5; i++) {
        end_pair(&p[order[i]]);
        CHECK_EQ(gm_connections_count(&connections), 4 - i);
        CHECK_EQ(gm_connections_unread(&connections), i < 4); /* visits whoever is left */
        sweep(1);
    }
    CHECK(LIST_EMPTY(&connections.list));
    gm_connections_remove(&connections, NULL);
    CHECK(gm_connection_enter(NULL, GM_CONNECTION_BODY));
    gm_connection_moved(NULL, 1);
    CHECK_EQ(gm_connection_end(NULL), GM_END_NONE);
    CHECK_EQ(gm_connections_count(&connections), 0);
}

/* A client that closed, or only its sending half, in the middle of a request. */
static void test_deserted(void)
{
    struct pair closed = connect_pair(), half = connect_pair(), there = connect_pair();

    sweep(1);
    close(closed.client);
    closed.client = -1;
    shutdown(half.client, SHUT_WR);
    sweep(1);
    CHECK(!ended(&half));
    sweep(1);
    CHECK(ended(&half));
    CHECK_EQ(gm_connection_end(half.connection), GM_END_DISCONNECTED);
    CHECK_EQ(told.count, 2);
    CHECK(!ended(&there));
    char byte;
    CHECK_EQ(recv(half.client, &byte, 1, MSG_DONTWAIT), 0);
    sweep(3); /* once more is harmless */
    CHECK(!ended(&there));
    end_pair(&closed);
    end_pair(&half);
    end_pair(&there);
}

/* An event thread that was called in between has the time of two sweeps again. */
static void test_called_meanwhile(void)
{
    struct pair p = connect_pair();

    CHECK(gm_connection_enter(p.connection, GM_CONNECTION_BODY));
    sweep(1);
    shutdown(p.client, SHUT_WR);
    for (unsigned i = 0; i < 5; i++) {
        sweep(1);
        CHECK_EQ(gm_connection_end(p.connection), GM_END_NONE);
        gm_connection_moved(p.connection, 1);
    }
    sweep(3);
    CHECK_EQ(gm_connection_end(p.connection), GM_END_DISCONNECTED);
    /* Within a body only our reading ends: the event thread may still answer. */
    CHECK(!ended(&p));
    CHECK_EQ(recv(p.ours, &(char){0}, 1, 0), 0);
    CHECK_EQ(send(p.ours, "408", 3, 0), 3);
    end_pair(&p);
}

/* While something is computed or sent, a half-closed client is only waiting. */
static void test_not_reading(void)
{
    struct pair p = connect_pair();

    CHECK(gm_connection_enter(p.connection, GM_CONNECTION_BUSY));
    shutdown(p.client, SHUT_WR);
    sweep(5);
    CHECK(gm_connection_enter(p.connection, GM_CONNECTION_REPLY));
    sweep(5);
    CHECK(!ended(&p));
    CHECK(gm_connection_enter(p.connection, GM_CONNECTION_HEAD));
    sweep(2);
    CHECK(!ended(&p));
    sweep(1);
    CHECK(ended(&p));
    end_pair(&p);
}

/* Bytes that the event thread has yet to read come before the end behind them. */
static void test_with_bytes(void)
{
    struct pair p = connect_pair();
    char bytes[8];

    CHECK_EQ(send(p.client, "bytes", 5, 0), 5);
    shutdown(p.client, SHUT_WR);
    sweep(1);
    sweep_for(6, 1000 * SECOND); /* nor is it the client that is late */
    CHECK(!ended(&p));
    CHECK_EQ(recv(p.ours, bytes, sizeof bytes, 0), 5); /* peeking took none of them */
    sweep(1);
    CHECK(!ended(&p));
    sweep(1);
    CHECK(ended(&p));
    end_pair(&p);
}

/* A head has CONNECTION_IDLE_S, whether nothing comes or too little. */
static void test_slow_heads(void)
{
    struct pair idle = connect_pair(), part = connect_pair(), used = connect_pair();
    char bytes[8];

    told.count = 0;
    CHECK_EQ(send(used.client, "GET /", 5, 0), 5);
    CHECK_EQ(recv(used.ours, bytes, sizeof bytes, 0), 5);
    CHECK(gm_connection_enter(used.connection, GM_CONNECTION_BODY));
    CHECK(gm_connection_enter(used.connection, GM_CONNECTION_BUSY));
    CHECK(gm_connection_enter(used.connection, GM_CONNECTION_REPLY));
    CHECK(gm_connection_enter(used.connection, GM_CONNECTION_HEAD));
    sweep(1);
    CHECK_EQ(send(part.client, "GE", 2, 0), 2);
    CHECK_EQ(recv(part.ours, bytes, sizeof bytes, 0), 2);
    sweep_for(60, (GM_CONNECTION_IDLE_S - 1) * SECOND);
    CHECK_EQ(told.count, 0);
    sweep_for(2, 2 * SECOND);
    CHECK_EQ(told.count, 3);
    CHECK_EQ(gm_connection_end(idle.connection), GM_END_IDLE);
    CHECK_EQ(gm_connection_end(used.connection), GM_END_IDLE); /* of its second head: nothing */
    CHECK_EQ(gm_connection_end(part.connection), GM_END_SLOW);
    CHECK(ended(&idle) && ended(&part) && ended(&used));
    CHECK(!gm_connection_enter(part.connection, GM_CONNECTION_BODY)); /* too late */
    sweep(3);
    CHECK_EQ(told.count, 3);
    end_pair(&idle);
    end_pair(&part);
    end_pair(&used);
}

/* A body falls behind the minimum rate by CLIENT_GRACE_S, and what it did before does not help. */
static void test_slow_bodies(void)
{
    struct pair stalled = connect_pair(), steady = connect_pair(), burst = connect_pair(),
                busy = connect_pair();

    told.count = 0;
    gm_connection_enter(stalled.connection, GM_CONNECTION_BODY);
    gm_connection_enter(steady.connection, GM_CONNECTION_BODY);
    gm_connection_enter(burst.connection, GM_CONNECTION_BODY);
    gm_connection_enter(busy.connection, GM_CONNECTION_BUSY);
    sweep(1);
    gm_connection_moved(burst.connection, UINT64_C(1) << 40);
    for (unsigned i = 0; i < 2 * GM_CLIENT_GRACE_S; i++) {
        gm_connection_moved(steady.connection, GM_CLIENT_RATE_MIN);
        gm_connection_moved(stalled.connection, GM_CLIENT_RATE_MIN / 2);
        sweep_for(1, SECOND);
        CHECK_EQ(gm_connection_end(stalled.connection),
                 i + 1 < 2 * GM_CLIENT_GRACE_S ? GM_END_NONE : GM_END_SLOW);
        /* The burst is forgotten after a second, not after a year. */
        CHECK_EQ(gm_connection_end(burst.connection),
                 i < GM_CLIENT_GRACE_S ? GM_END_NONE : GM_END_SLOW);
    }
    CHECK_EQ(gm_connection_end(steady.connection), GM_END_NONE);
    CHECK_EQ(gm_connection_end(busy.connection), GM_END_NONE); /* our turn: no matter how long */
    CHECK_EQ(told.count, 2);
    CHECK(told.phase == GM_CONNECTION_BODY && told.why == GM_END_SLOW);
    /* Until the next sweep both halves are open: its next piece is what it is answered with. */
    CHECK_EQ(recv(stalled.ours, &(char){0}, 1, MSG_DONTWAIT), -1);
    /* Its event thread, which may be busy, has two seconds to send it an answer. */
    for (unsigned i = 0; i < 7; i++) {
        sweep(1);
        CHECK_EQ(recv(stalled.ours, &(char){0}, 1, MSG_DONTWAIT), 0);
        CHECK(!ended(&stalled) && send(stalled.ours, "x", 1, MSG_NOSIGNAL) == 1);
    }
    sweep(1);
    CHECK(ended(&stalled) && send(stalled.ours, "x", 1, MSG_NOSIGNAL) == -1);
    end_pair(&stalled);
    end_pair(&steady);
    end_pair(&burst);
    end_pair(&busy);
}

/* The minimum rate is higher for whoever holds much: what moves it all in its time. */
static void test_large_bodies(void)
{
    const double memory = (double)(UINT64_C(1) << 30), all = memory / GM_CLIENT_MEMORY_S;

    CHECK_EQ(gm_client_rate_min(0, 0), GM_CLIENT_RATE_MIN);
    CHECK_EQ(gm_client_rate_min(UINT64_MAX, 0), GM_CLIENT_RATE_MIN);
    CHECK_EQ(gm_client_rate_min(1 << 20, 1 << 30), GM_CLIENT_RATE_MIN);
    CHECK(fabs(gm_client_rate_min(1 << 30, 1 << 30) - all) < 1);
    CHECK(fabs(gm_client_rate_min(1 << 29, 1 << 30) - all / 4) <
          1); /* half of it, in twice the time */

    struct pair half = connect_pair(), small = connect_pair();
    connections.memory = UINT64_C(1) << 30;
    gm_connection_enter(half.connection, GM_CONNECTION_BODY);
    gm_connection_enter(small.connection, GM_CONNECTION_BODY);
    gm_connection_hold(half.connection, UINT64_C(1) << 29);
    gm_connection_hold(small.connection, UINT64_C(1) << 20);
    gm_connection_hold(NULL, 1);
    sweep(1);
    for (unsigned i = 0; i < 100; i++) { /* just enough: it takes three times the grace, and more */
        gm_connection_moved(half.connection, (uint64_t)(all / 4) + 1);
        gm_connection_moved(small.connection, GM_CLIENT_RATE_MIN);
        sweep_for(1, SECOND);
    }
    CHECK_EQ(gm_connection_end(half.connection), GM_END_NONE);
    for (unsigned i = 0; i < 2 * GM_CLIENT_GRACE_S; i++) {
        CHECK_EQ(gm_connection_end(half.connection), GM_END_NONE);
        gm_connection_moved(half.connection, (uint64_t)(all / 8));
        gm_connection_moved(small.connection, GM_CLIENT_RATE_MIN);
        sweep_for(1, SECOND);
    }
    gm_connection_moved(half.connection, 0);
    gm_connection_moved(small.connection, GM_CLIENT_RATE_MIN);
    sweep_for(1, SECOND);
    CHECK_EQ(gm_connection_end(half.connection), GM_END_SLOW);
    CHECK_EQ(gm_connection_end(small.connection), GM_END_NONE);
    connections.memory = 0;
    end_pair(&half);
    end_pair(&small);
}

/* Fills the way to a client that does not read, until nothing moves on it any more. */
static void fill(const struct pair *p)
{
    static const char bytes[65536];

    for (int quiet = 0; quiet < 5; quiet++) {
        while (send(p->ours, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
            quiet = 0;
        poll(NULL, 0, 2);
    }
}

static void test_slow_readers(void)
{
    struct pair stalled = connect_pair(), reading = connect_pair(), done = connect_pair();
    static char bytes[1 << 20];

    told.count = 0;
    gm_connection_enter(stalled.connection, GM_CONNECTION_REPLY);
    gm_connection_enter(reading.connection, GM_CONNECTION_REPLY);
    gm_connection_enter(done.connection, GM_CONNECTION_REPLY);
    CHECK_EQ(send(done.ours, "reply", 5, 0), 5); /* acknowledged: the rest is ours to send */
    fill(&stalled);
    fill(&reading);
    sweep(1);
    /* A little later than the grace: its kernel may find room for more at first. */
    for (unsigned i = 0; i < 2 * GM_CLIENT_GRACE_S; i++) {
        CHECK(i >= GM_CLIENT_GRACE_S || told.count == 0);
        CHECK(recv(reading.client, bytes, sizeof bytes, 0) > 0);
        fill(&reading);
        sweep_for(1, SECOND);
    }
    CHECK_EQ(told.count, 1);
    CHECK_EQ(gm_connection_end(stalled.connection), GM_END_SLOW);
    CHECK_EQ(told.phase, GM_CONNECTION_REPLY);
    CHECK_EQ(gm_connection_end(reading.connection), GM_END_NONE);
    sweep_for(100, 1000 * SECOND);
    CHECK_EQ(gm_connection_end(done.connection), GM_END_NONE);
    /* What the stalled one's kernel holds ends in a reset. */
    end_pair(&reading);
    end_pair(&done);
    gm_connections_remove(&connections, stalled.connection);
    close(stalled.ours);
    ssize_t n;
    while ((n = recv(stalled.client, bytes, sizeof bytes, 0)) > 0)
        ;
    CHECK_EQ(n, -1);
    close(stalled.client);
}

/* This process stood still for an hour: no client was late for one. */
static void test_stopped_clock(void)
{
    struct pair p = connect_pair();

    gm_connection_enter(p.connection, GM_CONNECTION_BODY);
    sweep(1);
    sweep_for(1, 3600 * SECOND);
    CHECK_EQ(gm_connection_end(p.connection), GM_END_NONE);
    end_pair(&p);
}

static bool evict(void)
{
    return gm_connections_evict(&connections, GM_END_CROWDED, NULL, NULL);
}

/* To make room the one furthest behind goes, if it is behind at all. */
static void test_evict(void)
{
    struct pair first = connect_pair(), body, busy = connect_pair(), recent;

    told.count = 0;
    gm_connection_enter(busy.connection, GM_CONNECTION_BUSY);
    sweep(1);
    CHECK(!evict()); /* nobody has waited for a second */
    sweep_for(8, 2 * SECOND);
    body = connect_pair();
    gm_connection_enter(body.connection, GM_CONNECTION_BODY);
    sweep(1);
    sweep_for(8, 2 * SECOND);
    recent = connect_pair();
    sweep(1);
    sweep_for(1, SECOND / 2);
    CHECK(evict());
    CHECK(told.connection == first.connection && told.why == GM_END_CROWDED);
    CHECK_EQ(gm_connections_count(&connections), 4);
    CHECK_EQ(gm_connections_staying(&connections), 3);
    CHECK(evict());
    CHECK(told.connection == body.connection && told.phase == GM_CONNECTION_BODY);
    CHECK_EQ(gm_connection_end(body.connection), GM_END_CROWDED);
    CHECK(!evict());
    sweep_for(2, SECOND);
    /* Late, but its event thread has just been called for it. */
    gm_connection_enter(recent.connection, GM_CONNECTION_BODY);
    CHECK(!evict());
    CHECK_EQ(told.count, 2);
    CHECK(ended(&first) && !ended(&busy) && !ended(&recent));
    end_pair(&first);
    end_pair(&body);
    end_pair(&busy);
    end_pair(&recent);
    CHECK_EQ(gm_connections_staying(&connections), 0);
}

static bool is_hoarder(void *cls, const struct gm_connection *c)
{
    return c->client == *(const uint64_t *)cls && c->held > 0;
}

/* Of some, the one furthest behind. */
static void test_evict_some(void)
{
    struct pair p[3];
    uint64_t hoarder = 7;

    told.count = 0;
    for (unsigned i = 0; i < 3; i++) {
        p[i] = connect_pair();
        gm_connection_enter(p[i].connection, GM_CONNECTION_BODY);
        gm_connection_hold(p[i].connection, i == 0 ? 0 : 1000);
        p[i].connection->client = 7 + i / 2;
        sweep_for(2, 2 * SECOND);
    }
    sweep_for(2, 2 * SECOND);
    CHECK(gm_connections_evict(&connections, GM_END_WANTED, is_hoarder, &hoarder));
    CHECK(told.connection == p[1].connection && told.why == GM_END_WANTED);
    CHECK(!gm_connections_evict(&connections, GM_END_WANTED, is_hoarder, &hoarder));
    CHECK_EQ(told.count, 1);
    for (unsigned i = 0; i < 3; i++)
        end_pair(&p[i]);
}

static void test_unread(void)
{
    struct pair p = connect_pair(), other = connect_pair();
    char byte;

    CHECK(gm_connections_unread(&connections)); /* new: a request may be on its way */
    CHECK_EQ(shutdown(other.client, SHUT_WR), 0);
    p.connection->since_ns -= GM_FIRST_REQUEST_S * SECOND;
    CHECK(!gm_connections_unread(&connections)); /* one has left, and the other is late */
    CHECK_EQ(send(p.client, "x", 1, 0), 1);
    CHECK(gm_connections_unread(&connections));
    gm_connection_enter(p.connection, GM_CONNECTION_BUSY); /* pipelined: it is not its turn yet */
    CHECK(!gm_connections_unread(&connections));
    gm_connection_enter(p.connection, GM_CONNECTION_HEAD);
    CHECK(gm_connections_unread(&connections));
    CHECK_EQ(recv(p.ours, &byte, 1, 0), 1);
    CHECK(!gm_connections_unread(&connections));
    close(p.client); /* an end is no bytes */
    p.client = -1;
    CHECK(!gm_connections_unread(&connections));
    end_pair(&p);
    end_pair(&other);
}

int main(void)
{
    struct gm_error err;

    if (!CHECK_EQ(gm_connections_open(&connections, &err), GM_OK))
        return check_report();
    connections.ended = on_end;
    connections.cls = &told;
    test_count();
    test_deserted();
    test_called_meanwhile();
    test_not_reading();
    test_with_bytes();
    test_slow_heads();
    test_slow_bodies();
    test_large_bodies();
    test_slow_readers();
    test_stopped_clock();
    test_evict();
    test_evict_some();
    test_unread();
    gm_connections_close(&connections);
    return check_report();
}
