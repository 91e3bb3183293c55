/* The listening socket: where it is, who is taken and when, and what its end does to whom. */
#include "server/clock.h"
#include "server/http/internal.h"
#include "tests/unit/check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TAKEN_MAX 64

/* What the listener's thread told. */
static struct {
    atomic_bool ready, endless; /* endless: whoever is taken comes again */
    atomic_uint port;
    atomic_uint taken, ticks;
    int socket[TAKEN_MAX];
    struct sockaddr_storage address[TAKEN_MAX];
} seen;

/* A client's connection to 127.0.0.1; -1 where it is refused. */
static int connect_to(unsigned port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    CHECK_EQ(errno, ECONNREFUSED);
    close(fd);
    return -1;
}

static bool on_ready(void *cls)
{
    CHECK(cls == &seen);
    return atomic_load(&seen.ready);
}

static void on_take(void *cls, bool secure, int fd, const struct sockaddr *address,
                    socklen_t length)
{
    CHECK(!secure);
    unsigned n = atomic_load(&seen.taken);

    if (atomic_load(&seen.endless)) {
        close(connect_to(atomic_load(&seen.port)));
        close(fd);
        return;
    }
    CHECK(cls == &seen && n < TAKEN_MAX && length <= sizeof seen.address[0]);
    seen.socket[n] = fd;
    memcpy(&seen.address[n], address, length);
    atomic_store(&seen.taken, n + 1);
}

static void on_tick(void *cls)
{
    CHECK(cls == &seen);
    atomic_fetch_add(&seen.ticks, 1);
}

static struct gm_listener *open_listener(const char *host, const char *port, struct gm_error *err)
{
    struct gm_listen listen_at = {.mode = 0600};
    const struct gm_listener_options options = {.listen = &listen_at,
                                                .listens = 1,
                                                .ready = on_ready,
                                                .take = on_take,
                                                .tick = on_tick,
                                                .cls = &seen};
    struct gm_listener *l = NULL;

    snprintf(listen_at.host, sizeof listen_at.host, "%s", host);
    snprintf(listen_at.port, sizeof listen_at.port, "%s", port);
    memset(&seen, 0, sizeof seen);
    atomic_store(&seen.ready, true);
    err->status = GM_OK;
    enum gm_status status = gm_listener_open(&options, &l, err);
    CHECK((status == GM_OK) == (l != NULL));
    return l;
}

static void close_listener(struct gm_listener *l)
{
    gm_listener_close(l);
    for (unsigned i = 0; i < atomic_load(&seen.taken); i++)
        close(seen.socket[i]);
}

static unsigned port_of(const struct gm_listener *l)
{
    const char *colon = strrchr(gm_listener_address(l, 0), ':');

    return colon ? (unsigned)atoi(colon + 1) : 0;
}

static bool wait_taken(unsigned n)
{
    for (int i = 0; i < 2000 && atomic_load(&seen.taken) < n; i++)
        poll(NULL, 0, 5);
    return atomic_load(&seen.taken) == n;
}

static void start(struct gm_listener *l)
{
    struct gm_error error;

    CHECK_STATUS(gm_listener_start(l, &error), GM_OK, &error);
}

static void test_addresses(void)
{
    struct gm_error error;
    char want[64];
    struct gm_listener *l = open_listener("127.0.0.1", "0", &error);

    if (!CHECK_STATUS(error.status, GM_OK, &error))
        return;
    CHECK(port_of(l) > 0 && port_of(l) < 65536);
    snprintf(want, sizeof want, "http://127.0.0.1:%u", port_of(l));
    CHECK_STR(gm_listener_address(l, 0), want);
    CHECK(!gm_listener_exposed(l, true));
    close_listener(l); /* never started */

    l = open_listener("localhost", "0", &error);
    CHECK(l && port_of(l) > 0 && !gm_listener_exposed(l, true));
    close_listener(l);

    l = open_listener("0.0.0.0", "0", &error);
    CHECK(l && strncmp(gm_listener_address(l, 0), "http://0.0.0.0:", 15) == 0);
    CHECK(l && gm_listener_exposed(l, true));
    close_listener(l);

    l = open_listener("::1", "0", &error);
    if (!l) {
        printf("no IPv6 here: %s\n", error.detail);
        return;
    }
    snprintf(want, sizeof want, "http://[::1]:%u", port_of(l));
    CHECK_STR(gm_listener_address(l, 0), want);
    CHECK(!gm_listener_exposed(l, true));
    close_listener(l);
}

/* What cannot be listened on is named. */
static void test_impossible(void)
{
    struct gm_error error;
    char port[8];
    struct gm_listener *l = open_listener("127.0.0.1", "0", &error);

    snprintf(port, sizeof port, "%u", port_of(l));
    CHECK(open_listener("127.0.0.1", port, &error) == NULL);
    CHECK(error.status == GM_INTERNAL && strstr(error.detail, "127.0.0.1") &&
          strstr(error.detail, port) && strstr(error.detail, "in use"));
    close_listener(l);
    /* Its end frees the address at once. */
    l = open_listener("127.0.0.1", port, &error);
    CHECK_STATUS(error.status, GM_OK, &error);
    close_listener(l);
    /* TEST-NET-1 is nobody's, and a name under .invalid is none. */
    CHECK(open_listener("192.0.2.1", "0", &error) == NULL);
    CHECK(strstr(error.detail, "192.0.2.1") != NULL);
    CHECK(open_listener("no such host.invalid", "0", &error) == NULL);
    CHECK(strstr(error.detail, "no such host.invalid") != NULL);
    gm_listener_close(NULL);
}

