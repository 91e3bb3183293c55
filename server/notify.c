#include "server/process.h"

#include "server/clock.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Notifies at half of the watchdog time. The other half leaves time for three more tries, each as
 * long as the interval between them. */
#define SIGNS_PER_PERIOD 2
#define TRIES_PER_PERIOD 8

/* Time-out of a send. A manager that does not read for this long does not need the message. */
#define SEND_S 5

/* Parses a positive decimal number that fits. */
static bool parse_number(const char *text, int64_t *ret)
{
    char *end;

    errno = 0;
    long long n = strtoll(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno != 0 || n <= 0)
        return false;
    *ret = n;
    return true;
}

/* Parses a path, or with '@' a name in the abstract namespace, whose address begins with a zero
 * byte. */
static bool parse_address(const char *text, struct gm_notify *n)
{
    size_t length = strlen(text);

    if ((text[0] != '/' && text[0] != '@') || length < 2 || length >= sizeof n->address.sun_path)
        return false;
    n->address.sun_family = AF_UNIX;
    memcpy(n->address.sun_path, text, length + 1);
    if (text[0] == '@')
        n->address.sun_path[0] = '\0';
    n->address_len = (unsigned)(offsetof(struct sockaddr_un, sun_path) + length);
    return true;
}

/* The time of WATCHDOG_USEC, unless WATCHDOG_PID names another process. */
static bool parse_watchdog(int64_t *ret_ns)
{
    const char *time = getenv("WATCHDOG_USEC"), *process = getenv("WATCHDOG_PID");
    int64_t usec, pid;

    *ret_ns = 0;
    if (!time)
        return true;
    if (!parse_number(time, &usec) || usec > INT64_MAX / 1000)
        return false;
    if (process && !parse_number(process, &pid))
        return false;
    if (!process || pid == getpid())
        *ret_ns = usec * 1000;
    return true;
}

enum gm_status gm_notify_open(struct gm_notify *ret, struct gm_error *err)
{
    struct gm_notify n = {.socket = -1};
    const char *address = getenv("NOTIFY_SOCKET");
    const struct timeval limit = {.tv_sec = SEND_S};

    if (!address) {
        *ret = n;
        return GM_OK;
    }
    if (!parse_address(address, &n))
        return gm_fail(err, GM_INTERNAL, "NOTIFY_SOCKET: %.128s is not a valid socket address",
                       address);
    if (!parse_watchdog(&n.watchdog_ns))
        return gm_fail(err, GM_INTERNAL, "WATCHDOG_USEC and WATCHDOG_PID must be numbers");
    n.socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (n.socket < 0)
        return gm_fail(err, GM_INTERNAL, "no socket to notify the service manager: %s",
                       strerror(errno));
    setsockopt(n.socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    n.due_ns = gm_now_ns();
    *ret = n;
    return GM_OK;
}

void gm_notify_close(struct gm_notify *notify)
{
    if (notify->socket >= 0)
        close(notify->socket);
    notify->socket = -1;
}

enum gm_status gm_notify_send(const struct gm_notify *notify, const char *lines,
                              struct gm_error *err)
{
    ssize_t sent;

    if (notify->socket < 0)
        return GM_OK;
    do
        sent = sendto(notify->socket, lines, strlen(lines), MSG_NOSIGNAL,
                      (const struct sockaddr *)&notify->address, notify->address_len);
    while (sent < 0 && errno == EINTR);
    if (sent < 0)
        return gm_fail(err, GM_INTERNAL, "cannot notify the service manager: %s", strerror(errno));
    return GM_OK;
}

static bool watched(const struct gm_notify *notify)
{
    return notify->socket >= 0 && notify->watchdog_ns > 0;
}

int gm_notify_wait_ms(const struct gm_notify *notify)
{
    if (!watched(notify))
        return -1;
    int64_t left = notify->due_ns - gm_now_ns();
    return left <= 0 ? 0 : left / 1000000 >= INT_MAX ? INT_MAX : (int)(left / 1000000) + 1;
}

enum gm_status gm_notify_watch(struct gm_notify *notify, struct gm_error *err)
{
    int64_t now = gm_now_ns(), try_ns = notify->watchdog_ns / TRIES_PER_PERIOD;

    if (!watched(notify) || now < notify->due_ns)
        return GM_OK;
    enum gm_status status = notify->alive(notify->cls, now + try_ns, err);
    if (status == GM_OK)
        status = gm_notify_send(notify, "WATCHDOG=1", err);
    notify->due_ns = now + (status == GM_OK ? notify->watchdog_ns / SIGNS_PER_PERIOD : try_ns);
    return status;
}
