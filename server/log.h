/*
 * log.h - one line an event on standard error, as key=value pairs:
 *   2026-01-31T12:00:00.123Z level=info event=request id=... status=200
 * Only server/ logs, once a failure. Lines are written with one write(2), so that threads
 * do not mix theirs.
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

/* Set once at start, before threads. */
void gm_log_set_level(enum gm_log_level level);

/* The event's name, then a format of key=value pairs (may be ""). What is neither a literal nor a
 * number, nor a name that gemmd gave, goes through gm_log_quote. */
void gm_log(enum gm_log_level level, const char *event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* An event that a sentence tells, detail="...". */
void gm_log_detail(enum gm_log_level level, const char *event, const char *detail);

/* Makes any text safe as a value: quoted, with quotes, backslashes and bytes that are not
 * printable ASCII escaped; cut to fit. Returns out. */
const char *gm_log_quote(char *out, size_t size, const char *text);

#endif