static void test_takes(void)
{
    struct gm_error error;
    struct gm_listener *l = open_listener("127.0.0.1", "0", &error);
    int client[20];

    start(l);
    for (unsigned i = 0; i < 20; i++)
        client[i] = connect_to(port_of(l));
    CHECK(wait_taken(20));
    for (unsigned i = 0; i < 20; i++) {
        struct sockaddr_in own, *theirs = (struct sockaddr_in *)&seen.address[i];
        socklen_t length = sizeof own;
        bool found = false;
        for (unsigned j = 0; j < 20; j++) {
            CHECK(getsockname(client[j], (struct sockaddr *)&own, &length) == 0);
            found = found || own.sin_port == theirs->sin_port;
        }
        CHECK(theirs->sin_family == AF_INET && found);
        char byte;
        CHECK(recv(seen.socket[i], &byte, 1, 0) < 0 && errno == EAGAIN); /* does not block */
    }
    gm_listener_stop(l);
    close_listener(l);
    for (unsigned i = 0; i < 20; i++)
        close(client[i]);
}

/* However fast they come, ticks go on, and a stop is a stop. */
static void test_endless(void)
{
    struct gm_error error;
    struct gm_listener *l = open_listener("127.0.0.1", "0", &error);

    atomic_store(&seen.port, port_of(l));
    atomic_store(&seen.endless, true);
    start(l);
    close(connect_to(port_of(l)));
    for (int i = 0; i < 2000 && atomic_load(&seen.ticks) < 3; i++)
        poll(NULL, 0, 5);
    CHECK(atomic_load(&seen.ticks) >= 3);
    gm_listener_stop(l);
    close_listener(l);
}

/* Not ready: those who come wait in the backlog, and are taken once there is room. */
static void test_not_ready(void)
{
    struct gm_error error;
    struct gm_listener *l = open_listener("127.0.0.1", "0", &error);
    int client[3];

    atomic_store(&seen.ready, false);
    start(l);
    for (unsigned i = 0; i < 3; i++)
        CHECK((client[i] = connect_to(port_of(l))) >= 0);
    CHECK_EQ(send(client[1], "early", 5, 0), 5);
    int64_t begun = gm_now_ns();
    unsigned before = atomic_load(&seen.ticks);
    poll(NULL, 0, 600);
    unsigned ticks = atomic_load(&seen.ticks) - before;
    double quarters = (double)(gm_now_ns() - begun) * 4e-9;
    CHECK_EQ(atomic_load(&seen.taken), 0);
    /* It keeps time, and does not spin on who waits. */
    check_that(ticks >= 1 && ticks <= quarters + 2, __FILE__, __LINE__,
               "%u ticks in %.1f quarters of a second", ticks, quarters);
    atomic_store(&seen.ready, true);
    CHECK(wait_taken(3));
    char bytes[8];
    poll(NULL, 0, 20);
    CHECK_EQ(recv(seen.socket[1], bytes, sizeof bytes, 0), 5);
    close_listener(l);
    for (unsigned i = 0; i < 3; i++)
        close(client[i]);
}

/* Its ticks are a clock: four a second, however many connections come. */
static void test_ticks(void)
{
    struct gm_error error;
    struct gm_listener *l = open_listener("127.0.0.1", "0", &error);
    int client[60];
    int64_t begun = gm_now_ns();

    start(l);
    for (unsigned i = 0; i < 60; i++) {
        client[i] = connect_to(port_of(l));
        CHECK(wait_taken(i + 1));
    }
    poll(NULL, 0, 550);
    gm_listener_stop(l);
    double quarters = (double)(gm_now_ns() - begun) * 4e-9;
    unsigned ticks = atomic_load(&seen.ticks);
    check_that(ticks >= 1 && ticks <= quarters + 2, __FILE__, __LINE__,
               "%u ticks in %.1f quarters of a second", ticks, quarters);
    close_listener(l);
    for (unsigned i = 0; i < 60; i++)
        close(client[i]);
}

/* Stopping takes whoever is in the backlog; so does refusing, and then nobody gets in. */
static void test_stop_and_refuse(void)
{
    struct gm_error error;
    struct gm_listener *l = open_listener("127.0.0.1", "0", &error);
    unsigned port = port_of(l);
    int client[8];

    atomic_store(&seen.ready, false);
    start(l);
    for (unsigned i = 0; i < 4; i++)
        CHECK((client[i] = connect_to(port)) >= 0);
    poll(NULL, 0, 50);
    CHECK_EQ(atomic_load(&seen.taken), 0);
    atomic_store(&seen.ready, true);
    gm_listener_stop(l);
    CHECK_EQ(atomic_load(&seen.taken), 4);
    gm_listener_stop(l); /* twice is fine */
    /* Stopped, but not refusing yet. */
    for (unsigned i = 4; i < 8; i++)
        CHECK((client[i] = connect_to(port)) >= 0);
    poll(NULL, 0, 50);
    CHECK_EQ(atomic_load(&seen.taken), 4);
    gm_listener_refuse(l);
    CHECK_EQ(atomic_load(&seen.taken), 8);
    CHECK_EQ(connect_to(port), -1);
    close_listener(l);
    for (unsigned i = 0; i < 8; i++)
        close(client[i]);
}

int main(void)
{
    alarm(40); /* a listener that does not stop must not keep the tests */
    test_addresses();
    test_impossible();
    test_takes();
    test_endless();
    test_not_ready();
    test_ticks();
    test_stop_and_refuse();
    return check_report();
}
