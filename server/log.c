#include "server/log.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 2048
#define JSON_MAX_BYTES PIPE_BUF /* as poll(2) says of a pipe that so much fits */
/* Lines that wait for the thread that writes: 5,000, which are logged in a time slice of 20 ms by
 * 16 cores that serve small requests. Pages that are never needed are never touched. */
#define OUTBOX_BYTES (1u << 20)
#define ROUNDS_MAX 8 /* buffers that a thread writes in a row, while its connections wait */
#define FLUSH_S 1    /* how long the end of the process waits for a thread that writes */

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
 * literals. A thread formats the seconds once. */
static size_t begin_line(char *line, enum gm_log_level level, const char *event)
{
    static _Thread_local time_t second = -1;
    static _Thread_local char stamp[sizeof "2026-01-31T12:00:00"];
    struct timespec now;
    struct tm tm;

    clock_gettime(CLOCK_REALTIME, &now);
    if (now.tv_sec != second) {
        gmtime_r(&now.tv_sec, &tm);
        strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &tm);
        second = now.tv_sec;
    }
    unsigned ms = (unsigned)(now.tv_nsec / 1000000);
    char *at = stpcpy(line, stamp);
    *at++ = '.';
    *at++ = (char)('0' + ms / 100);
    *at++ = (char)('0' + ms / 10 % 10);
    *at++ = (char)('0' + ms % 10);
    at = stpcpy(stpcpy(at, "Z level="), level_names[level]);
    at = stpcpy(stpcpy(stpcpy(at, " event="), event), " ");
    return (size_t)(at - line);
}

/* A line in the format that was chosen: itself, or an object in `json`. Its length is 0 if it does
 * not fit. */
static const char *formatted(const char *line, size_t *len, char json[JSON_MAX_BYTES])
{
    if (log_format == GM_LOG_FMT)
        return line;
    *len = to_json(line, json, JSON_MAX_BYTES);
    return json;
}

/* "... level=warn event=log dropped=N" */
static size_t dropped_line(char line[LINE_MAX_BYTES], unsigned long dropped)
{
    size_t at = begin_line(line, GM_LOG_WARN, "log");

    return at + (size_t)snprintf(line + at, LINE_MAX_BYTES - at, "dropped=%lu\n", dropped);
}

/*
 * What goes to standard error. A thread that finds nobody writing writes its own line, and those
 * that others leave here meanwhile. So a thread waits for its own write(2) alone, and many lines
 * take one.
 */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t round_ended; /* one of the two buffers has been written */
    char lines[2][OUTBOX_BYTES];
    unsigned filled; /* which of the two; the other one is the writer's */
    size_t len;
    bool has_writer, cut; /* cut, the writer's: the last line was not written to its end */
    uint64_t rounds;
    unsigned long dropped;
} outbox = {.mutex = PTHREAD_MUTEX_INITIALIZER, .round_ended = PTHREAD_COND_INITIALIZER};

/* Writes, if standard error has room. Returns how many bytes it took: a terminal or a full disk may
 * take some of them. */
static size_t write_now(const char *bytes, size_t len)
{
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};

    if (poll(&p, 1, 0) <= 0 || !(p.revents & POLLOUT))
        return 0;
    ssize_t written = write(STDERR_FILENO, bytes, len);
    return written > 0 ? (size_t)written : 0;
}

/* How many bytes to write at once: up to the last end of a line within what a pipe takes. */
static size_t lines_at_once(const char *bytes, size_t len)
{
    if (len <= PIPE_BUF)
        return len;
    const char *last = memrchr(bytes, '\n', PIPE_BUF);
    return last ? (size_t)(last - bytes) + 1 : PIPE_BUF;
}

static unsigned long count_lines(const char *bytes, size_t len)
{
    unsigned long count = 0;

    for (size_t i = 0; i < len; i++)
        count += bytes[i] == '\n';
    return count;
}

/* Ends a line that was cut. Returns whether the next one can begin. */
static bool at_line_start(void)
{
    if (outbox.cut)
        outbox.cut = write_now("\n", 1) == 0;
    return !outbox.cut;
}

/* Tells how many lines were dropped before, then writes these. Returns how many are dropped now,
 * and not told of. */
static unsigned long write_lines(const char *bytes, size_t len, unsigned long dropped)
{
    char line[LINE_MAX_BYTES], json[JSON_MAX_BYTES];
    bool within = false; /* bytes are the rest of a line */

    if (dropped > 0 && at_line_start()) {
        size_t size = dropped_line(line, dropped);
        const char *note = formatted(line, &size, json);
        size_t taken = write_now(note, size);
        dropped = taken == size && size > 0 ? 0 : dropped;
        outbox.cut = taken > 0 && taken < size;
    }
    while (len > 0) {
        size_t now = lines_at_once(bytes, len);
        size_t taken = within || at_line_start() ? write_now(bytes, now) : 0;
        if (taken == 0) {
            dropped += count_lines(bytes, now);
            taken = now;
            within = false;
        } else {
            within = outbox.cut = bytes[taken - 1] != '\n';
        }
        bytes += taken;
        len -= taken;
    }
    return dropped;
}

/* Writes until nothing is left, or ROUNDS_MAX buffers: then others have lines all the time, and the
 * next one writes. Call it with the mutex, which it gives up while it writes. */
