/*
 * log_socket.c - the log as datagrams: of journald's native protocol, or of syslog's.
 *
 * Both are a few lines, and want neither libsystemd in every image nor the C library's syslog(3),
 * which waits for a logger that is slow. Addresses are given with each datagram, so that a logger
 * that was started anew is found again.
 */
#include "server/log.h"

#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define JOURNAL_SOCKET "/run/systemd/journal/socket"
#define SYSLOG_SOCKET "/dev/log"
#define DATAGRAM_MAX 16384 /* a line in JSON, and again as fields */

/* Facilities of RFC 5424. */
#define DAEMON 3
#define AUTHPRIV 10 /* for audit lines: systems keep it where few may read */

bool gm_log_place_read(const char *text, struct gm_log_place *ret)
{
    static const struct {
        const char *name, *path;
        enum gm_log_kind kind;
    } places[] = {{"stderr", "", GM_LOG_STDERR},
                  {"journald", JOURNAL_SOCKET, GM_LOG_JOURNALD},
                  {"syslog", SYSLOG_SOCKET, GM_LOG_SYSLOG}};

    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        size_t len = strlen(places[i].name);
        const char *path = text[len] == ':' ? text + len + 1 : places[i].path;
        if (strncmp(text, places[i].name, len) != 0)
            continue;
        if (text[len] == ':' ? !*places[i].path || *path != '/' : text[len] != '\0')
            return false;
        if (strlen(path) >= sizeof ret->path)
            return false;
        ret->kind = places[i].kind;
        snprintf(ret->path, sizeof ret->path, "%s", path);
        return true;
    }
    return false;
}

static struct sockaddr_un address_of(const struct gm_log_place *place)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    memcpy(address.sun_path, place->path, sizeof address.sun_path);
    return address;
}

int gm_log_socket_open(const struct gm_log_place *place)
{
    const struct sockaddr_un address = address_of(place);
    int trial = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int fd = -1;

    if (trial >= 0 && connect(trial, (const struct sockaddr *)&address, sizeof address) == 0)
        fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int saved = errno;
    if (trial >= 0)
        close(trial);
    tzset(); /* reads the file of the time zone, now that it may */
    errno = saved;
    return fd;
}

/* ---- What is sent. ---- */

struct datagram {
    char bytes[DATAGRAM_MAX];
    size_t len;
};

static unsigned priority_of(enum gm_log_level level)
{
    static const unsigned char priorities[GM_LOG_LEVEL_COUNT] = {
        [GM_LOG_ERROR] = 3, [GM_LOG_WARN] = 4, [GM_LOG_INFO] = 6, [GM_LOG_DEBUG] = 7};

    return priorities[level];
}

/* Adds a field in the form that may hold any bytes: its name, a newline, the length, the value, a
 * newline. One that does not fit is left out. */
static void add_field(struct datagram *d, const char *name, size_t name_len, const char *value,
                      size_t len)
{
    const uint64_t size = htole64(len);

    if (name_len + len + sizeof size + 2 > sizeof d->bytes - d->len)
        return;
    char *at = d->bytes + d->len;
    memcpy(at, name, name_len);
    at += name_len;
    *at++ = '\n';
    memcpy(at, &size, sizeof size);
    memcpy(at + sizeof size, value, len);
    at += sizeof size + len;
    *at++ = '\n';
    d->len = (size_t)(at - d->bytes);
}

static void add_text(struct datagram *d, const char *name, const char *value)
{
    add_field(d, name, strlen(name), value, strlen(value));
}

static void add_number(struct datagram *d, const char *name, unsigned value)
{
    char text[16];

    snprintf(text, sizeof text, "%u", value);
    add_text(d, name, text);
}

static unsigned hex_digit(char c)
{
    return (unsigned)(isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10);
}

/* The bytes that gm_log_quote had; returns how many. */
static size_t unescape(const struct gm_log_pair *pair, char *out, size_t size)
{
    const char *p = pair->value, *end = p + pair->value_len;
    size_t len = 0;

    for (; p < end && len < size; p++) {
        if (pair->quoted && *p == '\\' && end - p > 3 && p[1] == 'x' &&
            isxdigit((unsigned char)p[2]) && isxdigit((unsigned char)p[3])) {
            out[len++] = (char)(hex_digit(p[2]) << 4 | hex_digit(p[3]));
            p += 3;
        } else if (pair->quoted && *p == '\\' && end - p > 1) {
            out[len++] = *++p;
        } else {
            out[len++] = *p;
        }
    }
    return len;
}

/* A pair as a field: status=200 is GEMMD_STATUS. */
static void add_pair(struct datagram *d, const struct gm_log_pair *pair)
{
    char name[64] = "GEMMD_", value[2048];
    size_t len = strlen(name);

    if (pair->key_len > sizeof name - len)
        return;
    for (size_t i = 0; i < pair->key_len; i++) {
        unsigned char c = (unsigned char)pair->key[i];
        name[len++] = isalnum(c) ? (char)toupper(c) : '_';
    }
    add_field(d, name, len, value, unescape(pair, value, sizeof value));
}

static void make_journal_entry(struct datagram *d, enum gm_log_level level, unsigned facility,
                               const char *pairs, const char *message)
{
    struct gm_log_pair pair;

    add_field(d, "MESSAGE", strlen("MESSAGE"), message, strcspn(message, "\n"));
    add_number(d, "PRIORITY", priority_of(level));
    add_text(d, "SYSLOG_IDENTIFIER", "gemmd");
    add_number(d, "SYSLOG_FACILITY", facility);
    while ((pairs = gm_log_pair_next(pairs, &pair)))
        add_pair(d, &pair);
}

/* As the C library's syslog(3) writes it, RFC 3164. */
static void make_syslog_line(struct datagram *d, enum gm_log_level level, unsigned facility,
                             const char *message)
{
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t now = time(NULL);
    struct tm tm;

    localtime_r(&now, &tm);
    d->len = (size_t)snprintf(
        d->bytes, sizeof d->bytes, "<%u>%s %2d %02d:%02d:%02d gemmd[%d]: %.*s",
        facility * 8 + priority_of(level), months[tm.tm_mon], tm.tm_mday, tm.tm_hour, tm.tm_min,
        tm.tm_sec, (int)getpid(), (int)strcspn(message, "\n"), message);
}

bool gm_log_socket_send(int fd, const struct gm_log_place *place, enum gm_log_level level,
                        const char *event, const char *pairs, const char *message)
{
    const struct sockaddr_un address = address_of(place);
    unsigned facility = strcmp(event, "audit") == 0 ? AUTHPRIV : DAEMON;
    struct datagram d;

    d.len = 0;
    if (place->kind == GM_LOG_JOURNALD)
        make_journal_entry(&d, level, facility, pairs, message);
    else
        make_syslog_line(&d, level, facility, message);
    return sendto(fd, d.bytes, d.len, MSG_DONTWAIT | MSG_NOSIGNAL,
                  (const struct sockaddr *)&address, sizeof address) == (ssize_t)d.len;
}
