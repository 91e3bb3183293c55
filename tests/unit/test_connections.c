/* The open connections: who is swept away, who is not, and whose bytes nobody has read. */
#include "server/connections.h"
#include "tests/unit/check.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

/* A connection, as the daemon sees it, and its client's end. */
struct pair {
    int ours, client;
    struct gm_connection *connection;
};

static struct gm_connections connections;

static struct pair connect_pair(void)
{
    struct pair p;
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
        abort();
    p.ours = fds[0];
    p.client = fds[1];
    p.connection = gm_connections_add(&connections, p.ours);
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

static void sweep(unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        gm_connections_sweep(&connections);
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
        CHECK(!gm_connections_unread(&connections)); /* visits whoever is left */
        sweep(1);
    }
    CHECK(connections.first == NULL);
    gm_connections_remove(&connections, NULL);
    gm_connections_touch(NULL, true);
    CHECK_EQ(gm_connections_count(&connections), 0);
}

/* A client that closed, or only its sending half, in the middle of a request. */
static void test_deserted(void)
{
    struct pair closed = connect_pair(), half = connect_pair(), there = connect_pair();

    close(closed.client);
    closed.client = -1;
    shutdown(half.client, SHUT_WR);
    sweep(1);
    CHECK(!ended(&half));
    sweep(1);
    CHECK(ended(&half));
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
static void test_touched(void)
{
    struct pair p = connect_pair();

    shutdown(p.client, SHUT_WR);
    for (unsigned i = 0; i < 5; i++) {
        sweep(1);
        CHECK(!ended(&p));
        gm_connections_touch(p.connection, true);
    }
    sweep(2);
    CHECK(ended(&p));
    end_pair(&p);
}

/* While something is computed or sent, a half-closed client is only waiting. */
static void test_not_reading(void)
{
    struct pair p = connect_pair();

    gm_connections_touch(p.connection, false);
    shutdown(p.client, SHUT_WR);
    sweep(5);
    CHECK(!ended(&p));
    gm_connections_touch(p.connection, true);
    sweep(1);
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
    sweep(5);
    CHECK(!ended(&p));
    CHECK_EQ(recv(p.ours, bytes, sizeof bytes, 0), 5); /* peeking took none of them */
    sweep(1);
    CHECK(!ended(&p));
    sweep(1);
    CHECK(ended(&p));
    end_pair(&p);
}

/* One sweep that sees it, one that does not: not two in a row. */
static void test_not_in_a_row(void)
{
    struct pair p = connect_pair();

    shutdown(p.client, SHUT_WR);
    for (unsigned i = 0; i < 4; i++) {
        sweep(1);
        atomic_store(&p.connection->reading, false);
        sweep(1);
        atomic_store(&p.connection->reading, true);
        CHECK(!ended(&p));
    }
    end_pair(&p);
}

static void test_unread(void)
{
    struct pair p = connect_pair(), other = connect_pair();
    char byte;

    CHECK(!gm_connections_unread(&connections));
    CHECK_EQ(send(p.client, "x", 1, 0), 1);
    CHECK(gm_connections_unread(&connections));
    gm_connections_touch(p.connection, false); /* pipelined: it is not its turn yet */
    CHECK(!gm_connections_unread(&connections));
    gm_connections_touch(p.connection, true);
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
    gm_connections_init(&connections);
    test_count();
    test_deserted();
    test_touched();
    test_not_reading();
    test_with_bytes();
    test_not_in_a_row();
    test_unread();
    gm_connections_destroy(&connections);
    return check_report();
}
