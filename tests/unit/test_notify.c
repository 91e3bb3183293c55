/* What the service manager is told: over a socket of ours in the manager's place. */
#include "server/clock.h"
#include "server/process.h"
#include "tests/unit/check.h"

#include <errno.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>

static char folder[] = "/tmp/gemmd-notify-XXXXXX";

/* The manager's end: bound to a path, or with '@' to an abstract name. */
static int manager_open(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", name);
    if (name[0] == '@')
        address.sun_path[0] = '\0';
    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&address, length) == 0);
    return fd;
}

/* The next message, or "" if there is none. */
static const char *manager_read(int fd)
{
    static char text[256];
    ssize_t n = recv(fd, text, sizeof text - 1, 0);

    text[n > 0 ? n : 0] = '\0';
    return text;
}

static void set(const char *socket, const char *usec, const char *pid)
{
    const char *const names[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"};
    const char *const values[] = {socket, usec, pid};

    for (int i = 0; i < 3; i++) {
        if (values[i])
            setenv(names[i], values[i], 1);
        else
            unsetenv(names[i]);
    }
}

static void test_nobody_asks(void)
{
    struct gm_notify n;
    struct gm_error error;

    /* A watchdog alone has nobody that could be told. */
    const char *const usecs[] = {NULL, "1000000"};
    for (int i = 0; i < 2; i++) {
        set(NULL, usecs[i], NULL);
        CHECK_STATUS(gm_notify_open(&n, &error), GM_OK, &error);
        CHECK_EQ(gm_notify_wait_ms(&n), -1);
        CHECK_STATUS(gm_notify_send(&n, "READY=1", &error), GM_OK, &error);
        CHECK_STATUS(gm_notify_watch(&n, &error), GM_OK, &error);
        gm_notify_close(&n);
    }
}

static void test_messages(const char *name)
{
    struct gm_notify n;
    struct gm_error error;
    int manager = manager_open(name);

    set(name, NULL, NULL);
    CHECK_STATUS(gm_notify_open(&n, &error), GM_OK, &error);
    CHECK_STATUS(gm_notify_send(&n, "READY=1\nSTATUS=listening", &error), GM_OK, &error);
    CHECK_STATUS(gm_notify_send(&n, "STOPPING=1", &error), GM_OK, &error);
    CHECK_STR(manager_read(manager), "READY=1\nSTATUS=listening");
    CHECK_STR(manager_read(manager), "STOPPING=1");
    CHECK_STR(manager_read(manager), "");
    CHECK_EQ(gm_notify_wait_ms(&n), -1);
    close(manager);
    /* A manager that has gone is an error, and no signal. */
    CHECK_STATUS(gm_notify_send(&n, "STOPPING=1", &error), GM_INTERNAL, &error);
    CHECK(strstr(error.detail, strerror(ECONNREFUSED)));
    gm_notify_close(&n);
    gm_notify_close(&n); /* twice is fine */
}

/* A manager that no longer reads must not hold up the daemon for ever. */
static void test_full_socket(const char *name)
{
    struct gm_notify n;
    struct gm_error error;
    const struct timeval soon = {.tv_usec = 20000};
    int manager = manager_open(name), sent = 0;

    set(name, NULL, NULL);
    CHECK_STATUS(gm_notify_open(&n, &error), GM_OK, &error);
    struct timeval limit = {0};
    socklen_t length = sizeof limit;
    CHECK(getsockopt(n.socket, SOL_SOCKET, SO_SNDTIMEO, &limit, &length) == 0);
    CHECK(limit.tv_sec > 0);
    setsockopt(n.socket, SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof soon);
    while (sent < 100000 && gm_notify_send(&n, "STATUS=again", &error) == GM_OK)
        sent++;
    CHECK(sent > 0 && sent < 100000 && strstr(error.detail, strerror(EAGAIN)));
    gm_notify_close(&n);
    close(manager);
}

/* Each is refused in words that name the variable, and leaves the output as it was. */
static void test_refused(void)
{
    static char too_long[200];
    const struct {
        const char *socket, *usec, *pid, *named;
    } cases[] = {
        {"", NULL, NULL, "NOTIFY_SOCKET"},
        {"/", NULL, NULL, "NOTIFY_SOCKET"},
        {"@", NULL, NULL, "NOTIFY_SOCKET"},
        {"run/notify", NULL, NULL, "NOTIFY_SOCKET"},
        {"vsock:2:1234", NULL, NULL, "NOTIFY_SOCKET"},
        {too_long, NULL, NULL, "NOTIFY_SOCKET"},
        {"/run/x", "", NULL, "WATCHDOG_USEC"},
        {"/run/x", "0", NULL, "WATCHDOG_USEC"},
        {"/run/x", "-1", NULL, "WATCHDOG_USEC"},
        {"/run/x", " 1", NULL, "WATCHDOG_USEC"},
        {"/run/x", "30s", NULL, "WATCHDOG_USEC"},
        {"/run/x", "9223372036854776", NULL, "WATCHDOG_USEC"},
        {"/run/x", "18446744073709551615", NULL, "WATCHDOG_USEC"},
        {"/run/x", "1000", "me", "WATCHDOG_PID"},
        {"/run/x", "1000", "", "WATCHDOG_PID"},
    };
    struct gm_notify n, before;
    struct gm_error error;

    memset(too_long, 'x', sizeof too_long - 1);
    too_long[0] = '/';
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set(cases[i].socket, cases[i].usec, cases[i].pid);
        memset(&n, 0xA5, sizeof n);
        before = n;
        check_that(gm_notify_open(&n, &error) == GM_INTERNAL &&
                       strstr(error.detail, cases[i].named) && memcmp(&n, &before, sizeof n) == 0,
                   __FILE__, __LINE__, "case %zu", i);
    }
}

