#include "server/log.h"

#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static enum gm_log_level log_level = GM_LOG_INFO;

static const char *const level_names[GM_LOG_LEVEL_COUNT] = {
#define X(name, text) [GM_LOG_##name] = text,
    GM_LOG_LEVEL_LIST(X)
#undef X
};

void gm_log_set_level(enum gm_log_level level)
{
    log_level = level;
}

/* Writes "2026-01-31T12:00:00.123Z level=info event=request "; returns its length. Names are short
 * literals. */
static size_t begin_line(char *line, size_t size, enum gm_log_level level, const char *event)
{
    struct timespec now;
    struct tm tm;

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    size_t at = strftime(line, size, "%Y-%m-%dT%H:%M:%S", &tm);
    int n = snprintf(line + at, size - at, ".%03ldZ level=%s event=%s ", now.tv_nsec / 1000000,
                     level_names[level], event);
    return at + (size_t)n;
}

/*
 * Never blocks: a full pipe that nobody reads must not stop the threads that serve. poll(2) says
 * whether a pipe has room for a whole line, with one writer at a time. Other lines are dropped and
 * counted.
 */
static void write_line(const char *line, size_t len)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static unsigned long dropped;
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
    char note[160];

    pthread_mutex_lock(&mutex);
    if (poll(&p, 1, 0) <= 0 || !(p.revents & POLLOUT)) {
        dropped++;
    } else {
        ssize_t written = write(STDERR_FILENO, line, len);
        if (dropped > 0 && poll(&p, 1, 0) > 0 && (p.revents & POLLOUT)) {
            size_t at = begin_line(note, sizeof note, GM_LOG_WARN, "log");
            at += (size_t)snprintf(note + at, sizeof note - at, "dropped=%lu\n", dropped);
            written = write(STDERR_FILENO, note, at);
            dropped = 0;
        }
        (void)written; /* a log that cannot be written cannot report it */
    }
    pthread_mutex_unlock(&mutex);
}

void gm_log(enum gm_log_level level, const char *event, const char *format, ...)
{
    char line[2048];

    if (level > log_level)
        return;
    size_t at = begin_line(line, sizeof line, level, event);

    va_list args;
    va_start(args, format);
    int n = vsnprintf(line + at, sizeof line - at, format, args);
    va_end(args);
    if (n < 0)
        return;
    at = (size_t)n < sizeof line - at ? at + (size_t)n : sizeof line - 1;
    if (at > sizeof line - 2)
        at = sizeof line - 2;
    /* In case a value was not quoted: an event must stay one line, without control sequences. */
    for (size_t i = 0; i < at; i++)
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
            line[i] = ' ';
    while (at > 0 && line[at - 1] == ' ')
        at--;
    line[at++] = '\n';
    write_line(line, at);
}

void gm_log_detail(enum gm_log_level level, const char *event, const char *detail)
{
    char quoted[1024];

    gm_log(level, event, "detail=%s", gm_log_quote(quoted, sizeof quoted, detail));
}

const char *gm_log_quote(char *out, size_t size, const char *text)
{
    size_t at = 0;

    out[at++] = '"';
    for (const unsigned char *p = (const unsigned char *)text; *p && at + 6 < size; p++) {
        if (*p == '"' || *p == '\\') {
            out[at++] = '\\';
            out[at++] = (char)*p;
        } else if (*p >= 0x20 && *p < 0x7f) {
            out[at++] = (char)*p;
        } else {
            at += (size_t)snprintf(out + at, size - at, "\\x%02x", *p);
        }
    }
    out[at++] = '"';
    out[at] = '\0';
    return out;
}
