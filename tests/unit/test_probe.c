/* Asking a gemmd whether it is alive: answers, good, bad, slow and none, from a socket of ours. */
#include "server/clock.h"
#include "server/config.h"
#include "server/process.h"
#include "tests/unit/check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>

#define SECOND INT64_C(1000000000)

/* One that listens, and what it does with whoever comes. */
struct server {
    int socket;
    char port[8];
    const char *answer; /* NULL: none */
    bool piecemeal;     /* byte by byte */
    bool stays;         /* leaves the connection open */
    char question[512];
    pthread_t thread;
    int kept;
};

static bool listen_at(struct server *s, int family, const char *host)
{
    struct sockaddr_storage address = {.ss_family = (sa_family_t)family};
    struct sockaddr_in *four = (struct sockaddr_in *)&address;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&address;
    socklen_t length = family == AF_INET ? sizeof *four : sizeof *six;

    memset(s, 0, sizeof *s);
    s->socket = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s->socket < 0)
        return false;
    inet_pton(family, host, family == AF_INET ? (void *)&four->sin_addr : (void *)&six->sin6_addr);
    if (bind(s->socket, (struct sockaddr *)&address, length) != 0 || listen(s->socket, 8) != 0)
        return false;
    getsockname(s->socket, (struct sockaddr *)&address, &length);
    snprintf(s->port, sizeof s->port, "%u",
             ntohs(family == AF_INET ? four->sin_port : six->sin6_port));
    return true;
}

static void *serve(void *cls)
{
    struct server *s = cls;
    int fd = accept(s->socket, NULL, NULL);
    size_t got = 0;

    while (got < sizeof s->question - 1 && !strstr(s->question, "\r\n\r\n")) {
        ssize_t n = recv(fd, s->question + got, sizeof s->question - 1 - got, 0);
        if (n <= 0)
            break;
        got += (size_t)n;
    }
    size_t length = s->answer ? strlen(s->answer) : 0;
    for (size_t at = 0; at < length;) {
        size_t n = s->piecemeal ? 1 : length;
        if (send(fd, s->answer + at, n, MSG_NOSIGNAL) <= 0)
            break;
        at += n;
    }
    s->kept = -1;
    if (s->stays)
        s->kept = fd;
    else
        close(fd);
    return NULL;
}

static enum gm_status probe_at(const char *host, const char *port, int64_t until_ns,
                               struct gm_error *err)
{
    struct gm_listen at = {.plain = true};

    snprintf(at.host, sizeof at.host, "%s", host);
    snprintf(at.port, sizeof at.port, "%s", port);
    return gm_probe(&at, until_ns, err);
}

/* Asks it over HOST, and ends it. */
static enum gm_status ask(struct server *s, const char *host, int64_t timeout_ns,
                          struct gm_error *err)
{
    CHECK(pthread_create(&s->thread, NULL, serve, s) == 0);
    enum gm_status status = probe_at(host, s->port, gm_now_ns() + timeout_ns, err);
    shutdown(s->socket, SHUT_RDWR); /* if it was not asked after all, it waits no longer */
    pthread_join(s->thread, NULL);
    if (s->kept >= 0)
        close(s->kept);
    close(s->socket);
    return status;
}

static const char fine[] = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n";

static void test_alive(void)
{
    const struct {
        int family;
        const char *listens, *asked;
    } cases[] = {{AF_INET, "127.0.0.1", "127.0.0.1"},
                 {AF_INET, "127.0.0.2", "127.0.0.2"},
                 {AF_INET, "0.0.0.0", "0.0.0.0"},
                 {AF_INET, "127.0.0.1", "0.0.0.0"}, /* by the loopback indeed */
                 {AF_INET, "127.0.0.1", "localhost"},
                 {AF_INET6, "::1", "::1"},
                 {AF_INET6, "::", "::"},
                 {AF_INET6, "::1", "::"}};
    struct gm_error error;
    struct server s;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (!listen_at(&s, cases[i].family, cases[i].listens)) {
            check_that(cases[i].family == AF_INET6 && errno == EADDRNOTAVAIL, __FILE__, __LINE__,
                       "%s: %s", cases[i].listens, strerror(errno));
            continue; /* no IPv6 on this machine */
        }
        s.answer = fine;
        s.piecemeal = i % 2 == 1;
        CHECK_STATUS(ask(&s, cases[i].asked, 10 * SECOND, &error), GM_OK, &error);
        CHECK(strncmp(s.question, "GET /healthz HTTP/1.1\r\n", 23) == 0);
        CHECK(strstr(s.question, "\r\nHost: ") && strstr(s.question, "\r\nConnection: close\r\n"));
    }
}

