/*
 * log.h - writes the log: one line for each event, as key=value pairs.
 *
 *   2026-01-31T12:00:00.123Z level=info event=request id=... status=200
 *
 * or, with --log-format json, as an object:
 *
 *   {"time":"2026-01-31T12:00:00.123Z","level":"info","event":"request","id":"...","status":200}
 *
 * It goes to standard error, to journald with each pair as a field of its own, or to syslog.
 *
 * Only server/ logs, and each failure once. Any thread may log. Threads do not mix their lines.
 * What cannot be taken at once is dropped, counted, and told of later. One thread at a time writes
 * for all, so a process that ends without gm_log_flush may lose the last lines of others.
 */
#ifndef GM_SERVER_LOG_H
#define GM_SERVER_LOG_H

#include "proto/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/un.h>

#define GM_LOG_LEVEL_LIST(X)                                                                       \
    X(ERROR, "error")                                                                              \
    X(WARN, "warn")                                                                                \
    X(INFO, "info")                                                                                \
    X(DEBUG, "debug")

enum gm_log_level {
#define X(name, text) GM_LOG_##name,
    GM_LOG_LEVEL_LIST(X)
#undef X
        GM_LOG_LEVEL_COUNT
};

enum gm_log_format { GM_LOG_FMT, GM_LOG_JSON };

enum gm_log_kind { GM_LOG_STDERR, GM_LOG_JOURNALD, GM_LOG_SYSLOG };

/* Where the log goes; path: of the socket. All zero: standard error. */
struct gm_log_place {
    enum gm_log_kind kind;
    char path[sizeof((struct sockaddr_un *)NULL)->sun_path];
};

/* Call once at start, before other threads exist. */
void gm_log_setup(enum gm_log_level level, enum gm_log_format format);
/* Sends what is logged from now on to this place; before, it goes to standard error. Call it in the
 * same way. GM_INTERNAL says why nobody there can be reached. */
enum gm_status gm_log_open(const struct gm_log_place *place, struct gm_error *err);

/* Whether events of this level are written. Ask where a line costs something to make. */
bool gm_log_writes(enum gm_log_level level);
/* Logs an event: its name, and a format of key=value pairs, which may be "". Pass strings from
 * outside through gm_log_quote. */
void gm_log(enum gm_log_level level, const char *event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same with its pairs as they are, for what is logged of each request: a format takes
 * microseconds. */
void gm_log_pairs(enum gm_log_level level, const char *event, const char *pairs, size_t len);
/* Writes the lines that a thread has left for the next one: call it a few times a second. wait:
 * also waits, for a second at most, until all lines logged so far are written or dropped: call it
 * so before the process ends. */
void gm_log_flush(bool wait);

/* Logs an event with detail="...". */
void gm_log_detail(enum gm_log_level level, const char *event, const char *detail);

/* Quotes a text for use as a value. Escapes quotes, backslashes, and bytes that are not printable
 * ASCII. Truncates to `size`. Returns out. */
const char *gm_log_quote(char *out, size_t size, const char *text);

/* A pair of a line. value: without its quotes, with the escapes of gm_log_quote. */
struct gm_log_pair {
    const char *key, *value;
    size_t key_len, value_len;
    bool quoted;
};

/* Reads the pair at `at`; returns what is behind it, NULL if there is none. */
const char *gm_log_pair_next(const char *at, struct gm_log_pair *ret);

/* ---- log_socket.c ---- */

/* "stderr", "journald" or "syslog"; the last two perhaps with :/PATH of another socket than the
 * system's. False for all else. */
bool gm_log_place_read(const char *text, struct gm_log_place *ret);

/* Opens a socket to send to the place. Returns -1 with errno if nobody is there. */
int gm_log_socket_open(const struct gm_log_place *place);
/*
 * Sends a line, without blocking. pairs: its key=value pairs, in logfmt; message: the line as
 * people read it, both without a newline. Returns whether it was taken.
 */
bool gm_log_socket_send(int fd, const struct gm_log_place *place, enum gm_log_level level,
                        const char *event, const char *pairs, const char *message);

#endif
