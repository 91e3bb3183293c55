#include "server/log.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 2048

static enum gm_log_level log_level = GM_LOG_INFO;
static enum gm_log_format log_format = GM_LOG_FMT;
static struct gm_log_place log_place;
static int log_socket = -1; /* < 0: standard error */

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

enum gm_status gm_log_open(const struct gm_log_place *place, struct gm_error *err)
{
    int fd = place->kind == GM_LOG_STDERR ? -1 : gm_log_socket_open(place);

    if (place->kind != GM_LOG_STDERR && fd < 0)
        return gm_fail(err, GM_INTERNAL, "--log-to: %s: %s", place->path, strerror(errno));
    if (log_socket >= 0)
        close(log_socket);
    log_place = *place;
    log_socket = fd;
    return GM_OK;
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

const char *gm_log_pair_next(const char *at, struct gm_log_pair *ret)
{
    at += strspn(at, " \n");
    if (!*at)
        return NULL;
    ret->key = at;
    ret->key_len = strcspn(at, "= \n");
    at += ret->key_len;
    at += *at == '=';
    ret->quoted = *at == '"';
    at += ret->quoted;
    ret->value = at;
    while (*at && *at != '\n' && *at != (ret->quoted ? '"' : ' '))
        at += ret->quoted && *at == '\\' && at[1] ? 2 : 1;
    ret->value_len = (size_t)(at - ret->value);
    return at + (ret->quoted && *at == '"');
}

/* Writes a value: a number as it is, else a string. What gm_log_quote escaped is escaped as JSON
 * does it: \xNN is the byte's number as \u00NN. */
static void write_value(FILE *out, const struct gm_log_pair *pair)
{
    const char *p = pair->value, *end = p + pair->value_len;

    if (!pair->quoted && !is_text(pair->key, pair->key_len) && is_number(p, pair->value_len)) {
        fwrite(p, 1, pair->value_len, out);
        return;
    }
    fputc('"', out);
    for (; p < end; p++) {
        if (pair->quoted && *p == '\\' && p[1] == 'x' && isxdigit((unsigned char)p[2]) &&
            isxdigit((unsigned char)p[3])) {
            fprintf(out, "\\u00%.2s", p + 2);
            p += 3;
        } else if (pair->quoted && *p == '\\' && (p[1] == '"' || p[1] == '\\')) {
            fprintf(out, "\\%c", *++p);
        } else if (*p == '"' || *p == '\\') {
            fprintf(out, "\\%c", *p);
        } else {
            fputc(*p >= 0x20 && *p < 0x7f ? *p : '?', out);
        }
    }
    fputc('"', out);
}

/* Writes a line of key=value pairs, which begins with a time, as an object. Returns its length, 0
 * if it does not fit. */
static size_t to_json(const char *line, char *text, size_t size)
{
    FILE *out = fmemopen(text, size, "w");
    size_t len = strcspn(line, " ");
    struct gm_log_pair pair;

    if (!out)
        return 0;
    fprintf(out, "{\"time\":\"%.*s\"", (int)len, line);
    for (const char *p = line + len; (p = gm_log_pair_next(p, &pair));) {
        fprintf(out, ",\"%.*s\":", (int)pair.key_len, pair.key);
        write_value(out, &pair);
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

/* Whether standard error has room for a whole line, as poll(2) says of a pipe. */
static bool has_room(void)
{
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};

    return poll(&p, 1, 0) > 0 && (p.revents & POLLOUT);
}

/* Writes a line of key=value pairs, len bytes and a zero, in the format that was chosen. Returns
 * whether it was taken. */
static bool put_line(enum gm_log_level level, const char *event, const char *line, size_t len)
{
    char text[3 * LINE_MAX_BYTES];
    const char *pairs = line + strcspn(line, " ");

    if (log_socket < 0 && !has_room())
        return false;
    if (log_format == GM_LOG_JSON) {
        len = to_json(line, text, sizeof text);
        line = text;
        if (len == 0)
            return false;
    }
    if (log_socket >= 0) /* the time and the level are in fields of their own */
        return gm_log_socket_send(log_socket, &log_place, level, event, pairs,
                                  log_format == GM_LOG_JSON ? text : strstr(pairs, "event="));
    ssize_t written = write(STDERR_FILENO, line, len);
    (void)written; /* a log that cannot be written cannot report it */
    return true;
}

/*
 * Never blocks: a full pipe that nobody reads, or a journal that is busy, must not stop the threads
 * that serve. One thread writes at a time. Lines that are not taken are counted.
 */
static void write_line(enum gm_log_level level, const char *event, const char *line, size_t len)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static unsigned long dropped;
    char note[160];

    pthread_mutex_lock(&mutex);
    if (!put_line(level, event, line, len)) {
        dropped++;
    } else if (dropped > 0) {
        size_t at = begin_line(note, sizeof note, GM_LOG_WARN, "log");
        at += (size_t)snprintf(note + at, sizeof note - at, "dropped=%lu\n", dropped);
        if (put_line(GM_LOG_WARN, "log", note, at))
            dropped = 0;
    }
    pthread_mutex_unlock(&mutex);
}

bool gm_log_writes(enum gm_log_level level)
{
    return level <= log_level;
}

void gm_log(enum gm_log_level level, const char *event, const char *format, ...)
{
    char line[LINE_MAX_BYTES];

    if (!gm_log_writes(level))
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
    write_line(level, event, line, at);
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
