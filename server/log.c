#include "server/log.h"

#include <ctype.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 2048

static enum gm_log_level log_level = GM_LOG_INFO;
static enum gm_log_format log_format = GM_LOG_FMT;

static const char *const level_names[GM_LOG_LEVEL_COUNT] = {
#define X(name, text) [GM_LOG_##name] = text,
    GM_LOG_LEVEL_LIST(X)
#undef X
};

void gm_log_setup(enum gm_log_level level, enum gm_log_format format)
{
    log_level = level;
    log_format = format;
}

/* Whether a value is a number in JSON, so that it needs no quotes. */
static bool is_number(const char *value, size_t len)
{
    size_t at = len > 0 && value[0] == '-', digits = at;

    while (at < len && value[at] >= '0' && value[at] <= '9')
        at++;
    if (at == digits || (at - digits > 1 && value[digits] == '0'))
        return false;
    if (at < len && value[at] == '.')
        for (digits = ++at; at < len && value[at] >= '0' && value[at] <= '9';)
            at++;
    return at == len && at > digits;
}

/* Whether a key's values are texts even where they look like numbers. */
static bool is_text(const char *key, size_t len)
{
    static const char *const texts[] = {"id", "key", "client", "method", "path", "name"};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strlen(texts[i]) == len && memcmp(key, texts[i], len) == 0)
            return true;
    return false;
}

/* Writes a value: a number as it is, else a string. What gm_log_quote escaped is escaped as JSON
 * does it: \xNN is the byte's number as \u00NN. Returns what is behind the value. */
static const char *write_value(FILE *out, const char *key, size_t key_len, const char *value)
{
    bool quoted = *value == '"';
    const char *p = value + quoted;
    size_t len = strcspn(value, " \n");

    if (!quoted && !is_text(key, key_len) && is_number(value, len)) {
        fwrite(value, 1, len, out);
        return value + len;
    }
    fputc('"', out);
    for (; *p && *p != '\n' && *p != (quoted ? '"' : ' '); p++) {
        if (quoted && *p == '\\' && p[1] == 'x' && isxdigit((unsigned char)p[2]) &&
            isxdigit((unsigned char)p[3])) {
            fprintf(out, "\\u00%.2s", p + 2);
            p += 3;
        } else if (quoted && *p == '\\' && (p[1] == '"' || p[1] == '\\')) {
            fprintf(out, "\\%c", *++p);
        } else if (*p == '"' || *p == '\\') {
            fprintf(out, "\\%c", *p);
        } else {
            fputc(*p >= 0x20 && *p < 0x7f ? *p : '?', out);
        }
    }
    fputc('"', out);
    return p + (quoted && *p == '"');
}

/* Writes a line of key=value pairs, which begins with a time, as an object. Returns its length, 0
 * if it does not fit. */
static size_t to_json(const char *line, char *text, size_t size)
{
    FILE *out = fmemopen(text, size, "w");
    size_t len = strcspn(line, " ");

    if (!out)
        return 0;
    fprintf(out, "{\"time\":\"%.*s\"", (int)len, line);
    for (const char *p = line + len; *(p += strspn(p, " \n"));) {
        size_t key_len = strcspn(p, "= \n");
        fprintf(out, ",\"%.*s\":", (int)key_len, p);
        p += key_len;
        p = write_value(out, p - key_len, key_len, *p == '=' ? p + 1 : p);
    }
    fputs("}\n", out);
    long at = ftell(out);
    bool whole = fflush(out) == 0 && !ferror(out) && at > 0 && (size_t)at < size;
    fclose(out);
    return whole ? (size_t)at : 0;
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

/* Writes a line of key=value pairs, len bytes and a zero, in the format that was chosen. */
static ssize_t put_line(const char *line, size_t len)
{
    char text[3 * LINE_MAX_BYTES];

    if (log_format == GM_LOG_JSON) {
        len = to_json(line, text, sizeof text);
        line = text;
    }
    return write(STDERR_FILENO, line, len);
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
        ssize_t written = put_line(line, len);
        if (dropped > 0 && poll(&p, 1, 0) > 0 && (p.revents & POLLOUT)) {
            size_t at = begin_line(note, sizeof note, GM_LOG_WARN, "log");
            at += (size_t)snprintf(note + at, sizeof note - at, "dropped=%lu\n", dropped);
            written = put_line(note, at);
            dropped = 0;
        }
        (void)written; /* a log that cannot be written cannot report it */
    }
    pthread_mutex_unlock(&mutex);
}

void gm_log(enum gm_log_level level, const char *event, const char *format, ...)
{
    char line[LINE_MAX_BYTES];

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
    if (at > sizeof line - 3)
        at = sizeof line - 3;
    /* In case a value was not quoted: an event must stay one line, without control sequences. */
    for (size_t i = 0; i < at; i++)
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
            line[i] = ' ';
    while (at > 0 && line[at - 1] == ' ')
        at--;
    line[at++] = '\n';
    line[at] = '\0';
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