static void test_not_alive(void)
{
    static char endless[20000];
    const struct {
        const char *answer, *said;
    } cases[] = {
        {"HTTP/1.1 503 Service Unavailable\r\n\r\n", "503 Service Unavailable"},
        {"HTTP/1.1 404 Not Found\r\n\r\n", "404 Not Found"},
        {"HTTP/1.1 2", "HTTP/1.1 2"},
        {"SSH-2.0-OpenSSH\r\n", "SSH-2.0-OpenSSH"},
        {"", "\"\""},
        {"\r\nHTTP/1.1 200 OK\r\n", "\"\""},
        {endless, "xxxx"},
    };
    struct gm_error error;
    struct server s;

    memset(endless, 'x', sizeof endless - 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK(listen_at(&s, AF_INET, "127.0.0.1"));
        s.answer = cases[i].answer;
        CHECK_STATUS(ask(&s, "127.0.0.1", 10 * SECOND, &error), GM_INTERNAL, &error);
        check_that(strstr(error.detail, cases[i].said) && strstr(error.detail, s.port), __FILE__,
                   __LINE__, "case %zu: %s", i, error.detail);
    }
}

/* Late is not alive, whether nothing came or not all. */
static void test_in_time(void)
{
    const char *const answers[] = {NULL, fine};
    struct gm_error error;
    struct server s;

    for (size_t i = 0; i < 2; i++) {
        CHECK(listen_at(&s, AF_INET, "127.0.0.1"));
        s.answer = answers[i];
        s.stays = true;
        int64_t begun = gm_now_ns();
        CHECK_STATUS(ask(&s, "127.0.0.1", SECOND / 10, &error), GM_INTERNAL, &error);
        CHECK(gm_now_ns() - begun >= SECOND / 10);
        CHECK(strstr(error.detail, "no answer") && strstr(error.detail, strerror(ETIMEDOUT)));
    }
    /* One who never accepts: the connection is made by the kernel, and stays unanswered. */
    CHECK(listen_at(&s, AF_INET, "127.0.0.1"));
    CHECK_STATUS(probe_at("127.0.0.1", s.port, gm_now_ns() + SECOND / 10, &error), GM_INTERNAL,
                 &error);
    CHECK(strstr(error.detail, strerror(ETIMEDOUT)));
    /* The time is already over. */
    CHECK_STATUS(probe_at("127.0.0.1", s.port, gm_now_ns() - SECOND, &error), GM_INTERNAL, &error);
    close(s.socket);
}

static void test_nobody(void)
{
    struct gm_error error;
    struct server s;

    CHECK(listen_at(&s, AF_INET, "127.0.0.1"));
    close(s.socket);
    CHECK_STATUS(probe_at("127.0.0.1", s.port, gm_now_ns() + SECOND, &error), GM_INTERNAL, &error);
    CHECK(strstr(error.detail, strerror(ECONNREFUSED)) && strstr(error.detail, s.port));
    CHECK_STATUS(probe_at("no.such.host.invalid", "80", gm_now_ns() + SECOND, &error), GM_INTERNAL,
                 &error);
    CHECK(strstr(error.detail, "no.such.host.invalid"));
}

int main(void)
{
    test_alive();
    test_not_alive();
    test_in_time();
    test_nobody();
    return check_report();
}
