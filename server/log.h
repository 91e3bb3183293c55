/*
 * log.h - writes the log to standard error: one line for each event, as key=value pairs.
 *
 *   2026-01-31T12:00:00.123Z level=info event=request id=... status=200
 *
 * or, with --log-format json, as an object:
 *
 *   {"time":"2026-01-31T12:00:00.123Z","level":"info","event":"request","id":"...","status":200}
 *
 * Only server/ logs, and each failure once. Each line is one write(2), so that threads do not mix
 * their lines.
 */
#ifndef GM_SERVER_LOG_H
#define GM_SERVER_LOG_H

#include <stddef.h>

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

/* Call once at start, before other threads exist. */
void gm_log_setup(enum gm_log_level level, enum gm_log_format format);

/* Logs an event: its name, and a format of key=value pairs, which may be "". Pass strings from
 * outside through gm_log_quote. */
void gm_log(enum gm_log_level level, const char *event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Logs an event with detail="...". */
void gm_log_detail(enum gm_log_level level, const char *event, const char *detail);

/* Quotes a text for use as a value. Escapes quotes, backslashes, and bytes that are not printable
 * ASCII. Truncates to `size`. Returns out. */
const char *gm_log_quote(char *out, size_t size, const char *text);

#endif
