/*
 * What the HTTP library refuses by itself is counted from its words: the library that this is
 * linked with is sent each kind, and one of another version is known as such.
 */
#include "server/api/routes.h"
#include "server/http/internal.h"
#include "tests/unit/check.h"

#include <microhttpd.h>
#include <sys/socket.h>
#include <time.h>

static struct gm_stats stats;
static uint32_t running; /* its version; 0: its own */

uint32_t __real_MHD_get_version_bin(void);
uint32_t __wrap_MHD_get_version_bin(void);

uint32_t __wrap_MHD_get_version_bin(void)
{
    return running > 0 ? running : __real_MHD_get_version_bin();
}

static void on_log(void *cls, const char *format, va_list args)
{
    gm_library_log(cls, format, args);
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *size, void **req_cls)
{
    (void)cls, (void)connection, (void)url, (void)method, (void)version, (void)data, (void)size;
    (void)req_cls;
    return MHD_NO; /* no request comes so far */
}

/* Sends it, and reads until the library closes. */
static void send_all(struct MHD_Daemon *daemon, const char *text)
{
    const struct timeval limit = {.tv_sec = 20};
    char answer[4096];
    int pair[2];

    if (!CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0))
        return;
    const struct sockaddr address = {.sa_family = AF_UNIX};
    CHECK_EQ(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    CHECK_EQ(MHD_add_connection(daemon, pair[1], &address, sizeof address), MHD_YES);
    CHECK_EQ(send(pair[0], text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
    ssize_t got;
    while ((got = recv(pair[0], answer, sizeof answer, 0)) > 0)
        ;
    CHECK_EQ(got, 0);
    close(pair[0]);
}

static uint64_t answered(unsigned status)
{
    return atomic_load(&stats.answered[gm_route_count()][status]);
}

static void test_words(void)
{
    static const struct {
        const char *text;
        unsigned status;
    } refused[] = {
        {"GET / HTTP/1.1\r\n\r\n", 400},
        {"GET /\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n", 413},
        {"GET / HTTP/7.1\r\nHost: x\r\n\r\n", 505}};
    static const char *const noise[] = {"hello\r\n\r\n", "\x16\x03\x01\x02\r\n"};
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ITC | MHD_USE_ERROR_LOG,
        0, NULL, NULL, on_request, NULL, MHD_OPTION_EXTERNAL_LOGGER, on_log, &stats,
        MHD_OPTION_CLIENT_DISCIPLINE_LVL, 1, MHD_OPTION_END);

    if (!CHECK(daemon))
        return;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        uint64_t before = answered(refused[i].status);
        send_all(daemon, refused[i].text);
        if (!CHECK_EQ(answered(refused[i].status), before + 1))
            fprintf(stderr, "  libmicrohttpd %s, sent: %s\n", MHD_get_version(), refused[i].text);
    }
    for (size_t i = 0; i < sizeof noise / sizeof noise[0]; i++) {
        send_all(daemon, noise[i]);
        struct gm_stats_shard sums;
        gm_stats_sum(&stats, &sums);
        CHECK_EQ(sums.counter[GM_COUNT_NO_HTTP], i + 1);
    }
    MHD_stop_daemon(daemon);
}

static void test_versions(void)
{
    CHECK(gm_library_is_known());
    running = MHD_VERSION + 0x100;
    CHECK(!gm_library_is_known());
    running = MHD_VERSION - 0x100;
    CHECK(!gm_library_is_known());
    running = 0;
}

int main(void)
{
    test_words();
    test_versions();
    return check_report();
}