static void empty_outbox(void)
{
    unsigned round = 0;

    outbox.has_writer = true;
    do {
        const char *lines = outbox.lines[outbox.filled];
        size_t len = outbox.len;
        /* Of a socket, the note goes there. */
        unsigned long dropped = log_socket < 0 ? outbox.dropped : 0;

        outbox.filled ^= 1;
        outbox.len = 0;
        outbox.dropped -= dropped;
        pthread_mutex_unlock(&outbox.mutex);
        dropped = write_lines(lines, len, dropped);
        pthread_mutex_lock(&outbox.mutex);
        outbox.dropped += dropped;
        outbox.rounds++;
        pthread_cond_broadcast(&outbox.round_ended);
    } while (outbox.len > 0 && ++round < ROUNDS_MAX);
    outbox.has_writer = false;
}

static void add_to_outbox(const char *line, size_t len)
{
    pthread_mutex_lock(&outbox.mutex);
    if (len == 0 || len > OUTBOX_BYTES - outbox.len) {
        outbox.dropped++;
    } else {
        memcpy(outbox.lines[outbox.filled] + outbox.len, line, len);
        outbox.len += len;
    }
    if (!outbox.has_writer)
        empty_outbox();
    pthread_mutex_unlock(&outbox.mutex);
}

void gm_log_flush(bool wait)
{
    struct timespec until;
    int late = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += FLUSH_S;
    pthread_mutex_lock(&outbox.mutex);
    /* Lines that were here before are gone after the round that is under way and the next one. */
    uint64_t gone = outbox.rounds + 2;
    while (wait && outbox.has_writer && outbox.rounds < gone && late == 0)
        late = pthread_cond_timedwait(&outbox.round_ended, &outbox.mutex, &until);
    if (!outbox.has_writer && (outbox.len > 0 || (outbox.dropped > 0 && log_socket < 0)))
        empty_outbox();
    pthread_mutex_unlock(&outbox.mutex);
}

/* The time and the level are in fields of their own. */
static bool send_line(enum gm_log_level level, const char *event, const char *line, size_t len)
{
    char json[JSON_MAX_BYTES];
    const char *pairs = line + strcspn(line, " "), *text = formatted(line, &len, json);

    return len > 0 && gm_log_socket_send(log_socket, &log_place, level, event, pairs,
                                         text == json ? json : strstr(pairs, "event="));
}

static void add_dropped(unsigned long count)
{
    pthread_mutex_lock(&outbox.mutex);
    outbox.dropped += count;
    pthread_mutex_unlock(&outbox.mutex);
}

static unsigned long take_dropped(void)
{
    pthread_mutex_lock(&outbox.mutex);
    unsigned long dropped = outbox.dropped;
    outbox.dropped = 0;
    pthread_mutex_unlock(&outbox.mutex);
    return dropped;
}

/* Sends a line, and then how many were not taken before. */
static void send_counted(enum gm_log_level level, const char *event, const char *line, size_t len)
{
    char note[LINE_MAX_BYTES];

    if (!send_line(level, event, line, len)) {
        add_dropped(1);
        return;
    }
    unsigned long dropped = take_dropped();
    if (dropped > 0 && !send_line(GM_LOG_WARN, "log", note, dropped_line(note, dropped)))
        add_dropped(dropped);
}

/* A full pipe that nobody reads, or a journal that is busy, must not stop the threads that serve:
 * lines that are not taken at once are counted. */
static void deliver(enum gm_log_level level, const char *event, const char *line, size_t len)
{
    char json[JSON_MAX_BYTES];

    if (log_socket >= 0) {
        send_counted(level, event, line, len);
        return;
    }
    const char *text = formatted(line, &len, json);
    add_to_outbox(text, len);
}

bool gm_log_writes(enum gm_log_level level)
{
    return level <= log_level;
}

/* Ends a line of `len` bytes, and delivers it. */
static void finish_line(enum gm_log_level level, const char *event, char line[LINE_MAX_BYTES],
                        size_t len)
{
    if (len > LINE_MAX_BYTES - 3)
        len = LINE_MAX_BYTES - 3;
    /* In case a value was not quoted: an event must stay one line, without control sequences. It is
     * looked for first, without branches, which compilers do by vectors. */
    unsigned controls = 0;
    for (size_t i = 0; i < len; i++)
        controls |= ((unsigned char)line[i] < 0x20) | (line[i] == 0x7f);
    for (size_t i = 0; controls && i < len; i++)
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
            line[i] = ' ';
    while (len > 0 && line[len - 1] == ' ')
        len--;
    line[len++] = '\n';
    line[len] = '\0';
    deliver(level, event, line, len);
}

void gm_log(enum gm_log_level level, const char *event, const char *format, ...)
{
    char line[LINE_MAX_BYTES];

    if (!gm_log_writes(level))
        return;
    size_t at = begin_line(line, level, event);

    va_list args;
    va_start(args, format);
    int n = vsnprintf(line + at, sizeof line - at, format, args);
    va_end(args);
    if (n >= 0)
        finish_line(level, event, line,
                    (size_t)n < sizeof line - at ? at + (size_t)n : sizeof line - 1);
}

void gm_log_pairs(enum gm_log_level level, const char *event, const char *pairs, size_t len)
{
    char line[LINE_MAX_BYTES];

    if (!gm_log_writes(level))
        return;
    size_t at = begin_line(line, level, event);
    len = len < sizeof line - at ? len : sizeof line - at;
    memcpy(line + at, pairs, len);
    finish_line(level, event, line, at + len);
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