/* The longest path that a socket can have is not cut. */
static void test_longest_path(void)
{
    struct gm_notify n;
    struct gm_error error;
    char path[sizeof n.address.sun_path + 1];

    memset(path, 'x', sizeof path);
    path[0] = '/';
    path[sizeof path - 2] = '\0';
    set(path, NULL, NULL);
    CHECK_STATUS(gm_notify_open(&n, &error), GM_OK, &error);
    CHECK_STR(n.address.sun_path, path);
    gm_notify_close(&n);
    path[sizeof path - 2] = 'x';
    path[sizeof path - 1] = '\0';
    set(path, NULL, NULL);
    CHECK_STATUS(gm_notify_open(&n, &error), GM_INTERNAL, &error);
}

struct life {
    enum gm_status status;
    unsigned asked;
    int64_t until_ns;
};

static enum gm_status alive(void *cls, int64_t until_ns, struct gm_error *err)
{
    struct life *life = cls;

    life->asked++;
    life->until_ns = until_ns;
    return life->status == GM_OK ? GM_OK : gm_fail(err, life->status, "not alive");
}

/* Of another process's watchdog we are not told. */
static void test_whose_watchdog(const char *name)
{
    struct gm_notify n;
    struct gm_error error;
    char pid[24];

    set(name, "1000", "1");
    CHECK_STATUS(gm_notify_open(&n, &error), GM_OK, &error);
    CHECK_EQ(gm_notify_wait_ms(&n), -1);
    CHECK_STATUS(gm_notify_watch(&n, &error), GM_OK, &error);
    gm_notify_close(&n);
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    set(name, "9223372036854775", pid); /* the longest: 292 years */
    CHECK_STATUS(gm_notify_open(&n, &error), GM_OK, &error);
    CHECK_EQ(gm_notify_wait_ms(&n), 0);
    n.due_ns = INT64_MAX;
    CHECK_EQ(gm_notify_wait_ms(&n), INT32_MAX);
    gm_notify_close(&n);
}

static void test_watchdog(const char *name)
{
    struct life life = {GM_OK, 0, 0};
    struct gm_notify n;
    struct gm_error error;
    int manager = manager_open(name);
    const int64_t second = 1000000000, period = 800 * second;

    set(name, "800000000", NULL);
    CHECK_STATUS(gm_notify_open(&n, &error), GM_OK, &error);
    n.alive = alive;
    n.cls = &life;
    /* Alive: a sign at once, the next at half of the time, and nothing before. */
    int64_t begun = gm_now_ns();
    CHECK_EQ(gm_notify_wait_ms(&n), 0);
    CHECK_STATUS(gm_notify_watch(&n, &error), GM_OK, &error);
    CHECK_STR(manager_read(manager), "WATCHDOG=1");
    CHECK(life.until_ns >= begun + period / 8 && life.until_ns <= gm_now_ns() + period / 8);
    CHECK(n.due_ns >= begun + period / 2 && n.due_ns <= gm_now_ns() + period / 2);
    CHECK(gm_notify_wait_ms(&n) > 390000 && gm_notify_wait_ms(&n) <= 400001);
    CHECK_STATUS(gm_notify_watch(&n, &error), GM_OK, &error);
    CHECK_EQ(life.asked, 1);
    CHECK_STR(manager_read(manager), "");
    /* Not alive: no sign, and asked again soon. */
    life.status = GM_DEVICE_LOST;
    n.due_ns = begun = gm_now_ns();
    CHECK_STATUS(gm_notify_watch(&n, &error), GM_DEVICE_LOST, &error);
    CHECK_STR(error.detail, "not alive");
    CHECK_STR(manager_read(manager), "");
    CHECK(n.due_ns >= begun + period / 8 && n.due_ns <= gm_now_ns() + period / 8);
    CHECK_EQ(life.asked, 2);
    /* Alive again. */
    life.status = GM_OK;
    n.due_ns = gm_now_ns();
    CHECK_STATUS(gm_notify_watch(&n, &error), GM_OK, &error);
    CHECK_STR(manager_read(manager), "WATCHDOG=1");
    CHECK_EQ(life.asked, 3);
    /* A sign that could not be given is given again soon. */
    close(manager);
    n.due_ns = begun = gm_now_ns();
    CHECK_STATUS(gm_notify_watch(&n, &error), GM_INTERNAL, &error);
    CHECK(n.due_ns <= gm_now_ns() + period / 8);
    gm_notify_close(&n);
}

int main(void)
{
    char path[64], abstract[64];

    if (!CHECK(mkdtemp(folder)))
        return check_report();
    snprintf(path, sizeof path, "%s/notify", folder);
    snprintf(abstract, sizeof abstract, "@%s", folder);
    test_nobody_asks();
    test_messages(path);
    unlink(path);
    test_messages(abstract);
    test_full_socket(abstract);
    test_refused();
    test_longest_path();
    test_whose_watchdog(abstract);
    test_watchdog(abstract);
    rmdir(folder);
    return check_report();
}
